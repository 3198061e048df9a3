"""Belief: how far the cards around a derived card carry it. Computed whenever it is shown, never stored.

support(D) = what the active cards in its derived_from weigh, and those whose `supports` names it
oppose(D)  = what the active cards in its contradicts and refuted_by weigh
belief(D)  = tanh((support - oppose) / k)
"""

from __future__ import annotations

from math import tanh

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Protocol

    from khms.model.card import Card

    class Graded(Protocol):
        """What of a card belief looks at; a document of the index has the same."""

        @property
        def id(self) -> str: ...
        @property
        def type(self) -> str: ...
        @property
        def level(self) -> str: ...
        @property
        def status(self) -> str: ...
        @property
        def evidence(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Figures:
    """What an active card counts for: an observation by its evidence, an assumption, a derived card as one step
    removed. `k` is how much of it makes belief strong: tanh(1) = 0.76 at a balance of k. `idle` is what a week counts
    for a card that no pattern has taken up, for condensing."""

    measured: float = 3.0
    observed: float = 2.0
    reported: float = 1.0
    assumption: float = 1.0
    indirect: float = 2.0
    k: float = 4.0
    idle: float = 0.3


FIGURES = Figures()
_SECTION = "belief."


def figures(settings: Mapping[str, Any]) -> Figures:
    """The figures that settings hold by their dotted names; the default for one that is not there."""
    names = (name for name in Figures.__match_args__ if _SECTION + name in settings)
    return Figures(**{name: settings[_SECTION + name] for name in names})


@dataclass(frozen=True, slots=True)
class Belief:
    """`value` lies between -1 and 1; `supporters` and `opposers` are the cards it comes from, by id."""

    value: float
    supporters: tuple[str, ...] = ()
    opposers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.value:+.2f} ({len(self.supporters)} for, {len(self.opposers)} against)"

    def as_json(self) -> dict[str, Any]:
        return {"value": self.value, "supporters": list(self.supporters), "opposers": list(self.opposers)}


def level(card: Graded) -> str:
    """The card's level: its own word, else its type's."""
    if card.level:
        return card.level
    from khms.model.card import TYPES  # costs a hook more than all of this, and the level is nearly always said

    kind = TYPES.get(card.type)
    return kind.level if kind else "observation"


def weight(card: Graded, by: Figures = FIGURES) -> float:
    """What an active card counts for."""
    kind = level(card)
    if kind == "derived":
        return by.indirect
    if kind == "assumption":
        return by.assumption
    known = {"measured": by.measured, "observed": by.observed, "reported": by.reported}
    return known.get(card.evidence, by.assumption)


def weigh(supporting: Iterable[Graded], opposing: Iterable[Graded], by: Figures = FIGURES) -> Belief:
    """The belief that comes from the cards on both sides; only active ones count, each once."""
    pro, contra = ({card.id: card for card in side if card.status == "active"} for side in (supporting, opposing))
    balance = sum(weight(card, by) for card in pro.values()) - sum(weight(card, by) for card in contra.values())
    return Belief(tanh(balance / by.k), tuple(sorted(pro)), tuple(sorted(contra)))


def beliefs(cards: Mapping[str, Card], by: Figures = FIGURES) -> dict[str, Belief]:
    """The belief of every derived card."""
    supporting: dict[str, set[str]] = {}
    for card in cards.values():
        for target in card.links.supports:
            supporting.setdefault(target, set()).add(card.id)
    found = {}
    for card in cards.values():
        if level(card) == "derived":
            pro = {*card.links.derived_from, *supporting.get(card.id, ())} - {card.id}
            contra = {*card.links.contradicts, *card.links.refuted_by} - {card.id}
            supporters, opposers = ([cards[i] for i in ids if i in cards] for ids in (pro, contra))
            found[card.id] = weigh(supporters, opposers, by)
    return found
