"""Observations that share a shape: near in meaning, and more so where they share a tag.

Nearness is the cosine of the shipped model's vectors, freed of what all of its vectors, and all of the base's, have in
common. Two are near from TAGGED on where they share a tag that is not everybody's, from PLAIN on else. In a cluster
every two are near, so that no chain of neighbours joins what has nothing in common. Of 820 pairs among 41 unrelated
engineering notes 10 lie over TAGGED and 1 over PLAIN; of nine pairs of notes written to tell one lesson in other
surroundings six lie over TAGGED (0.34 to 0.58).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from khms.index import models
from khms.model.belief import level
from khms.model.card import Card
from khms.model.document import GOTCHA
from khms.model.mark import parse_marks
from khms.pipeline.weekly.ground import Ground
from khms.store import files
from khms.store.layout import JOURNAL, Base

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from khms.index.embedding import Model

TAGGED, PLAIN = 0.30, 0.45
SHRINK = 20  # documents without direction that the mean is taken over as well: one subject alone is not its own mean
COMMON = 0.2  # share of the observations from which a tag is everybody's
FEW = 12  # observations up to which no tag is everybody's
LEAST = 3  # independent observations
ROWS = 512  # that are compared at once


@dataclass(frozen=True, slots=True)
class Shape:
    """Cards of one shape, by id; `like` is the mean cosine of its pairs, `independent` how many of them were made in
    sessions and on dates of their own."""

    cards: tuple[str, ...]
    like: float
    independent: int

    @property
    def key(self) -> str:
        return "shape " + " ".join(self.cards)


def shapes(ground: Ground) -> list[Shape]:
    """Every shape of at least LEAST independent observations of which no card in force tells already, the plainest
    first. Raises Unavailable where there is no model."""
    cards = [c for c in ground.standing if level(c) == "observation" and c.status == "active"]
    if len(cards) < LEAST:
        return []
    model = models.load(models.chosen(ground.base, ground.config))
    sessions = Sessions(ground.base)
    said = [set(c.links.derived_from) for c in ground.standing if level(c) == "derived"]
    found = []
    for ids, like in _clusters(cards, _vectors(model, cards)):
        if any(len(known.intersection(ids)) > 1 for known in said):
            continue
        made = [(sessions.of(ground.cards[i]), ground.cards[i].date[:10]) for i in ids]
        if (count := independent(made)) >= LEAST:
            found.append(Shape(tuple(ids), round(like, 3), count))
    return sorted(found, key=lambda shape: (-shape.independent, -shape.like, shape.cards))


def _vectors(model: Model, cards: Sequence[Card]) -> NDArray[float32]:
    """A unit vector a card."""
    from khms.index.arrays import np

    raw = model.encode([model.cut(f"{card.title}\n{card.body}") for card in cards]).astype(np.float64)
    if model.common is not None:
        raw -= np.outer(raw @ model.common, model.common)
    raw -= raw.sum(axis=0) / (len(raw) + SHRINK)
    lengths = np.sqrt(np.square(raw).sum(axis=1))
    units: NDArray[float32] = (raw / np.maximum(lengths, 1e-9)[:, None]).astype(np.float32)
    return units


def _near(cards: Sequence[Card], units: NDArray[float32]) -> dict[tuple[int, int], float]:
    from khms.index.arrays import np

    counts = Counter(tag for card in cards for tag in set(card.tags) - {GOTCHA})
    most = COMMON * len(cards) if len(cards) > FEW else len(cards)
    tags = [{tag for tag in card.tags if 0 < counts[tag] <= most} for card in cards]
    found: dict[tuple[int, int], float] = {}
    for start in range(0, len(cards), ROWS):
        some = units[start : start + ROWS] @ units.T
        ones, others = np.nonzero(some >= TAGGED)
        for one, other, like in zip((ones + start).tolist(), others.tolist(), some[ones, others].tolist(), strict=True):
            if one < other and (like >= PLAIN or tags[one] & tags[other]):
                found[one, other] = round(like, 5)
    return found


def _clusters(cards: Sequence[Card], units: NDArray[float32]) -> Iterator[tuple[list[str], float]]:
    """(ids, mean cosine) of each cluster of LEAST cards or more. The nearest pairs are joined first, and two clusters
    only where each card of the one is near to each of the other."""
    near = _near(cards, units)
    home = list(range(len(cards)))
    held: dict[int, list[int]] = {i: [i] for i in home}
    for (one, other), _ in sorted(
        near.items(), key=lambda pair: (-pair[1], cards[pair[0][0]].id, cards[pair[0][1]].id)
    ):
        a, b = home[one], home[other]
        if a == b or not all((min(i, j), max(i, j)) in near for i in held[a] for j in held[b]):
            continue
        for i in held[b]:
            home[i] = a
        held[a] += held.pop(b)
    for _, group in sorted(held.items()):
        if len(group) >= LEAST:
            pairs = [near[min(i, j), max(i, j)] for at, i in enumerate(group) for j in group[at + 1 :]]
            yield sorted(cards[i].id for i in group), sum(pairs) / len(pairs)


def independent(made: Iterable[tuple[str, str]]) -> int:
    """How many of these (session, date) can be chosen so that no two share either: a matching of sessions to dates. An
    observation without a date counts for none."""
    dates: dict[str, list[str]] = {}
    for session, date in sorted(set(made)):
        if date:
            dates.setdefault(session, []).append(date)
    taken: dict[str, str] = {}

    def place(session: str, tried: set[str]) -> bool:
        for date in dates[session]:
            if date not in tried:
                tried.add(date)
                if date not in taken or place(taken[date], tried):
                    taken[date] = session
                    return True
        return False

    return sum(place(session, set()) for session in dates)


class Sessions:
    """Which session an observation was made in, as its source tells: the session that it names, else the one of the
    MARK on its journal line, else the day's journal as a whole; a page, commit or path stands for itself. What names
    nothing is one session with all that names nothing."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._marks: dict[str, dict[int, str]] = {}

    def of(self, card: Card) -> str:
        source = card.source
        if named := re.search(r"\bsession:(\S+?/[\w.-]+)|\(?\bsess(?:ion)?\s+([\w-]{3,})", source):
            return f"session {named[1] or named[2]}"
        if found := re.search(rf"({JOURNAL}/[\w.-]+\.md)(?:,?\s*(?:lines?\s|:)\s*(\d+))?", source):
            session = self._on(found[1], int(found[2] or 0))
            return f"session {session}" if session else found[1]
        place = re.split(r",?\s+lines?\b|:\s*[\"“]|#|:\d", source.strip(), maxsplit=1)[0]
        return " ".join(place.split()).casefold()

    def _on(self, path: str, line: int) -> str:
        if path not in self._marks:
            rows: dict[int, str] = {}
            try:
                text = files.read_inside(self._base.root, path).decode("utf-8", "replace")
            except OSError:
                text = ""
            for mark in parse_marks(text, path):
                rows |= dict.fromkeys(range(mark.line, mark.end + 1), mark.session)
            self._marks[path] = rows
        return self._marks[path].get(line, "")
