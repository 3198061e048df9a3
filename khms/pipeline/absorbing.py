"""Whether one card carries all that another says, so that the other may leave for the archive.

Every number, name, path and error message of it stands in the absorbing card, or in a card in force that the absorbing
one derives from; and what it is linked with, the absorbing card is linked with too. Words without such marks nobody can
compare by rule: the reviewer reads both.
"""

from collections.abc import Collection, Iterator, Mapping

from khms.model.card import ARCHIVED, IN_FORCE, Card
from khms.model.claim import claim
from khms.pipeline import specifics


def lacking(old: Card, by: Card, cards: Mapping[str, Card], leaving: Collection[str] = ()) -> list[str]:
    """What of `old` would be lost if `by` stood for it, in words; empty where nothing would. `cards` are all cards;
    `by` and what it derives from have their bodies. Cards that are `leaving` too carry nothing."""
    beside = [cards[i] for i in by.links.derived_from if i in cards and i != old.id and i not in leaving]
    held = [text(card) for card in (by, *(card for card in beside if card.status in IN_FORCE))]
    return [*specifics.missing([text(old)], held, old.date), *_links(old, by, cards)]


def text(card: Card) -> str:
    return f"{card.title}\n{claim(card.body)}"


def _links(old: Card, by: Card, cards: Mapping[str, Card]) -> Iterator[str]:
    own = {by.id, *(target for _, target in by.links.edges())}
    for name, target in old.links.edges():
        other = cards.get(target)
        resting = other is None or (other.status not in IN_FORCE and name != "supersedes")
        if target not in own and not resting:
            yield f"its links.{name} {target}"
    for other in cards.values():
        if other.id in (old.id, by.id) or other.status in ARCHIVED:
            continue
        for name, target in other.links.edges():
            if target != old.id or _known(other, by, name):
                continue
            yield f"the links.{name} of {other.id}"


def _known(other: Card, by: Card, name: str) -> bool:
    """Whether the link of the other card to the absorbed one has its like with the absorbing one."""
    if name == "contradicts":
        return by.id in other.links.contradicts or other.id in by.links.contradicts
    return any(target == by.id for _, target in other.links.edges()) or any(
        target == other.id for _, target in by.links.edges()
    )
