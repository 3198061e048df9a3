"""What a list of found ids is worth, told from the ids alone: no tool's own score is looked at.

The figures are those of khms.measure.figures, which says where they come from. Here they are the mean over the
questions, times 100. A document that was found more than once, by several of its pieces, counts at its best place.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from khms.measure import figures


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's kind, the ids that answer it, and those that were found, best first."""

    kind: str
    gold: frozenset[str]
    found: tuple[str, ...]

    def recall(self, first: int) -> float:
        return figures.recall_at(_once(self.found), tuple(self.gold), first)

    @property
    def reciprocal(self) -> float:
        return figures.reciprocal(_once(self.found), tuple(self.gold))


def mean(values: Iterable[float]) -> float:
    """Of shares, as a percentage; 0 of nothing."""
    held = list(values)
    return 100 * sum(held) / len(held) if held else 0.0


def recall(asked: Sequence[Asked], first: int) -> float:
    return mean(one.recall(first) for one in asked)


def reciprocal(asked: Sequence[Asked]) -> float:
    return mean(one.reciprocal for one in asked)


def answered(asked: Sequence[Asked]) -> float:
    """How many got any answer at all."""
    return mean(bool(one.found) for one in asked)


def of_kinds(asked: Iterable[Asked], kinds: Collection[str]) -> list[Asked]:
    return [one for one in asked if one.kind in kinds]


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
