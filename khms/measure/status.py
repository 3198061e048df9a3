"""What waits, what is overdue and what is broken in a base, from its files. Reads only; one broken part hides no other.

`khms status` shows it; with --check its problems are the exit code.
"""

import datetime
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from khms.config import Config
from khms.errors import KhmsError
from khms.model.approval import Approval
from khms.model.finding import Finding
from khms.store import cards, files, inbox, lock
from khms.store.layout import Base
from khms.store.receipts import Ledger, ledger
from khms.store.repo import Repo

JOBS = ("nightly", "weekly")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that a person should mend; `where` is a path, with its line where there is one."""

    message: str
    where: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A unit with candidates that nobody decided."""

    unit: str
    pending: int


@dataclass(frozen=True, slots=True)
class Status:
    """`open_marks` is None where the journal or the receipts cannot be read, `units` where the approvals cannot. The
    last runs are ISO times of the last success, None where there was none. `lock` names who holds the approval lock."""

    root: str
    branch: str
    cards: dict[str, int]
    open_marks: int | None
    units: tuple[Waiting, ...] | None
    last_nightly: str | None
    last_weekly: str | None
    docs: int | None
    behind: bool
    behind_why: str
    lock: str
    interrupted: str
    problems: tuple[Problem, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": "khms.status/1",
            "root": self.root,
            "branch": self.branch,
            "cards": self.cards,
            "open_marks": self.open_marks,
            "unreviewed_units": None if self.units is None else len(self.units),
            "units": [asdict(unit) for unit in self.units or ()],
            "last_nightly": self.last_nightly,
            "last_weekly": self.last_weekly,
            "index": {"docs": self.docs, "behind": self.behind, "why": self.behind_why, "model": None, "dim": None},
            "lock": self.lock or None,
            "interrupted": self.interrupted or None,
            "problems": [asdict(problem) for problem in self.problems],
        }


class _Problems(list[Problem]):
    """Collects problems; `trying` runs a step and turns what it raises into one."""

    def trying(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except KhmsError as error:
            self.append(of_error(error))
            return None


def of_error(error: KhmsError) -> Problem:
    return Problem(error.message, error.where, error.hint)


def of_finding(finding: Finding) -> Problem:
    place = f"{finding.path}:{finding.line}" if finding.line else finding.path
    return Problem(finding.message, place, finding.mend)


def status(base: Base, config: Config) -> Status:
    """How the base stands at this moment. Raises nothing for what is wrong in it: that is the answer."""
    problems = _Problems()
    shelf = cards.shelf(base)
    problems += [of_error(error) for error in shelf.unreadable]
    records = problems.trying(lambda: cards.approvals(base))
    receipts = problems.trying(lambda: ledger(base))
    docs, behind, why = _index(base, problems)
    branch, held, interrupted = _git(base, problems)
    last = {job: last_success(base, job) for job in JOBS}
    problems += [problem for job in JOBS if (problem := _overdue(job, last[job], config))]
    return Status(
        root=str(base.root),
        branch=branch,
        cards=dict(sorted(Counter(card.status for card in shelf.cards.values()).items())),
        open_marks=None if receipts is None else _open_marks(base, receipts, problems),
        units=None if records is None or receipts is None else _units(base, records, problems),
        last_nightly=last["nightly"],
        last_weekly=last["weekly"],
        docs=docs,
        behind=behind,
        behind_why=why,
        lock=held,
        interrupted=interrupted,
        problems=tuple(dict.fromkeys(problems)),
    )


def _open_marks(base: Base, receipts: Ledger, problems: _Problems) -> int:
    from khms.pipeline import sources

    collected = sources.collect(base, receipts, sources.window(None, None))
    problems += [of_finding(finding) for finding in collected.problems if finding.severity == "error"]
    return len(collected.open)


def _units(base: Base, records: Sequence[Approval], problems: _Problems) -> tuple[Waiting, ...]:
    from khms.pipeline.approve import pending

    found = []
    for unit in problems.trying(lambda: list(inbox.units(base))) or ():
        problems += [of_error(error) for error in unit.broken]
        waiting = len(pending(base, unit, records))
        if waiting or unit.broken:
            found.append(Waiting(unit.name, waiting))
    return tuple(found)


def _index(base: Base, problems: _Problems) -> tuple[int | None, bool, str]:
    """(documents, whether it may be behind the files, why). That there is none yet is no problem: commands build it."""
    from khms.index import manifest
    from khms.index.freshness import freshness

    fresh = freshness(base)
    try:
        known = manifest.load(base.index)
    except manifest.Unusable as error:
        problems.append(Problem(f"the index cannot be used: {error}", str(base.index), "khms index builds it anew"))
        return None, True, fresh.why
    return (known.docs if known else None), fresh.behind, fresh.why


def _git(base: Base, problems: _Problems) -> tuple[str, str, str]:
    """(branch, who holds the approval lock, what a killed command left)."""
    from khms.store import commit

    repo = Repo(base.root)
    if problems.trying(lambda: repo.top) is None:
        return "", "", ""
    path = commit.lock_path(repo)
    holder = lock.holder(path) if lock.held(path) else ""
    left = commit.pending(repo)
    interrupted = f"an interrupted {left.what or 'command'}" if left and not holder else ""
    if interrupted:
        problems.append(Problem(f"{interrupted} waits to be finished or undone", str(base.root), "khms doctor does it"))
    busy = repo.operation()
    if busy:
        problems.append(Problem(f"{busy} is in progress", str(base.root), "finish or abort it"))
    return repo.branch(), holder, interrupted


def last_success(base: Base, job: str) -> str | None:
    """When `job` last ended well, ISO 8601; None where it never did or its note cannot be read."""
    try:
        value = files.read_json(base.state / f"{job}.json")
        stamp = str(value["success"])
        datetime.datetime.fromisoformat(stamp)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return stamp


def _overdue(job: str, last: str | None, config: Config) -> Problem | None:
    """A job that never ran is not overdue."""
    if last is None:
        return None
    hours = (time.time() - datetime.datetime.fromisoformat(last).timestamp()) / 3600
    if hours <= config[f"{job}.stale_hours"]:
        return None
    return Problem(f"{job} last succeeded {hours:.0f} hours ago", "", f"khms {job}")
