"""Giving vectors to the documents that wait for them.

The lexical index is written first and alone answers at once; a document's vectors may come with any later command that
loads the model anyway. Which documents wait is told by their slots: all from the extent's `upto` on. Their text is read
from the files again, for the index stores none.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from khms.errors import KhmsError
from khms.index import sources
from khms.index.documents import documents
from khms.index.extent import PARTS, Extent
from khms.index.lexical import Reader
from khms.index.manifest import Manifest
from khms.index.models import Chosen, load
from khms.index.reading import content
from khms.index.sources import Rules
from khms.index.vector import Feed, Vectors, begun, compacted, damage
from khms.model.document import Document, Query
from khms.store import files
from khms.store.layout import Base

LATER, NEW, ALL = "later", "new", "all"  # what a refresh does: none; those that wait; also those of another model
# Documents that a question brings up to date on its way, some two seconds' worth; more are left to `khms index`.
MOST_ON_THE_WAY = 3000
SLOW_ON_THE_WAY = 64  # of a slow model; as many are encoded in one turn at the lock, some three seconds' worth
DEAD = 2.0 / 3  # share of the documents in the files that must still be there, or the files are written anew


def waiting(known: Manifest) -> int:
    """The number of slots without a look at their vectors; those of documents that are gone since count too."""
    return known.slots - (known.vectors.upto if known.vectors else 0)


def most_on_the_way(choice: Chosen) -> int:
    return SLOW_ON_THE_WAY if choice.slow else MOST_ON_THE_WAY


def catch_up(base: Base, rules: Rules, known: Manifest, choice: Chosen, mode: str) -> Extent | None:
    """What the manifest should say of the vectors once this is done: those of the model `choice`, for all documents (of
    a slow one, for the next few), or what it says now where that has to wait. Raises Unavailable where the model cannot
    be loaded, Damaged."""
    folder = base.index / known.generation
    extent = known.vectors
    if extent is not None and damage(folder, extent):
        extent = None
    model = None
    if choice.folder is None and mode == ALL:  # on a hub: what it is shows only once it is there
        model = load(choice)
    other = extent is not None and (model.id if model else choice.id or extent.model) != extent.model
    if other and mode != ALL:
        return known.vectors
    if extent is not None and not other and extent.upto >= known.slots:
        return _reclaimed(folder, extent, known)
    reader = Reader(folder, known.language)
    start = 0 if extent is None or other else extent.upto
    left = reader.from_slot(start)
    most = most_on_the_way(choice)
    if mode != ALL and len(left) > most:
        return known.vectors
    slots = sorted(left)[: most if choice.slow else None]
    model = model or load(choice)
    if extent is None or other:
        extent = begun(next_name(folder), model)
    feed = Feed(folder, extent, model)
    texts = _texts(base, rules, {slot: left[slot] for slot in slots})
    for slot in slots:
        if slot in texts:
            feed.add(slot, texts[slot])
    feed.skip(known.slots - 1 if len(slots) == len(left) else slots[-1])
    return _reclaimed(folder, feed.finish(), known)


def _reclaimed(folder: Path, extent: Extent, known: Manifest) -> Extent:
    """`extent`, or a copy without the dead where they are too many."""
    if not extent.documents or known.docs >= extent.documents * DEAD:
        return extent
    live = Reader(folder, known.language).slots(Query(""), ())
    return compacted(Vectors(folder, extent), live, next_name(folder))


def next_name(folder: Path, kind: str = "vectors") -> str:
    """The number of what comes next of its kind, above every one that was ever begun here."""
    names = [path.name.rpartition("-")[2] for path in folder.glob(f"{kind}-*")]
    return str(max((int(name) for name in names if name.isdigit()), default=0) + 1)


def clear_away(folder: Path, name: str) -> None:
    """Removes the sets of files that the manifest names no more; who has one open keeps it."""
    for part in PARTS:
        for path in folder.glob(f"{part}-*"):
            if path.name != f"{part}-{name}":
                with contextlib.suppress(KhmsError):
                    files.unlink(path)


def _texts(base: Base, rules: Rules, left: dict[int, Document]) -> dict[int, Document]:
    """The documents in these slots with their bodies, as the files say now; one that was changed meanwhile is missing,
    and gets another slot at the next refresh."""
    by_path: dict[str, dict[int, int]] = {}
    for slot, document in left.items():
        by_path.setdefault(document.path, {})[document.line] = slot
    found = {}
    for path, slots in by_path.items():
        place = sources.place(rules, path)
        data = content(base.root, rules, path)
        held = documents(place, path, data) if place and isinstance(data, bytes) else ()
        for document in held if isinstance(held, tuple) else ():
            at = slots.get(document.line)
            if at is not None and document.id == left[at].id:
                found[at] = document
    return found
