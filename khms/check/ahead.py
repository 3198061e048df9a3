"""What screening says of each file, found on a second core where there are many: that takes a third off a lint.

A forked child has the files in memory already and sends back what it found, which is next to nothing. Where there is no
fork, no second core, or the child fails, a file is screened when a rule asks. The answers are the same.
"""

import os
import pickle
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from khms.store.layout import APPROVALS, EVENTS, RECEIPTS, VIEWS
from khms.store.tracked import Entry

if TYPE_CHECKING:
    from khms.check.screening import Hit

ENOUGH = 500  # files from which a second process pays
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
    written = entry.path.startswith(LEDGERS) or entry.path.endswith("/unit.json")
    return screen(_HASH.sub("", text) if written else text)


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


def start(entries: Sequence[Entry]) -> Child | None:
    """Begins to screen the files; None where that does not pay."""
    if len(entries) < ENOUGH or not hasattr(os, "fork") or (os.cpu_count() or 1) < 2:
        return None
    import khms.check.screening  # noqa: F401  before the fork, so that both have it

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
        found = {entry.path: list(held) for entry in entries if (held := hits(entry))}
        with open(into, "wb") as file:
            file.write(pickle.dumps(found))
    finally:
        os._exit(0)  # nothing of the parent's is flushed or closed twice
