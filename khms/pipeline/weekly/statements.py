"""Sentences of cards that say something of the same subject, and whether they can both be true.

Only what is sure is told: two sentences speak of one subject when all their words are the same but for the value. A
value is a number with its unit or after a word that introduces one (`is 5`, `port 8080`; the 7 in `frame 7` is a name),
a name after `is`, `uses` and the like where the subject asks for one (`the default branch is main`), or a yes and a no.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from khms.index.text import STOP_WORDS, fold, terms
from khms.model.card import Card
from khms.model.claim import LABELS, claim
from khms.pipeline.duplicates import NEGATIONS
from khms.pipeline.specifics import numbers

NUMBER, NAME, YES = "number", "name", "yes or no"
LEAST = 2  # words that a subject has at least
COMMON = 50  # cards that speak of one subject alike from which it is a form and not a claim
_LABEL = re.compile(r"(?<!\S)(?:" + "|".join(LABELS) + r"):(?=\s|$)")
_LEAD = re.compile(r"^[ \t]*(?:[-*+>][ \t]+|#{1,6}[ \t]+|\d{1,3}[.)][ \t]+)+")
_END = re.compile(r"(?<=[.!?;])\s+")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
_PASSED = ("SUPERSEDES ", "NO-CORRECTION-TARGET:")
_BEFORE_WORDS = """
is are was were be to at of by every after least most than about only exactly takes took holds allows needs has
have under over up within for with on = : equals limit port version size timeout count rate level number width
height threshold capacity depth age length interval maximum minimum max min
"""
_BEFORE = frozenset(_BEFORE_WORDS.split())
_NAMED_WORDS = """
branch host database region format language name path url address port owner provider library framework license
encoding timezone zone model registry bucket queue version protocol engine default command editor package tool
user folder file directory schema endpoint driver compiler shell font currency unit key
"""
_NAMED = frozenset(_NAMED_WORDS.split())
_SAID = re.compile(
    r"^(?P<subject>.{3,160}?)\s(?P<verb>is|are|was|runs on|lives in|defaults to|points to|uses|listens on|=)\s"
    r"(?:now |currently )?(?:the |an? )?(?P<value>\S+(?:\s\S+){0,2}?)[.;!]?$",
    re.IGNORECASE,
)
_PASSING_WORDS = """
now currently today still since again actually new old earlier previously already just
"""
_UNTELLING = STOP_WORDS | NEGATIONS | frozenset(_PASSING_WORDS.split())
_IS = re.compile(r"\b(?:is|are|was|were)\b|[=:]", re.IGNORECASE)
_SHAPED = re.compile(r"[\d_./\\`:@-]|[a-z][A-Z]|^[A-Z]")


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` stands so in the card. `values` are compared, `shown` is the value as it is written."""

    card: str
    text: str
    kind: str
    values: tuple[str, ...]
    shown: str


@dataclass(frozen=True, slots=True)
class Clash:
    """Two statements of one subject that cannot both hold, of two cards, by id."""

    one: Statement
    other: Statement

    @property
    def kind(self) -> str:
        return self.one.kind

    @property
    def cards(self) -> tuple[str, str]:
        return self.one.card, self.other.card


def clashes(cards: Iterable[Card]) -> list[Clash]:
    """Every pair of cards of one scope that say what cannot both hold, each pair once, by the ids."""
    groups: defaultdict[tuple[object, ...], list[Statement]] = defaultdict(list)
    for card in cards:
        for key, statement in statements(card):
            groups[fold(card.scope), *key].append(statement)
    found: dict[tuple[str, str], Clash] = {}
    for key in sorted(groups, key=repr):
        held = sorted(groups[key], key=lambda s: (s.card, s.text))
        if len({statement.card for statement in held}) > COMMON:
            continue
        both = _twice(held)
        for at, one in enumerate(held):
            for other in held[at + 1 :]:
                apart = one.card != other.card and one.values != other.values
                if apart and one.card not in both and other.card not in both:
                    found.setdefault((one.card, other.card), Clash(one, other))
    return [found[pair] for pair in sorted(found)]


def _twice(held: list[Statement]) -> set[str]:
    """Cards that give the subject two values themselves: they tell of a change, and which one they mean is not told."""
    values: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for statement in held:
        values[statement.card].add(statement.values)
    return {card for card, said in values.items() if len(said) > 1}


def statements(card: Card) -> Iterator[tuple[tuple[object, ...], Statement]]:
    """(subject, statement) of each sentence of the card that gives a subject a value."""
    for text in dict.fromkeys(sentences(card)):
        for kind, subject, values, shown in _read(text):
            yield (kind, *subject), Statement(card.id, text, kind, values, shown)


def sentences(card: Card) -> Iterator[str]:
    """The title's and the body's sentences as they stand there, without labels and code blocks."""
    yield card.title.strip()
    body = "\n".join(line for line in card.body.split("\n") if not line.startswith(_PASSED))
    fenced = False
    for line in claim(body).split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            for part in _LABEL.split(_LEAD.sub("", line)):
                yield from (text for raw in _END.split(part) if (text := raw.strip()))


def _read(text: str) -> Iterator[tuple[str, tuple[object, ...], tuple[str, ...], str]]:
    rest, found = _numbered(text)
    negated = len(NEGATIONS.intersection(terms(text).words)) % 2 == 1
    words = _words(rest)
    if found and len(words) >= LEAST:
        values, units = tuple(value for value, _, _ in found), tuple(unit for _, unit, _ in found)
        about = frozenset(words) if _IS.search(rest) else words  # `A blocks B` is not `B blocks A`
        yield NUMBER, (about, units, negated), values, ", ".join(shown for _, _, shown in found)
    said = _SAID.match(text)
    if said and not found:
        subject = frozenset(_words(said["subject"]))
        value = fold(said["value"].strip("`'\".,"))
        asked = not subject.isdisjoint(_NAMED)
        if len(subject) >= LEAST and value and asked and _shaped(said["value"]) and value not in STOP_WORDS:
            yield NAME, (subject, fold(said["verb"]), negated), (value,), said["value"].rstrip(".;!")
    if len(words) > LEAST:
        values = tuple(f"{value} {unit}" for value, unit, _ in found)
        yield YES, (words, values), ("no" if negated else "yes",), "no" if negated else "yes"


def _shaped(value: str) -> bool:
    """Whether it can be a name: one word, or words that are written as names are."""
    return " " not in value or all(_SHAPED.search(word) for word in value.split())


def _numbered(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """The text without its values, and the values: (value, unit, as written). Other numbers stay where they are."""
    found: list[tuple[str, str, str]] = []
    rest, at = text, 0
    for number in sorted(numbers(text), key=lambda n: text.find(n.shown)):
        place = rest.find(number.shown, at)
        if place < 0:
            continue
        before = re.findall(r"[\w=:]+", rest[:place])
        name = not number.value.lstrip("-")[:1].isdigit()  # arm64, IPv6
        if not name and (number.unit or (before and (fold(before[-1]) in _BEFORE or before[-1][-1] in "=:"))):
            found.append((number.value, number.unit, number.shown.strip()))
            rest = f"{rest[:place]} {rest[place + len(number.shown) :]}"
        else:
            at = place + len(number.shown)
    return rest, found


def _words(text: str) -> tuple[str, ...]:
    """What a sentence is about: its words without stop words, negations and what only places it in time, in order."""
    said = terms(text)
    kept = [w for w in (*said.words, *said.identifiers) if w not in _UNTELLING]
    return tuple(_root(word) for word in kept)


def _root(word: str) -> str:
    """One form for a noun or verb with and without its s; only compared with itself."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("xes", "ches", "shes", "sses", "zes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
