"""The channels that need the embedding model: nearness of whole vectors, and the word match.

Nearness is a document's cosine to the question by its best chunk, read in three ways. As it is, it is best where words
are shared. Freed of the direction that all of the model's vectors have in common, it tells what is about something else
altogether. Freed of the base's own mean, it tells documents of one subject apart. On the development sets, paraphrases
without a shared word, MRR: 42, 49, 52; chat turns, recall@5: 54, 49, 47; so ranking takes each where it is good.

The word match looks at a few documents only, those that either channel found: how well each piece of the question is
met by the piece of the document nearest to it, weighted by how much that piece tells. It sees that `refuses` and
`rejects` meet, which BM25 does not, and which words met nothing at all, which a mean vector does not.
"""

from __future__ import annotations

from functools import cached_property
from math import sqrt

from khms.index.lexical import PRIOR, Damaged, Reader
from khms.index.vector import Vectors
from khms.model.document import Document, Query
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from numpy import float32, intp
    from numpy.typing import NDArray

    from khms.index.embedding import Model

MOST_PIECES = 64  # of a question that are matched, those that tell most
# Mean and spread of a question's cosines by each reading, as they lie over the development sets. A base counts as two
# documents more of such a mean than it has, and as twenty of such a spread.
USUAL = ((0.55, 0.06), (0.27, 0.085), (0.0, 0.11))
MEAN_WEIGHT, SPREAD_WEIGHT = 2, 20
MOST_ROWS = 4096  # that the mean of a base is taken over, evenly spread; with more it would be the same
SHRINK = 20  # rows without direction that it is counted with, so that a single document is not its own mean
_BLOCK = 1 << 20  # pieces that are counted at once


@dataclass(frozen=True, slots=True)
class Felt:
    """What the model says of a document. `near`, `aside` and `out` are its nearness by the three readings, in spreads
    above the mean of the base. `apart` is the second reading as a cosine. `met` is the share of the question's weight
    that its words meet, 0-1, and `well` the same with near misses counted less. `pieces` counts what is in it. `rank`
    is its place by nearness, from 1, None where others brought it in."""

    slot: int
    near: float
    aside: float
    out: float
    apart: float
    met: float
    well: float
    pieces: int
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Feeling:
    """What the model says to a question: of the documents, nearest first, then those that others found. `rows` counts
    the vectors that were compared: the more there are, the nearer the nearest is by chance."""

    felt: tuple[Felt, ...] = ()
    rows: int = 0


class Meaning:
    """The channels over an opened index and the vectors that go with it."""

    def __init__(self, reader: Reader, vectors: Vectors, model: Model) -> None:
        self._reader, self._vectors, self._model = reader, vectors, model
        self._standing: dict[tuple[str, ...], NDArray[intp]] = {}

    def ask(self, query: Query, found: Iterable[int], *, depth: int, hidden: tuple[str, ...] = ()) -> Feeling:
        """The `depth` nearest documents that fit the question's filters and stand on no `hidden` shelf, then those in
        the slots `found`. Nothing where the model knows no piece of the question. Raises Damaged where the files
        contradict themselves."""
        try:
            return self._ask(query, found, depth, hidden)
        except (ValueError, IndexError, OSError, MemoryError, OverflowError) as error:
            raise Damaged(f"the vectors cannot be read: {error}") from error

    def directions(self, slots: Sequence[int]) -> NDArray[float32]:
        """A row a slot: which way its document lies from the mean of the base, of length one. Zeros where it has no
        vector."""
        from khms.index.arrays import np

        found = np.zeros((len(slots), self._model.dimension), dtype=np.float32)
        held, ends, rows = self._vectors.slots, self._vectors.row_ends, self._vectors.rows
        wanted = np.array(slots, dtype=np.intp)
        records = np.searchsorted(held, wanted)
        places = np.flatnonzero(np.append(held, -1)[records] == wanted)
        if len(places):
            begins, stops = ends[records[places]], ends[records[places] + 1]
            units = _units(rows[np.concatenate([np.arange(*span) for span in zip(begins, stops, strict=True)])])[0]
            sizes = stops - begins
            sums = np.add.reduceat(units, np.cumsum(sizes) - sizes, axis=0)
            found[places] = sums / sizes[:, None] - self._mean[0]
        return _units(found)[0]

    def documents(self, slots: Iterable[int]) -> dict[int, Document]:
        return self._reader.at_slots(slots)

    def _ask(self, query: Query, found: Iterable[int], depth: int, hidden: tuple[str, ...]) -> Feeling:
        from khms.index.arrays import np

        pieces = self._model.cut("\n".join([query.text, *query.phrases]).strip())
        base = self._records(Query(""), hidden)
        vector = self._model.encode([pieces])
        if not vector.any() or not len(base):
            return Feeling()
        fitting = self._records(query, hidden) if query.filters or query.phrases else base
        readings = self._readings(vector)
        above = [_above(reading, base, *usual) - self._luck for reading, usual in zip(readings, USUAL, strict=True)]
        order = above[0][fitting] + above[1][fitting]
        nearest = fitting[_greatest(order, depth)]
        ranks = {int(record): rank for rank, record in enumerate(nearest, 1)}
        asked = self._at(np.fromiter(found, dtype=np.intp))
        asked = asked[self._live[asked]]
        chosen = np.array([*ranks, *(int(record) for record in asked if int(record) not in ranks)], dtype=np.intp)
        counts = self._vectors.row_ends[base + 1] - self._vectors.row_ends[base]
        if not len(chosen):
            return Feeling((), int(counts.sum()))
        meets, meets_well = self._match(np.array(sorted(set(pieces)), dtype=np.intp), chosen, len(base))
        sizes = self._vectors.piece_ends[chosen + 1] - self._vectors.piece_ends[chosen]
        found_at = zip(
            chosen.tolist(),
            self._vectors.slots[chosen].tolist(),
            *(reading[chosen].tolist() for reading in (*above, readings[1])),
            meets.tolist(),
            meets_well.tolist(),
            sizes.tolist(),
            strict=True,
        )
        felt = tuple(
            Felt(slot, near, aside, out, apart, met, well, size, ranks.get(record))
            for record, slot, near, aside, out, apart, met, well, size in found_at
        )
        return Feeling(felt, int(counts.sum()))

    def _readings(self, vector: NDArray[float32]) -> tuple[NDArray[float32], NDArray[float32], NDArray[float32]]:
        """Of each record, its best row's cosine to the question: as it is, without the direction that the model's
        vectors share, without the base's mean."""
        question = vector[0]
        plain = self._cosines(vector)
        along, left = self._along
        share = float(question @ self._model.common)
        aside = (plain - share * along) * (left / sqrt(max(1 - share * share, 1e-6)))
        mean, towards, rest = self._mean
        length, of_question = float(mean @ mean), float(question @ mean)
        out = (plain - towards + (length - of_question)) * (rest / sqrt(max(1 - 2 * of_question + length, 1e-6)))
        return self._best_of(plain), self._best_of(aside), self._best_of(out)

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

        begins, counts = self._vectors.row_ends[:-1], np.diff(self._vectors.row_ends)
        most = int(counts.max(initial=1))
        having = ((number, np.flatnonzero(counts > number)) for number in range(1, most))
        return begins, [(records, begins[records] + number) for number, records in having]

    @cached_property
    def _luck(self) -> NDArray[Any]:
        """What the best of a document's rows is above their mean by chance alone, in spreads."""
        from khms.index.arrays import np

        luck: NDArray[Any] = np.sqrt(2 * np.log(np.diff(self._vectors.row_ends)))
        return luck

    @cached_property
    def _along(self) -> tuple[NDArray[float32], NDArray[float32]]:
        """How far each row goes along the direction that the model's vectors share, and one by the length of the
        rest."""
        from khms.index.arrays import np

        along = self._cosines(self._model.common[None].astype(np.float32))
        return along, 1 / np.sqrt(np.maximum(1 - along * along, 1e-6))

    @cached_property
    def _mean(self) -> tuple[NDArray[Any], NDArray[float32], NDArray[float32]]:
        """The mean of the base's unit vectors; how far each row goes along it, and one by the length of the rest."""
        from khms.index.arrays import np

        live = np.flatnonzero(np.repeat(self._live, np.diff(self._vectors.row_ends)))
        some = live[:: max(1, -(-len(live) // MOST_ROWS))]
        mean = _units(self._vectors.rows[some])[0].sum(axis=0, dtype=np.float64) / (len(some) + SHRINK)
        square = float(mean @ mean)
        towards = self._cosines(mean[None].astype(np.float32)) * np.float32(sqrt(square))
        return mean, towards, 1 / np.sqrt(np.maximum(1 - 2 * towards + np.float32(square), 1e-6))

    def _cosines(self, vector: NDArray[float32]) -> NDArray[float32]:
        """Of each row to the one vector."""
        from khms.index.arrays import np, numkong
        from khms.index.embedding import quantised

        apart = np.asarray(numkong.cdist(quantised(vector), self._vectors.rows, "angular"))[0]
        cosines: NDArray[float32] = 1 - apart.astype(np.float32)
        return cosines

    def _records(self, query: Query, hidden: tuple[str, ...]) -> NDArray[intp]:
        """The records whose documents are in the index and fit."""
        from khms.index.arrays import np

        plain = not (query.filters or query.phrases)
        known = self._standing.get(hidden) if plain else None
        if known is None:
            known = self._at(np.array(self._reader.slots(query, hidden), dtype=np.intp))
            if plain:
                self._standing[hidden] = known
        return known

    def _at(self, slots: NDArray[intp]) -> NDArray[intp]:
        """The records of those `slots` that have any."""
        from khms.index.arrays import np

        held = self._vectors.slots
        at = np.searchsorted(held, slots)
        inside = at < len(held)
        at, slots = at[inside], slots[inside]
        known: NDArray[intp] = at[held[at] == slots]
        return known

    @cached_property
    def _live(self) -> NDArray[Any]:
        """Of each record, whether its document is in the index."""
        from khms.index.arrays import np

        live = np.zeros(len(self._vectors.slots), dtype=bool)
        live[self._records(Query(""), ())] = True
        return live

    def _match(self, asked: NDArray[intp], records: NDArray[intp], documents: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """(met, well) of each record."""
        from khms.index.arrays import np

        table = self._model.table
        wanted, lengths = _units(table[asked])
        counts = self._counts[asked]
        weights = np.log1p((np.maximum(documents + PRIOR - counts, 0) + 0.5) / (counts + 0.5)) * lengths
        if len(asked) > MOST_PIECES:
            best = _greatest(weights, MOST_PIECES)
            wanted, weights = wanted[best], weights[best]
        begins, ends = self._vectors.piece_ends[records], self._vectors.piece_ends[records + 1]
        held = np.concatenate([self._vectors.pieces[b:e] for b, e in zip(begins, ends, strict=True)])
        there = np.flatnonzero(np.bincount(held, minlength=len(table)))
        column = np.zeros(len(table), dtype=np.intp)
        column[there] = np.arange(len(there))
        near = _units(table[there])[0] @ wanted.T
        sizes = ends - begins
        best_of = np.maximum.reduceat(near[column[held]], np.cumsum(sizes) - sizes, axis=0).clip(0.0, 1.0)
        total = max(float(weights.sum()), 1e-9)
        return best_of @ weights / total, (best_of * best_of) @ weights / total

    @cached_property
    def _counts(self) -> NDArray[Any]:
        """In how many documents of the index each piece stands."""
        from khms.index.arrays import np

        live, pieces = self._live, self._vectors.pieces
        counted = None if live.all() else np.repeat(live, np.diff(self._vectors.piece_ends))
        found = np.zeros(len(self._model.table), dtype=np.intp)
        for start in range(0, len(pieces), _BLOCK):
            block = pieces[start : start + _BLOCK]
            some = block if counted is None else block[counted[start : start + _BLOCK]]
            found += np.bincount(some, minlength=len(found))
        return found


def _units(rows: NDArray[Any]) -> tuple[NDArray[float32], NDArray[float32]]:
    """(unit vectors, lengths)."""
    from khms.index.arrays import np

    wide = rows.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    wide /= np.maximum(lengths, 1e-9)[:, None]
    return wide, lengths


def _greatest(values: NDArray[Any], count: int) -> NDArray[intp]:
    """Where the `count` greatest stand, the greatest first, equals as they come."""
    from khms.index.arrays import np

    at = np.arange(len(values))
    if count < len(values):
        at = np.flatnonzero(values >= np.partition(values, len(values) - count)[len(values) - count])
    found: NDArray[intp] = at[np.argsort(-values[at], kind="stable")][:count]
    return found


def _above(cosines: NDArray[Any], base: NDArray[intp], usual_mean: float, usual_spread: float) -> NDArray[Any]:
    """Each cosine as its distance from the mean of the `base`, in spreads."""
    from khms.index.arrays import np

    some = cosines if len(base) == len(cosines) else cosines[base]
    count = len(some)
    mean = (float(some.sum()) + MEAN_WEIGHT * usual_mean) / (count + MEAN_WEIGHT)
    squares = float(((some - some.mean()) ** 2).sum()) + SPREAD_WEIGHT * usual_spread**2
    above: NDArray[Any] = (cosines - mean) / np.sqrt(squares / (count + SPREAD_WEIGHT))
    return above
