"""Writing the lexical index: one writer at a time, and never one that stays open."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from khms.errors import Busy, Unavailable
from khms.index import fields
from khms.model.document import Document
from khms.store.files import tick

HEAP = 15_000_000  # bytes; the least that Tantivy takes. A second thread gains nothing.
BIG_HEAP = 60_000_000  # for a whole build: fewer, larger segments
LOCK_SECONDS = 2.0


class Writer:
    """Replaces what the index holds, file by file. Nothing is seen by readers before `commit`."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def drop(self, path: str) -> None:
        self._writer.delete_documents_by_term(fields.PATH, path)

    def add(self, documents: tuple[Document, ...]) -> None:
        """Adds the documents of a file that the index does not hold, or no longer."""
        for document in documents:
            self._writer.add_document(fields.lay_out(document))


@contextlib.contextmanager
def writing(folder: Path, language: str, *, heap: int = HEAP) -> Iterator[Writer]:
    """A writer for the index in `folder`, made where there is none; commits at the end of the block, and nothing where
    the block raises. Raises Busy while another process writes, Unavailable where the folder cannot be written."""
    import tantivy

    try:
        index = tantivy.Index(fields.schema(), path=str(folder))
        fields.register(index, language)
        writer = _writer(index, heap)
    except (ValueError, OSError) as error:
        raise _clear(error, folder) from error
    try:
        yield Writer(writer)
    except BaseException:
        with contextlib.suppress(ValueError):
            writer.rollback()
        raise
    try:
        writer.commit()
        tick()
        writer.wait_merging_threads()
        tick()
    except (ValueError, OSError) as error:
        raise _clear(error, folder) from error


def _writer(index: Any, heap: int) -> Any:
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return index.writer(heap, 1)
        except ValueError as error:
            if "LockBusy" not in str(error) or time.monotonic() >= until:
                raise
        time.sleep(0.02)


def _clear(error: Exception, folder: Path) -> Exception:
    """Tantivy raises ValueError for everything; what went wrong stands in its text."""
    said = str(error)
    if "LockBusy" in said:
        return Busy(
            "another process writes the index",
            where=str(folder),
            hint="wait until it has ended, then run the command again",
        )
    hint = "free some room on the disk" if "StorageFull" in said or "No space" in said else ""
    if "PermissionDenied" in said or "Permission denied" in said or "ReadOnly" in said:
        hint = "give yourself write permission to this folder"
    return Unavailable(f"cannot write the index: {said.splitlines()[0][:200]}", where=str(folder), hint=hint)
