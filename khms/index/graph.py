"""A graph over the vectors, for bases so large that a question no longer compares them all.

USearch builds it (HNSW) over the rows of the vector file, each by its number. It is only ever a way to a few hundred
candidates: what a row says is read from the vector file, which documents there are is told by Tantivy, and rows that
came after the graph are compared one by one until they are enough for it to be carried on. So it may be missing, old,
or not what it says it is, and answers stay right.
"""

from __future__ import annotations

import contextlib
import zlib
from dataclasses import replace

from khms.errors import Busy, KhmsError
from khms.index import manifest
from khms.index.catchup import next_name
from khms.index.extent import Extent, Graph, Part
from khms.index.manifest import Manifest, Unusable
from khms.index.models import package
from khms.index.vector import Vectors, checksum
from khms.store import files
from khms.store.lock import hold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from khms.store.layout import Base

FROM = "recall.hnsw_from"
EXTRA = "pip install 'khms[graph]'"
LOCK = "graph.lock"
WAIT_SECONDS = 60.0  # for whoever refreshes the index; what was built is worth more than that
TAIL = 0.1  # share of the rows that may be compared one by one before the graph is carried on
AT_ONCE = 4096  # rows that are added before progress is told
# On 20,000 rows of made-up cards the 200 nearest by such a graph hold 99 % of the true 50; with half of the second, 98.
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 256


def missing() -> str:
    """Why there can be no graph, in words; empty where there can be one."""
    return "" if package("usearch") else f"usearch is not installed ({EXTRA})"


def wanted(known: Manifest, config: Mapping[str, Any]) -> bool:
    """Whether there are so many vectors that a graph is to find the nearest."""
    return known.vectors is not None and known.vectors.rows >= int(config[FROM])


def due(base: Base, known: Manifest, config: Mapping[str, Any]) -> bool:
    """Whether it is to be built, or carried on."""
    extent, graph = known.vectors, known.graph
    if extent is None or not wanted(known, config) or missing():
        return False
    usable = opened(base.index / known.generation, known, config) is not None
    return not usable or graph is None or extent.rows - graph.rows > TAIL * extent.rows


def fits(graph: Graph, extent: Extent) -> bool:
    """Whether it was built over these very vectors, or the first of them."""
    made = (graph.of, graph.model, graph.dimension)
    return made == (extent.name, extent.model, extent.dimension) and 0 < graph.rows <= extent.rows


def damage(folder: Path, graph: Graph, *, thorough: bool = False) -> str:
    """What is wrong with its file, in words; empty where it is as it was written. It is read where its time is
    another."""
    path = graph.path(folder)
    now = manifest.mark(path)
    if now[0] != graph.file.size:
        return f"{path.name} is missing or was cut"
    if (thorough or now[1] != graph.file.at) and checksum(path, graph.file.size) != graph.file.crc:
        return f"{path.name} was changed"
    return ""


def opened(folder: Path, known: Manifest, config: Mapping[str, Any]) -> Any | None:
    """The graph that the manifest names, mapped. None where there is none to be used: all rows are compared then."""
    return _restored(folder, known, view=True) if wanted(known, config) else None


def build(base: Base, config: Mapping[str, Any], progress: Callable[[int, int], None] | None = None) -> str:
    """Builds the graph where one is due, or carries it on; why there can be none though one is wanted, else nothing.
    Questions and refreshes go on meanwhile: the lock of the index is taken for naming it in the manifest alone. Left to
    another process that is at it."""
    with contextlib.suppress(Busy, Unusable), hold(base.locks / LOCK, "graph"):
        known = manifest.load(base.index)
        if known is not None and wanted(known, config) and missing():
            return missing()
        if known is not None and due(base, known, config):
            _name(base, known, _written(base.index / known.generation, known, progress))
        _clear_away(base)
    return ""


def _written(folder: Path, known: Manifest, progress: Callable[[int, int], None] | None) -> Graph:
    """A new file with the rows of all vectors that there are."""
    from khms.index.arrays import np

    extent = known.vectors
    assert extent is not None
    rows = Vectors(folder, extent).rows
    index = _restored(folder, known, view=False) or _begun(extent)
    for start in range(len(index), len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        index.add(np.arange(start, start + len(some), dtype=np.uint64), some)
        if progress is not None:
            progress(start + len(some), len(rows))
    data = bytes(index.save())
    file = Part(len(data), zlib.crc32(data), 0)
    made = Graph(next_name(folder, "graph"), extent.name, extent.model, extent.dimension, len(rows), file)
    files.write_atomic(made.path(folder), data)
    return replace(made, file=replace(file, at=manifest.mark(made.path(folder))[1]))


def _name(base: Base, before: Manifest, made: Graph) -> None:
    """Puts it into the manifest, unless the vectors that it was built over have gone meanwhile."""
    with hold(base.locks / manifest.LOCK, "index", wait=WAIT_SECONDS):
        known = manifest.load(base.index)
        if known and known.vectors and known.generation == before.generation and fits(made, known.vectors):
            manifest.save(base.index, replace(known, graph=made))


def _clear_away(base: Base) -> None:
    """Removes every graph that the manifest does not name, one that was not finished too; who has it open keeps it."""
    known = manifest.load(base.index)
    if known is None:
        return
    kept = known.graph.path(base.index / known.generation).name if known.graph else ""
    for path in (base.index / known.generation).glob("*graph-*"):
        if path.name != kept:
            with contextlib.suppress(KhmsError):
                files.unlink(path)


def _begun(extent: Extent) -> Any:
    return _library()(
        ndim=extent.dimension, metric="cos", dtype="i8",
        connectivity=CONNECTIVITY, expansion_add=EXPANSION_ADD, expansion_search=EXPANSION_SEARCH,
    )  # fmt: skip


def _restored(folder: Path, known: Manifest, *, view: bool) -> Any | None:
    """The graph that the manifest names, if its file is as it was written, of this dimension and of that many rows:
    USearch itself reads any."""
    extent, graph = known.vectors, known.graph
    if extent is None or graph is None or not fits(graph, extent) or damage(folder, graph):
        return None
    figures = {"expansion_add": EXPANSION_ADD, "expansion_search": EXPANSION_SEARCH}
    try:
        found = _library().restore(str(graph.path(folder)), view=view, **figures)
    except (ImportError, ValueError, RuntimeError, OSError):
        return None
    return found if found is not None and (found.ndim, len(found)) == (graph.dimension, graph.rows) else None


def _library() -> Any:
    """USearch's class of graphs, numpy loaded before it as khms loads it, and onnxruntime too, where it is installed:
    loaded after USearch it ends the process (2.26.6 and 1.32 on Linux), before it both work."""
    from importlib import import_module

    import khms.index.arrays  # noqa: F401

    with contextlib.suppress(ImportError):
        import_module("onnxruntime")
    return import_module("usearch.index").Index
