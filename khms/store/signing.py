"""Signatures over approval records, by OpenSSH's `ssh-keygen`: the keys that people have for git already.

`memory/signers` is OpenSSH's file of allowed signers, one key a line. What was verified once is remembered in the git
folder, as digests made with this user's secret: a git folder that came with somebody else's archive vouches for
nothing.
"""

import contextlib
import fnmatch
import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from khms.errors import KhmsError, Unavailable
from khms.store import cleared, files

NAMESPACE = "khms-approval"
CI = "ci"  # the principal of a job that signs for whoever approved in the pull request
KEPT = "verified"
SIZE = 32  # bytes of a remembered digest
_SECONDS = 20.0
_ASKING_SECONDS = 180.0  # for a person who types a passphrase or looks for a token to touch
_TYPES = ("ssh-", "ecdsa-", "sk-")
_BLANK = " \t\r\n"  # what ssh takes for white space
UNSEEN = "put the file back as its last record has it (git log -- memory/signers), or write it anew with plain lines"


@dataclass(frozen=True, slots=True)
class Signer:
    """One line of the file of signers. `principals` are its patterns, `kind` and `key` the public key, `line` counts
    from 1."""

    principals: tuple[str, ...]
    kind: str
    key: str
    comment: str = ""
    options: str = ""
    line: int = 0

    @property
    def fingerprint(self) -> str:
        """The key's fingerprint as ssh shows it."""
        import base64
        import hashlib

        try:
            digest = hashlib.sha256(base64.b64decode(self.key)).digest()
        except ValueError:
            return "unreadable"
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    def names(self, principal: str) -> bool:
        """Whether this line speaks for the principal."""
        hits = [pattern for pattern in self.principals if fnmatch.fnmatchcase(principal, _glob(pattern))]
        return bool(hits) and not any(pattern.startswith("!") for pattern in hits)


def _glob(pattern: str) -> str:
    """The pattern for fnmatch: brackets mean nothing to ssh."""
    return pattern.removeprefix("!").replace("[", "[[]")


def signers(data: bytes | None) -> list[Signer]:
    """The lines of a file of signers that hold a key; what is none is left out, as ssh leaves it out. Lines and words
    are those that ssh sees: a byte-order mark is part of a name, and only LF ends a line."""
    found = []
    for number, line in enumerate((data or b"").split(b"\n"), 1):
        held = _signer(line.partition(b"\0")[0].decode("utf-8", "replace").strip(_BLANK), number)
        if held is not None:
            found.append(held)
    return found


def _signer(line: str, number: int) -> Signer | None:
    if not line or line.startswith("#"):
        return None
    names, words = _words(line)
    at = next((i for i, word in enumerate(words) if word.startswith(_TYPES)), -1)
    if at < 0 or at + 1 >= len(words):
        return None
    comment = " ".join(words[at + 2 :])
    return Signer(tuple(names.split(",")), words[at], words[at + 1], comment, " ".join(words[:at]), number)


def _words(line: str) -> tuple[str, list[str]]:
    """The names, and the words after them; white space between quotation marks parts none."""
    words: list[str] = []
    word, quoted = "", False
    for before, char in zip(" " + line, line, strict=False):
        quoted ^= char == '"' and before != "\\"
        if quoted or char not in _BLANK:
            word += char
        elif word:
            words.append(word)
            word = ""
    words += [word] if word else []
    names = words.pop(0) if words else ""
    if names.startswith('"') and names.count('"') > 1:
        names, _, rest = names[1:].partition('"')
        words = [rest, *words] if rest else words
    return names, words


def unseen(data: bytes | None) -> str:
    """What of a file of signers a person does not see and ssh reads; empty for nothing."""
    text = (data or b"").decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        return "a byte-order mark"
    if "\ufffd" in text:
        return "bytes that are no UTF-8"
    odd = next((char for char in text if char != "\n" and char != "\t" and not char.isprintable()), "")
    return f"the character U+{ord(odd):04X}" if odd and odd != "\r" else "carriage returns" if odd else ""


def public_key(text: str) -> tuple[str, str, str] | None:
    """(type, key, comment) of a public key on one line, None for anything else (a private key above all)."""
    words = text.strip().split(None, 2)
    if "\n" in text.strip() or len(words) < 2 or not words[0].startswith(_TYPES):
        return None
    return words[0], words[1], words[2].strip() if len(words) > 2 else ""


def email_of(reviewer: str) -> str:
    """The address in `Name <address>`; empty for an agent."""
    _, found, rest = reviewer.rpartition("<")
    return rest.removesuffix(">").strip() if found and rest.endswith(">") else ""


@dataclass(frozen=True, slots=True)
class Key:
    """The key that signs: a file's path, or the text of a public key whose other half an ssh agent holds."""

    path: str = ""
    literal: str = ""

    @property
    def shown(self) -> str:
        return self.path or self.literal[:40]

    @property
    def needs_touch(self) -> bool:
        """Whether a person must touch a token for each signature, as far as its public half tells."""
        text = self.literal
        if self.path:
            public = self.path if self.path.endswith(".pub") else self.path + ".pub"
            try:
                text = files.read(public).decode("utf-8", "replace")
            except OSError:
                return False
        return text.startswith("sk-")


def key_from(said: str) -> Key | None:
    """The key that a setting means: a path that is there, or `key::ssh-…`. None for anything else, such as the id of
    an OpenPGP key."""
    said = said.strip()
    literal = said.removeprefix("key::")
    if literal.startswith(_TYPES) and len(literal.split()) >= 2:
        return Key(literal=literal)
    path = os.path.expanduser(said)  # noqa: PTH111  Path.expanduser raises for a user who is not there
    return Key(path=path) if said and Path(path).is_file() else None


def sign(data: bytes, key: Key, *, ask: bool) -> str:
    """The armored signature over `data`. With `ask` a person may be asked for a passphrase or a touch at the terminal;
    without, Unavailable is raised at once where one would be needed. Raises Unavailable where the key cannot sign."""
    if not ask and key.needs_touch:
        raise Unavailable("this key needs a touch for each signature, and nobody is asked here", where=key.shown)
    with tempfile.TemporaryDirectory(prefix="khms-sign-") as name:
        place = key.path
        if key.literal:
            place = f"{name}/key.pub"
            Path(place).write_text(key.literal + "\n", encoding="utf-8")
        command = ["-Y", "sign", "-q", "-n", NAMESPACE, "-f", place, *(["-U"] if key.literal else [])]
        status, out, err = _run(command, data, ask=ask)
    if status or b"BEGIN SSH SIGNATURE" not in out:
        said = err.decode("utf-8", "replace").strip().splitlines()
        hint = "unlock it first: ssh-add " + (key.path or "")
        raise Unavailable(f"this key did not sign: {said[-1] if said else status}", where=key.shown, hint=hint)
    return out.decode("ascii", "replace")


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be verified: that one of `principals` signed `data` at the time `at` (ISO 8601)."""

    data: bytes
    signature: str
    principals: tuple[str, ...]
    at: str


@dataclass
class Verifier:
    """Verifies signatures and remembers those that hold. `place` is the git folder's own folder of khms."""

    place: Path | None = None
    _known: frozenset[bytes] = field(default=frozenset())
    _held: set[bytes] = field(default_factory=set)
    _key: bytes | None = None
    _loaded: bool = False

    def verify(self, claims: Sequence[Claim], allowed: bytes) -> list[bool]:
        """Whether each claim holds under the file of signers `allowed`. Raises Unavailable without ssh-keygen."""
        self._load()
        digests = [self._digest(claim, allowed) for claim in claims]
        todo = [i for i, digest in enumerate(digests) if digest is None or digest not in self._known | self._held]
        found = [True] * len(claims)
        if todo:
            with tempfile.TemporaryDirectory(prefix="khms-verify-") as name, _pool(len(todo)) as pool:
                signers_file = Path(name, "signers")
                signers_file.write_bytes(allowed)
                work = [(claims[i], signers_file, Path(name, f"{i}.sig")) for i in todo]
                for i, good in zip(todo, pool.map(_verified, work), strict=True):
                    found[i] = good
        self._held.update(digest for digest, good in zip(digests, found, strict=True) if good and digest)
        return found

    def _load(self) -> None:
        if self._loaded or self.place is None:
            return
        self._loaded = True
        self._key = cleared.key(b"khms.verified/1")
        try:
            data = files.read(self.place / KEPT)
        except OSError:
            return
        self._known = frozenset(data[i : i + SIZE] for i in range(0, len(data), SIZE))

    def _digest(self, claim: Claim, allowed: bytes) -> bytes | None:
        if self._key is None:
            return None
        parts = (claim.data, claim.signature.encode(), "\n".join((*claim.principals, claim.at)).encode(), allowed)
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return cleared.digest(self._key, framed, b"signature")

    def keep(self, *, whole: bool) -> None:
        """Remembers what was verified; after a `whole` audit only that. Where it cannot be written, the next run
        verifies again."""
        kept = self._held if whole else self._held | self._known
        if self.place is None or self._key is None or kept == self._known:
            return
        with contextlib.suppress(KhmsError):
            files.write_atomic(self.place / KEPT, b"".join(sorted(kept)))


def _pool(work: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(work, 2 * (os.cpu_count() or 1)))


def _verified(work: tuple[Claim, Path, Path]) -> bool:
    claim, signers_file, place = work
    place.write_text(claim.signature, encoding="utf-8")
    when = _utc(claim.at)
    for principal in claim.principals:
        command = ["-Y", "verify", "-f", str(signers_file), "-I", principal, "-n", NAMESPACE, "-s", str(place)]
        if when:
            command += ["-O", f"verify-time={when}"]
        if _run(command, claim.data, ask=False)[0] == 0:
            return True
    return False


def principals(signature: str, allowed: bytes, at: str = "") -> list[str]:
    """Whom the file of signers knows the signature's key as (at a time, where one is given); empty for a stranger's."""
    with tempfile.TemporaryDirectory(prefix="khms-verify-") as name:
        place, signers_file = Path(name, "sig"), Path(name, "signers")
        place.write_text(signature, encoding="utf-8")
        signers_file.write_bytes(allowed)
        command = ["-Y", "find-principals", "-f", str(signers_file), "-s", str(place)]
        when = _utc(at)
        status, out, _ = _run([*command, *(["-O", f"verify-time={when}"] if when else [])], b"", ask=False)
    return [] if status else out.decode("utf-8", "replace").split()


def _utc(at: str) -> str:
    """The moment as ssh-keygen reads it (in UTC, see `_run`); empty where `at` is none."""
    import datetime

    try:
        moment = datetime.datetime.fromisoformat(at)
    except ValueError:
        return ""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.astimezone(datetime.UTC).strftime("%Y%m%d%H%M%S")


def _run(args: Iterable[str], data: bytes, *, ask: bool) -> tuple[int, bytes, bytes]:
    """Runs ssh-keygen. Unless a person may be asked it has no terminal and no program to ask with."""
    env = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
    if not ask:
        env |= {"SSH_ASKPASS_REQUIRE": "never"}
        env.pop("DISPLAY", None)
    try:
        done = subprocess.run(
            ["ssh-keygen", *args],
            input=data,
            capture_output=True,
            env=env,
            check=False,
            start_new_session=not ask,
            timeout=_ASKING_SECONDS if ask else _SECONDS,
        )
    except FileNotFoundError as error:
        raise Unavailable(
            "ssh-keygen was not found, and signatures of approvals are made and verified with it",
            hint="install OpenSSH 8.2 or newer (Debian, Ubuntu: apt install openssh-client) and put it on PATH",
        ) from error
    except subprocess.TimeoutExpired as error:
        seconds = _ASKING_SECONDS if ask else _SECONDS
        raise Unavailable(
            f"ssh-keygen did not end within {seconds:.0f} s",
            hint="is an ssh agent waiting for someone? unlock the key first: ssh-add",
        ) from error
    return done.returncode, done.stdout, done.stderr
