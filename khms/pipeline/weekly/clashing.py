"""What comes of cards that clash: the later one replaces the earlier, or the two stand against each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from khms.model.candidate import Quote
from khms.model.card import Card
from khms.pipeline import specifics
from khms.pipeline.absorbing import text
from khms.pipeline.quotes import SHORTEST
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.statements import YES, Clash, clashes


@dataclass(frozen=True, slots=True)
class Sorted:
    """`replaced` maps the card that replaces others to the clashes with them; `open` are the others. No clash is here
    about which a link speaks already."""

    replaced: Mapping[str, tuple[Clash, ...]]
    open: tuple[Clash, ...]


@lru_cache(maxsize=1)  # two steps ask it
def sort(ground: Ground) -> Sorted:
    """A clash is a replacement where the later card was at least as well observed, gives another value of the same,
    says all else that the earlier one says, and is in force itself. In a row of three values the newest one counts."""
    held = [c for c in clashes(ground.standing) if not ground.linked(*(ground.cards[i] for i in c.cards))]
    newest: dict[str, tuple[Card, Clash]] = {}
    left = []
    for clash in held:
        pair = _later(ground, clash)
        if pair is None:
            left.append(clash)
            continue
        old, new = pair
        before = newest.get(old.id)
        if before is None or (new.date[:10], new.id) > (before[0].date[:10], before[0].id):
            newest[old.id] = (new, clash)
    left = [clash for clash in left if newest.keys().isdisjoint(clash.cards)]  # else it goes with the replaced one
    found: dict[str, list[Clash]] = {}
    for _, (new, clash) in sorted(newest.items()):
        if new.id in newest:  # replaced itself by a third that says nothing of this one
            left.append(clash)
        else:
            found.setdefault(new.id, []).append(clash)
    open_ones = {clash.cards: clash for clash in left}
    return Sorted({i: tuple(rows) for i, rows in found.items()}, tuple(open_ones[i] for i in sorted(open_ones)))


def _later(ground: Ground, clash: Clash) -> tuple[Card, Card] | None:
    """(the card that is replaced, the one that replaces it)."""
    one, other = (ground.cards[i] for i in clash.cards)
    old, new = sorted((one, other), key=lambda card: card.date[:10])
    if clash.kind == YES or old.date[:10] == new.date[:10] or not old.date or new.status != "active":
        return None
    if ground.weight(new) < ground.weight(old):
        return None
    said = clash.one if clash.one.card == old.id else clash.other
    lost = specifics.missing([text(old)], [text(new)], old.date)
    return (old, new) if all(item in said.text for item in lost) else None


def sides(clash: Clash, card: Card) -> tuple[str, str]:
    """(what the card says, what the other one says), as they are written."""
    own, theirs = (clash.one, clash.other) if clash.one.card == card.id else (clash.other, clash.one)
    return own.shown, theirs.shown


def quotes_of(clash: Clash) -> tuple[Quote, ...]:
    """The two sentences, as far as they are long enough to be looked up."""
    return tuple(Quote(said.card, said.text) for said in (clash.one, clash.other) if len(said.text) >= SHORTEST)
