"""One weekly run as a value: what was found, what became of each offer, and what it came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from khms.model.finding import Finding
from khms.pipeline.carry import Run
from khms.pipeline.draft import DROPPED, PUBLISHED
from khms.pipeline.night import Spending
from khms.pipeline.weekly.made import LEFT_OUT, Made
from khms.pipeline.weekly.offer import Found

SCHEMA = "khms.weekly/1"


@dataclass(frozen=True)
class Week:
    """`found` is what each step found, by its name; `passed` the offers that are not made now, by key, each with the
    reason; `late` how many wait for the next run because of the cap. `news` says that the report tells something that
    none before it told. `unit` is empty where nothing is published."""

    run: Run
    proposer: str
    cards: int
    found: Mapping[str, Found]
    made: tuple[Made, ...] = ()
    passed: Mapping[str, str] = field(default_factory=dict)
    late: int = 0
    cap: int = 0
    problems: tuple[Finding, ...] = ()
    cost: Spending = field(default_factory=Spending)
    news: bool = False
    unit: str = ""
    clone: str = ""

    def of(self, fate: str) -> list[Made]:
        return [made for made in self.made if made.fate == fate]

    @property
    def written(self) -> list[Made]:
        return [made for made in self.made if made.fate != LEFT_OUT]

    @property
    def worth(self) -> bool:
        """Whether there is something to put before a reviewer."""
        return self.news or bool(self.written)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to. `told` counts what each step's report shows and nobody can approve; `unit` and `commit` are
    empty where nothing was published. `stages` is a dry run's: (stage, what it would be handed)."""

    run: str
    unit: str = ""
    commit: str = ""
    branch: str = ""
    offers: Mapping[str, int] = field(default_factory=dict)
    told: Mapping[str, int] = field(default_factory=dict)
    candidates: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    resumed: bool = False
    recovered: str = ""
    problems: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    cost: Spending = field(default_factory=Spending)

    @property
    def ok(self) -> bool:
        return not any(problem.severity == "error" for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "run": self.run,
            "unit": self.unit or None,
            "commit": self.commit or None,
            "branch": self.branch or None,
            "offers": dict(self.offers),
            "told": dict(self.told),
            "candidates": {fate: self.candidates.get(fate, 0) for fate in (PUBLISHED, DROPPED)},
            "waiting": self.late,
            "calls": self.cost.calls,
            "cost_usd": self.cost.cost_usd,
            "stopped_by": self.cost.stopped_by,
            "resumed": self.resumed,
            "problems": [problem.as_json() for problem in self.problems],
            "notes": list(self.notes),
        }


def result(week: Week, commit: str = "", branch: str = "") -> Result:
    return Result(
        run=week.run.id,
        unit=week.unit,
        commit=commit,
        branch=branch,
        offers={step: sum(made.step == step for made in week.written) for step in week.found},
        told={step: len(found.told) for step, found in week.found.items()},
        candidates={fate: len(week.of(fate)) for fate in (PUBLISHED, DROPPED)},
        late=week.late,
        resumed=week.run.resumed,
        problems=week.problems,
        notes=tuple(said for found in week.found.values() for said in found.missing),
        cost=week.cost,
    )
