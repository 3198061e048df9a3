"""A list that does not say one thing five times: maximal marginal relevance among near-duplicates.

Each place goes to the hit whose strength, less its likeness to what stands already, is greatest. Only a likeness that
makes a hit a near-duplicate counts. On the development sets, recall@5 / @10 of chat turns: 60.3 / 69.1 without, 55.9 /
62.8 where every likeness counts (59.2 / 67.8 by whole cosines), for what answers a question lies together; 60.3 / 69.1
where only those from 0.8 on do, freed of the base's mean. There are no near-duplicates in these sets: the step costs
nothing where it is not needed, so it needs no list of a certain length.
"""

from __future__ import annotations

from khms.index.text import terms
from khms.recall.rank import Ranked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from numpy.typing import NDArray

    Alike = Callable[[int], Sequence[float]]  # the likeness of every hit of a pool to the one at this place

POOL = 4  # hits that are weighed for each that is shown
MOST = 50  # places that are given this way; what stands beyond was asked for in bulk
READ = 4000  # characters of a document that are compared


def pool(hits: Sequence[Ranked], most: int) -> Sequence[Ranked]:
    """The hits among which the first `most` places are given."""
    return hits[: POOL * min(most, MOST)]


def spread(hits: Sequence[Ranked], alike: Alike, *, most: int, share: float, least: float) -> list[Ranked]:
    """`hits`, which stand best first, with near-duplicates behind what says something else. `share` of a hit's value is
    its strength beside the strongest, the rest its likeness to what is chosen, counted from `least` on. Exactness
    stays above all. Two cards where one corrects the other say different things about one matter, however alike, and
    what answers for a superseded card keeps its place before it. What no place was given to stays as it is."""
    rest = list(range(len(pool(hits, most))))
    chosen: list[int] = []
    top = max((hits[at].strength for at in rest), default=0.0)
    if len(rest) < 2 or top <= 0:
        return list(hits)
    likeness = [0.0] * len(rest)
    while rest and len(chosen) < min(most, MOST):
        values = {at: share * hits[at].strength / top - (1 - share) * likeness[at] for at in rest}
        best = max(rest, key=lambda at: (hits[at].exact, values[at], -at))
        rest.remove(best)
        chosen.append(best)
        near = alike(best)
        for at in rest:
            if near[at] >= least and not (hits[at].note or _linked(hits[at], hits[best])):
                likeness[at] = max(likeness[at], near[at])
    return [hits[at] for at in (*chosen, *rest, *range(len(likeness), len(hits)))]


def _linked(one: Ranked, other: Ranked) -> bool:
    """Whether an edge of correction joins them."""
    return any(
        target == b.document.id and rel in ("contradicts", "supersedes", "refuted_by")
        for a, b in ((one, other), (other, one))
        for rel, target in a.document.links
    )


def by_vectors(directions: NDArray[Any]) -> Alike:
    """As the index's vectors tell it: a row a hit, of length one or of zeros."""

    def alike(place: int) -> Sequence[float]:
        found: list[float] = (directions @ directions[place]).tolist()
        return found

    return alike


def by_words(hits: Sequence[Ranked], text_of: Callable[[Ranked], str]) -> Alike:
    """As the words tell it that two documents share, for where there are no vectors. A text is asked for only where the
    titles have half of their words in common."""
    titles = [_words(hit.document.title) for hit in hits]
    texts: dict[int, frozenset[str]] = {}

    def text(place: int) -> frozenset[str]:
        if place not in texts:
            texts[place] = _words(text_of(hits[place]))
        return texts[place]

    def alike(place: int) -> Sequence[float]:
        near = [jaccard(title, titles[place]) >= 0.5 for title in titles]
        return [jaccard(text(at), text(place)) if close and at != place else 0.0 for at, close in enumerate(near)]

    return alike


def _words(text: str) -> frozenset[str]:
    return frozenset(terms(text[:READ]).words)


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that both hold; 0 where there are none."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0
