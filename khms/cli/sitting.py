"""One sitting over one unit: shows, asks, keeps each answer, and carries out what was confirmed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import click

from khms.cli import approval, shared
from khms.cli.desk_answers import (
    APPROVE,
    APPROVE_AS_NEW,
    BACK,
    DEFER,
    DROP,
    EDIT,
    HELP,
    HELP_TEXT,
    KEEP,
    QUIT,
    RELATION,
    SHOW,
    SKIP,
    UNDO,
    WAIVE,
    YES,
    relation,
    waiver,
)
from khms.cli.desk_keys import Answer, Key, Keys, Lines
from khms.cli.desk_shown import Screen, said
from khms.cli.output import block, fold, one_line
from khms.cli.session import Session
from khms.errors import KhmsError, Usage
from khms.model.finding import Finding
from khms.pipeline import reviewing
from khms.pipeline.approve import Faulty, approved_labels
from khms.pipeline.aside import aside, whereabouts
from khms.pipeline.docket import Docket, Held, label_of
from khms.pipeline.reviewing import Act, Entry, Review, View


class Quit(Exception):
    """The reviewer wants no more."""


class Sitting:
    """`status` is the exit code that an approval was refused with, as long as none followed; `stopped` says that the
    reviewer wants no other unit after this one."""

    def __init__(self, session: Session, docket: Docket, asked: Keys | Lines, screen: Screen) -> None:
        self.session = session
        self.docket = docket
        self.asked = asked
        self.screen = screen
        self.status = 0
        self.stopped = False
        self._review = Review("", ())
        self._whole = ""  # the label of the candidate that is to be shown with its long lines whole
        self._own: set[str] = set()  # labels that this sitting carried out: no news to the reviewer

    def hold(self) -> None:
        held = self.docket.read()
        self._review = self.docket.begin(held)
        self._open(held)
        if not held.waiting:
            return
        try:
            while not (self._review.current is None and self._finished()):
                if self._review.current is not None:
                    self._candidate()
        except KeyboardInterrupt:
            self.status = 130
            self._stop("stopped")
        except EOFError:
            self._stop("no more answers")
        except Quit:
            self._stop("")

    def _open(self, held: Held) -> None:
        for problem in held.unit.broken:
            self._say(f"cannot be read: {problem.path}:{problem.line}: {problem.message} ({problem.mend})")
        if not held.waiting:
            done = [f"{label} = {card_id}" for label, card_id in approved_labels(held.records, held.unit.path).items()]
            told = f"; approved before: {', '.join(done)}" if done else ""
            self._say(f"nothing is pending in {held.unit.name}{told}")
            for line in whereabouts(self.docket.base, held.unit, aside(held.unit)):
                self._say(line)
            return
        decided = len(held.waiting) - len(self._review.left)
        before = f", {decided} decided before" if decided else ""
        self._say(f"{held.unit.path}: {len(held.waiting)} pending{before}")

    def _stop(self, why: str) -> None:
        self.stopped = True
        decided = len(self._review.entries) - len(self._review.left)
        kept = f"what you decided about {decided} of {len(self._review.entries)} is kept" if decided else ""
        went = "nothing was decided" if not decided else kept
        print()
        self._say("; ".join(filter(None, (why, went, f"khms review {self.docket.name} goes on there"))))

    def _say(self, text: str) -> None:
        print(fold(one_line(text), 2))

    def _show(self, rows: Iterable[str]) -> None:
        for row in rows:
            print(row)

    def _refreshed(self, own: str = "") -> Held:
        """The unit as it is now, and the review brought up to it; what others did meanwhile is told."""
        held = self.docket.read()
        found = reviewing.renewed(self._review, held.hashes, own=own)
        self._review = found.review
        for label in found.gone:
            if label not in self._own:
                self._say(f"{label} {self.docket.fate(held, label)}")
        self.docket.forget(self._review, found.gone)
        for label in found.changed:
            if label != own:
                self._say(f"{label} was changed on disk; what was decided about it does not count any more")
        return held

    def _candidate(self) -> None:
        """Shows the current candidate and takes answers until one moves the review."""
        held = self._refreshed()
        entry = self._review.current
        if entry is None:
            return
        view = self.docket.view(held, self._review, entry)
        self._show(["", *self.screen.candidate(view, self._review, whole=self._whole == entry.label)])
        self._whole = ""
        while self._review.current == entry:
            answer = self.asked.choose(self._keys(view, entry))
            if answer.key == SHOW.key:
                self._whole = entry.label
                return
            try:
                self._answer(answer, view)
            except Usage as error:
                self._say("  ".join(filter(None, (error.message, error.hint))))
            if answer.key == EDIT.key:
                return
            after = self._review.current
            if after is not None and after.label == entry.label and after != entry:
                held = self._refreshed()  # much may have happened since it was shown
                if self._review.current != after:
                    return
                entry = after
                view = self.docket.view(held, self._review, entry)
                self._show(self.screen.standing(view, self._review))

    def _keys(self, view: View, entry: Entry) -> list[Key]:
        """Every key, those shown that do something here; the others say why not."""
        approve = APPROVE_AS_NEW if view.unjudged else APPROVE
        idle = {
            approve: bool(view.faults),
            WAIVE: not (view.failed() or view.not_run()),
            BACK: self._review.at == 0,
            KEEP: entry.open,
        }
        keys = (approve, EDIT, RELATION, WAIVE, DEFER, DROP, SKIP, BACK, KEEP, QUIT, HELP, SHOW)
        return [replace(key, shown="") if idle.get(key) else key for key in keys]

    def _answer(self, answer: Answer, view: View) -> None:
        key, label = answer.key, view.candidate.label
        if key == QUIT.key:
            raise Quit
        if key == HELP.key:
            self._show(block(HELP_TEXT, ""))
        elif key == EDIT.key:
            self._edit(view)
        elif key == RELATION.key:
            self._act(relation(self.asked, answer.rest, view), view)
        elif key == WAIVE.key:
            self._act(waiver(self.asked, answer.rest, view), view)
        elif key == DEFER.key:
            why = answer.rest or (self.asked.line("why not now? (Enter: no reason)") if self.asked.optional else "")
            self._act(Act(reviewing.DEFER, why=why), view)
        elif key == DROP.key:
            self._act(Act(reviewing.DROP, why=answer.rest or self.asked.line("what is wrong with it?")), view)
        else:
            self._act(Act({"a": reviewing.APPROVE, "s": "skip", "b": "back", "": "keep"}[key]), view)
        after = self._review.entry(label)
        if after and key in (APPROVE.key, DEFER.key, DROP.key, SKIP.key):
            self._say(f"{label}: {said(after)}")

    def _act(self, act: Act | None, view: View) -> None:
        if act is None:
            return
        self._review = reviewing.step(self._review, act, view)
        if act.do not in ("back", "keep"):
            self.docket.keep(self._review, view.candidate.label)

    def _edit(self, view: View) -> None:
        """Opens the candidate's file until it can be read again, or puts back what was there."""
        candidate = view.candidate
        try:
            before = self.docket.bytes_of(candidate)
        except OSError:
            self._say(f"{candidate.path} is not there any more")
            return
        while True:
            try:
                click.edit(filename=str(self.docket.base.path(candidate.path)))
            except click.ClickException as error:
                self._say(f"the editor did not work: {error.message} (set VISUAL or EDITOR)")
            try:
                held = self.docket.read()
                problems = [f"{p.path}:{p.line}: {p.message} ({p.mend})" for p in held.unit.broken]
                if any(other.label == candidate.label for other in held.waiting):
                    break
            except KhmsError as error:
                problems = [str(error)]
            for problem in problems or [f"{candidate.label} is gone from the unit"]:
                self._say(f"cannot be read: {problem}")
            if self.asked.choose((EDIT, UNDO)).key == UNDO.key:
                self.docket.put_back(candidate, before)
                break
        self._refreshed(own=candidate.label)
        self.docket.keep(self._review, candidate.label)
        after = self._review.entry(candidate.label)
        if after is not None and after.sha256 == view.sha256:
            self._say("nothing was changed")

    def _finished(self) -> bool:
        """Whether the unit is done with: what was decided is shown, confirmed and carried out."""
        held = self._refreshed()
        if self._review.current is not None:
            return False
        if not self._review.entries:
            self._say(f"nothing is pending in {self.docket.name} any more")
            return True
        if len(self._review.left) == len(self._review.entries):
            self._say(f"nothing was decided in {self.docket.name}; {len(self._review.left)} still pending")
            return True
        faults = self.docket.faults(held, self._review)
        if faults:
            self._back_to(faults, [entry.label for entry in self._review.entries])
            return False
        titles = {candidate.label: candidate.title for candidate in held.waiting}
        self._show(["", *self.screen.plan(self._review, titles)])
        self.asked.fresh()
        answer = self.asked.choose((YES, BACK, QUIT))
        if answer.key == QUIT.key:
            raise Quit
        if answer.key == BACK.key:
            self._review = replace(self._review, at=len(self._review.entries) - 1)
            return False
        return self._carried_out()

    def _back_to(self, faults: Iterable[Finding], labels: Sequence[str]) -> None:
        """Shows each fault at its candidate, of those that were to be decided, and goes back to the first of them that
        is still there; where none is, to what is open."""
        found: dict[str, list[Finding]] = {}
        for fault in faults:
            found.setdefault(label_of(fault, labels), []).append(fault)
        self._say("they cannot come in together as they stand; nothing was changed")
        for label, own in found.items():
            self._say(f"{label or 'the base'}:")
            self._show(self.screen.faults(own))
        approved = [entry.label for entry in self._review.decided(reviewing.APPROVE)]
        here = [label for label in labels if self._review.entry(label)]
        first = next((label for label in here if label in found), approved[0] if approved else "")
        self._review = reviewing.at(self._review, first)
        for label in found:
            self.docket.keep(self._review, label)

    def _carried_out(self) -> bool:
        """Drops and deferrals, then the approval; where something refuses, the review stands as it was."""
        from khms.render import views

        told = []
        try:
            named = [entry.decision.relation.partition(":")[2] for entry in self._review.entries]
            remote = shared.begin(self.session, named)
            for group, done in self.docket.withhold(self._review):
                self._own.update(group.labels)
                word = "dropped" if group.verdict == reviewing.DROP else "put off"
                told += [f"{label} {word}: {group.why or path}" for label, path in done.moved]
            result = self.docket.approve(self._review, views.for_base)
            if result is not None:
                result = shared.published(self.session, remote, result)
            else:
                shared.finish(self.session, remote, changed=bool(told))
        except Faulty as error:
            self.status = error.exit_code
            self._show(told)
            labels = [entry.label for entry in self._review.entries]
            self._refreshed()
            self._back_to(error.faults, labels)
            return False
        except KhmsError as error:
            self.status = error.exit_code
            self._show(told)
            for line in ("refused: " + error.message, *error.where.splitlines(), error.hint):
                self._say(line)
            return False
        self.status = 0
        if result is not None:
            approval.follow_up(self.session, result)
            approval.report(self.session, result)
        for line in told:
            self._say(line)
        left = len(self._review.left)
        if left:
            self._say(f"{left} left pending in {self.docket.name}")
        return True
