"""What the index was built from: the one small file that says which index counts and how far it has looked.

It is written last and by rename, so readers open what it names and never half a refresh. It holds the commit that the
index stands for, the files that were not as committed (or, where git does not watch them, all files) with their size,
time, inode and hash, what was skipped, and the size and hash of each index file, so that damage shows.
"""

from __future__ import annotations

import os
import zlib

from khms.index.extent import Extent, Graph, extent_from, graph_from
from khms.index.fields import VERSION
from khms.store import files
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

NAME = "manifest.json"
LOCK = "index.lock"  # held by whoever changes it
SCHEMA = "khms.index/1"
# A file's size, modification time in nanoseconds, inode, and the time of its last change of any kind. Nobody can set
# that one, so it tells an edit in place that keeps size and time.
Mark = tuple[int, int, int, int]
Stored = tuple[int, int, str]  # an index file's size, modification time, SHA-256
NOTHING: Mark = (-1, -1, -1, -1)
_SUM = b'{"sum":"%08x",'


@dataclass(frozen=True, slots=True)
class Manifest:
    """`looked` is what the look without a process compares: git's own files and the folders of documents. `at` is when
    the files were last looked at, in nanoseconds since the epoch, taken before the look began."""

    generation: str
    rules: Mapping[str, Any]
    docs: int
    commit: str | None  # None: not in git; empty: no commit yet
    at: int
    looked: Mapping[str, Mark]
    seen: Mapping[str, tuple[Mark, str]]
    skipped: Mapping[str, tuple[str, int, str, str]]  # code, line, message, mend
    stored: Mapping[str, Stored]
    slots: int = 0  # the first that no document ever had
    vectors: Extent | None = None
    graph: Graph | None = None

    @property
    def language(self) -> str:
        return str(self.rules.get("language", "english"))


class Unusable(Exception):
    """There is a manifest, but this program cannot go by it."""


def load(folder: Path) -> Manifest | None:
    """The manifest in the index folder, None where there is none; raises Unusable with the reason."""
    try:
        data = files.read(folder / NAME)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable("its manifest cannot be read") from error
    try:
        value = files.parse_json(data)
    except ValueError as error:
        raise Unusable("its manifest cannot be read") from error
    try:
        if value["schema"] != SCHEMA or value["version"] != VERSION:
            made = f"{value['schema']} version {value['version']}"
            raise Unusable(f"it was made as {made}, this khms makes {SCHEMA} version {VERSION}")
        if not data.startswith(_sum(b"{" + data[len(_SUM % 0) :])):
            raise Unusable("its manifest was changed")
        return _manifest(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unusable("its manifest is not whole") from error


def _sum(text: bytes) -> bytes:
    """What the manifest says first of the rest of it, so that a flipped bit is not believed."""
    return _SUM % zlib.crc32(text)


def _manifest(value: Any) -> Manifest:
    generation = str(value["generation"])
    if not generation.startswith("lexical-") or not generation[8:].isdigit():
        raise ValueError(generation)
    return Manifest(
        generation=generation,
        rules=dict(value["rules"]),
        docs=int(value["docs"]),
        commit=value["commit"],
        at=int(value["at"]),
        looked={name: _mark(mark) for name, mark in value["looked"].items()},
        seen={name: (_mark(mark), str(digest)) for name, (mark, digest) in value["seen"].items()},
        skipped={
            name: (str(code), int(line), str(message), str(mend))
            for name, (code, line, message, mend) in value["skipped"].items()
        },
        stored={name: (int(size), int(at), str(digest)) for name, (size, at, digest) in value["stored"].items()},
        slots=int(value["slots"]),
        vectors=extent_from(value["vectors"]) if value["vectors"] else None,
        graph=graph_from(value["graph"]) if value.get("graph") else None,
    )


def _mark(value: Any) -> Mark:
    size, modified, inode, changed = value
    return int(size), int(modified), int(inode), int(changed)


def save(folder: Path, manifest: Manifest) -> None:
    """Raises Unavailable where the folder cannot be written."""
    import json

    from khms.store import files

    value = {
        "schema": SCHEMA,
        "version": VERSION,
        "generation": manifest.generation,
        "rules": manifest.rules,
        "docs": manifest.docs,
        "commit": manifest.commit,
        "at": manifest.at,
        "looked": manifest.looked,
        "seen": manifest.seen,
        "skipped": manifest.skipped,
        "stored": manifest.stored,
        "slots": manifest.slots,
        "vectors": manifest.vectors and manifest.vectors.as_json(),
        "graph": manifest.graph and manifest.graph.as_json(),
    }
    text = json.dumps(value, separators=(",", ":")).encode()
    files.write_atomic(folder / NAME, _sum(text) + text[1:])


def mark(path: Path | str) -> Mark:
    """The mark of the file itself (a link is not followed); NOTHING where there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return NOTHING
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns


def damage(folder: Path, manifest: Manifest, *, thorough: bool = False) -> str:
    """What is wrong with the index files, in words; empty where they are as they were written. `thorough` reads them
    all; otherwise only those whose time differs (a copied base) and the one that changes in place."""
    place = folder / manifest.generation
    for name, (size, at, digest) in sorted(manifest.stored.items()):
        now = mark(place / name)
        if now[0] != size:
            return f"{manifest.generation}/{name} is missing or was cut"
        if (thorough or name == "meta.json" or now[1] != at) and sha256(place / name) != digest:
            return f"{manifest.generation}/{name} was changed"
    return "" if manifest.stored else "it was never finished"


def sha256(path: Path | str) -> str:
    """The hash of a file's bytes; empty where it is there and cannot be read. Raises FileNotFoundError."""
    import hashlib

    try:
        return hashlib.sha256(files.read(path)).hexdigest()
    except FileNotFoundError:
        raise
    except OSError:
        return ""


def store(folder: Path, known: Mapping[str, Stored]) -> dict[str, Stored]:
    """Size, time and hash of every file that an index in `folder` is made of. Segment files never change once they are
    written, so those in `known` are not read again."""
    meta = files.read_json(folder / "meta.json")
    segments = tuple(segment["segment_id"].replace("-", "") for segment in meta["segments"])
    found = {}
    for name in sorted(path.name for path in folder.iterdir()):
        if name != "meta.json" and not name.startswith(segments):
            continue
        size, at = mark(folder / name)[:2]
        old = known.get(name) if name != "meta.json" else None
        found[name] = (size, at, old[2] if old and old[:2] == (size, at) else sha256(folder / name))
    return found
