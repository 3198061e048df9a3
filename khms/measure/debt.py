"""What a base holds and nobody meets: cards that no session was told of and that were the best answer to nothing, and
tags with many cards that say nothing of each other.

A debt is no fault. A card may wait for its day, and the log of hooks is this machine's alone and reaches back only so
far: how far is part of the answer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from khms.measure import decisions
from khms.measure.decisions import Decision
from khms.model.card import ARCHIVED, Card
from khms.store.catalogue import catalogue
from khms.store.layout import Base

SCHEMA = "khms.debt/1"
MANY = 5  # cards from which a tag counts as one with many
FEW = 0.5  # links a card below which they count as few: not even every second one is linked to another


@dataclass(frozen=True, slots=True)
class Unmet:
    """A card that was never injected and never a top hit."""

    id: str
    type: str
    status: str
    date: str
    title: str


@dataclass(frozen=True, slots=True)
class Loose:
    """A tag with many cards and few links: `links` counts edges with one of its cards at an end."""

    tag: str
    cards: int
    links: int

    @property
    def share(self) -> float:
        return self.links / self.cards


@dataclass(frozen=True, slots=True)
class Debt:
    """`cards` counts those that recall can show. `met` of them were injected or a top hit. `decisions` and `since` tell
    what that is known from; `since` is empty where there is no log."""

    cards: int
    injected: int
    top: int
    met: int
    unmet: tuple[Unmet, ...]
    loose: tuple[Loose, ...]
    tags: int
    decisions: int
    since: str

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "since": self.since or None,
            "decisions": self.decisions,
            "cards": self.cards,
            "injected": self.injected,
            "top_hits": self.top,
            "met": self.met,
            "unmet": [asdict(card) for card in self.unmet],
            "tags": self.tags,
            "loose_tags": [{**asdict(tag), "links_per_card": round(tag.share, 3)} for tag in self.loose],
        }


def debt(base: Base) -> Debt:
    """The base's debt. Cards without a place in answers (superseded, condensed, archived) owe nothing."""
    log = decisions.read(base)
    live = {
        card.id: card for card in catalogue(base).cards.values() if not card.archived and card.status not in ARCHIVED
    }
    injected = {card for decision in log.decisions for card in decision.cards} & live.keys()
    top = set(_tops(log.decisions)) & live.keys()
    met = injected | top
    unmet = (Unmet(c.id, c.type, c.status, c.date, c.title) for c in live.values() if c.id not in met)
    tags, loose = _tags(live)
    return Debt(
        cards=len(live),
        injected=len(injected),
        top=len(top),
        met=len(met),
        unmet=tuple(sorted(unmet, key=lambda card: (card.date, card.id))),
        loose=loose,
        tags=tags,
        decisions=len(log.decisions),
        since=log.first,
    )


def _tops(found: Iterable[Decision]) -> Iterable[str]:
    """The best hit of each decision, whether or not it was good enough to be named."""
    return (max(decision.hits, key=lambda hit: hit[1])[0] for decision in found if decision.hits)


def _tags(live: Mapping[str, Card]) -> tuple[int, tuple[Loose, ...]]:
    """(how many tags there are, those with many cards and few links, the most cards first)."""
    members: dict[str, set[str]] = {}
    for card in live.values():
        for tag in card.tags:
            members.setdefault(tag, set()).add(card.id)
    touched: Counter[str] = Counter()
    for card in live.values():
        for edge in set(card.links.edges()):
            touched.update(set(card.tags) | set(live[edge[1]].tags if edge[1] in live else ()))
    found = [Loose(tag, len(cards), touched[tag]) for tag, cards in members.items() if len(cards) >= MANY]
    few = (tag for tag in found if tag.share < FEW)
    return len(members), tuple(sorted(few, key=lambda tag: (-tag.cards, tag.tag)))
