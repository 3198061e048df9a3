"""Secrets by shape, by vendor and by chance. All are put together here, so that no scanner takes them for real."""

import base64
import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from khms.check.credentials import secrets
from khms.check.screening import screen

CHANCE = "q7" + "Rk2Xw9" + "LmB4vT" + "8zNc3Y" + "pH6sJd" + "5gQa1F" + "eU0"
SHAPE = "gh" + "p_" + "A1b2C3d4E5f6" * 3


def names(text: str, **config: float) -> list[str]:
    settings = {f"screening.{key}": value for key, value in config.items()}
    return [name for _, _, name, _ in secrets(text, 64, settings)]


def test_a_known_shape_comes_first_and_once() -> None:
    ((start, end, _, known),) = secrets(f"use {SHAPE} here", 64)
    assert f"use {SHAPE} here"[start:end] == SHAPE
    assert known


def test_short_words_are_not_looked_at_twice() -> None:
    assert secrets(f"use {CHANCE}", 15) == []


@pytest.mark.parametrize("frame", ["{}", "the value is {}", "KEY2: {}", "(`{}`)", "x={}\nand more"])
def test_a_string_of_chance_is_a_secret(frame: str) -> None:
    assert names(frame.format(CHANCE)) == ["high-entropy"]


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha256(b"x").hexdigest(),
        hashlib.sha1(b"x", usedforsecurity=False).hexdigest(),
        "123e4567-e89b-12d3-a456-426614174000",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        f"sha512-{CHANCE}",
        f"integrity: {CHANCE}",
        f"ssh-ed25519 {CHANCE}",
        f"data:image/png;base64,{CHANCE}",
        f"https://example.com/watch/{CHANCE}",
        f"[page](/files/{CHANCE})",
        f"{CHANCE}.png",
        "VeryLongGeneratedHandlerNameForPaymentsReconciliationJob2",
        "src/components/Payments/ReconciliationHandlerV2/IndexPage",
        "a-slug-of-many-words-that-goes-on-and-on-in-2026",
        "test_since_reads_days_from_that_one_on_and_no_undated_file_2",
    ],
)
def test_what_is_public_by_nature_is_none(text: str) -> None:
    assert names(text) == []


def test_the_limits_can_be_set() -> None:
    assert names(CHANCE, entropy_chars=100) == []
    assert names(CHANCE[:24]) == []
    assert names(CHANCE[:24], entropy_chars=20, entropy_bits=4.0) == ["high-entropy"]


def test_a_text_of_nothing_else_shows_a_few() -> None:
    assert 0 < len(names(f"{CHANCE}\n" * 500)) <= 40


KINDS = (("ed25519",), ("rsa", "-b", "3072"), ("ecdsa", "-b", "521"))


def signed(folder: Path, *kind: str, namespace: str = "khms-approval") -> tuple[str, str]:
    """(armoured signature, private key) of a fresh key."""
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", *kind, "-N", "", "-f", str(key)], check=True)
    command = ["ssh-keygen", "-Y", "sign", "-q", "-n", namespace, "-f", str(key)]
    done = subprocess.run(command, input=b"a record", capture_output=True, check=True)
    return done.stdout.decode(), key.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[0])
def test_the_signature_of_a_record_is_public(tmp_path: Path, kind: tuple[str, ...]) -> None:
    armoured, private = signed(tmp_path, *kind)
    record = json.dumps({"unit": "", "signature": armoured, "waivers": []}, indent=2)
    assert names(record) == [] and names(armoured) == []
    public = (tmp_path / "key.pub").read_text(encoding="utf-8")
    assert names(f'ada@example.org namespaces="khms-approval" {public}') == []
    # A secret before it, behind it, or in its place is one all the same.
    for other in (CHANCE, SHAPE, private):
        assert len(names(json.dumps({"at": other, "signature": armoured, "why": f"see {other}"}, indent=2))) == 2
        assert len(names(json.dumps({"signature": other}))) == 1


def test_what_only_looks_like_a_signature_hides_nothing(tmp_path: Path) -> None:
    armoured, _ = signed(tmp_path, "ed25519")
    head, *rows, foot = armoured.splitlines()
    data = base64.b64decode("".join(rows))
    for other in (
        data + b"\0\0\0\x20" + CHANCE[:32].encode(),  # more behind it
        data[:10] + b"\0\0\0\x23" + CHANCE[:35].encode() + data[10:],  # more in it
        data.replace(b"khms-approval", CHANCE[:13].encode()),
        data[:-30],
        CHANCE.encode() * 3,
    ):
        lines = base64.b64encode(other).decode()
        assert "high-entropy" in names("\n".join([head, lines[:70], lines[70:], foot])), other
    assert names("\n".join([head, CHANCE, *rows, foot]))


def test_a_security_keys_public_half_is_public() -> None:
    for kind in ("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com", "ssh-ed25519"):
        assert names(f"ada@example.org {kind} AAAA{CHANCE}") == []
    assert names(f"ada@example.org {CHANCE}") == ["high-entropy"]


def test_a_great_many_beginnings_of_signatures_are_read_in_one_go() -> None:
    assert names(("-----BEGIN SSH SIGNATURE-----\n" + "A" * 70) * 3000 + f" {CHANCE}") == ["high-entropy"]


def test_the_name_of_a_session_is_no_secret_and_the_same_letters_elsewhere_are_one() -> None:
    name = "ses_5eb063b1e2a3fH7xoSfvipwprp"
    for text in (
        f"session:opencode/{name}",
        f"'session:opencode/{name}: \"the pump\"'",
        f"session:opencode/{name}/2026-12-01.7ab56722c4a0",
    ):
        assert not screen(text), text
    assert screen(f"the key is opencode/{name}") and screen(f"session:opencode/{name}x9Kq2")
