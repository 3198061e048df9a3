"""What screening says of all files at once: a third of the work of a lint, so what was found clean is remembered, and
the rest is shared with a second core.

A forked child has the files in memory already and sends back what it found, which is next to nothing. Where there is no
fork, no second core, or the child fails, this process screens them all. The answers are the same.
"""

import os
import pickle
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from khms import __version__, resources
from khms.store import cleared
from khms.store.layout import APPROVALS, EVENTS, RECEIPTS, VIEWS, Base
from khms.store.tracked import Entry

if TYPE_CHECKING:
    from khms.check.screening import Hit

ENOUGH = 500  # files from which a memory, and a second process, pay
OWN = 6  # every n-th file stays with this process, which judges all of them while its child screens
LEDGERS = (f"{APPROVALS}/", f"{RECEIPTS}/", f"{EVENTS}/", f"{VIEWS}/", "memory/use/")  # only programs write there
_HASH = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")

Found = Mapping[str, Sequence["Hit"]]


def is_text(data: bytes) -> bool:
    return b"\0" not in data[:8192]


def text_of(data: bytes) -> str:
    """A file's text without a byte-order mark, lines ended by LF; bytes that are not UTF-8 read as U+FFFD."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def hits(entry: Entry) -> Sequence["Hit"]:
    """What screening finds in a file; nothing in one that is no text."""
    from khms.check.screening import screen

    if not is_text(entry.data):
        return ()
    text = text_of(entry.data)
    # The hashes that a program writes are no secrets, and a thousand of them take long to tell from one.
    return screen(_HASH.sub("", text) if _is_written(entry.path) else text)


def _is_written(path: str) -> bool:
    """Whether only programs write this file."""
    return path.startswith(LEDGERS) or path.endswith("/unit.json")


@dataclass(frozen=True, slots=True)
class Child:
    pid: int
    pipe: int

    def found(self) -> Found | None:
        """What the child found, by path, files with nothing left out; None where it failed. Waits for it."""
        with open(self.pipe, "rb") as pipe:
            data = pipe.read()
        os.waitpid(self.pid, 0)
        try:
            found: Found = pickle.loads(data)
        except (EOFError, pickle.UnpicklingError):
            return None
        return found


@dataclass(frozen=True, slots=True)
class Ahead:
    """A screening under way: `given` are the files that a child looks at, `own` those left to this process. `digests`
    has every file's by its path, `kept` is what was found clean before; both are empty where nothing can be kept."""

    base: Base
    digests: Mapping[str, bytes]
    kept: frozenset[bytes]
    own: Sequence[Entry]
    given: Sequence[Entry] = ()
    child: Child | None = None

    def found(self) -> Found:
        """What was found, by path, files with nothing left out; the clean ones are remembered. Waits for the child."""
        found = _found(self.own)
        if self.child:
            theirs = self.child.found()
            found |= _found(self.given) if theirs is None else theirs
        clean = {digest for path, digest in self.digests.items() if path not in found}
        if clean != self.kept:
            cleared.keep(self.base, clean)
        return found


def start(base: Base, entries: Sequence[Entry]) -> Ahead | None:
    """Begins to screen the files; None where so few do not pay."""
    if len(entries) < ENOUGH:
        return None
    key = cleared.key(_judge())
    digests = {entry.path: cleared.digest(key, entry.data, _manner(entry)) for entry in entries} if key else {}
    kept = cleared.load(base) if key else frozenset()
    fresh = [entry for entry in entries if digests.get(entry.path) not in kept]
    if len(fresh) < ENOUGH or not hasattr(os, "fork") or (os.cpu_count() or 1) < 2:
        return Ahead(base, digests, kept, fresh)
    import khms.check.screening  # noqa: F401  before the fork, so that both have it

    given = [entry for number, entry in enumerate(fresh) if number % OWN]
    return Ahead(base, digests, kept, fresh[::OWN], given, _fork(given))


def _manner(entry: Entry) -> bytes:
    return b"ledger" if _is_written(entry.path) else b"text"


def _judge() -> bytes:
    """Stands for all that decides what screening finds: the patterns, the code, and the detectors it asks."""
    package = Path(__file__).parents[1]
    folders = [package / "check", package / "model"]
    detectors = find_spec("detect_secrets")
    if detectors and detectors.origin:
        folders.append(Path(detectors.origin).parent)  # with its version
    code = [file for folder in folders for file in sorted(folder.glob("*.py"))]
    said = [file.read_bytes() for file in (resources.folder("schemas") / "screening.json", *code)]
    return sha256(b"".join([f"{__version__} {sys.version}".encode(), *said])).digest()


def _fork(entries: Sequence[Entry]) -> Child:
    pipe, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child touches nothing that one may hold
        pid = os.fork()
    if not pid:
        _screen(entries, pipe, into)
    os.close(into)
    return Child(pid, pipe)


def _screen(entries: Sequence[Entry], pipe: int, into: int) -> NoReturn:
    try:
        os.close(pipe)
        with open(into, "wb") as file:
            file.write(pickle.dumps(_found(entries)))
    finally:
        os._exit(0)  # nothing of the parent's is flushed or closed twice


def _found(entries: Iterable[Entry]) -> dict[str, Sequence["Hit"]]:
    return {entry.path: list(held) for entry in entries if (held := hits(entry))}
