"""Cards that stand against each other, side by side: what each says, what carries it, and the cheapest experiment that
would tell them apart. Where no link says it yet, the weaker one is offered to be challenged by the other.
"""

import re
from collections.abc import Iterator

from khms.model.candidate import Change
from khms.model.card import Card
from khms.model.claim import claim
from khms.pipeline.report import cell
from khms.pipeline.weekly.clashing import quotes_of, sides, sort
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.offer import Found, Offer, Told
from khms.pipeline.weekly.statements import Clash

_VERIFIED = re.compile(r"(?<!\S)VERIFIED:[ \t]*(\S[^\n]*)")
_WHEN = re.compile(r"(?<!\S)WHEN:[ \t]*(\S[^\n]*?)(?=\s+THEN:|$)", re.MULTILINE)
_COMMAND = re.compile(r"`([^`\n]*\s[^`\n]*)`")
_FILE = re.compile(
    r"(?<![\w/.:-])/?(?:[\w.+@-]+/)+[\w+@-]+\.\w{1,8}\b|(?<![\w/])[\w+-]+\.(?:toml|ya?ml|json|ini|conf|cfg|env)\b"
)


def find(ground: Ground) -> Found:
    told: list[Told] = []
    offers: list[Offer] = []
    for one, other in _linked(ground):
        told.append(Told(f"against {one.id} {other.id}", tuple(_side_by_side(ground, one, other, None))))
    for clash in sort(ground).open:
        one, other = (ground.cards[i] for i in clash.cards)
        told.append(Told(f"against {one.id} {other.id}", tuple(_side_by_side(ground, one, other, clash))))
        offers += _challenge(ground, one, other, clash)
    return Found(tuple(offers), tuple(told))


def _linked(ground: Ground) -> Iterator[tuple[Card, Card]]:
    """Pairs in force of which a link says that they contradict each other."""
    standing = {card.id: card for card in ground.standing}
    pairs = {tuple(sorted((c.id, i))) for c in standing.values() for i in c.links.contradicts if i in standing}
    for one, other in sorted(pairs):
        if one != other:
            yield standing[one], standing[other]


def _challenge(ground: Ground, one: Card, other: Card, clash: Clash) -> Iterator[Offer]:
    """The less well observed one, else the older, is challenged; one that is challenged already needs no word."""
    weaker, by = sorted((one, other), key=lambda card: (ground.weight(card), card.date[:10], card.id))
    if weaker.status != "active":
        return
    theirs, own = sides(clash, weaker)
    change = Change(weaker.id, "challenged", by.id, weaker.status, f"{by.id} says otherwise: {own}, not {theirs}")
    body = "\n".join([
        f"{weaker.id} and {by.id} cannot both hold, and no link says so.",
        "",
        *(f"- {card.id} ({_standing(ground, card)}): {_says(card, clash)}" for card in (weaker, by)),
        "",
        f"What would tell them apart: {experiment(one, other, clash)}",
    ])  # fmt: skip
    title = f"{weaker.id} is challenged by {by.id}: they cannot both hold"
    yield Offer(str(change), title, body + "\n", change=change, quotes=quotes_of(clash), near=(weaker.id, by.id))


def _side_by_side(ground: Ground, one: Card, other: Card, clash: Clash | None) -> Iterator[str]:
    yield from (f"### {one.id} and {other.id}", "", f"| | {one.id} | {other.id} |", "|---|---|---|")
    rows = (
        ("title", cell(one.title), cell(other.title)),
        ("says", cell(_says(one, clash), 240), cell(_says(other, clash), 240)),
        ("belief", *(_carried(ground, card) for card in (one, other))),
        ("evidence", *(_standing(ground, card) for card in (one, other))),
        ("source", cell(one.source or "none"), cell(other.source or "none")),
        ("rests on it", *(", ".join(ground.resting.get(card.id, ())[:8]) or "nothing" for card in (one, other))),
    )
    yield from (f"| {name} | {left} | {right} |" for name, left, right in rows)
    yield from ("", f"What would tell them apart: {experiment(one, other, clash)}", "")


def _says(card: Card, clash: Clash | None) -> str:
    if clash is not None:
        return next(said.text for said in (clash.one, clash.other) if said.card == card.id)
    return " ".join(claim(card.body).split())


def _carried(ground: Ground, card: Card) -> str:
    held = ground.beliefs.get(card.id)
    return str(held) if held else f"an observation of weight {ground.weight(card):g}"


def _standing(ground: Ground, card: Card) -> str:
    return f"{card.evidence or card.level or 'nothing said'}, {card.date[:10] or 'no date'}, {card.status}"


def experiment(one: Card, other: Card, clash: Clash | None) -> str:
    """The cheapest way to tell which holds: to read a file costs less than to run a command, and that less than to do
    again what a card says was done; where cards name nothing of it, one new observation at one place."""
    ask = f" It is {clash.one.shown} ({one.id}) or {clash.other.shown} ({other.id})." if clash else ""
    files = list(dict.fromkeys([*_FILE.findall(one.body), *_FILE.findall(other.body)]))
    if files and clash is not None:
        return f"read {cell(files[0])} as it is now.{ask}"
    for card in (other, one):
        if command := _COMMAND.search(card.body):
            return f"run {cell(command[1])} (from {card.id}) once more and look at what it gives.{ask}"
    for card in (other, one):
        if verified := _VERIFIED.search(card.body):
            return f"do again what {card.id} was verified by: {cell(verified[1], 200)}.{ask}"
    for card in (other, one):
        if when := _WHEN.search(card.body):
            return (
                f"bring about once what {card.id} names ({cell(when[1], 200)}) and see which of the two follows.{ask}"
            )
    if clash is not None:
        return f"look once, now, at what both speak of: {cell(clash.other.text, 200)}.{ask}"
    return f"observe once, under the conditions that both name, which of the two holds: {one.id} or {other.id}."
