"""A proposed change of a card that is there, as a unit carries it: whether it holds, and its making.

The making is that of `khms card status`, with a record of its own; here it is only seen that the card stands as it did
when the change was proposed, and that the card which is the cause is in force.
"""

from collections.abc import Collection, Iterator, Mapping

from khms.check.screening import screen
from khms.errors import KhmsError
from khms.model.candidate import Candidate, Change
from khms.model.card import IN_FORCE, Card
from khms.model.finding import Finding
from khms.model.outcome import FAIL, PASS, Outcome
from khms.pipeline import absorbing, checks, quotes, specifics
from khms.pipeline.form import fault, line_of
from khms.pipeline.quotes import Reader
from khms.pipeline.refusals import Refusals
from khms.pipeline.status import apply
from khms.pipeline.transition import Desk
from khms.store import cards, schema
from khms.store.layout import Base
from khms.store.markdown import Unreadable

ABSORBED = "absorbed"  # the check that the cause of a condensation carries all that it stands for


def form(candidate: Candidate) -> Iterator[Finding]:
    """What is wrong with the file itself."""
    for where, words in schema.problems("change", schema.convert(candidate.meta, "change")):
        key = (schema.keys(where) or [""])[0]
        yield fault(candidate, "form", words, schema.meaning("change", where), line_of(candidate, key or "change"))


def outcomes(
    base: Base, candidate: Candidate, known: Mapping[str, Card], reader: Reader, refused: Refusals, least: float
) -> list[Outcome]:
    """What each check says of the change. `known` are all cards, with or without their bodies."""
    change = candidate.change
    assert change is not None
    found = quotes.check(reader, candidate) if candidate.quotes else []
    found += checks.screened(candidate, screen("\n\n".join((candidate.title, candidate.body, change.why))))
    found.append(checks.refused(candidate, refused, least))
    if change.status == "condensed":
        found.append(_absorbed(base, candidate.label, change, known))
    return found


def _absorbed(base: Base, label: str, change: Change, known: Mapping[str, Card]) -> Outcome:
    old, by = known.get(change.card), known.get(change.by)
    if old is None or by is None:
        return Outcome(ABSORBED, label, FAIL, "one of the two cards is not there", waivable=False)
    try:
        read = {i: cards.load(base, known[i].path) for i in (old.id, by.id, *by.links.derived_from) if i in known}
    except Unreadable as error:
        return Outcome(ABSORBED, label, FAIL, f"{error.path} cannot be read: {error.message}", waivable=False)
    lost = absorbing.lacking(read[old.id], read[by.id], {**known, **read})
    if not lost:
        return Outcome(ABSORBED, label, PASS)
    return Outcome(ABSORBED, label, FAIL, f"{by.id} does not carry {specifics.listed(lost)}")


def make(desk: Desk, candidate: Candidate, busy: Collection[str]) -> list[Finding]:
    """Makes the change on the desk; returns what stands against it. Cards that are `busy` are changed by another
    candidate of the same approval."""
    change = candidate.change
    assert change is not None
    both = [i for i in (change.card, change.by) if i in busy]
    if both:
        said = f"another candidate of this approval changes {', '.join(both)}"
        return [fault(candidate, "change", said, "approve one after the other")]
    try:
        card = desk.card(change.card)
        if card.status != change.was:
            said = f"{card.id} is {card.status} by now, and this was proposed for one that is {change.was}"
            return [fault(candidate, "change", said, "reject it, or look at the card and say so in `was`")]
        if change.by and (by := desk.card(change.by)).status not in IN_FORCE:
            return [fault(candidate, "change", f"{by.id}, its cause, is {by.status} by now", "reject it")]
        before = len(desk.transitions)
        apply(desk, card, change.status, change.by or None, change.why)
        if len(desk.transitions) == before:
            return [fault(candidate, "change", f"{card.id} stands so already", "reject it")]
    except KhmsError as error:
        return [fault(candidate, "change", error.message, error.hint)]
    return []
