"""What a run knows beside the MARK in hand: the cards, the tags, the types, and its own earlier candidates.

Built once a run; every question costs the same however many cards there are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from khms.index.text import STOP_WORDS, terms
from khms.model.card import ARCHIVED, IN_FORCE, Card, CardType
from khms.model.claim import claim
from khms.model.document import GOTCHA
from khms.model.tags import Registry
from khms.pipeline.duplicates import Bodies, Same
from khms.pipeline.nearest import Document, Near, Nearby


class Vocabulary:
    """The tags that a candidate may carry: the registered ones, else those in use on cards."""

    def __init__(self, registry: Registry, cards: Iterable[Card]) -> None:
        self.registry = registry
        used: dict[str, int] = {}
        for card in cards:
            for tag in card.tags:
                name = registry.canonical(tag)
                used[name] = used.get(name, 0) + 1
        names = list(registry.tags) or list(used)
        self.names = sorted(names, key=lambda name: (-used.get(name, 0), name))
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        known = set(self.names)
        spoken = [(name, name) for name in self.names]
        spoken += [(alias, tag) for alias, tag in registry.aliases.items() if tag in known]
        for phrase, tag in spoken:
            words = terms(phrase).words
            if words and not STOP_WORDS.issuperset(words):
                self._by_first.setdefault(words[0], []).append((words, tag))

    def occurring(self, text: str) -> tuple[str, ...]:
        """The tags whose words, or an alias's words, stand in `text` one after the other; in the text's order."""
        words = terms(text).words
        found: dict[str, None] = {}
        for at, word in enumerate(words):
            for phrase, tag in self._by_first.get(word, ()):
                if words[at : at + len(phrase)] == phrase:
                    found.setdefault(tag)
        return tuple(found)

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """`gotcha` for a MARK that says it is one, unless a registry knows no such tag: the pointers at a session's
        start and the warnings before a risky action go by it."""
        name = self.canonical(GOTCHA)
        known = not self.registry.tags or name in self.registry.tags
        return (name,) if kind.casefold() == GOTCHA and known else ()

    def canonical(self, tag: str) -> str:
        """A tag as it is written here: one lower-case word, hyphens for blanks, aliases resolved."""
        plain = "-".join(tag.strip().lstrip("#").casefold().split())
        return self.registry.canonical(tag.strip() if tag.strip() in self.registry.tags else plain)


@dataclass
class Known:
    """`cards` are all that can be read. What `nearest` and `same` answer from grows with every candidate that `add` is
    told of."""

    cards: Mapping[str, Card]
    vocabulary: Vocabulary
    types: Mapping[str, CardType]
    least: float

    def __post_init__(self) -> None:
        held = [card for card in self.cards.values() if not card.archived and card.status not in ARCHIVED]
        self._cards = Nearby(document(card) for card in held)
        self._bodies = Bodies((card.id, claim(card.body)) for card in self.cards.values())
        self._candidates = Nearby()
        self._candidate_bodies = Bodies()
        self.labels: set[str] = set()

    @property
    def bodies(self) -> Bodies:
        """The claims of all cards, the archive's included."""
        return self._bodies

    def add(self, label: str, title: str, body: str, type: str = "") -> None:
        """A candidate of this run: later MARKs may be near it or say the same."""
        self.labels.add(label)
        self._candidates.add(Document(label, title, body, type))
        self._candidate_bodies.add(label, body)

    def nearest_cards(self, text: str, limit: int) -> list[Near]:
        return self._cards.nearest(text, limit)

    def nearest_candidates(self, text: str, limit: int) -> list[Near]:
        return self._candidates.nearest(text, limit)

    def same_cards(self, text: str) -> list[Same]:
        return self._bodies.same(text, self.least)

    def same_candidates(self, text: str) -> list[Same]:
        return self._candidate_bodies.same(text, self.least)

    def in_force(self, card_id: str) -> bool:
        card = self.cards.get(card_id)
        return card is not None and not card.archived and card.status in IN_FORCE


def document(card: Card) -> Document:
    return Document(card.id, card.title, card.body.strip(), card.type, card.status, card.tags)
