"""What waits, what is overdue and what is broken in a base, from its files. Reads only; one broken part hides no other.

`khms status` shows it; with --check its problems are the exit code.
"""

import datetime
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from khms.config import Config
from khms.errors import KhmsError
from khms.measure.model import InForce, in_force
from khms.model.approval import Approval
from khms.model.card import Card
from khms.model.finding import Finding
from khms.store import cards, files, inbox, lock
from khms.store.layout import Base
from khms.store.receipts import Ledger, ledger
from khms.store.repo import Repo

if TYPE_CHECKING:
    from khms.hosts.schedulers.standing import Standing as Schedule
    from khms.pipeline.sources import Collected
    from khms.pipeline.sync import Standing

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
    last runs are ISO times of the last success, None where there was none. `lock` names who holds the approval lock,
    `shared` tells how the branch stands to its remote, None where it has none; `schedule` what starts its jobs by the
    clock, None where nothing does."""

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
    vectors: dict[str, Any]
    model: InForce
    lock: str
    interrupted: str
    problems: tuple[Problem, ...]
    shared: "Standing | None" = None
    schedule: "Schedule | None" = None

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
            "index": {"docs": self.docs, "behind": self.behind, "why": self.behind_why, **self.vectors},
            "model": self.model.as_json(),
            "lock": self.lock or None,
            "interrupted": self.interrupted or None,
            "shared": self.shared and asdict(self.shared),
            "schedule": self.schedule and self.schedule.as_json(),
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
    shelf = problems.trying(lambda: cards.shelf(base)) or cards.Shelf({})
    problems += [of_error(error) for error in shelf.unreadable]
    problems += [_no_card(card) for card in shelf.cards.values() if not _is_card(card)]
    records = problems.trying(lambda: cards.approvals(base))
    receipts = problems.trying(lambda: ledger(base))
    docs, behind, why, vectors, model = _index(base, config, problems)
    branch, held, interrupted = _git(base, problems)
    shared = _shared(base, config, branch, problems)
    last = {job: last_success(base, job) for job in JOBS}
    schedule = _schedule(base, last, problems)
    problems += [problem for job in JOBS if (problem := _overdue(job, last[job], config, schedule))]
    return Status(
        root=str(base.root),
        branch=branch,
        cards=dict(sorted(Counter(card.status for card in shelf.cards.values() if _is_card(card)).items())),
        open_marks=None if receipts is None else problems.trying(lambda: _open_marks(base, receipts, problems)),
        units=_units(base, None if receipts is None else records, problems),
        last_nightly=last["nightly"],
        last_weekly=last["weekly"],
        docs=docs,
        behind=behind,
        behind_why=why,
        vectors=vectors,
        model=model,
        lock=held,
        interrupted=interrupted,
        problems=tuple(dict.fromkeys(problems)),
        shared=shared,
        schedule=schedule,
    )


def _is_card(card: Card) -> bool:
    """A file in a folder of cards that names neither its id nor its type is text that lies there."""
    return bool(card.meta.get("id") or card.meta.get("type"))


def _no_card(card: Card) -> Problem:
    message = "this file is no card: it has no frontmatter with an id and a type at its top"
    return Problem(message, card.path, "mend it or move it away: khms lint " + card.path)


def _open_marks(base: Base, receipts: Ledger, problems: _Problems) -> int:
    from khms.pipeline import sources

    collected = sources.collect(base, receipts, sources.window(None, None))
    problems += [of_finding(finding) for finding in collected.problems if finding.severity == "error"]
    return len(collected.open) + _found_open(base, collected)


def _found_open(base: Base, collected: "Collected") -> int:
    """The MARKs that an agent found in sessions and nobody decided yet."""
    from khms.pipeline import carry, generate

    known = generate.Known((mark for page in collected.pages.values() for mark in page.marks), 1.0)
    found = [mark for chunk, answer in carry.found_before(base) for mark in generate.marks(chunk, answer, known).marks]
    return sum(mark.id not in collected.receipts for mark in found)


def _units(base: Base, records: Sequence[Approval] | None, problems: _Problems) -> tuple[Waiting, ...] | None:
    """What waits in each unit, None where no `records` tell. A unit that cannot be read is a problem and waits too,
    with as many candidates as there are files of them that no approval names."""
    from khms.pipeline.approve import approved_labels, pending

    found = []
    for path in _unit_paths(base):
        name = base.relative(path)
        unit = problems.trying(lambda name=name: inbox.find(base, name))  # type: ignore[misc]
        problems += [of_error(error) for error in unit.broken] if unit else []
        if records is None:
            continue
        if unit is None:
            labels = {file.stem for file in path.glob("C*.md")} - set(approved_labels(records, name))
            found.append(Waiting(path.stem, len(labels)))
            continue
        waiting = len(pending(base, unit, records))
        if waiting or unit.broken:
            found.append(Waiting(unit.name, waiting))
    return None if records is None else tuple(found)


def _unit_paths(base: Base) -> list[Path]:
    if not base.inbox.is_dir():
        return []
    shown = (path for path in sorted(base.inbox.iterdir()) if not path.name.startswith("."))
    return [path for path in shown if path.is_dir() or path.suffix == ".md"]


def _index(base: Base, config: Config, problems: _Problems) -> tuple[int | None, bool, str, dict[str, Any], InForce]:
    """(documents, whether it may be behind the files, why, the model of its vectors and their dimension, the model in
    force). That there is none yet is no problem: commands build it."""
    from khms.index import changes, manifest, sources
    from khms.index.freshness import freshness

    fresh = freshness(base)
    try:
        known = manifest.load(base.index)
    except manifest.Unusable as error:
        problems.append(Problem(f"the index cannot be used: {error}", str(base.index), "khms index builds it anew"))
        return None, True, fresh.why, {"model": None, "dim": None}, in_force(base, config, None)
    left_out = len(known.skipped if known else ()) + len(list(changes.missing(base.root, sources.rules(base, config))))
    if left_out:
        files = "1 file or folder is" if left_out == 1 else f"{left_out} files or folders are"
        problems.append(
            Problem(f"{files} left out of the index: recall finds nothing in there", "", "khms index lists them")
        )
    held = known.vectors if known else None
    vectors = {"model": held and held.model, "dim": held and held.dimension}
    model = in_force(base, config, known)
    if model.missing and known:
        problems.append(Problem(model.remark, "", model.mend))
    return (known.docs if known else None), fresh.behind, fresh.why, vectors, model


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


def _shared(base: Base, config: Config, branch: str, problems: _Problems) -> "Standing | None":
    from khms.pipeline.sync import standing

    return problems.trying(lambda: standing(Repo(base.root), config)) if branch else None


def last_success(base: Base, job: str) -> str | None:
    """When `job` last ended well, ISO 8601; None where it never did or its note cannot be read."""
    try:
        value = files.read_json(base.state / f"{job}.json")
        stamp = str(value["success"])
        datetime.datetime.fromisoformat(stamp)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return stamp


def _schedule(base: Base, last: Mapping[str, str | None], problems: _Problems) -> "Schedule | None":
    """What starts the base's jobs by the clock. What it no longer holds is a problem, and a run that ended badly where
    no success came of it, or by hand after it."""
    from khms.hosts.schedulers.standing import standing

    found = problems.trying(lambda: standing(base))
    if found is None:
        return None
    if found.why:
        problems.append(Problem(f"what {found.scheduler} holds of this base cannot be told: {found.why}"))
    for job in found.jobs:
        if not job.there and not found.why:
            told = f"{job.job} is no longer scheduled with {found.scheduler}, though it was installed there"
            problems.append(Problem(told, "", "khms schedule install; or for good: khms schedule uninstall"))
        if job.failed and job.last and _before(last[job.job], job.last.began):
            why = f": {job.last.said}" if job.last.said else ""
            told = f"the scheduled {job.job} of {job.last.at} ended with {job.last.code}{why}"
            problems.append(Problem(told, job.log, f"khms {job.job}"))
    return found


def _before(success: str | None, moment: str) -> bool:
    return success is None or datetime.datetime.fromisoformat(success) < datetime.datetime.fromisoformat(moment)


def _overdue(job: str, last: str | None, config: Config, schedule: "Schedule | None") -> Problem | None:
    """A job that never ended well is overdue only where it is scheduled, counted from when that was done."""
    since, told = last, "last succeeded"
    if last is None and schedule and any(held.job == job for held in schedule.jobs):
        since, told = schedule.since, "has never succeeded; it was scheduled"
    if since is None:
        return None
    hours = (time.time() - datetime.datetime.fromisoformat(since).timestamp()) / 3600
    if hours < -1:
        return Problem(f"{job} {told} {-hours:.0f} hours from now: a clock was wrong", "", f"khms {job}")
    if hours <= config[f"{job}.stale_hours"]:
        return None
    return Problem(f"{job} {told} {hours:.0f} hours ago", "", f"khms {job}")
