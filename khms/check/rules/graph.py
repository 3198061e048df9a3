"""The graph of cards: replacing says why, nothing goes round, a status is what the edges say."""

import re
from collections.abc import Iterator
from typing import Literal

from khms.check.context import Context
from khms.check.subject import CARD, Fault, Subject
from khms.model.card import ARCHIVED, Card

_REASON = re.compile(r"^SUPERSEDES\s+(K-[0-9]{5,}|C[0-9]+)\s+BECAUSE:[ \t]*\S", re.MULTILINE)
Edge = Literal["supersedes", "derived_from"]


def order(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH007: what a card replaces it names with a reason; neither `supersedes` nor `derived_from` goes round."""
    card = subject.card
    if card.links.supersedes:
        given = set(_REASON.findall(card.body))
        for target in card.links.supersedes:
            if target not in given:
                mend = f"add a line to the body: SUPERSEDES {target} BECAUSE: …"
                yield Fault(subject.line("links.supersedes"), f"it replaces {target} without a reason", mend)
    if subject.kind != CARD:
        return
    for edge in ("supersedes", "derived_from"):
        if round_trip := _cycle(subject.name, card, edge, context):
            shown = " → ".join(round_trip)
            yield Fault(subject.line(f"links.{edge}"), f"`{edge}` goes round: {shown}", "take one of these edges out")


def _cycle(card_id: str, card: Card, edge: Edge, context: Context) -> list[str]:
    """The shortest way from the card back to itself; in a whole run told once, at the member with the smallest id."""
    came: dict[str, str] = dict.fromkeys(getattr(card.links, edge), card_id)
    queue = list(came)
    for held in queue:
        if held == card_id:
            break
        other = context.card(held)
        for target in getattr(other.links, edge) if other else ():
            if target not in came:
                came[target] = held
                queue.append(target)
    if card_id not in came:
        return []
    way = [card_id]
    while (before := came[way[-1]]) != card_id:
        way.append(before)
    if context.whole and card_id != min(way):
        return []
    return [card_id, *reversed(way[1:]), card_id]


def status(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH009: refuted cards name what refuted them; superseded and condensed ones, and no others, lie in the archive."""
    card = subject.card
    line = subject.line("status")
    if card.status == "refuted" and not card.links.refuted_by:
        yield Fault(line, "a refuted card names what refuted it", "add the card's id to links.refuted_by")
    if card.status == "active" and card.links.refuted_by:
        named = ", ".join(card.links.refuted_by)
        yield Fault(
            line, f"it is active, though refuted by {named}", f"khms card status {card.id} refuted --by {named}"
        )
    if card.status in ARCHIVED and not card.archived:
        yield Fault(line, f"a {card.status} card belongs in memory/archive/know/", "move the file there: git mv")
    if card.archived and card.status not in ARCHIVED:
        yield Fault(line, f"it lies in the archive, but its status is {card.status}", "move it to memory/know/: git mv")
    if card.status == "superseded" and context.whole and card.id not in context.superseded:
        yield Fault(line, "no card supersedes it", "name it in links.supersedes of the card that replaced it")
    if card.status not in ("active", "challenged"):
        return
    for target in card.links.supersedes:
        other = context.card(target)
        if other is not None and other.status in ("active", "challenged"):
            mend = f"khms card status {target} superseded --by {card.id}"
            yield Fault(subject.line("links.supersedes"), f"it replaces {target}, whose status is {other.status}", mend)
