"""What the steps look at: the cards with their bodies, how they are linked, and what was offered before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from khms.config import Config
from khms.model import belief
from khms.model.belief import Belief, Figures
from khms.model.card import IN_FORCE, Card
from khms.model.finding import Finding
from khms.pipeline.known import document
from khms.pipeline.nearest import Nearby
from khms.pipeline.weekly.past import Past
from khms.store import cards
from khms.store.layout import Base

NEAR = 5  # cards that are listed beside an offer
# (key, matter, what is wrong with an answer) -> the answer that counts; raises Undecided and Stopped.
Ask = Callable[[str, str, Callable[[dict[str, Any]], list[str]]], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Ground:
    """`cards` are all that can be read, by id, the archive's too. `ask` asks the proposer's agent, None where there is
    none; at most `limit` of what it is asked about can be offered."""

    base: Base
    config: Config
    cards: Mapping[str, Card]
    past: Past = field(default_factory=Past)
    problems: tuple[Finding, ...] = ()
    ask: Ask | None = None
    limit: int = 0

    @cached_property
    def standing(self) -> tuple[Card, ...]:
        """The cards in force, by id."""
        return tuple(c for _, c in sorted(self.cards.items()) if c.status in IN_FORCE and not c.archived)

    @cached_property
    def figures(self) -> Figures:
        return belief.figures(self.config)

    @cached_property
    def beliefs(self) -> Mapping[str, Belief]:
        return belief.beliefs(self.cards, self.figures)

    @cached_property
    def resting(self) -> Mapping[str, tuple[str, ...]]:
        """Of each card, the cards in force that derive from it or that it is supported by."""
        found: dict[str, list[str]] = {}
        for card in self.standing:
            for target in dict.fromkeys((*card.links.derived_from, *card.links.supports)):
                found.setdefault(target, []).append(card.id)
        return {target: tuple(ids) for target, ids in found.items()}

    def weight(self, card: Card) -> float:
        return belief.weight(card, self.figures)

    def linked(self, one: Card, other: Card) -> bool:
        """Whether a link says already that one of them corrects the other."""
        sides = ((one, other.id), (other, one.id))
        return any(i in (*c.links.supersedes, *c.links.contradicts, *c.links.refuted_by) for c, i in sides)

    def nearest(self, text: str, *without: str) -> tuple[str, ...]:
        found = self._nearby.nearest(text, NEAR + len(without))
        return tuple(near.document.id for near in found if near.document.id not in without)[:NEAR]

    @cached_property
    def _nearby(self) -> Nearby:
        return Nearby(document(card) for card in self.standing)


def ground(base: Base, config: Config, past: Past, ask: Ask | None, limit: int) -> Ground:
    """The base as it is now; what cannot be read is named and left out."""
    shelf = cards.shelf(base)
    wrong = (Finding("KH001", "warning", e.path, e.line, e.message, e.mend) for e in shelf.unreadable)
    return Ground(base, config, shelf.cards, past, tuple(wrong), ask, limit)
