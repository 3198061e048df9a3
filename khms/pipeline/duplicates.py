"""When two texts say the same: equal once labels and Markdown marks are gone, or made of nearly the same words.

Words alone are not enough: two sentences that differ in one number or one `not` share most of their words and say the
opposite. So texts that differ in a number, a name or a negation are never the same.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil

from khms.index.text import Terms, terms
from khms.model.candidate import Candidate, Relation
from khms.model.card import ARCHIVED, TYPES, Card
from khms.model.outcome import FAIL, PASS, Outcome

LABELS = tuple(dict.fromkeys(label for kind in TYPES.values() for label in kind.labels))
_NO = """
no not never none nor neither without cannot t nicht kein keine keinen nie ohne pas jamais sans nunca sin non não
не нет без 不 没 沒 無 无 非 未 勿
"""
NEGATIONS = frozenset(_NO.split())  # `t` is what is left of n't; the last ones are characters of scripts without blanks
_LABEL = re.compile(r"(?<!\S)(?:" + "|".join(LABELS) + r"):(?=\s|$)")
_LEAD = re.compile(r"^[ \t]*(?:[-*+>][ \t]+|#{1,6}[ \t]+)+", re.MULTILINE)
_MARKS = re.compile(r"\*+|`+|~~|__|\[\[|\]\]")
_TAIL = re.compile(r"^\*\*(?:QUOTES|LINKS):\*\*.*", re.MULTILINE | re.DOTALL)
_SUPERSEDES = re.compile(r"^SUPERSEDES K-\d+ BECAUSE:", re.MULTILINE)


def claim(body: str) -> str:
    """A card's body without what belongs to the card and not to its claim: the quotes and links that older bases write
    below it, and the words that announce a correction."""
    return _SUPERSEDES.sub("", _TAIL.sub("", body))


def normalised(text: str) -> str:
    """The form in which two texts are compared: no labels, no Markdown marks, NFKC, case folded, single blanks."""
    text = _MARKS.sub("", _LEAD.sub("", _LABEL.sub(" ", unicodedata.normalize("NFKC", text))))
    return " ".join(text.casefold().split()).rstrip(".")


@dataclass(frozen=True, slots=True)
class Same:
    """A text that says the same: `share` is the Jaccard index of the two token sets, 1.0 where the texts are equal."""

    id: str
    share: float
    equal: bool


@dataclass(frozen=True, slots=True)
class _Tokens:
    all: frozenset[str]
    telling: frozenset[str]


def _tokens(text: str) -> _Tokens:
    found: Terms = terms(text)
    words = frozenset(found.words)
    numbers = {word for word in words if any(char.isdigit() for char in word)}
    negations = NEGATIONS.intersection((*words, *found.grams))
    return _Tokens(words, frozenset({*numbers, *negations, *found.identifiers, *found.symbols}))


class Bodies:
    """Texts by id, to be asked which of them say the same as another. A question looks only at texts that share one of
    its rarest words: two sets with a Jaccard index of at least j share one of any (1 - j)·n + 1 of the n words."""

    def __init__(self, bodies: Iterable[tuple[str, str]] = ()) -> None:
        self._ids: list[str] = []
        self._tokens: list[_Tokens] = []
        self._equal: dict[str, list[str]] = {}
        self._postings: dict[str, list[int]] = {}
        for name, body in bodies:
            self.add(name, body)

    def add(self, name: str, body: str) -> None:
        plain = normalised(body)
        self._equal.setdefault(plain, []).append(name)
        tokens = _tokens(plain)
        for token in tokens.all:
            self._postings.setdefault(token, []).append(len(self._ids))
        self._ids.append(name)
        self._tokens.append(tokens)

    def same(self, body: str, least: float) -> list[Same]:
        """Every text that says the same as `body`, equal ones first, then by share, then by id."""
        plain = normalised(body)
        if not plain:
            return []
        found = {name: Same(name, 1.0, True) for name in self._equal.get(plain, ())}
        asked = _tokens(plain)
        count = len(asked.all)
        rarest = sorted(asked.all, key=lambda token: (len(self._postings.get(token, ())), token))
        for token in rarest[: count - ceil(least * count) + 1]:
            for at in self._postings.get(token, ()):
                name, other = self._ids[at], self._tokens[at]
                if name in found or asked.telling != other.telling:
                    continue
                shared = len(asked.all & other.all)
                share = shared / (count + len(other.all) - shared)
                if share >= least:
                    found[name] = Same(name, round(share, 4), False)
        return sorted(found.values(), key=lambda same: (not same.equal, -same.share, same.id))


def check(candidate: Candidate, relation: Relation, cards: Mapping[str, Card], bodies: Bodies, least: float) -> Outcome:
    """Fails where a card in force says exactly the same and is not the one that the candidate is about; a card that
    says nearly the same, or says it no longer, is named beside a pass."""
    near = [same for same in bodies.same(candidate.body, least) if same.id in cards and same.id != relation.target]
    for same in near:
        if same.equal and cards[same.id].status not in (*ARCHIVED, "refuted"):
            return Outcome("duplicates", candidate.label, FAIL, f"{same.id} says exactly this")
    told = [f"{same.id} ({cards[same.id].status}) says nearly the same" for same in near[:3]]
    return Outcome("duplicates", candidate.label, PASS, "; ".join(told))
