"""How near some records' rows are to a question, by the three readings that `meaning` explains.

A `Part` is all of a base's records, or a few of them: what does not depend on the question is reckoned once for each.
"""

from __future__ import annotations

from functools import cached_property
from math import sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy import float32, int8, intp
    from numpy.typing import NDArray

    Readings = tuple[NDArray[float32], NDArray[float32], NDArray[float32]]

_LEAST = 1e-6  # that a squared length counts for: what is left of a row that lies along the direction is noise


class Part:
    """Records with their `rows`, as many to each as `counts` says and at least one. `common` is the direction that the
    model's vectors share, None where they share none; `mean` the mean of the base's unit vectors."""

    def __init__(
        self, rows: NDArray[int8], counts: NDArray[intp], common: NDArray[Any] | None, mean: NDArray[Any]
    ) -> None:
        self.counts = counts
        self._rows, self._common, self._mean = rows, common, mean

    def readings(self, question: NDArray[float32]) -> Readings:
        """Of each record, its best row's cosine to the question, a unit vector: as it is, without the common direction,
        without the base's mean."""
        from khms.index.arrays import np

        plain = self._cosines(question)
        aside = plain
        if self._common is not None:
            share = float(question @ self._common)
            along, left = self._along
            aside = np.multiply(along, np.float32(-share))
            aside += plain
            aside *= left
            aside *= np.float32(1 / sqrt(max(1 - share * share, _LEAST)))
        towards, rest = self._towards
        length, of_question = float(self._mean @ self._mean), float(question @ self._mean)
        out = plain - towards
        out += np.float32(length - of_question)
        out *= rest
        out *= np.float32(1 / sqrt(max(1 - 2 * of_question + length, _LEAST)))
        return self._best_of(plain), self._best_of(aside), self._best_of(out)

    @cached_property
    def luck(self) -> NDArray[Any] | None:
        """What the best of a record's rows is above their mean by chance alone, in spreads; None where each has one."""
        from khms.index.arrays import np

        return np.sqrt(2 * np.log(self.counts)).astype(np.float32) if self._layers[1] else None

    def _best_of(self, rows: NDArray[float32]) -> NDArray[float32]:
        """Of each record, the best of its rows."""
        from khms.index.arrays import np

        first, more = self._layers
        if not more:  # a row each
            return rows
        best = rows[first]
        for records, at in more:
            best[records] = np.maximum(best[records], rows[at])
        return best

    @cached_property
    def _layers(self) -> tuple[NDArray[intp], list[tuple[NDArray[intp], NDArray[intp]]]]:
        """The first row of each record; then, for the second and every further one, the records that have it and where
        it is. Most documents have one or two rows: three times as fast as `reduceat`."""
        from khms.index.arrays import np

        begins = np.cumsum(self.counts) - self.counts
        having = (
            (number, np.flatnonzero(self.counts > number)) for number in range(1, int(self.counts.max(initial=1)))
        )
        return begins, [(records, begins[records] + number) for number, records in having]

    @cached_property
    def _along(self) -> tuple[NDArray[float32], NDArray[float32]]:
        """How far each row goes along the common direction, and one by the length of the rest."""
        from khms.index.arrays import np

        assert self._common is not None
        along = self._cosines(self._common.astype(np.float32))
        return along, 1 / np.sqrt(np.maximum(1 - along * along, np.float32(_LEAST)))

    @cached_property
    def _towards(self) -> tuple[NDArray[float32], NDArray[float32]]:
        """How far each row goes along the base's mean, and one by the length of the rest."""
        from khms.index.arrays import np

        square = float(self._mean @ self._mean)
        towards = self._cosines(self._mean.astype(np.float32)) * np.float32(sqrt(square))
        return towards, 1 / np.sqrt(np.maximum(1 - 2 * towards + np.float32(square), np.float32(_LEAST)))

    def _cosines(self, vector: NDArray[float32]) -> NDArray[float32]:
        """Of each row to the one vector. As a product, for which the lengths of the rows are kept: half the time of a
        kernel for cosines, which works them out again each time."""
        from khms.index.arrays import np, numkong
        from khms.index.embedding import quantised

        if not len(self._rows):
            return np.empty(0, dtype=np.float32)
        whole = quantised(vector[None])
        found: NDArray[float32] = np.asarray(numkong.cdist(whole, self._rows, "dot", out_dtype="float32"))[0]
        found *= self._lengths
        found *= np.float32(1 / sqrt(max(float(np.square(whole, dtype=np.float32).sum()), 1.0)))
        return found

    @cached_property
    def _lengths(self) -> NDArray[float32]:
        """One by the length of each row."""
        from khms.index.arrays import np, numkong

        nought = np.zeros((1, self._rows.shape[1]), dtype=np.int8)
        squares = np.asarray(numkong.cdist(nought, self._rows, "sqeuclidean", out_dtype="float32"))[0]
        lengths: NDArray[float32] = 1 / np.sqrt(np.maximum(squares, np.float32(1)))
        return lengths
