"""The way of a weekly run: lock, the ground, the steps, the checks, one commit, the delivery. Killed at any moment, it
is gone on with by running the command again: what an agent answered is kept, a unit that stands is not made twice.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from khms.config import Config
from khms.errors import Usage
from khms.model.ulid import new_ulid
from khms.pipeline import asking, bounds, deliver, fetched, job, prompts, propose, publish
from khms.pipeline.asking import Asked, Undecided
from khms.pipeline.bounds import Meter
from khms.pipeline.carry import Run
from khms.pipeline.draft import DROPPED, PUBLISHED
from khms.pipeline.night import Spending
from khms.pipeline.propose import ByAgent, Proposer
from khms.pipeline.record import now
from khms.pipeline.refusals import refusals
from khms.pipeline.weekly import carried, made, unit
from khms.pipeline.weekly.ground import Ask, ground
from khms.pipeline.weekly.past import Past, past
from khms.pipeline.weekly.principles import PROMPT, SCHEMA
from khms.pipeline.weekly.steps import STEPS
from khms.pipeline.weekly.week import Result, Week, result
from khms.store import branches, files, journal, local, schema
from khms.store.branches import PREFIX, branch_ref
from khms.store.commit import exclusive
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import Ledger
from khms.store.repo import Repo

JOB = "weekly"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """What a run works with. `told` is what a person should hear beside the result."""

    base: Base
    repo: Repo
    config: Config
    cap: int
    proposer: Proposer
    meter: Meter
    progress: Progress
    told: list[str] = field(default_factory=list)


def weekly(
    base: Base,
    repo: Repo,
    config: Config,
    *,
    max_cards: int | None = None,
    deadline: str | None = None,
    budget_usd: float | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Proposes what the base's cards say together; a run that was killed is gone on with. `progress` is told (steps
    done, steps in all). Raises Busy while another weekly run is at work, Refused in a background run, while git is in
    the middle of something, or where the base changed under a call, Usage for a bound that makes no sense, Unavailable
    where the proposer's agent is not there."""
    job.refuse_child(JOB)
    cap = int(config["weekly.max_cards"]) if max_cards is None else max_cards
    if cap < 0:
        raise Usage(f"{cap} is no number of cards", hint="--max-cards 12")
    meter = bounds.meter(config, deadline, budget_usd)
    task = Task(base, repo, config, cap, propose.proposer(config), meter, progress or (lambda done, total: None))
    if dry_run:
        return _rehearse(task)
    return job.alone(base, JOB, lambda: _delivered(task, _run(task)))


def _delivered(task: Task, found: Result) -> Result:
    """The result with what became of the delivery of this unit, and of those that an earlier run could not deliver."""
    sent = deliver.send(task.base, task.repo, task.config)
    failed = tuple(replace(problem, mend="the next run tries again") for problem in sent.failed)
    return replace(found, notes=(*found.notes, *task.told, *sent.notes), problems=(*found.problems, *failed))


def _run(task: Task) -> Result:
    base, repo = task.base, task.repo
    recovered = job.recover(repo, JOB)
    if said := deliver.look(base, repo, task.config):
        task.told.append(said)
    job.demand_ready(repo)
    receipts = fetched.known(base, repo, task.config)
    before = past(base, repo, receipts)
    run = carried.unfinished(base)
    if run is not None and run.id in before.runs:
        done = _published(task, run, before.runs[run.id])
        carried.finish(base, run)
        task.told.append(f"run {run.id} had been published before it was stopped: {done.unit}")
        return replace(done, recovered=recovered)
    run = run or carried.begin(base)
    week = look(task, run, receipts, before, _asking(task, run))
    if said := task.meter.unbounded:
        task.told.append(said)
    commit = branch = ""
    if week.worth:
        week, commit, branch = _publish(task, week)
    carried.finish(base, run)
    return replace(result(week, commit, branch), recovered=recovered)


def look(task: Task, run: Run, receipts: Ledger, before: Past, ask: Ask | None) -> Week:
    """What there is to propose: every step's offers and words, those that fit together within the cap made and
    checked. What an agent was asked for comes first, because it was paid for."""
    base, total = task.base, len(STEPS) + 1
    under = ground(base, task.config, before, ask, task.cap)
    found = {}
    for at, (name, step) in enumerate(STEPS.items()):
        task.progress(at, total)
        found[name] = step.find(under)
    task.progress(len(STEPS), total)
    offered = [(name, offer) for name, held in found.items() for offer in held.offers]
    taken, passed = made.chosen(sorted(offered, key=lambda row: row[0] != "principles"), under)
    chosen = made.make(taken[: task.cap], under, refusals(base, receipts), run.day)
    task.progress(total, total)
    keys = {told.key for held in found.values() for told in held.told}
    return Week(
        run=run,
        proposer=task.proposer.name,
        cards=len(under.standing),
        found=found,
        made=tuple(chosen),
        passed=passed,
        late=len(taken[task.cap :]),
        cap=task.cap,
        problems=under.problems,
        cost=_cost(task),
        news=bool(keys - before.told),
    )


def _cost(task: Task) -> Spending:
    meter = task.meter
    return Spending(
        calls=meter.made,
        cost_usd=round(meter.cost_usd, 6),
        stopped_by=meter.stopped.bound if meter.stopped else None,
        models=tuple(sorted(meter.models)),
        prompts=((PROMPT, prompts.version(PROMPT)),) if meter.models else (),
    )


# the agent


def _asking(task: Task, run: Run) -> Ask | None:
    """How the proposer's agent is asked in this run; None where the proposer is none."""
    if not isinstance(task.proposer, ByAgent):
        return None
    folder = carried.folder(task.base, run)
    asker = asking.asker(task.config, task.base, task.repo, task.proposer.agent, task.meter, run.id, folder)

    def ask(key: str, text: str, wrong: Callable[[dict[str, Any]], list[str]]) -> dict[str, Any]:
        name = hashlib.sha256(key.encode("utf-8")).hexdigest()[:32]
        kept = Asked.load(propose.asked_path(folder, name))
        return asker.ask(prompts.made(PROMPT, text, run.id), wrong, kept, schema.definition(SCHEMA))

    return ask


# publish


def _publish(task: Task, week: Week) -> tuple[Week, str, str]:
    """Commits the unit under the name that is free at this moment, on the current branch or on its own; returns the
    week with its name, the commit, and the unit's branch."""
    base, repo = task.base, task.repo
    with exclusive(repo, f"weekly {week.run.id}") as tx:
        if tx.recovered:
            task.told.append(str(tx.recovered))
        receipts = fetched.known(base, repo, task.config)
        onto = deliver.parent(base, repo, task.config)
        names = deliver.taken(base, repo, onto) if onto else frozenset()
        week = unit.named(base, week, receipts, journal.clone_id(base), names)
        what, message = f"weekly {week.run.id}", unit.message(week)
        if not onto:
            return week, tx.commit({**unit.proposal(week), **unit.diary(base, week)}, message, what=what), ""
        commit = tx.commit_to(branch_ref(week.unit), onto, unit.proposal(week), message)
        branch = PREFIX + week.unit
        tx.commit(unit.diary(base, week, branch), _note(week.run), what=what)
        return week, commit, branch


def _note(run: Run) -> str:
    return f"Note what weekly proposed\n\nIts unit is on a branch of its own.\n\nKhms-Run: {run.id}\n"


def _published(task: Task, run: Run, held: Unit) -> Result:
    """The result of a run whose unit stands, as the unit tells it; the line in the history that a run on a branch was
    killed before."""
    base = task.base
    counts = held.meta.get("counts")
    counts = counts if isinstance(counts, dict) else {}
    branch = branches.unmerged_unit(base, held.name)
    done = Result(
        run=run.id,
        unit=held.name,
        branch=PREFIX + held.name if branch else "",
        offers={step: int(counts.get(step, 0)) for step in STEPS},
        candidates={fate: int(counts.get(fate, 0)) for fate in (PUBLISHED, DROPPED)},
        resumed=True,
    )
    clone = journal.clone_id(base)
    path = base.path(publish.history_path(run, clone))
    if branch is not None and not (path.is_file() and f"(run {run.id})".encode() in files.read(path)):
        week = Week(run, "", int(counts.get("cards", 0)), {}, unit=held.name, clone=clone)
        with exclusive(task.repo, f"weekly {run.id}") as tx:
            tx.commit(unit.diary(base, week, done.branch), _note(run), what=f"weekly {run.id}")
    return done


# dry run


def _rehearse(task: Task) -> Result:
    """What each stage would be handed. Nothing is written but what this machine remembers of the model; no lock is
    taken, no agent is asked."""
    base = task.base
    local.make(base)
    task.repo.demand_whole("memory")
    receipts = fetched.known(base, task.repo, task.config)
    before = past(base, task.repo, receipts)
    run = carried.unfinished(base)
    if run is None or run.id in before.runs:
        run = Run(new_ulid(), now())
    stages: list[tuple[str, str]] = []

    def show(key: str, text: str, wrong: Callable[[dict[str, Any]], list[str]]) -> dict[str, Any]:
        prompt = prompts.made(PROMPT, text, run.id)
        stages.append((f"ask {key}", f"{prompt.system}\n{prompt.text}"))
        raise Undecided("a dry run asks nobody")

    week = look(task, run, receipts, before, show if isinstance(task.proposer, ByAgent) else None)
    clone = journal.clone_id(base) if (task.repo.folder / "khms" / "clone").exists() else ""
    week = unit.named(base, week, receipts, clone)
    if week.unit:
        files_of = {**unit.proposal(week), **unit.diary(base, week)}
        stages += [(f"publish {path}", data.decode("utf-8", "replace")) for path, data in files_of.items() if data]
    return replace(result(week), stages=tuple(stages))
