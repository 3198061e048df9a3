"""When two texts say the same: equal once labels and Markdown marks are gone, or made of nearly the same words.

Words alone are not enough: two sentences that differ in one number or one `not` share most of their words and say the
opposite. So texts that differ in a number, a name or a negation are never the same.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from khms.index.text import terms
from khms.model.candidate import Candidate, Relation
from khms.model.card import ARCHIVED, Card, links_of
from khms.model.claim import claim, key, normalised
from khms.model.outcome import FAIL, PASS, Outcome

_NO = """
no not never none nor neither without cannot t nicht kein keine keinen nie ohne pas jamais sans nunca sin non não
не нет без 不 没 沒 無 无 非 未 勿
"""
NEGATIONS = frozenset(_NO.split())  # `t` is what is left of n't; the last ones are characters of scripts without blanks
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Same:
    """A text that says the same: `share` is the Jaccard index of the two token sets, 1.0 where the texts are equal."""

    id: str
    share: float
    equal: bool


def _words(plain: str) -> frozenset[str]:
    return frozenset(terms(plain).words)


def _telling(plain: str) -> frozenset[str]:
    """What two texts that say the same must share to the last: numbers, negations, names, signs."""
    found = terms(plain)
    numbers = {word for word in found.words if _DIGIT.search(word)}
    negations = NEGATIONS.intersection((*found.words, *found.grams))
    return frozenset((*numbers, *negations, *found.identifiers, *found.symbols))


class Bodies:
    """Texts by id, to be asked which of them say the same as another. A question looks only at texts that share one of
    its rarest words: two sets with a Jaccard index of at least j share one of any (1 - j)·n + 1 of the n words."""

    def __init__(self, bodies: Iterable[tuple[str, str]] = ()) -> None:
        self._ids: list[str] = []
        self._plain: list[str] = []
        self._words: list[frozenset[str]] = []
        self._equal: dict[str, list[str]] = {}
        self._postings: dict[str, list[int]] = {}
        for name, body in bodies:
            self.add(name, body)

    def add(self, name: str, body: str) -> None:
        plain = normalised(body)
        self._equal.setdefault(plain, []).append(name)
        words = _words(plain)
        for word in words:
            self._postings.setdefault(word, []).append(len(self._ids))
        self._ids.append(name)
        self._plain.append(plain)
        self._words.append(words)

    def same(self, body: str, least: float) -> list[Same]:
        """Every text that says the same as `body`, equal ones first, then by share, then by id."""
        plain = normalised(body)
        if not plain:
            return []
        found = {name: Same(name, 1.0, True) for name in self._equal.get(plain, ())}
        asked, telling = _words(plain), _telling(plain)
        count = len(asked)
        rarest = sorted(asked, key=lambda word: (len(self._postings.get(word, ())), word))
        for word in rarest[: count - ceil(least * count) + 1]:
            for at in self._postings.get(word, ()):
                name, other = self._ids[at], self._words[at]
                if name in found:
                    continue
                shared = len(asked & other)
                share = shared / (count + len(other) - shared)
                if share >= least and telling == _telling(self._plain[at]):
                    found[name] = Same(name, round(share, 4), False)
        return sorted(found.values(), key=lambda same: (not same.equal, -same.share, same.id))


class Claims:
    """The claims of a base by their key (`model.claim.key`), to be asked which cards say exactly the same."""

    def __init__(self, ids: Mapping[str, Sequence[str]]) -> None:
        self._ids = ids

    def same(self, body: str, least: float) -> list[Same]:
        """Every card that says exactly what `body` says; nearly the same is not looked for, whatever `least` is."""
        return [Same(name, 1.0, True) for name in self._ids.get(key(body), ())]


def claims_of(cards: Iterable[Card]) -> Claims:
    ids: dict[str, list[str]] = {}
    for card in cards:
        ids.setdefault(key(claim(card.body)), []).append(card.id)
    ids.pop("", None)
    return Claims(ids)


def check(
    candidate: Candidate, relation: Relation, cards: Mapping[str, Card], bodies: Bodies | Claims, least: float
) -> Outcome:
    """Fails where a card in force says exactly the same and is none that the candidate is about or replaces; a card
    that says nearly the same, or says it no longer, is named beside a pass."""
    own = {relation.target, *links_of(candidate.meta.get("links")).supersedes}
    near = [same for same in bodies.same(candidate.body, least) if same.id in cards and same.id not in own]
    for same in near:
        if same.equal and cards[same.id].status not in (*ARCHIVED, "refuted"):
            return Outcome("duplicates", candidate.label, FAIL, f"{same.id} says exactly this")
    told = [f"{same.id} ({cards[same.id].status}) says nearly the same" for same in near[:3]]
    return Outcome("duplicates", candidate.label, PASS, "; ".join(told))
