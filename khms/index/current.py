"""The index that counts now: what the manifest names, opened for reading. Reading waits for no writer."""

from __future__ import annotations

import os

from khms.errors import Unavailable
from khms.index import manifest
from khms.index.lexical import Damaged, Reader
from khms.index.manifest import Manifest, Unusable
from khms.store.layout import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from khms.index.embedding import Model
    from khms.index.manifest import Mark
    from khms.index.meaning import Meaning
    from khms.index.models import Chosen
    from khms.index.sync import Report
    from khms.index.vector import Vectors

    Vouch = Callable[[Base, Mapping[str, Any]], Report | None]

HINT = "build it: khms index"
ANEW = "build it anew: khms index --rebuild"
SWITCHED_OFF = "switched off (recall.model)"
MOST_KEPT = 4  # bases: that of the server, the user's own


class _Kept:
    """The index of one base as it was opened last, and what was made of its vectors."""

    def __init__(self, at: Mark, reader: Reader, known: Manifest) -> None:
        self.at, self.reader, self.known = at, reader, known
        self.meaning: tuple[Model, Meaning] | None = None


_kept: dict[str, _Kept] | None = None  # None: nothing is kept; a command asks once
_vouch: Vouch | None = None


def keep(vouch: Vouch | None = None) -> None:
    """Keeps what is opened for the next question, as long as the manifest and what it names stay as they are. For a
    process that answers many. `vouch` gives back the report of a look that still counts, or None."""
    global _kept, _vouch
    _kept = {} if _kept is None else _kept
    _vouch = vouch


def vouched(base: Base, config: Mapping[str, Any]) -> Report | None:
    """The report of the last look at the base's files, where it is known that nothing was written since."""
    return _vouch(base, config) if _vouch is not None else None


def opened(base: Base) -> tuple[Reader, Manifest]:
    """Raises Unavailable where there is no index, or none that can be trusted; an empty answer is never given for one
    that is damaged."""
    reason = ""
    for _ in range(2):  # a rebuild may put a new index in place between reading the manifest and opening what it names
        try:
            at = manifest.mark(base.index / manifest.NAME)
            held = _held(base, at)
            known = held.known if held else manifest.load(base.index)
            if known is None:
                raise Unavailable("this base has no index yet", where=str(base.root), hint=HINT)
            reason = _changed(base, known)  # before it is opened: damaged bytes can end in a panic of the library
            if not reason and held:
                return held.reader, known
            if not reason:
                reader = Reader(base.index / known.generation, known.language)
                _hold(base, _Kept(at, reader, known))
                return reader, known
        except (Unusable, Damaged) as error:
            reason = str(error)
    raise unusable(base, reason)


def _held(base: Base, at: Mark) -> _Kept | None:
    held = _kept.get(str(base.root)) if _kept is not None else None
    return held if held and held.at == at != manifest.NOTHING else None


def _hold(base: Base, opened: _Kept) -> None:
    if _kept is not None:
        _kept.pop(str(base.root), None)
        while len(_kept) >= MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
        _kept[str(base.root)] = opened


def meaning(base: Base, config: Mapping[str, Any], reader: Reader, known: Manifest) -> tuple[Meaning | None, str]:
    """The channels of the embedding model over an opened index, and what a reader of the answer must know of them: why
    there are none, or what they leave out."""
    from functools import partial

    from khms.index import graph, models
    from khms.index.catchup import waiting
    from khms.index.vector import Vectors

    extent = known.vectors
    try:
        choice = models.chosen(base, config)
        if not affordable(choice):
            return None, f"by words alone: {choice.packed} answers in the server only (khms server start)"
        if extent is None:
            return None, "by words alone: there are no vectors yet (khms index makes them)"
        model = models.load(choice) if choice.id in ("", extent.model) else None
        if model is None or model.id != extent.model or model.dimension != extent.dimension:
            return None, "by words alone: the vectors are another model's (khms index makes new ones)"
        vectors = Vectors(base.index / known.generation, extent)  # looks at the files, whatever was kept
        found = _meaning(base, reader, vectors, model, partial(graph.opened, vectors.folder, known, config))
    except Unavailable as error:
        return None, f"by words alone: {error.message}"
    except Damaged as error:
        return None, f"by words alone: {error} (khms index makes the vectors anew)"
    left = waiting(known)
    said = f"{left} new document{'s'[: left > 1]} by words alone until the next khms index" if left else ""
    return found, said


def affordable(choice: Chosen) -> bool:
    """Whether a question may be answered by this model in this process."""
    from khms.index import models

    return not choice.slow or _kept is not None or models.loaded(choice)


def _meaning(base: Base, reader: Reader, vectors: Vectors, model: Model, graph: Callable[[], Any]) -> Meaning:
    from khms.index.meaning import Meaning

    held = _kept.get(str(base.root)) if _kept is not None else None
    if held is None or held.reader is not reader:
        return Meaning(reader, vectors, model, graph())
    if held.meaning is None or held.meaning[0] is not model:
        held.meaning = (model, Meaning(reader, vectors, model, graph()))
    return held.meaning[1]


def unusable(base: Base, reason: str) -> Unavailable:
    return Unavailable(f"the index cannot be used: {reason}", where=str(base.index), hint=ANEW)


def _changed(base: Base, known: Manifest) -> str:
    """The index file that is not as it was written. One that is missing was merged away by a writer, unless the opening
    failed; meta.json changes with every write. A file of another time was touched, or copied: its bytes tell."""
    place = f"{base.index}{os.sep}{known.generation}{os.sep}"
    for name, (size, at, digest) in known.stored.items():
        now = manifest.mark(place + name)
        if name == "meta.json" or now == manifest.NOTHING or now[:2] == (size, at):
            continue
        try:
            if now[0] != size or manifest.sha256(place + name) != digest:
                return f"{known.generation}/{name} was changed"
        except FileNotFoundError:
            continue
    return ""
