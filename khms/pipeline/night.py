"""One run of nightly as a value: what was read, what was decided, what became of each candidate, and its receipts."""

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from khms.model.finding import Finding
from khms.model.mark import Mark
from khms.model.receipt import Receipt
from khms.model.verdict import ALREADY, ATTACH, CORRECT, NEW, NOT, VERDICTS
from khms.pipeline.carry import Decision, Run
from khms.pipeline.draft import DEFERRED, DROPPED, PUBLISHED, UNWRITABLE, Draft
from khms.pipeline.sources import Collected
from khms.store.inbox import unit_path

SCHEMA = "khms.nightly/1"


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run spent on an agent: `unpriced` calls are those of which the host told no cost, `stopped_by` the bound
    that ended it and `why` what that was, `prompts` the versions (SHA-256) of the templates by name."""

    calls: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    stopped_by: str | None = None
    why: str = ""
    models: tuple[str, ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Night:
    """`decisions` are in the journal's order, by MARK; `left` are MARKs that stay open, each with the reason; `journal`
    maps each journal file that the commit takes along to its bytes, `kept_back` those that it does not, to the reason.
    `unit` is empty where there is no candidate to publish; `taken` names a folder that had its name already; `clone` is
    this work tree's name in a shared base; `branch` the unit's own, where it is delivered so."""

    run: Run
    collected: Collected
    proposer: str
    decisions: Mapping[str, Decision]
    drafts: tuple[Draft, ...]
    left: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()
    journal: Mapping[str, bytes] = field(default_factory=dict)
    kept_back: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    taken: str = ""
    clone: str = ""
    branch: str = ""
    spending: Spending = field(default_factory=Spending)

    @cached_property
    def marks(self) -> Mapping[str, Mark]:
        return {mark.id: mark for mark in self.collected.open}

    @cached_property
    def by_label(self) -> Mapping[str, Draft]:
        return {made.label: made for made in self.drafts}

    def of(self, fate: str) -> list[Draft]:
        return [made for made in self.drafts if made.fate == fate]

    @property
    def has_candidates(self) -> bool:
        return any(made.fate != UNWRITABLE for made in self.drafts)

    def outcome(self, decision: Decision) -> tuple[str, str, str]:
        """(verdict, label, reason) as the receipt records it: what the proposer said, unless no file can hold it."""
        label = decision.label or decision.verdict.to
        made = self.by_label.get(label)
        if made is not None and made.fate == UNWRITABLE:
            return NOT, "", f"it cannot be written as a card: {made.why}"
        reason = decision.verdict.says
        return decision.verdict.kind, label, f"{made.fate}: {made.why}" if made is not None and made.why else reason

    def receipts(self) -> list[Receipt]:
        """One receipt for each decided MARK."""
        at = utc(self.run.started)
        unit = unit_path(self.unit) if self.unit else ""
        found = []
        for decision in self.decisions.values():
            verdict, label, reason = self.outcome(decision)
            page = self.collected.page(self.marks[decision.mark])
            found.append(
                Receipt(
                    mark=decision.mark,
                    stage="propose",
                    verdict=verdict,
                    run=self.run.id,
                    unit=unit if label else "",
                    label=label,
                    reason=reason,
                    at=at,
                    sources=((page.path, page.sha256),),
                )
            )
        return found


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to. `open` MARKs of its window have no decision yet; `unit` and `commit` are empty where nothing
    was published, `branch` where the unit has none of its own. `stages` is a dry run's: (stage, what it would be
    handed). `secrets` are the places in the journal where something looks like a secret: (path, line, the MARK's id).
    """

    run: str
    unit: str = ""
    commit: str = ""
    branch: str = ""
    open: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict)
    candidates: Mapping[str, int] = field(default_factory=dict)
    resumed: bool = False
    recovered: str = ""
    problems: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, int, str], ...] = ()
    spending: Spending = field(default_factory=Spending)

    @property
    def decided(self) -> int:
        return sum(self.verdicts.values())

    @property
    def ok(self) -> bool:
        """Whether everything that was there could be read and decided."""
        return not any(problem.severity == "error" for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        counts = {verdict: self.verdicts.get(verdict, 0) for verdict in VERDICTS}
        return {
            "schema": SCHEMA,
            "run": self.run,
            "unit": self.unit or None,
            "commit": self.commit or None,
            "branch": self.branch or None,
            "marks": {
                "open": self.open,
                "decided": self.decided,
                "new": counts[NEW],
                "attach": counts[ATTACH],
                "correct": counts[CORRECT],
                "already_carded": counts[ALREADY],
                "not_carded": counts[NOT],
            },
            "candidates": {fate: self.candidates.get(fate, 0) for fate in (PUBLISHED, DEFERRED, DROPPED)},
            "calls": self.spending.calls,
            "cost_usd": self.spending.cost_usd,
            "stopped_by": self.spending.stopped_by,
            "resumed": self.resumed,
            "problems": [problem.as_json() for problem in self.problems],
            "notes": list(self.notes),
            "secrets": [{"path": path, "line": line, "mark": mark} for path, line, mark in self.secrets],
        }


def result(night: Night, commit: str = "") -> Result:
    verdicts = Counter(night.outcome(decision)[0] for decision in night.decisions.values())
    return Result(
        run=night.run.id,
        unit=night.unit,
        commit=commit,
        branch=night.branch,
        open=len(night.left),
        verdicts=dict(verdicts),
        candidates={fate: len(night.of(fate)) for fate in (PUBLISHED, DEFERRED, DROPPED)},
        resumed=night.run.resumed,
        problems=night.problems,
        secrets=tuple(_secrets(night)),
        spending=night.spending,
    )


def _secrets(night: Night) -> Iterator[tuple[str, int, str]]:
    """Where a MARK was shown to no proposer because of what stands in it."""
    for decision in night.decisions.values():
        if decision.held_back:
            mark = night.marks[decision.mark]
            yield mark.path, mark.line, mark.id


def utc(moment: str) -> str:
    """The same moment in UTC: receipts of two clones are compared as texts."""
    return datetime.datetime.fromisoformat(moment).astimezone(datetime.UTC).isoformat(timespec="seconds")
