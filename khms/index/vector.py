"""The vectors of the documents, in flat files beside the lexical index.

    vectors   one row a chunk: as many int8 as the model has dimensions, scaled by its own greatest part
    pieces    the word pieces of each document, each once, as uint16 or uint32
    records   one a document: (slot, end of its rows, end of its pieces) as uint32; its beginnings are the ends before

A document is known by its slot, a number that its Tantivy document carries and that is never given twice. Which slots
there are is Tantivy's to say; a record whose slot is gone is dead. Files only grow, and behind the end that the
manifest names: a reader maps as far as that, so it sees nothing of what is written, and nothing is cut short under it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from functools import cached_property

from khms.index.chunks import chunks
from khms.index.extent import PARTS, Extent, Part
from khms.index.lexical import Damaged
from khms.index.manifest import mark
from khms.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from numpy import int8, intp, uint32
    from numpy.typing import NDArray

    from khms.index.embedding import Model
    from khms.model.document import Document

_RECORD = struct.Struct("<3I")


def begun(name: str, model: Model) -> Extent:
    """The extent of files that are not there yet."""
    nothing = Part(0, 0, 0)
    width = 2 if len(model.table) <= 1 << 16 else 4
    return Extent(name, model.id, model.dimension, width, 0, nothing, nothing, nothing)


def damage(folder: Path, extent: Extent, *, thorough: bool = False) -> str:
    """What is wrong with the files, in words; empty where they are as they were written. They are read where their time
    is another, and where all is to be looked at."""
    for part in PARTS:
        held = extent.part(part)
        if not held.size:
            continue
        now = mark(extent.path(folder, part))
        if now[0] < held.size:
            return f"{part}-{extent.name} is missing or was cut"
        if (thorough or now[1] != held.at) and checksum(extent.path(folder, part), held.size) != held.crc:
            return f"{part}-{extent.name} was changed"
    return "" if not extent.records.size or _fits(folder, extent) else "the vectors do not fit their records"


def _fits(folder: Path, extent: Extent) -> bool:
    """Whether the last record ends where the rows and pieces do: with another dimension, rows would be read askew."""
    try:
        with extent.path(folder, "records").open("rb") as file:
            file.seek(extent.records.size - _RECORD.size)
            _, rows, pieces = _RECORD.unpack(file.read(_RECORD.size))
    except (OSError, struct.error):
        return False
    return bool(rows * extent.dimension == extent.vectors.size and pieces * extent.piece_bytes == extent.pieces.size)


def checksum(path: Path, size: int) -> int:
    """Of the first `size` bytes; -1 where there are fewer, or they cannot be read."""
    crc, left = 0, size
    try:
        with path.open("rb") as file:
            while left and (block := file.read(min(left, 1 << 20))):
                crc, left = zlib.crc32(block, crc), left - len(block)
    except OSError:
        return -1
    return -1 if left else crc


class Feed:
    """Adds documents to the files of `extent`, in ascending order of their slots. What is written counts only once the
    extent that `finish` gives stands in the manifest."""

    def __init__(self, folder: Path, extent: Extent, model: Model) -> None:
        self._folder, self._extent, self._model = folder, extent, model
        self._parts = {part: extent.part(part) for part in PARTS}
        self._waiting: list[tuple[int, list[str]]] = []
        self._count = 0
        self._upto = extent.upto

    def add(self, slot: int, document: Document) -> None:
        self.skip(slot)
        texts = chunks(document)
        self._waiting.append((slot, texts))
        self._count += len(texts)
        if self._count >= self._model.at_once:
            self._write()

    def skip(self, slot: int) -> None:
        """Counts a document as looked at that has no vectors."""
        self._upto = slot + 1

    def finish(self) -> Extent:
        self._write()
        for part in PARTS:
            path = self._extent.path(self._folder, part)
            if self._parts[part].size:
                files.sync_file(path)
                held = self._parts[part]
                self._parts[part] = Part(held.size, held.crc, mark(path)[1])
        parts = self._parts
        return replace(
            self._extent,
            upto=self._upto,
            vectors=parts["vectors"],
            pieces=parts["pieces"],
            records=parts["records"],
        )

    def _write(self) -> None:
        from khms.index.arrays import np
        from khms.index.embedding import quantised

        # All of them at once: to change between this and the reading of files at every document costs a third more.
        cuts = [(slot, [self._model.cut(text) for text in texts]) for slot, texts in self._waiting]
        vectors = self._model.encode([ids for _, cut in cuts for ids in cut])
        told: NDArray[Any] = np.any(vectors, axis=1)
        records, pieces, row = [], [], 0
        rows_end = self._parts["vectors"].size // self._extent.dimension
        pieces_end = self._parts["pieces"].size // self._extent.piece_bytes
        for slot, cut in cuts:
            once = sorted(set().union(*cut))
            kept = int(told[row : row + len(cut)].sum())
            row += len(cut)
            if not kept:
                continue
            rows_end, pieces_end = rows_end + kept, pieces_end + len(once)
            pieces += once
            records.append((slot, rows_end, pieces_end))
        if records:
            self._append("vectors", quantised(vectors[told]).tobytes())
            self._append("pieces", np.array(pieces, dtype=f"<u{self._extent.piece_bytes}").tobytes())
            self._append("records", np.array(records, dtype="<u4").tobytes())
        self._waiting, self._count = [], 0

    def _append(self, part: str, data: bytes) -> None:
        held = self._parts[part]
        files.write_at(self._extent.path(self._folder, part), held.size, data)
        self._parts[part] = Part(held.size + len(data), zlib.crc32(data, held.crc), 0)


def compacted(held: Vectors, live: list[int], name: str) -> Extent:
    """A new set of files with the records of the `live` slots alone."""
    from khms.index.arrays import np

    kept = np.isin(held.slots, np.array(live, dtype=np.intp))
    rows, pieces = np.diff(held.row_ends), np.diff(held.piece_ends)
    ends = [held.slots[kept], np.cumsum(rows[kept]), np.cumsum(pieces[kept])]
    contents = {
        "vectors": held.rows[np.repeat(kept, rows)],
        "pieces": held.pieces[np.repeat(kept, pieces)],
        "records": np.stack(ends, axis=1).astype("<u4"),
    }
    parts = {}
    for part, array in contents.items():
        path, data = held.folder / f"{part}-{name}", array.tobytes()
        files.write_atomic(path, data)
        parts[part] = Part(len(data), zlib.crc32(data), mark(path)[1])
    return replace(held.extent, name=name, vectors=parts["vectors"], pieces=parts["pieces"], records=parts["records"])


class Vectors:
    """The files as far as the extent goes, mapped. Raises Damaged where they are not as they were written."""

    def __init__(self, folder: Path, extent: Extent) -> None:
        wrong = damage(folder, extent)
        if wrong:
            raise Damaged(wrong)
        self.folder, self.extent = folder, extent

    @cached_property
    def rows(self) -> NDArray[int8]:
        return self._mapped("vectors", "i1").reshape(-1, self.extent.dimension)

    @cached_property
    def pieces(self) -> NDArray[Any]:
        return self._mapped("pieces", f"<u{self.extent.piece_bytes}")

    @cached_property
    def _records(self) -> NDArray[uint32]:
        return self._mapped("records", "<u4").reshape(-1, 3)

    @cached_property
    def slots(self) -> NDArray[intp]:
        """The slot of each record, ascending."""
        from khms.index.arrays import np

        return self._records[:, 0].astype(np.intp)

    @cached_property
    def row_ends(self) -> NDArray[intp]:
        """Where the rows of each record begin, and at the end the number of rows."""
        return self._ends(1)

    @cached_property
    def piece_ends(self) -> NDArray[intp]:
        return self._ends(2)

    def _ends(self, column: int) -> NDArray[intp]:
        from khms.index.arrays import np

        return np.concatenate([[0], self._records[:, column].astype(np.intp)])

    def _mapped(self, part: str, kind: str) -> NDArray[Any]:
        from khms.index.arrays import np

        size = self.extent.part(part).size
        if not size:
            return np.empty(0, dtype=kind)
        try:
            count = size // np.dtype(kind).itemsize
            mapped = np.memmap(self.extent.path(self.folder, part), dtype=kind, mode="r", shape=(count,))
            return mapped.view(np.ndarray)  # a slice of a memmap object costs ten times as much
        except (OSError, ValueError) as error:
            raise Damaged(f"{part}-{self.extent.name} cannot be read") from error
