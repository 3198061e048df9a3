"""Observations that a pattern has taken up whole, the longest untouched first: they may leave for the archive."""

from khms.model.belief import level
from khms.model.candidate import Change
from khms.model.card import Card
from khms.model.condense import condensing
from khms.pipeline import specifics
from khms.pipeline.absorbing import lacking, text
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.offer import Found, Offer

LEAST_WEEKS = 1.0  # from which a card counts as untouched


def find(ground: Ground) -> Found:
    """One offer a card. Nothing is offered whose words another offer needs: a card that carries for one stays, and one
    that leaves carries for none."""
    patterns: dict[str, list[Card]] = {}
    for card in ground.standing:
        if card.status == "active" and level(card) == "derived":
            for target in dict.fromkeys(card.links.derived_from):
                patterns.setdefault(target, []).append(card)
    leaving: set[str] = set()
    needed: set[str] = set()
    offers = []
    for card_id, weeks in condensing(ground.cards.values(), ground.figures).items():
        if weeks < LEAST_WEEKS or card_id in needed or ground.cards[card_id].archived:
            continue
        old = ground.cards[card_id]
        for by in sorted(patterns.get(card_id, ()), key=lambda card: (-ground.beliefs[card.id].value, card.id)):
            if by.id in leaving or lacking(old, by, ground.cards, leaving):
                continue
            alone = not specifics.missing([text(old)], [text(by)], old.date)
            carrying = set() if alone else {i for i in by.links.derived_from if i != old.id and i not in leaving}
            needed |= carrying
            leaving.add(old.id)
            offers.append(_offer(ground, old, by, weeks, carrying))
            break
    return Found(tuple(offers))


def _offer(ground: Ground, old: Card, by: Card, weeks: float, carrying: set[str]) -> Offer:
    change = Change(old.id, "condensed", by.id, old.status, f"{by.id} carries all that it says: {by.title}")
    also = (
        f" together with {', '.join(sorted(carrying & ground.cards.keys()))}, from which it derives" if carrying else ""
    )
    held = ground.beliefs[by.id]
    rest = len([i for i in held.supporters if i != old.id])
    cards = f"{rest} active card{'' if rest == 1 else 's'}"
    body = (
        f"{old.id} was made {weeks:.0f} weeks before the newest card and has not changed since. {by.id} derives from it"
        f" and{also} carries every number, name and path in it, and its links.\n\n"
        f"- {old.id} ({old.evidence or 'no evidence said'}, {old.date[:10]}): {old.title}\n"
        f"- {by.id} (belief {held}): {by.title}\n\n"
        f"A condensed card counts for belief no longer: {by.id} would rest on {cards}.\n"
    )
    return Offer(str(change), f"{old.id} is condensed into {by.id}, which carries it", body, change=change,
                 near=(old.id, by.id))  # fmt: skip
