"""`khms nightly`: open MARKs become candidates in one inbox unit. Its stages, each of which can be killed at any moment
and gone on with by running the command again:

    collect   what a killed run had decided, the journal, the MARKs without a decision
    evaluate  one bounded decision a MARK, each made durable before the next
    verify    the candidates, every check, what is published, deferred or dropped
    publish   unit, receipts, events, history and the journal as it was read, in one commit (or the unit on a branch)
    deliver   that branch pushed, and put before the reviewers as a pull request, where that is asked for

One run a base. A proposer never writes, and nothing here approves.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from khms.check.screening import screen
from khms.config import Config
from khms.errors import Busy, KhmsError, Refused, Usage
from khms.model.card import card_types
from khms.model.finding import Finding
from khms.model.mark import Mark
from khms.model.receipt import decided
from khms.model.tags import Registry
from khms.model.ulid import new_ulid
from khms.model.verdict import ATTACH, CORRECT, NEW, NOT, Verdict
from khms.pipeline import carry, deliver, fetched, lastrun, packet, postprocess, propose, publish, sources
from khms.pipeline.carry import Carried, Decision, Run
from khms.pipeline.checks import SECRET
from khms.pipeline.draft import DEFERRED, DROPPED, PUBLISHED, Material, draft
from khms.pipeline.known import Known, Vocabulary
from khms.pipeline.night import Night, Result, result
from khms.pipeline.packet import Packet
from khms.pipeline.propose import Proposer
from khms.pipeline.quotes import Reader
from khms.pipeline.record import now
from khms.pipeline.refusals import refusals
from khms.pipeline.sources import Collected, Window
from khms.store import branches, cards, files, journal, local, tags
from khms.store.commit import exclusive, pending
from khms.store.layout import Base
from khms.store.lock import hold
from khms.store.markdown import Unreadable
from khms.store.receipts import Ledger
from khms.store.repo import Repo

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """What a run works with, before it has decided anything. `told` is what a person should hear beside the result."""

    base: Base
    repo: Repo
    config: Config
    window: Window
    cap: int
    proposer: Proposer
    progress: Progress
    problems: list[Finding] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def nightly(
    base: Base,
    repo: Repo,
    config: Config,
    *,
    since: str | None = None,
    only_mark: str | None = None,
    max_cards: int | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Decides every open MARK of the window and publishes the candidates; a run that was killed is gone on with.

    `since` is a day, `progress` is told (MARKs done, MARKs in all). Raises Busy while another run is at work, Refused
    in a background run or while git is in the middle of something, Usage for a window that makes no sense.
    """
    if os.environ.get("KHMS_BACKGROUND"):
        raise Refused("this is a run's own child, which must not start another", hint="run nightly by itself")
    cap = config["nightly.max_cards"] if max_cards is None else max_cards
    if cap < 0:
        raise Usage(f"{cap} is no number of cards", hint="--max-cards 12")
    window = sources.window(since, only_mark)
    made = propose.proposer(config)
    task = Task(base, repo, config, window, cap, made, progress or (lambda done, total: None))
    if dry_run:
        return _rehearse(task)
    local.make(base)
    with hold(base.locks / "nightly.lock", "nightly"):
        try:
            found = _delivered(task, _run(task))
        except Exception as error:
            with contextlib.suppress(KhmsError):
                lastrun.remember(base, "nightly", "", str(error).partition("\n")[0] or type(error).__name__)
            raise
        errors = [str(problem) for problem in found.problems if problem.severity == "error"]
        lastrun.remember(base, "nightly", found.run, "; ".join(errors))
    return found


def _delivered(task: Task, found: Result) -> Result:
    """The result with what became of the delivery of this unit, and of those that an earlier run could not deliver."""
    sent = deliver.send(task.base, task.repo, task.config)
    return replace(found, notes=(*found.notes, *sent.notes), problems=(*found.problems, *sent.failed))


def _run(task: Task) -> Result:
    base, repo = task.base, task.repo
    recovered = _recover(repo)
    if said := deliver.look(base, repo, task.config):
        task.told.append(said)
    repo.identity()
    if operation := repo.operation():
        raise Refused(f"{operation} is in progress here", where=str(repo.root), hint="finish or abort it first")
    repo.demand_whole("memory")
    receipts = fetched.known(base, repo, task.config)
    carried = carry.unfinished(base)
    finished = None
    if carried is not None and publish.published(receipts, carried.run):
        finished = _told(base, repo, receipts, carried.run)
        _note(task, receipts, finished, carried.run)
        carry.finish(base, carried.run)
        task.told.append(f"run {finished.run} had been published before it was stopped: {finished.unit or 'no unit'}")
        carried = None
    collected = _collect(task, receipts, carried)
    if not collected.open and carried is None:
        done = finished or Result(new_ulid())
        return replace(done, recovered=recovered, problems=tuple(task.problems), notes=tuple(task.told))
    run = carried.run if carried else carry.begin(base, task.window, task.proposer.name)
    night, commit = verify(task, run, receipts, evaluate(task, run, collected, carried)), ""
    if night.decisions:
        night, commit = publication(task, night)
    carry.finish(base, run)
    return replace(result(night, commit), recovered=recovered, notes=tuple(task.told))


# collect


def _recover(repo: Repo) -> str:
    """Finishes or undoes what a killed command left in git, before anything is read."""
    if pending(repo) is None:
        return ""
    with exclusive(repo, "nightly") as tx:
        return str(tx.recovered) if tx.recovered else ""


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


# evaluate


@dataclass(frozen=True)
class Evaluated:
    """`left` are the MARKs that stay open, each with the reason; `packets` what the proposer was shown (dry run)."""

    collected: Collected
    known: Known
    decisions: Mapping[str, Decision]
    left: Mapping[str, str]
    packets: Mapping[str, Packet]


def evaluate(task: Task, run: Run, collected: Collected, carried: Carried | None, *, durable: bool = True) -> Evaluated:
    """Asks the proposer about each MARK that is not decided yet, in the journal's order."""
    known = _known(task)
    earlier = _earlier(collected, carried)
    decisions: dict[str, Decision] = {}
    left: dict[str, str] = {}
    packets: dict[str, Packet] = {}
    labels = {decision.label for decision in earlier.values() if decision.label}
    used = [decision.label for decision in (carried.decisions if carried else {}).values() if decision.label]
    following = max((int(label[1:]) for label in used), default=0) + 1
    for at, mark in enumerate(collected.open):
        task.progress(at, len(collected.open))
        decision = earlier.get(mark.id)
        if decision is None:
            decision, shown, why = _decide(task, collected, mark, known, labels, f"C{following}")
            if not durable and shown is not None:
                packets[mark.id] = shown
            if decision is None:
                left[mark.id] = why
                continue
            if durable:
                carry.keep(task.base, run, decision)
        decisions[mark.id] = decision
        if decision.label:
            labels.add(decision.label)
            following = max(following, int(decision.label[1:]) + 1)
            proposal = decision.verdict.proposal
            assert proposal is not None
            known.add(decision.label, proposal.title, proposal.body, proposal.type)
    task.progress(len(collected.open), len(collected.open))
    return Evaluated(collected, known, decisions, left, packets)


def _earlier(collected: Collected, carried: Carried | None) -> dict[str, Decision]:
    """The carried decisions that still hold: their MARK is open, and what they attach to is there."""
    waiting = {mark.id for mark in collected.open}
    held = {mark: decision for mark, decision in (carried.decisions if carried else {}).items() if mark in waiting}
    labels = {decision.label for decision in held.values() if decision.label}
    return {m: d for m, d in held.items() if d.verdict.kind != ATTACH or d.verdict.to in labels}


def _decide(
    task: Task, collected: Collected, mark: Mark, known: Known, labels: set[str], label: str
) -> tuple[Decision | None, Packet | None, str]:
    """The decision about one MARK with the packet that led to it, or why the MARK stays open. A MARK with a secret in
    it is shown to no proposer."""
    page = collected.page(mark)
    found = [hit for hit in screen("\n".join(page.lines[mark.line - 1 : mark.end])) if hit.kind == SECRET]
    if found:
        names = ", ".join(dict.fromkeys(hit.id for hit in found))
        verdict = Verdict(NOT, reason=f"it holds what looks like a secret ({names}); without it the line is read anew")
        held = tuple(f"{hit.kind} {hit.id}: {hit.snippet}" for hit in found)
        return Decision(mark.id, verdict, held_back=held), None, ""
    target, nearest = task.config["nightly.packet_chars"], task.config["nightly.nearest"]
    shown = packet.build(page, mark, known, target=target, nearest=nearest)
    verdict = task.proposer.propose(shown)
    wrong = propose.faults(verdict, known.cards, labels)
    if wrong:
        return None, shown, f"the answer of {task.proposer.name} does not count: {'; '.join(wrong)}"
    decision = Decision(
        mark=mark.id,
        verdict=verdict,
        label=label if verdict.kind in (NEW, CORRECT) else "",
        proposer=task.proposer.name,
        nearest=shown.nearest,
        shown=shown.shown,
        over=shown.over,
    )
    return decision, shown, ""


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
    reader = Reader(task.base, {path: page.data for path, page in collected.pages.items()})
    labels = frozenset(decision.label for decision in made)
    material = Material(known, reader, run.day, labels, refusals(task.base, receipts))
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
    )
    return publish.take_along(task.repo, night)


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
    lines = [f"{mark.id} {mark.path}:{mark.line} {mark.kind} {mark.text}" for mark in collected.open]
    stages = [("collect", "\n".join([f"window: {collected.window}", *collected.pages, "", *lines]))]
    if not collected.open:
        return Result(run.id, problems=tuple(task.problems), notes=tuple(task.told), stages=tuple(stages))
    done = evaluate(task, run, collected, carried, durable=False)
    stages += [(f"evaluate {mark}", shown.text) for mark, shown in done.packets.items()]
    clone = journal.clone_id(base) if (task.repo.folder / "khms" / "clone").exists() else ""
    night = publish.named(base, verify(task, run, receipts, done), receipts, clone)
    stages += [(f"verify {made.label}", made.candidate.text) for made in night.drafts]
    found = publish.changes(base, night) if night.decisions else {}
    stages += [(f"publish {path}", data.decode("utf-8", "replace")) for path, data in found.items() if data is not None]
    return replace(result(night), notes=tuple(task.told), stages=tuple(stages))
