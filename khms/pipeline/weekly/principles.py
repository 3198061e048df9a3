"""Observations of one shape become a principle: an agent says which, or that there is none. Without one, the report
lists the shapes with the command by which a person writes it."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from khms.errors import Unavailable
from khms.model.candidate import Quote, Relation
from khms.model.card import Card, as_list, as_text
from khms.pipeline import sources
from khms.pipeline.asking import Undecided
from khms.pipeline.bounds import Stopped
from khms.pipeline.report import cell
from khms.pipeline.rules import cut
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.offer import Found, Offer, Told
from khms.pipeline.weekly.shapes import LEAST, Shape, shapes
from khms.store import schema

SCHEMA = "principle"
PROMPT = "weekly-principle"
TAGS = 8


def find(ground: Ground) -> Found:
    try:
        found = shapes(ground)
    except Unavailable as error:
        return Found(missing=(f"shapes were not looked for: {error.message}",))
    offers: list[Offer] = []
    told: list[Told] = []
    missing: list[str] = []
    for shape in found:
        if shape.key in ground.past.offers or _none(shape) in ground.past.told:
            continue
        if ground.ask is None or missing or len(offers) >= ground.limit:
            told.append(_told(ground, shape, "needs a model or a person"))
            continue
        try:
            answer = ground.ask(shape.key, packet(ground, shape), partial(faults, shape, ground))
        except Undecided as error:
            told.append(_told(ground, shape, f"the proposer gave no answer that counts ({error})"))
        except Stopped as error:
            missing.append(f"not every shape was asked about: {error}")
            told.append(_told(ground, shape, "was not asked about"))
        else:
            if answer["verdict"] == "none":
                said = _told(ground, shape, f"the proposer finds no principle in it: {answer['reason']}")
                told.append(replace(said, key=_none(shape)))
            else:
                offers.append(_offer(ground, shape, answer))
    return Found(tuple(offers), tuple(told), tuple(missing))


def _none(shape: Shape) -> str:
    """The key of a shape in which an agent found nothing: it is not paid for again."""
    return f"none in {shape.key}"


def _told(ground: Ground, shape: Shape, what: str) -> Told:
    cards = [ground.cards[i] for i in shape.cards]
    tags = _shared(cards)
    lines = [f"### {' '.join(shape.cards)}", ""]
    count = f"{len(cards)} observations, {shape.independent} of them independent, likeness {shape.like:.2f}"
    lines += [f"{count}: {cell(what, 300)}", ""]
    lines += [f"- {card.id} ({card.date[:10]}): {cell(card.title)}" for card in cards]
    lines += ["", "```sh", command(shape.cards, tags), "```", ""]
    return Told(shape.key, tuple(lines))


def command(ids: Iterable[str], tags: Iterable[str]) -> str:
    """What a person types to write the principle."""
    parts = ["khms", "card", "new", "principle", "--open"]
    for tag in tags:
        parts += ["--tag", tag]
    for card_id in ids:
        parts += ["--derived-from", card_id]
    return shlex.join(parts)


def _shared(cards: Iterable[Card]) -> list[str]:
    """The tags that more than one of the cards has."""
    counts: dict[str, int] = {}
    for card in cards:
        for tag in card.tags:
            counts[tag] = counts.get(tag, 0) + 1
    return sorted(tag for tag, count in counts.items() if count > 1)[:TAGS]


# an agent's part


def packet(ground: Ground, shape: Shape) -> str:
    """What an agent is shown of a shape: the observations whole, the cards near them as one line each."""
    parts = ["# The observations", ""]
    for card in (ground.cards[i] for i in shape.cards):
        head = f"## {card.id} ({card.type}, {card.evidence or 'no evidence said'}, {card.date[:10]}, {card.scope})"
        parts += [head, "", f"| {sources.clean(card.title)}", *_barred(card.body), ""]
    parts += ["# Other cards near them", ""]
    near = [ground.cards[i] for i in _near(ground, shape)]
    parts += [f"{c.id} ({c.type}, {c.status})\n| {sources.clean(c.title)}" for c in near] or ["There are none."]
    tags = sorted({tag for i in shape.cards for tag in ground.cards[i].tags})
    parts += ["", "# Tags that are in use", "", ", ".join(tags) or "none", ""]
    return "\n".join(parts)


def _near(ground: Ground, shape: Shape) -> tuple[str, ...]:
    text = "\n".join(f"{ground.cards[i].title}\n{ground.cards[i].body}" for i in shape.cards)
    return ground.nearest(text, *shape.cards)


def _barred(body: str) -> Iterator[str]:
    yield from (f"| {line}" for line in sources.clean(body).strip("\n").split("\n"))


def faults(shape: Shape, ground: Ground, value: Mapping[str, Any]) -> list[str]:
    """What keeps an answer from counting."""
    wrong = [f"{where}: {words}" if where else words for where, words in schema.problems(SCHEMA, value)]
    if wrong or value["verdict"] == "none":
        return wrong
    quoted = {quote["source"] for quote in value["quotes"]}
    wrong += [f"{i} is none of the observations, so it cannot be quoted" for i in sorted(quoted - set(shape.cards))]
    if len(quoted & set(shape.cards)) < LEAST:
        wrong.append(f"at least {LEAST} of the observations must be quoted")
    relation = value["relation"]
    named, shown = [relation.get(key) for key in ("target", "nearest") if relation.get(key)], _near(ground, shape)
    wrong += [f"there is no card {i} among those shown" for i in named if i not in shown]
    if relation["kind"] != "new" and not (relation.get("target") and (relation.get("because") or "").strip()):
        wrong.append(f"{relation['kind']} names its target, with a because")
    return wrong


def _offer(ground: Ground, shape: Shape, answer: Mapping[str, Any]) -> Offer:
    cards = [ground.cards[i] for i in shape.cards]
    relation = Relation(**{k: as_text(answer["relation"].get(k)) for k in ("kind", "target", "nearest", "because")})
    labels = ("HOLDS", "LIMITS", "IMPLICATIONS")
    body = "".join(f"{label}: {sources.clean(answer[label.lower()]).strip()}\n" for label in labels)
    in_use = {tag for card in ground.cards.values() for tag in card.tags}
    tags = [tag for tag in as_list(answer.get("tags")) if tag in in_use] or _shared(cards)
    scopes = {card.scope for card in cards}
    title = cut(" ".join(sources.clean(answer["title"]).split()), 300)
    links: dict[str, Any] = {"derived_from": list(shape.cards), "supports": [], "contradicts": []}
    meta = {
        "type": "principle",
        "level": "derived",
        "status": "active",
        "title": title,
        "tags": tags[:TAGS],
        "scope": scopes.pop() if len(scopes) == 1 else "universal",
        "date": max(card.date[:10] for card in cards),
        "links": {**links, "supersedes": None, "refuted_by": []},
        "relation": relation.as_meta(),
    }
    quotes = tuple(Quote(quote["source"], quote["text"]) for quote in answer["quotes"])
    return Offer(shape.key, title, body, meta=meta, quotes=quotes, near=_near(ground, shape))
