"""Golden queries: what a person asks, and the documents that answer it. One JSON object a line; drafts from cards.

    {"query": "why do frames get lost", "gold": ["K-00004"], "id": "G1", "k": 3, "gate": true, "kind": "paraphrase"}

`gold` names documents of any kind by their ids; an empty one says that nothing on record answers: the right answer is
none. `gate` makes the line one that must hold, within its first `k` hits. `kind` groups lines in the report. A `draft`
was made by a machine and not looked at yet.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from json import dumps
from pathlib import Path
from typing import Any

from khms.errors import KhmsError, Refused
from khms.model.card import Card, first_label
from khms.model.digest import sha256_hex
from khms.model.document import GOTCHA
from khms.store import cards, files
from khms.store.catalogue import catalogue
from khms.store.layout import Base

KEYS = ("query", "gold", "id", "k", "gate", "kind", "draft")
MOST_SHOWN = 20  # bad lines that are named at once
LONGEST = 4096  # characters of a query
QUERY_CHARS = 160  # of a drafted one
MOST_GOLD = 5  # cards that share tags and make one drafted query
# The labels whose text says best what somebody would ask about, first: the trouble before the cure.
_ASKED = ("SYMPTOM", "WHEN", "GOAL", "WHAT", "DECIDED", "RULE", "HOLDS", "THEN", "FIX")


@dataclass(frozen=True, slots=True)
class Golden:
    """One line. `k` is None where it says nothing."""

    id: str
    line: int
    query: str
    gold: tuple[str, ...]
    k: int | None = None
    gate: bool = False
    kind: str = ""
    draft: bool = False


def load(path: Path) -> tuple[Golden, ...]:
    """The lines of a file. Raises Refused, naming file and line, for each that is not as it must be, and for a file
    without any."""
    try:
        text = files.read(path).decode("utf-8-sig")
    except OSError as error:
        raise Refused(
            f"the golden queries cannot be read: {error.strerror or error}",
            where=str(path),
            hint="khms eval make golden.jsonl drafts some from the cards",
        ) from error
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise Refused("this line is not UTF-8", where=f"{path}:{number}", hint="save the file as UTF-8") from error
    found, bad = [], []
    known: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            golden = _golden(line, number)
            if golden.id in known:
                raise ValueError(f"its id {golden.id!r} is that of line {known[golden.id]} too")
        except ValueError as error:
            bad.append((number, str(error)))
            continue
        known[golden.id] = number
        found.append(golden)
    if bad:
        raise _refusal(path, bad)
    if not found:
        raise Refused("there is no golden query", where=str(path), hint="khms eval make drafts some")
    return tuple(found)


def _refusal(path: Path, bad: list[tuple[int, str]]) -> Refused:
    shown = [f"{path}:{number}: {what}" for number, what in bad[:MOST_SHOWN]]
    if len(bad) > MOST_SHOWN:
        shown.append(f"and {len(bad) - MOST_SHOWN} more")
    lines = "1 line is" if len(bad) == 1 else f"{len(bad)} lines are"
    hint = 'a line is {"query": "…", "gold": ["K-00001"]}; further keys: ' + ", ".join(KEYS[2:])
    return Refused(f"{lines} not as a golden query must be", where="\n".join(shown), hint=hint)


def _golden(line: str, number: int) -> Golden:
    """Raises ValueError with what is wrong."""
    try:
        value = files.parse_json(line)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    unknown = [key for key in value if key not in KEYS]
    if unknown:
        raise ValueError(f"it has a key that means nothing: {unknown[0]!r}")
    query, gold = value.get("query"), value.get("gold")
    if not isinstance(query, str) or not query.strip():
        raise ValueError("its query is no text, or empty")
    if len(query) > LONGEST:
        raise ValueError(f"its query has {len(query)} characters, more than {LONGEST}")
    if not isinstance(gold, list) or not all(isinstance(name, str) and name for name in gold):
        raise ValueError("its gold is no list of ids (an empty list means that nothing answers)")
    if len(set(gold)) < len(gold):
        raise ValueError("its gold names an id twice")
    k = value.get("k")
    if k is not None and (type(k) is not int or not 1 <= k <= 1000):
        raise ValueError(f"its k is {k!r}, not a number from 1 to 1000")
    for key in ("gate", "draft"):
        if not isinstance(value.get(key, False), bool):
            raise ValueError(f"its {key} is {value[key]!r}, neither true nor false")
    for key in ("id", "kind"):
        if not isinstance(value.get(key, ""), str):
            raise ValueError(f"its {key} is no text")
    return Golden(
        id=value.get("id") or f"line {number}",
        line=number,
        query=query,
        gold=tuple(gold),
        k=k,
        gate=value.get("gate", False),
        kind=value.get("kind", ""),
        draft=value.get("draft", False),
    )


def draft(base: Base, count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """At most `count` lines about the base's active cards, the same for the same cards and `seed`. In turn from a
    title, from the line of the body that says what the card is about, from tags that few cards share. They repeat the
    cards' own words: to say the same in words that a colleague would use is the person's part. Raises Refused where
    there is no active card."""
    live = [card for card in catalogue(base).cards.values() if card.status == "active" and not card.archived]
    if not live:
        raise Refused("there is no active card to ask about", where=str(base.root), hint="khms approve lets one in")
    drawn = sorted(live, key=lambda card: sha256_hex(f"{seed}\0{card.id}".encode()))
    written: set[str] = set()
    for card, make in zip(_whole(base, drawn), cycle((_by_title, _by_body, _by_tags)), strict=False):
        query, gold, kind = make(card, live) or _by_title(card, live) or ("", (), "")
        if not query or query.casefold() in written:
            continue
        written.add(query.casefold())
        yield {"id": f"Q{len(written):03}", "query": query, "gold": list(gold), "kind": kind, "draft": True}
        if len(written) >= count:
            return


def as_line(value: dict[str, Any]) -> str:
    """The line of a file; what a terminal would obey is written as its code."""
    text = dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else dumps(char)[1:-1] for char in text) + "\n"


Drafted = tuple[str, tuple[str, ...], str]


def _whole(base: Base, drawn: Iterable[Card]) -> Iterator[Card]:
    """The cards with their bodies; one that cannot be read any more is passed over."""
    for card in drawn:
        try:
            yield cards.load(base, card.path)
        except KhmsError:
            continue


def _by_title(card: Card, live: list[Card]) -> Drafted | None:
    query = _short(card.title)
    return (query, (card.id,), "title") if query else None


def _by_body(card: Card, live: list[Card]) -> Drafted | None:
    labelled = dict(_labelled(card.body))
    said = next((labelled[label] for label in _ASKED if labelled.get(label)), "") or first_label(card.body)
    query = _short(said)
    return (query, (card.id,), "body") if query and query.casefold() != _short(card.title).casefold() else None


def _by_tags(card: Card, live: list[Card]) -> Drafted | None:
    """A question by all of the card's tags; it is answered by every card that has them."""
    tags = [tag for tag in card.tags if tag != GOTCHA]
    sharing = sorted(other.id for other in live if set(tags) <= set(other.tags))
    return (_short(" ".join(tags)), tuple(sharing), "tags") if tags and len(sharing) <= MOST_GOLD else None


def _labelled(body: str) -> Iterator[tuple[str, str]]:
    """The body's `LABEL: text` lines, the last first, so that of equals the first counts in a dict."""
    for line in reversed(body.splitlines()):
        label, colon, text = line.strip().partition(":")
        if colon and label.isupper():
            yield label, text.strip()


def _short(text: str) -> str:
    """One line of at most QUERY_CHARS characters, cut at a blank."""
    line = " ".join(text.split())
    return line if len(line) <= QUERY_CHARS else line[:QUERY_CHARS].rpartition(" ")[0] or line[:QUERY_CHARS]
