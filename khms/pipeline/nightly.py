"""`khms nightly`: open MARKs become candidates in one inbox unit. Its stages, each of which can be killed at any moment
and gone on with by running the command again:

    collect   what a killed run had decided, the journal, the MARKs without a decision, what is new in sessions
    evaluate  one bounded decision a MARK, each made durable before the next; MARKs that an agent finds in sessions too
    verify    the candidates, every check, what is published, deferred or dropped
    publish   unit, receipts, events, history and the journal as it was read, in one commit (or the unit on a branch)
    deliver   that branch pushed, and put before the reviewers as a pull request, where that is asked for

One run a base. A proposer never writes, and nothing here approves.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from khms.config import Config
from khms.errors import Busy, KhmsError, Usage
from khms.model.card import card_types
from khms.model.claim import claim
from khms.model.finding import Finding
from khms.model.mark import Mark
from khms.model.receipt import decided
from khms.model.tags import Registry
from khms.model.ulid import new_ulid
from khms.model.verdict import ATTACH
from khms.pipeline import (
    bounds,
    carry,
    cursors,
    deliver,
    fetched,
    gathering,
    job,
    postprocess,
    prompts,
    propose,
    publish,
    sources,
)
from khms.pipeline.carry import After, Carried, Decision, Run
from khms.pipeline.draft import DEFERRED, DROPPED, PUBLISHED, Material, draft
from khms.pipeline.evaluate import Evaluated, evaluate
from khms.pipeline.gathering import Gathered
from khms.pipeline.known import Known, Vocabulary
from khms.pipeline.likeness import Likeness
from khms.pipeline.night import Night, Result, Spending, result
from khms.pipeline.quotes import Reader
from khms.pipeline.record import now
from khms.pipeline.refusals import refusals
from khms.pipeline.sources import Collected, Window
from khms.pipeline.task import Progress, Task
from khms.store import branches, cards, files, journal, tags
from khms.store.commit import exclusive
from khms.store.layout import Base
from khms.store.markdown import Unreadable
from khms.store.receipts import Ledger
from khms.store.repo import Repo

JOB = "nightly"


def nightly(
    base: Base,
    repo: Repo,
    config: Config,
    *,
    since: str | None = None,
    only_mark: str | None = None,
    max_cards: int | None = None,
    deadline: str | None = None,
    budget_usd: float | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    left_alone: Callable[[str], bool] = lambda session: False,
) -> Result:
    """Decides every open MARK of the window and publishes the candidates; a run that was killed is gone on with.

    `since` is a day, `deadline` a length of time such as 90m, `progress` is told (MARKs done, MARKs in all),
    `left_alone` whether a session is to be kept out. Raises Busy while another run is at work, Refused in a background
    run, while git is in the middle of something, or where the base changed under a call, Usage for a window or a bound
    that makes no sense, Unavailable where the proposer's agent is not there.
    """
    job.refuse_child(JOB)
    cap = config["nightly.max_cards"] if max_cards is None else max_cards
    if cap < 0:
        raise Usage(f"{cap} is no number of cards", hint="--max-cards 12")
    window = sources.window(since, only_mark)
    made = propose.proposer(config)
    told = progress or (lambda done, total: None)
    task = Task(base, repo, config, window, cap, made, told, bounds.meter(config, deadline, budget_usd), left_alone)
    if dry_run:
        return _rehearse(task)
    return job.alone(base, JOB, lambda: _delivered(task, _run(task)))


def _delivered(task: Task, found: Result) -> Result:
    """The result with what became of the delivery of this unit, and of those that an earlier run could not deliver."""
    sent = deliver.send(task.base, task.repo, task.config)
    return replace(found, notes=(*found.notes, *sent.notes), problems=(*found.problems, *sent.failed))


def _run(task: Task) -> Result:
    base, repo = task.base, task.repo
    recovered = job.recover(repo, JOB)
    if said := deliver.look(base, repo, task.config):
        task.told.append(said)
    job.demand_ready(repo)
    receipts = fetched.known(base, repo, task.config)
    carried = carry.unfinished(base)
    finished = None
    if carried is not None and publish.published(receipts, carried.run):
        finished = _told(base, repo, receipts, carried.run)
        _note(task, receipts, finished, carried.run)
        _settle(task, carried.run, set())
        task.told.append(f"run {finished.run} had been published before it was stopped: {finished.unit or 'no unit'}")
        carried = None
    collected = _collect(task, receipts, carried)
    gathered = _gather(task, carried)
    sessions = task.reads_sessions or bool(gathered.ends)
    held = carry.found_before(base) if sessions else []
    if not collected.open and not gathered.chunks and not held and carried is None:
        cursors.advance(base, gathered.moved(frozenset()))
        nothing = finished or Result(new_ulid())
        return replace(nothing, recovered=recovered, problems=tuple(task.problems), notes=tuple(task.told))
    run = carried.run if carried else carry.begin(base, task.window, task.proposer.name)
    if gathered.chunks or gathered.ends:
        carry.keep_gathered(base, run, gathering.file_bytes(gathered))
    done = evaluate(task, run, collected, _known(task), carried, gathered, held)
    if said := task.meter.unbounded:
        task.told.append(said)
    night, commit = verify(task, run, receipts, done), ""
    if sessions:
        carry.keep_after(base, run, After(gathered.moved(done.unread), done.waiting))
    if night.decisions:
        night, commit = publication(task, night)
    _settle(task, run, set(done.left))
    return replace(result(night, commit), recovered=recovered, notes=tuple(task.told))


def _settle(task: Task, run: Run, left: set[str]) -> None:
    """What is to be done after a run's commit; then the carry goes. Answers about MARKs that stay open are kept to be
    looked at."""
    carry.settle(task.base, run)
    carry.finish(task.base, run, left)


# collect


def _collect(task: Task, receipts: Ledger, carried: Carried | None) -> Collected:
    """The window's MARKs, and those that a killed run decided: what was decided is published whatever the window is."""
    collected = sources.collect(task.base, receipts, task.window)
    task.problems.extend(collected.problems)
    if task.window.only_mark and not collected.open:
        receipt = collected.receipts[task.window.only_mark]
        said = " ".join(part for part in (receipt.verdict, receipt.label, receipt.unit) if part)
        task.told.append(f"{task.window.only_mark} is decided already: {said}")
    if carried is None:
        return collected
    task.problems.extend(carried.broken)
    return sources.joined(collected, sources.collect(task.base, receipts, Window()), set(carried.decisions))


def _gather(task: Task, carried: Carried | None) -> Gathered:
    """What is new in sessions: as an earlier process of this run gathered it, whatever this one is about, for it may
    have been asked about already; else gathered now."""
    found = carry.gathered(task.base, carried.run) if carried and task.by_agent else None
    if found is None:
        if not task.reads_sessions:
            return Gathered()
        day = carried.run.day if carried else now()[:10]
        found = gathering.gather(task.base, task.config, day, task.left_alone)
    task.problems.extend(found.problems)
    task.told.extend(found.notes)
    return found


def _known(task: Task) -> Known:
    """The cards, tags and types; what cannot be read is named and left out."""
    shelf = cards.shelf(task.base)
    for error in shelf.unreadable:
        task.problems.append(Finding("KH001", "warning", error.path, error.line, error.message, error.mend))
    try:
        registry = tags.registry(task.base)
    except Unreadable as error:
        task.problems.append(Finding("KH001", "warning", error.path, error.line, error.message, error.mend))
        registry = Registry()
    vocabulary = Vocabulary(registry, shelf.cards.values())
    return Known(shelf.cards, vocabulary, card_types(task.config["cards.types"]), task.config["nightly.same_jaccard"])


# verify


def verify(task: Task, run: Run, receipts: Ledger, done: Evaluated) -> Night:
    """The candidates of the decisions, checked and sorted."""
    collected, known = done.collected, done.known
    marks = {mark.id: mark for mark in collected.open}
    attached: dict[str, list[tuple[Decision, Mark]]] = {}
    for decision in done.decisions.values():
        if decision.verdict.kind == ATTACH:
            attached.setdefault(decision.verdict.to, []).append((decision, marks[decision.mark]))
    made = [decision for decision in done.decisions.values() if decision.label]
    reader = Reader(task.base, {**{path: page.data for path, page in collected.pages.items()}, **collected.held})
    labels = frozenset(decision.label for decision in made)
    material = Material(known, reader, run.day, labels, refusals(task.base, receipts), _like(task, known, made))
    drafts = [draft(one, marks[one.mark], attached.get(one.label, ()), material) for one in made]
    memory = postprocess.remembered(task.base, receipts)
    task.problems.extend(memory.problems)
    night = Night(
        run=run,
        collected=collected,
        proposer=task.proposer.name,
        decisions=done.decisions,
        drafts=tuple(postprocess.sort(drafts, memory, cap=task.cap, least=known.least)),
        left=done.left,
        problems=tuple(task.problems),
        spending=_spending(task),
    )
    return publish.take_along(task.repo, night)


def _like(task: Task, known: Known, made: list[Decision]) -> Callable[[str], list[str]]:
    """Names what a candidate, by its label, is like in meaning: cards in force and candidates of this run."""
    texts = [(card.id, claim(card.body)) for card in known.cards.values() if known.in_force(card.id)]
    texts += [(one.label, claim(one.verdict.proposal.body)) for one in made if one.verdict.proposal]
    found, least = Likeness(task.base, task.config, texts), float(task.config["nightly.same_cosine"])
    return lambda label: [name for name, _ in found.like(label, least)]


def _spending(task: Task) -> Spending:
    meter = task.meter
    return Spending(
        calls=meter.made,
        cost_usd=round(meter.cost_usd, 6),
        unpriced=meter.unpriced,
        stopped_by=meter.stopped.bound if meter.stopped else None,
        why=str(meter.stopped) if meter.stopped else "",
        models=tuple(sorted(meter.models)) or ((task.proposer.name,) if task.by_agent else ()),
        prompts=tuple((name, prompts.version(name)) for name in prompts.NAMES) if task.by_agent else (),
    )


# publish


def publication(task: Task, night: Night) -> tuple[Night, str]:
    """Commits the night under the name that is free at this moment; returns it with its name, and the commit's id."""
    base, repo = task.base, task.repo
    with exclusive(repo, f"nightly {night.run.id}") as tx:
        if tx.recovered:
            task.told.append(str(tx.recovered))
        fresh = fetched.known(base, repo, task.config)
        if night.decisions.keys() & decided(fresh.receipts).keys():
            raise Busy(
                "some of these MARKs were decided by another run meanwhile",
                where=str(base.receipts),
                hint="run khms nightly again; what this run decided is kept",
            )
        onto = deliver.parent(base, repo, task.config)
        names = deliver.taken(base, repo, onto) if onto else frozenset()
        night = publish.named(base, night, fresh, journal.clone_id(base), names)
        if onto and night.unit:
            return deliver.on_its_branch(tx, base, night, onto)
        return night, publish.commit(tx, base, night)


def _told(base: Base, repo: Repo, receipts: Ledger, run: Run) -> Result:
    """The result of a run whose commit stands, as its receipts and its unit tell it."""
    own = publish.published(receipts, run)
    counts: dict[str, int] = {}
    for receipt in own:
        counts[receipt.verdict] = counts.get(receipt.verdict, 0) + 1
    unit = next((receipt.unit.rpartition("/")[2] for receipt in own if receipt.unit), "")
    branch = branches.unmerged_unit(base, unit) if unit else None
    described: Mapping[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, KhmsError):
        about = branches.unit(repo, branch).meta if branch else files.read_json(base.inbox / unit / "unit.json")
        described = about["counts"] if unit else {}
    fates = {fate: int(described.get(fate, 0)) for fate in (PUBLISHED, DEFERRED, DROPPED)}
    name = branches.PREFIX + unit if branch else ""
    return Result(run.id, unit, branch=name, verdicts=counts, candidates=fates, resumed=True)


def _note(task: Task, receipts: Ledger, found: Result, run: Run) -> None:
    """Journal and history of a run that was killed right after it had made its unit's branch."""
    base, clone = task.base, journal.clone_id(task.base)
    path = base.path(publish.history_path(run, clone))
    if not found.branch or (path.is_file() and f"(run {run.id})".encode() in files.read(path)):
        return
    pages = sources.collect(base, receipts, Window()).pages
    with exclusive(task.repo, f"nightly {run.id}") as tx:
        line = publish.told(run, publish.published(receipts, run), found.candidates, found.branch)
        taken, _ = publish.along(task.repo, pages)
        publish.note(tx, run, {**publish.history(base, run, clone, line), **taken}, frozenset(taken))


# dry run


def _rehearse(task: Task) -> Result:
    """What each stage would be handed. Nothing is written, no lock is taken, and no model is asked."""
    base = task.base
    task.repo.demand_whole("memory")
    receipts = fetched.known(base, task.repo, task.config)
    carried = carry.unfinished(base)
    if carried is not None and publish.published(receipts, carried.run):
        carried = None
    collected = _collect(task, receipts, carried)
    run = carried.run if carried else Run(new_ulid(), now())
    gathered = _gather(task, carried)
    held = carry.found_before(base) if task.reads_sessions else []
    lines = [f"{mark.id} {mark.path}:{mark.line} {mark.kind} {mark.text}" for mark in collected.open]
    stages = [("collect", "\n".join([f"window: {collected.window}", *collected.pages, "", *lines]))]
    stages += [(f"collect {chunk.path}", chunk.text) for chunk in gathered.chunks]
    if not collected.open and not gathered.chunks and not held:
        return Result(run.id, problems=tuple(task.problems), notes=tuple(task.told), stages=tuple(stages))
    done = evaluate(task, run, collected, _known(task), carried, gathered, held, durable=False)
    stages += [(stage, text) for stage, text in done.shown]
    if task.by_agent:
        stages += [(f"instructions {name}", prompts.template(name)) for name in prompts.NAMES]
    clone = journal.clone_id(base) if (task.repo.folder / "khms" / "clone").exists() else ""
    night = publish.named(base, verify(task, run, receipts, done), receipts, clone)
    stages += [(f"verify {made.label}", made.candidate.text) for made in night.drafts]
    found = publish.changes(base, night) if night.decisions else {}
    stages += [(f"publish {path}", data.decode("utf-8", "replace")) for path, data in found.items() if data is not None]
    return replace(result(night), notes=tuple(task.told), stages=tuple(stages))
