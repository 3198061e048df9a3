"""What a reviewer sees: one candidate whole, and what will happen once they say so. Text in, rows out."""

from collections.abc import Iterator, Mapping, Sequence

import click

from khms.cli.output import block, clean, fold, one_line, terminal_width
from khms.model.card import Card, as_list, as_text, links_of
from khms.model.finding import Finding
from khms.model.outcome import FAIL, NOT_RUN, PASS
from khms.model.redact import redact
from khms.pipeline import reviewing
from khms.pipeline.reviewing import APPROVE, Decision, Entry, Place, Review, View
from khms.render import worddiff

FIRST_ROWS = 4  # of a card that lies near
HEAD, TAIL = 480, 160  # characters of a very long line that are shown: eight rows of a terminal in all
# Around a changed piece: in plain text, and, as signs that stand for a colour, in text that is still to be folded.
_BRACKETS = {worddiff.OLD: ("[-", "-]"), worddiff.NEW: ("{+", "+}")}
_CLOSE = "\ue002"
_SHADES = {worddiff.OLD: ("\ue000", _CLOSE), worddiff.NEW: ("\ue001", _CLOSE)}
_STYLES = {"\ue000": "red", "\ue001": "green"}


class Screen:
    """How rows look: with `colour` or without."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour
        self.whole = False

    def short(self, text: str) -> str:
        """`text` with the middle of its very long lines left out."""
        return text if self.whole else "\n".join(map(_cut, text.split("\n")))

    def paint(self, text: str, **style: object) -> str:
        return click.style(text, **style) if self.colour and text else text  # type: ignore[arg-type]

    def bold(self, text: str) -> str:
        return "\n".join(self.paint(row, bold=True) for row in text.split("\n"))

    def head(self, text: str) -> str:
        """A line across the screen that begins a page."""
        return self.paint(f"── {fold(one_line(text), 3)} ".ljust(min(terminal_width(), 80), "─"), dim=True)

    def candidate(self, view: View, review: Review, *, whole: bool = False) -> Iterator[str]:
        """The whole page of the candidate before the reviewer. A line that would fill the screen is cut in its middle,
        with how much is left out, unless it shall be shown `whole`."""
        self.whole = whole
        candidate = view.candidate
        place = f"{review.at + 1} of {len(review.entries)}"
        yield self.head(f"{candidate.label}, {place} in {review.unit.rpartition('/')[2]}")
        yield self.bold(fold(self.short(one_line(candidate.title or "(no title)"))))
        if candidate.flags:
            yield self.paint(fold(f"flagged: {one_line(', '.join(candidate.flags))}", 2), fg="yellow")
        yield from self._facts(view)
        yield ""
        yield from block(self.short(clean(candidate.body).strip("\n")), "  ")
        yield ""
        for quoted in view.places:
            yield from self._quote(quoted)
        for card in view.near:
            yield from self._near(card)
        yield from self.standing(view, review)

    def standing(self, view: View, review: Review) -> Iterator[str]:
        """The part of the page that a reviewer's word changes: the relation, and what the checks say under it."""
        entry = review.current
        decision = entry.decision if entry else Decision()
        if not view.single or decision.relation:
            yield from self._relation(view, decision)
        if view.target and view.relation.kind in reviewing.NEEDS_REASON:
            yield from self._against(view, view.target)
        yield from self._checks(view)
        if entry and entry.decision.verdict:
            yield self.bold(fold(f"decided: {said(entry)}", 2))

    def _facts(self, view: View) -> Iterator[str]:
        meta = view.candidate.meta
        facts = [as_text(meta.get(key)) for key in ("type", "level", "status", "scope", "evidence", "date")]
        yield fold(one_line(" · ".join(fact for fact in facts if fact)))
        links = [f"{name} {target}" for name, target in links_of(meta.get("links")).edges()]
        for name, text in (
            ("tags", ", ".join(as_list(meta.get("tags")))),
            ("source", as_text(meta.get("source"))),
            ("links", ", ".join(links)),
            ("file", f"{view.candidate.path}:{view.candidate.body_line}"),
        ):
            if text:
                yield self.paint(fold(self.short(one_line(f"{name}: {text}")), 2), dim=name == "file")

    def _quote(self, place: Place) -> Iterator[str]:
        quote = place.quote
        style = {"fg": "red"} if quote.grade == "ABSENT" else {}
        told = f"quote {quote.grade or 'not looked up'}, {place.where}"
        if place.lost:
            told = f"quote of {place.where}, which was not looked into: {place.lost}"
        yield self.paint(fold(one_line(told), 2), **style)
        if not any(holds for holds, _ in place.rows):
            yield from block(self.short(clean(f"“{quote.text}”")), "    ")
        for holds, row in place.rows:
            for line in block(self.short(clean(row)), "  > " if holds else "    "):
                yield self.paint(line, bold=True) if holds else line

    def _relation(self, view: View, decision: Decision) -> Iterator[str]:
        held = view.relation
        if view.unjudged:
            yield fold("relation: nobody judged it; to approve it says that it is new", 2)
            return
        because = f" because {held.because}" if held.because else ""
        by = " (settled by you)" if decision.relation else ""
        yield fold(one_line(f"relation: {held.kind} {held.target}".rstrip() + because + by), 2)
        if held.target and view.target is None and held.target.startswith("K-"):
            yield self.paint(fold(one_line(f"there is no card {held.target} that can be read"), 2), fg="red")

    def _near(self, card: Card) -> Iterator[str]:
        status = "" if card.status == "active" else f" ({card.status})"
        yield fold(one_line(f"near: {card.id}{status} {card.title}"), 2)
        lines = self.short("\n".join(line for line in clean(card.body).splitlines() if line.strip()))
        rows = block(lines, "    ")
        yield from rows[:FIRST_ROWS]
        if len(rows) > FIRST_ROWS:
            yield f"    … (khms show {card.id})"

    def _against(self, view: View, card: Card) -> Iterator[str]:
        """The card that is corrected and the candidate, word by word."""
        yield fold(one_line(f"against {card.id}, word by word:"), 2)
        yield from self._words(f"{card.title}\n{card.body}", f"{view.candidate.title}\n{view.candidate.body}")

    def _words(self, old: str, new: str) -> Iterator[str]:
        """Both texts as one, with what changed in colour, or else in `[-…-]` and `{+…+}`."""
        plain = str.maketrans(dict.fromkeys((*_STYLES, _CLOSE), "�"))
        pieces = worddiff.diff(*(clean(text).translate(plain).strip("\n") for text in (old, new)))
        text = ""
        for before, piece in zip((None, *pieces), pieces, strict=False):
            apart = before and before.kind == worddiff.OLD != piece.kind and "\n" in before.text + piece.text
            begin, end = (_SHADES if self.colour else _BRACKETS).get(piece.kind, ("", ""))
            text += ("\n" if apart and not text.endswith("\n") else "") + begin + piece.text + end
        state = ""
        for row in block(text, "    "):
            shown, state = self._shaded(row, state)
            yield shown

    def _shaded(self, row: str, state: str) -> tuple[str, str]:
        """One folded row with its changed pieces in colour; `state` is the sign that was open at its start."""
        out, run, last = "", "", ""
        for char in row + _CLOSE:
            if char not in _STYLES and char != _CLOSE:
                run += char
                continue
            out, run = out + (self.paint(run, fg=_STYLES[state]) if state else run), ""
            last, state = state, char if char in _STYLES else ""
        return out, last

    def _checks(self, view: View) -> Iterator[str]:
        """What each check says, in one line where it has nothing to say."""
        loud = {outcome.check for outcome in view.outcomes if outcome.state != PASS}
        loud |= {"relations"} if view.unjudged else set()
        passed = dict.fromkeys(outcome.check for outcome in view.outcomes if outcome.check not in loud)
        if passed:
            yield self.paint(fold(f"passed: {', '.join(passed)}", 2), fg="green")
        entry_faults = {fault.code for fault in view.faults}
        for outcome in view.told():
            let = f"{outcome.label} {outcome.check}:" not in entry_faults
            word = {FAIL: "waived" if let else "failed", NOT_RUN: "accepted, not run" if let else "not run"}
            hard = "" if outcome.waivable or outcome.state != FAIL else " (cannot be waived)"
            told = f"{word.get(outcome.state, 'note')}: {outcome.check}: {outcome.message}{hard}"
            style = {"fg": "red"} if outcome.state == FAIL and not let else {}
            yield self.paint(fold(one_line(redact(told)), 2), **style)
        checks = {f"{outcome.label} {outcome.check}:" for outcome in view.outcomes}
        yield from self.faults([fault for fault in view.faults if fault.code not in checks])

    def faults(self, faults: Sequence[Finding]) -> Iterator[str]:
        for fault in dict.fromkeys(faults):
            code = fault.code.partition(" ")[2].rstrip(":") or fault.code
            mend = f" ({fault.mend})" if fault.mend and not fault.mend.startswith("--") else ""
            line = f"line {fault.line}: " if fault.line else ""
            yield self.paint(fold(one_line(redact(f"failed: {code}: {line}{fault.message}{mend}")), 2), fg="red")

    def plan(self, review: Review, titles: Mapping[str, str]) -> Iterator[str]:
        """What will happen to each candidate."""
        yield self.head(f"{review.unit.rpartition('/')[2]}: what will happen")
        for heading, entries in (
            ("comes in", review.decided(reviewing.APPROVE)),
            ("dropped", review.decided(reviewing.DROP)),
            ("put off", review.decided(reviewing.DEFER)),
            ("left", review.left),
        ):
            for entry in entries:
                yield fold(one_line(f"{heading:<8}  {entry.label}  {titles.get(entry.label, '')}"), 10)
                for line in _terms(entry):
                    yield fold(" " * 10 + one_line(line), 12)


def _cut(line: str) -> str:
    left = len(line) - HEAD - TAIL
    if left <= TAIL:
        return line
    return f"{line[:HEAD]} … [{left:,} characters left out; v shows them] … {line[-TAIL:]}"


def _terms(entry: Entry) -> Iterator[str]:
    held = entry.decision
    if held.verdict and held.verdict != APPROVE and held.why:
        yield held.why
    if held.verdict == APPROVE:
        if held.relation:
            yield _related(held)
        for check, why in held.waived:
            yield f"{check} waived: {why}"
        for check in held.accepted:
            yield f"{check} accepted though it was not run"


def _related(held: Decision) -> str:
    relation = "as new" if held.relation == "new" else held.relation.replace(":", " ", 1)
    return relation + (f" because {held.because}" if held.because else "")


def said(entry: Entry) -> str:
    """A decision in a few words."""
    held = entry.decision
    words = {"approve": "approve", "drop": "drop", "defer": "put off", "": "skip"}[held.verdict]
    if held.verdict == APPROVE and held.relation:
        words += f" {_related(held)}" if held.relation == "new" else f", {_related(held)}"
    return one_line(words + (f" ({held.why})" if held.why else ""))
