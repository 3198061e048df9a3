"""Which observations could be condensed: how long ago each was made, and whether a pattern already says it.

    condense(O) = weeks since its date x (an active pattern derives from it ? 1 : `idle`)

A number to sort by, computed whenever it is shown. Never for facts, policies and overviews, which do not wear out, for
gotchas and for what was refuted, which must stay in sight.
"""

from collections.abc import Iterable
from datetime import date

from khms.model.belief import FIGURES, Figures, level
from khms.model.card import Card
from khms.model.document import GOTCHA

LASTING = ("fact", "policy", "overview")


def condensing(cards: Iterable[Card], by: Figures = FIGURES) -> dict[str, float]:
    """The figure of every card that has one above 0, the greatest first. Weeks count to the newest date among the
    cards, so the same cards give the same figures on every day."""
    held = list(cards)
    days = {card.id: day for card in held if (day := _day(card.date)) is not None}
    newest = max(days.values(), default=date.min)
    absorbed = {
        target
        for card in held
        if card.status == "active" and level(card) == "derived"
        for target in card.links.derived_from
    }
    found = {
        card.id: (newest - days[card.id]).days / 7 * (1.0 if card.id in absorbed else by.idle)
        for card in held
        if card.id in days and _wears(card)
    }
    return {i: weeks for i, weeks in sorted(found.items(), key=lambda item: (-item[1], item[0])) if weeks > 0}


def _wears(card: Card) -> bool:
    return (
        card.status in ("active", "challenged")
        and level(card) != "derived"
        and card.type not in LASTING
        and GOTCHA not in card.tags
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
