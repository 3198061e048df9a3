"""Belief: how far the cards around a derived card carry it. Computed whenever it is shown, never stored."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from khms.model.card import TYPES, Card

WEIGHTS = {"measured": 3.0, "observed": 2.0, "reported": 1.0}
ASSUMED = 1.0
INDIRECT = 2.0
K = 4.0


@dataclass(frozen=True, slots=True)
class Belief:
    """`value` lies between -1 and 1; `supporters` and `opposers` are the cards it comes from, by id."""

    value: float
    supporters: tuple[str, ...] = ()
    opposers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.value:+.2f} ({len(self.supporters)} for, {len(self.opposers)} against)"


def level(card: Card) -> str:
    """The card's level: its own word, else its type's."""
    kind = TYPES.get(card.type)
    return card.level or (kind.level if kind else "observation")


def weight(card: Card) -> float:
    """What an active card counts for: an observation by its evidence, a derived card as one step removed."""
    if level(card) == "derived":
        return INDIRECT
    if level(card) == "assumption":
        return ASSUMED
    return WEIGHTS.get(card.evidence, ASSUMED)


def beliefs(cards: Mapping[str, Card]) -> dict[str, Belief]:
    """The belief of every derived card, from the active cards that support and oppose it."""
    supporting: defaultdict[str, set[str]] = defaultdict(set)
    for card in cards.values():
        for target in card.links.supports:
            supporting[target].add(card.id)
    found = {}
    for card in cards.values():
        if level(card) != "derived":
            continue
        pro = _active(cards, {*card.links.derived_from, *supporting[card.id]} - {card.id})
        contra = _active(cards, {*card.links.contradicts, *card.links.refuted_by} - {card.id})
        balance = sum(weight(cards[i]) for i in pro) - sum(weight(cards[i]) for i in contra)
        found[card.id] = Belief(math.tanh(balance / K), pro, contra)
    return found


def _active(cards: Mapping[str, Card], ids: set[str]) -> tuple[str, ...]:
    return tuple(sorted(i for i in ids if i in cards and cards[i].status == "active"))
