"""What `khms bench` measures and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from khms.measure.stand import Stand

SMALL = 10_000  # cards up to which the first of two limits holds


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the report. `limit` is what it is to stay within, in `unit`; two are for bases of 10,000 cards and of
    100,000."""

    name: str
    what: str
    unit: str
    limit: float | tuple[float, float]

    def limit_for(self, cards: int) -> float:
        return self.limit if isinstance(self.limit, float) else self.limit[cards > SMALL]


@dataclass(frozen=True, slots=True)
class Measure:
    """Figures that are measured together, in their order."""

    figures: tuple[Figure, ...]
    run: Callable[[Stand], Sequence[float]]


def alone(figure: Figure, run: Callable[[Stand], float]) -> Measure:
    return Measure((figure,), lambda stand: (run(stand),))


@dataclass(frozen=True, slots=True)
class Row:
    """A figure as measured, None where it could not be, which `note` then says why."""

    name: str
    what: str
    value: float | None
    limit: float
    unit: str
    note: str = ""

    @property
    def reached(self) -> bool:
        return self.value is not None and self.value <= self.limit
