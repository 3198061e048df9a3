"""Texts that say nearly the same in other words, by the embedding model: what shared words cannot tell.

It only ever flags. Vectors put two sentences side by side that differ in one number or one `not`, so that nothing is
taken for the same on their word alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from khms.errors import Unavailable
from khms.index import models
from khms.store.layout import Base

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from khms.index.embedding import Model

MOST = 3  # texts named
ROWS = 256  # texts whose neighbours are looked for together


class Likeness:
    """Texts by id, encoded when the first question comes. Where no model is at hand nothing is like anything, and
    `why` says so; a model that only a server runs is not waited for."""

    def __init__(self, base: Base, config: Mapping[str, Any], texts: Iterable[tuple[str, str]]) -> None:
        self._base, self._config = base, config
        self._texts = list(texts)
        self._places = {name: at for at, (name, _) in enumerate(self._texts)}
        self._block: tuple[int, Any] = (-1, None)
        self.why = ""

    @cached_property
    def _model(self) -> Model | None:
        try:
            choice = models.chosen(self._base, self._config)
            if choice.slow:
                self.why = f"{choice.name} is too slow for it"
                return None
            return models.load(choice)
        except Unavailable as error:
            self.why = error.message
            return None

    @cached_property
    def _vectors(self) -> NDArray[float32]:
        assert self._model is not None
        return self._model.encode([self._model.cut(text) for _, text in self._texts])

    def like(self, name: str, least: float) -> list[tuple[str, float]]:
        """(id, cosine) of the texts whose cosine with the text `name` is over `least`, the nearest first, at most MOST.
        Neighbours are looked for together: one text at a time the vectors of all would be read anew for each."""
        at = self._places.get(name)
        if at is None or self._model is None:
            return []
        start = at - at % ROWS
        if self._block[0] != start:
            self._block = (start, self._vectors[start : start + ROWS] @ self._vectors.T)
        cosines = self._block[1][at - start]
        over = [(self._texts[i][0], round(float(cosines[i]), 3)) for i in (cosines > least).nonzero()[0] if i != at]
        return sorted(over, key=lambda row: (-row[1], row[0]))[:MOST]
