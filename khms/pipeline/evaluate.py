"""One bounded decision a MARK, each made durable before the next. MARKs of the journal come first, in its order; then
an agent looks through the sessions for MARKs that nobody wrote, which are decided in the same way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Any, TypeVar

from khms.check.screening import screen
from khms.model.finding import Finding
from khms.model.mark import Mark
from khms.model.redact import redact
from khms.model.verdict import ATTACH, CORRECT, NEW, NOT, Verdict
from khms.pipeline import carry, generate, packet, propose
from khms.pipeline.asking import Asked, Asker, Undecided
from khms.pipeline.bounds import Stopped
from khms.pipeline.carry import Carried, Decision, Run
from khms.pipeline.checks import SECRET
from khms.pipeline.digest import Chunk
from khms.pipeline.gathering import Gathered
from khms.pipeline.known import Known
from khms.pipeline.packet import Packet
from khms.pipeline.propose import ByAgent, asked_path
from khms.pipeline.sources import Collected, clean
from khms.pipeline.task import Task
from khms.store import schema

REASONS, NAMED = 5, 3  # reasons that are told, and MARKs that are named with each
REASON = 500  # characters of one that are kept
One = TypeVar("One")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """`left` are the MARKs that stay open, each with the reason; `unread` the paths of chunks that nobody looked
    through, `waiting` those in which MARKs were found that stay open, with the answer that found them; `shown` what
    would be asked: (stage, text)."""

    collected: Collected
    known: Known
    decisions: Mapping[str, Decision]
    left: Mapping[str, str]
    unread: frozenset[str] = frozenset()
    waiting: tuple[tuple[Chunk, Mapping[str, Any]], ...] = ()
    shown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Question:
    mark: Mark
    label: str
    packet: Packet


@dataclass
class _Evaluation:
    """A run's decisions as they grow."""

    task: Task
    run: Run
    collected: Collected
    known: Known
    earlier: Mapping[str, Decision]
    gathered: Gathered
    asker: Asker | None
    durable: bool
    following: int
    decisions: dict[str, Decision] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    shown: list[tuple[str, str]] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    found: list[tuple[Chunk, Mapping[str, Any], tuple[Mark, ...]]] = field(default_factory=list)
    done: int = 0

    def decide(self, marks: Sequence[Mark], total: int) -> None:
        """Decides `marks`, as many at once as the configuration allows. All of one lot are shown what was known before
        it, and count in their order: a run that was killed within a lot comes to the same."""
        lot = int(self.task.config["nightly.parallel"]) if self.task.by_agent else 1
        for start in range(0, len(marks), lot):
            batch = marks[start : start + lot]
            made: dict[str, Decision | Exception] = {}
            asked = []
            for offset, mark in enumerate(batch):
                self.task.progress(self.done + offset, total)
                if (carried := self._carried(mark)) is not None:
                    made[mark.id] = carried
                elif (held := self._held_back(mark)) is not None:
                    made[mark.id] = self._keep(held)
                else:
                    asked.append(self._question(mark, f"C{self.following + offset}"))
            if not self.durable:
                self.shown += [(f"evaluate {one.mark.id}", one.packet.text) for one in asked]
            if not self.durable and self.task.by_agent:
                self.left |= {one.mark.id: "a rehearsal asks no agent" for one in asked}
            else:
                answers = _side_by_side(asked, self._ask)
                made |= {one.mark.id: answer for one, answer in zip(asked, answers, strict=True)}
            for mark in batch:
                if mark.id in made:
                    self._take(mark, made[mark.id])
            self.done += len(batch)

    def _carried(self, mark: Mark) -> Decision | None:
        """What an earlier process decided, unless it attaches to a candidate that is not there any more."""
        held = self.earlier.get(mark.id)
        if held is not None and held.verdict.kind == ATTACH and held.verdict.to not in self.known.labels:
            return None
        return held

    def _question(self, mark: Mark, label: str) -> _Question:
        page = self.collected.page(mark)
        target, nearest = self.task.config["nightly.packet_chars"], self.task.config["nightly.nearest"]
        excerpt = generate.excerpt(mark, self.gathered.chunks)
        shown = packet.build(page, mark, self.known, target=target, nearest=nearest, excerpt=excerpt)
        return _Question(mark, label, shown)

    def _held_back(self, mark: Mark) -> Decision | None:
        """The decision about a MARK with a secret in it, which is shown to no proposer."""
        page = self.collected.page(mark)
        found = [hit for hit in screen("\n".join(page.lines[mark.line - 1 : mark.end])) if hit.kind == SECRET]
        if not found:
            return None
        names = ", ".join(dict.fromkeys(hit.id for hit in found))
        verdict = Verdict(NOT, reason=f"it holds what looks like a secret ({names}); without it the line is read anew")
        return Decision(mark.id, verdict, held_back=tuple(f"{hit.kind} {hit.id}: {hit.snippet}" for hit in found))

    def _ask(self, one: _Question) -> Decision:
        """Raises Undecided where the MARK stays open, and what else ends the run."""
        name = self.task.proposer.name
        proposer = self.task.proposer
        if isinstance(proposer, ByAgent) and self.asker is not None:
            proposer = proposer.within(self.asker, self.task.folder(self.run))
        verdict = proposer.propose(one.packet)
        if wrong := propose.faults(verdict, one.packet):
            raise Undecided(f"the answer of {name} does not count: {'; '.join(wrong)}")
        if self.task.by_agent:
            verdict = _fit_to_keep(verdict)
        return self._keep(
            Decision(
                mark=one.mark.id,
                verdict=verdict,
                label=one.label if verdict.kind in (NEW, CORRECT) else "",
                proposer=name,
                nearest=one.packet.nearest,
                shown=one.packet.shown,
                over=one.packet.over,
            )
        )

    def _keep(self, decision: Decision) -> Decision:
        if self.durable:
            carry.keep(self.task.base, self.run, decision)
        return decision

    def _take(self, mark: Mark, made: Decision | Exception) -> None:
        if isinstance(made, Stopped | Undecided):
            self.left[mark.id] = f"{made.bound}: {made}" if isinstance(made, Stopped) else str(made)
            if isinstance(made, Undecided):
                self.failed[mark.id] = str(made)
            return
        if isinstance(made, Exception):
            raise made
        self.decisions[mark.id] = made
        if made.label:
            self.following = max(self.following, int(made.label[1:]) + 1)
            proposal = made.verdict.proposal
            assert proposal is not None
            self.known.add(made.label, proposal.title, proposal.body, proposal.type)

    def find(self, before: Sequence[tuple[Chunk, dict[str, Any]]]) -> tuple[Mark, ...]:
        """The MARKs of sessions that nobody decided yet: those that earlier runs found, and what an agent finds in the
        new pieces. `collected` grows by them."""
        known = generate.Known((m for page in self.collected.pages.values() for m in page.marks), self.known.least)
        for chunk, value in before:
            self._found(chunk, value, known)
        chunks = self.gathered.chunks if self.task.config["nightly.generate"] else ()
        if not self.durable:
            self.shown += [(f"generate {c.path}", generate.prompt(c, self.run.id).text) for c in chunks]
            chunks = ()
        lot = int(self.task.config["nightly.parallel"])
        for start in range(0, len(chunks), lot):
            batch = chunks[start : start + lot]
            for chunk, answer in zip(batch, _side_by_side(batch, self._look_through), strict=True):
                if isinstance(answer, Stopped):
                    self.unread.add(chunk.path)
                elif isinstance(answer, Undecided):
                    said = f"no MARKs were found in this piece of a session, for no answer counts: {answer}"
                    self.task.problems.append(Finding("KH001", "warning", chunk.path, 0, said, "mark by hand"))
                elif isinstance(answer, Exception):
                    raise answer
                else:
                    self._found(chunk, answer, known)
        return tuple(mark for _, _, marks in self.found for mark in marks)

    def _look_through(self, chunk: Chunk) -> dict[str, Any]:
        assert self.asker is not None
        asked = Asked.load(asked_path(self.task.folder(self.run), chunk.id))
        prompt = generate.prompt(chunk, self.run.id)
        return self.asker.ask(prompt, generate.wrong, asked, schema.definition(generate.SCHEMA))

    def _found(self, chunk: Chunk, answer: dict[str, Any], known: generate.Known) -> None:
        found = generate.marks(chunk, answer, known)
        self.task.told.extend(f"left out {said}" for said in found.left_out)
        marks = tuple(mark for mark in found.marks if mark.id not in self.collected.receipts)
        if marks:
            self.found.append((chunk, answer, marks))
            pages = {**self.collected.pages, chunk.path: found.page}
            self.collected = replace(self.collected, pages=pages, open=(*self.collected.open, *marks))

    @property
    def waiting(self) -> tuple[tuple[Chunk, Mapping[str, Any]], ...]:
        return tuple((c, answer) for c, answer, marks in self.found if any(mark.id in self.left for mark in marks))


def evaluate(
    task: Task,
    run: Run,
    collected: Collected,
    known: Known,
    carried: Carried | None,
    gathered: Gathered,
    before: Sequence[tuple[Chunk, dict[str, Any]]] = (),
    *,
    durable: bool = True,
) -> Evaluated:
    """Asks the proposer about each MARK that is not decided yet. `before` are pieces of sessions in which earlier runs
    found MARKs. Not `durable` is a rehearsal: nothing is written and no agent is asked."""
    collected = replace(collected, held={chunk.path: chunk.page.data for chunk in gathered.chunks})
    used = [decision.label for decision in (carried.decisions if carried else {}).values() if decision.label]
    following = max((int(label[1:]) for label in used), default=0) + 1
    earlier = carried.decisions if carried else {}
    asker = task.asker(run) if task.by_agent and durable else None
    work = _Evaluation(task, run, collected, known, earlier, gathered, asker, durable, following)
    total = len(collected.open)
    work.decide(collected.open, total)
    found = work.find(before)
    work.decide(found, total + len(found))
    task.progress(total + len(found), total + len(found))
    task.told.extend(_undecided(work.failed))
    unread = frozenset(work.unread)
    return Evaluated(work.collected, known, work.decisions, work.left, unread, work.waiting, tuple(work.shown))


def _fit_to_keep(verdict: Verdict) -> Verdict:
    """The verdict with reasons and quotes as git may keep them: receipts and reports repeat them, and no check looks
    at them for secrets. Title and body stay as they are, for screening to withhold."""
    about = verdict.relation
    return replace(
        verdict,
        reason=_reason(verdict.reason),
        because=_reason(verdict.because),
        relation=about and replace(about, nearest=_reason(about.nearest), because=_reason(about.because)),
        quotes=tuple(replace(one, source=_reason(one.source), text=redact(one.text)) for one in verdict.quotes),
    )


def _reason(text: str) -> str:
    """On one line, of bounded length, without secrets and what a terminal would obey; empty only where it was."""
    return (redact(" ".join(clean(text).split()))[:REASON] or "(nothing that can be shown)") if text else ""


def _undecided(failed: Mapping[str, str]) -> Iterator[str]:
    """Why no answer decided these MARKs, each reason once: an agent that is not logged in fails for all of them."""
    reasons: dict[str, list[str]] = {}
    for mark, why in failed.items():
        reasons.setdefault(why, []).append(mark)
    for why, marks in list(reasons.items())[:REASONS]:
        more = f" and {len(marks) - NAMED} more" if len(marks) > NAMED else ""
        yield f"open: {', '.join(marks[:NAMED])}{more}, for no answer counts: {why}"
    if len(reasons) > REASONS:
        yield f"and {len(reasons) - REASONS} further reasons, kept in .khms/carry/undecided"


def _side_by_side(items: Sequence[One], work: Callable[[One], Made]) -> list[Made | Exception]:
    """What `work` gives or raises for each item, all at the same time. An interrupt does not wait for what is under
    way: the threads end with this process, and with it what they run."""
    made: dict[int, Made | Exception] = {}

    def one(at: int) -> None:
        try:
            made[at] = work(items[at])
        except Exception as error:
            made[at] = error

    threads = [Thread(target=one, args=(at,), daemon=True) for at in range(1, len(items))]
    for thread in threads:
        thread.start()
    if items:
        one(0)
    for thread in threads:
        thread.join()
    return [made[at] for at in range(len(items))]
