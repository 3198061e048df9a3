"""Reading signers and keys, and what ssh-keygen says of a signature."""

import subprocess
from pathlib import Path

import pytest

from khms.store import signing
from khms.store.signing import Claim, Key, Verifier

AT = "2026-03-05T10:00:00+00:00"


def make_key(folder: Path, name: str) -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    return path


def allowed(principals: str, key: Path, options: str = "") -> bytes:
    public = Path(f"{key}.pub").read_text(encoding="utf-8")
    return f"{principals} {options}{' ' if options else ''}{public}".encode()


def holds(signature: str, signers: bytes, *, data: bytes = b"words", who: str = "a@b.org", at: str = AT) -> bool:
    return Verifier().verify([Claim(data, signature, (who,), at)], signers)[0]


def test_a_signature_holds_for_its_words_its_signer_and_its_time(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one")
    signature = signing.sign(b"words", Key(str(key)), ask=False)
    signers = allowed("a@b.org", key, 'namespaces="khms-approval"')
    assert holds(signature, signers)
    assert not holds(signature, signers, data=b"other words")
    assert not holds(signature, signers, who="c@d.org")
    assert not holds("no signature", signers)
    assert not holds(signature, allowed("a@b.org", make_key(tmp_path, "two")))
    assert not holds(signature, b"")
    assert not holds(signature, allowed("a@b.org", key, 'namespaces="git"'))
    assert signing.principals(signature, signers) == ["a@b.org"]
    assert signing.principals(signature, b"") == []


@pytest.mark.parametrize(
    ("options", "good"),
    [
        ('valid-before="20260101"', False),
        ('valid-after="20260101",valid-before="20270101"', True),
        ('valid-after="20260305100001"', False),
        ('valid-before="20260305100001"', True),
    ],
)
def test_a_key_counts_while_it_is_valid(
    options: str, good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told at the time that the record says, whatever the clock and its zone say now."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    key = make_key(tmp_path, "one")
    signature = signing.sign(b"words", Key(str(key)), ask=False)
    signers = allowed("a@b.org", key, options)
    assert holds(signature, signers) == holds(signature, signers, at="2026-03-05T11:00:00+01:00") == good


def test_signers_are_read_as_ssh_reads_them(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one")
    kind, text, _ = Path(f"{key}.pub").read_text(encoding="utf-8").split()
    data = (
        f'# a comment\n\na@b.org,*@c.org,!d@c.org namespaces="khms-approval" {kind} {text} at work\n'
        f'"e@f.org" {kind} {text}\nno key here\n'
    ).encode()
    first, second = signing.signers(data)
    assert first.principals == ("a@b.org", "*@c.org", "!d@c.org") and first.comment == "at work" and first.line == 3
    assert first.names("a@b.org") and first.names("x@c.org") and not first.names("d@c.org")
    assert second.principals == ("e@f.org",) and second.names("e@f.org")
    shown = subprocess.run(["ssh-keygen", "-lf", f"{key}.pub"], capture_output=True, text=True, check=True).stdout
    assert first.fingerprint in shown
    assert signing.signers(None) == [] and signing.signers(b"\xff\xfe") == []


def test_what_is_a_public_key(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one")
    assert signing.public_key(Path(f"{key}.pub").read_text(encoding="utf-8"))
    for text in (
        key.read_text(encoding="utf-8"),
        "",
        "ssh-ed25519",
        "hello world",
        "ssh-ed25519 AAAA\nssh-ed25519 BBBB",
    ):
        assert signing.public_key(text) is None


def test_what_is_a_signing_key(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one")
    assert signing.key_from(str(key)) == Key(str(key))
    assert signing.key_from("key::ssh-ed25519 AAAA me") == Key(literal="ssh-ed25519 AAAA me")
    assert signing.key_from("ssh-ed25519 AAAA") == Key(literal="ssh-ed25519 AAAA")
    for said in ("", "0123456789ABCDEF", str(tmp_path / "nothing"), "~nobody-here/key"):
        assert signing.key_from(said) is None


def test_whose_address() -> None:
    assert signing.email_of("Ada <ada@example.org>") == "ada@example.org"
    assert signing.email_of("A <b> <c@d.org>") == "c@d.org"
    assert signing.email_of("agent:claude-code") == signing.email_of("") == ""


def test_a_verifier_keeps_what_holds_only(tmp_path: Path) -> None:
    key = make_key(tmp_path, "one")
    signature, signers = signing.sign(b"words", Key(str(key)), ask=False), allowed("a@b.org", key)
    place = tmp_path / "khms"
    first = Verifier(place)
    good, bad = Claim(b"words", signature, ("a@b.org",), AT), Claim(b"other", signature, ("a@b.org",), AT)
    assert first.verify([good, bad], signers) == [True, False]
    first.keep(whole=True)
    assert len((place / "verified").read_bytes()) == signing.SIZE
    (place / "verified").write_bytes(b"damage")
    assert Verifier(place).verify([good, bad], signers) == [True, False]


SEEN = (
    b"{name} {key}\n",
    b"{name}\t{key}\r\n",
    b'  {name}   namespaces="khms-approval"  {key}\n',
    b'"{name}" {key}\n',
    b"garbage\nmore garbage here\n{name} {key}\n",
    b"bob@x.y ssh-ed25519 AAAA\n{name} {key}\n",
    b"{name} {key}\0 more\n",
    b"*@b.org {key}\n",
)
UNSEEN = (
    b"\xef\xbb\xbf{name} {key}\n",
    b"\x0b{name} {key}\n",
    b"bob@x.y {key} x\x0b{name} {key}\n",
    b"# words\r{name} {key}\n",
    b"bob@x.y {key} x\xe2\x80\xa8{name} {key}\n",
    b"a@[b].org {key}\n",
    b"{name}\xc2\xa0{key}\n",
)


@pytest.mark.parametrize("line", [*SEEN, *UNSEEN])
def test_signers_are_those_that_ssh_sees(line: bytes, tmp_path: Path) -> None:
    key = make_key(tmp_path, "one")
    public = b" ".join(Path(f"{key}.pub").read_bytes().split()[:2])
    data = line.replace(b"{name}", b"a@b.org").replace(b"{key}", public)
    said = any(held.names("a@b.org") and held.key.encode() in public for held in signing.signers(data))
    assert said == holds(signing.sign(b"words", Key(str(key)), ask=False), data) == (line in SEEN)


def test_what_nobody_sees_in_a_file_of_signers_is_named() -> None:
    assert signing.unseen(b"a@b.org ssh-ed25519 AAAA \xc3\xa9 # x\n\tb\n") == "" == signing.unseen(None)
    assert signing.unseen(b"\xef\xbb\xbfa") == "a byte-order mark"
    assert signing.unseen(b"a \xe9") == "bytes that are no UTF-8"
    assert signing.unseen(b"a\r\nb") == "carriage returns"
    assert signing.unseen(b"a\x0bb") == "the character U+000B"
    assert signing.unseen("a\u200bb".encode()) == "the character U+200B"
