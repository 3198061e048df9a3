"""How far the files of vectors count: what the manifest holds of them."""

from __future__ import annotations

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

PARTS = ("vectors", "pieces", "records")
RECORD = 12  # bytes


@dataclass(frozen=True, slots=True)
class Part:
    """How far a file counts: so many bytes, with this checksum, last seen changed at this time (nanoseconds)."""

    size: int
    crc: int
    at: int


@dataclass(frozen=True, slots=True)
class Extent:
    """What of the files counts. `upto` is the first slot that no vector was looked for yet."""

    name: str  # of this set of files
    model: str
    dimension: int
    piece_bytes: int
    upto: int
    vectors: Part
    pieces: Part
    records: Part

    @property
    def rows(self) -> int:
        return self.vectors.size // self.dimension

    @property
    def documents(self) -> int:
        return self.records.size // RECORD

    def path(self, folder: Path, part: str) -> Path:
        return folder / f"{part}-{self.name}"

    def part(self, name: str) -> Part:
        found: Part = getattr(self, name)
        return found

    def as_json(self) -> dict[str, Any]:
        value = {key: getattr(self, key) for key in ("name", "model", "dimension", "piece_bytes", "upto")}
        return value | {part: [held.size, held.crc, held.at] for part in PARTS for held in [self.part(part)]}


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph over the first `rows` vectors of the set `of`, in a file of its own."""

    name: str
    of: str
    model: str
    dimension: int
    rows: int
    file: Part

    def path(self, folder: Path) -> Path:
        return folder / f"graph-{self.name}"

    def as_json(self) -> dict[str, Any]:
        value = {key: getattr(self, key) for key in ("name", "of", "model", "dimension", "rows")}
        return value | {"file": [self.file.size, self.file.crc, self.file.at]}


def graph_from(value: Mapping[str, Any]) -> Graph:
    """Raises KeyError, TypeError or ValueError where it is not what `as_json` gives."""
    name = str(value["name"])
    if not name.isdigit():
        raise ValueError(value)
    made = str(value["of"]), str(value["model"]), int(value["dimension"]), int(value["rows"])
    return Graph(name, *made, Part(*map(int, value["file"])))


def extent_from(value: Mapping[str, Any]) -> Extent:
    """Raises KeyError, TypeError or ValueError where it is not what `as_json` gives."""
    found = Extent(
        str(value["name"]),
        str(value["model"]),
        int(value["dimension"]),
        int(value["piece_bytes"]),
        int(value["upto"]),
        *(Part(*map(int, value[part])) for part in PARTS),
    )
    ends = (found.vectors.size, found.pieces.size, found.records.size)
    whole = found.dimension > 0 and found.piece_bytes in (2, 4) and min(*ends, found.upto) >= 0
    if not (found.name.isdigit() and whole) or any(
        end % unit for end, unit in zip(ends, (found.dimension, found.piece_bytes, RECORD), strict=True)
    ):
        raise ValueError(value)
    return found
