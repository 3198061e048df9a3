"""Writing the lexical index: one writer at a time, and never one that stays open."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from khms.errors import Busy, KhmsError, Unavailable
from khms.index import fields
from khms.index.lexical import Damaged, is_panic, told
from khms.model.document import Document
from khms.store.files import tick

HEAP = 15_000_000  # bytes; the least that Tantivy takes. A second thread gains nothing.
BIG_HEAP = 60_000_000  # for a whole build: fewer, larger segments
LOCK_SECONDS = 2.0
AT_ONCE = 256  # documents


class Writer:
    """Replaces what the index holds, file by file. Nothing is seen by readers before `commit`. `slot` is the number
    that the next document gets."""

    def __init__(self, writer: Any, slot: int) -> None:
        self._writer = writer
        self.slot = slot
        self._waiting: list[tuple[int, Document]] = []

    def drop(self, path: str) -> None:
        self.flush()
        self._writer.delete_documents_by_term(fields.PATH, path)

    def add(self, documents: tuple[Document, ...]) -> None:
        """Adds the documents of a file that the index does not hold, or no longer."""
        for document in documents:
            self._waiting.append((self.slot, document))
            self.slot += 1
        if len(self._waiting) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Hands over what was gathered: to lay out many at once costs less than one between two files."""
        for slot, document in self._waiting:
            self._writer.add_document(fields.lay_out(document, slot))
        self._waiting.clear()


@contextlib.contextmanager
def writing(folder: Path, language: str, *, heap: int = HEAP, slot: int = 0) -> Iterator[Writer]:
    """A writer for the index in `folder`, made where there is none; commits at the end of the block, and nothing where
    the block raises. Raises Busy while another process writes, Unavailable where the folder cannot be written, Damaged
    where what is there cannot be added to."""
    import tantivy

    with _clearly(folder):
        index = tantivy.Index(fields.schema(), path=str(folder))
        fields.register(index, language)
        writer = _writer(index, heap)
    try:
        held = Writer(writer, slot)
        yield held
        held.flush()
    except BaseException as error:
        with contextlib.suppress(ValueError):
            writer.rollback()
        if is_panic(error):
            raise Damaged(told(error)) from error
        raise
    with _clearly(folder):
        writer.commit()
        tick()
        writer.wait_merging_threads()
        tick()


def _writer(index: Any, heap: int) -> Any:
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return index.writer(heap, 1)
        except ValueError as error:
            if "LockBusy" not in str(error) or time.monotonic() >= until:
                raise
        time.sleep(0.02)


@contextlib.contextmanager
def _clearly(folder: Path) -> Iterator[None]:
    """Says what went wrong, which stands in the text of Tantivy's errors (all are ValueError) and panics. What is not
    the surroundings' fault is the index's own."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, (ValueError, OSError)) and not is_panic(error):
            raise
        raise _clear(str(error), folder) or Damaged(told(error)) from error


def _clear(said: str, folder: Path) -> KhmsError | None:
    if "LockBusy" in said:
        return Busy(
            "another process writes the index",
            where=str(folder),
            hint="wait until it has ended, then run the command again",
        )
    hint = "free some room on the disk" if "StorageFull" in said or "No space" in said else ""
    if "PermissionDenied" in said or "Permission denied" in said or "ReadOnly" in said:
        hint = "give yourself write permission to this folder"
    if not hint:
        return None
    return Unavailable(f"cannot write the index: {said.splitlines()[0][:200]}", where=str(folder), hint=hint)
