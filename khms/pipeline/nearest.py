"""What is known that is near a text, without vectors: shared words weighted by their rarity.

An inverted index in memory, built once a run. Words that too many documents share are passed over while rarer ones are
there, so that a question costs the same in a base of any size.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from math import log

from khms.index.text import content_words, terms

COMMON = 500  # documents with a word from which the word tells too little to be followed


@dataclass(frozen=True, slots=True)
class Document:
    """Something that a proposer may be shown: a card by its id, or an earlier candidate of the run by its label."""

    id: str
    title: str
    body: str
    type: str = ""
    status: str = ""
    tags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join((self.title, " ".join(self.tags), self.body))


@dataclass(frozen=True, slots=True)
class Near:
    """`score`, from 0 to 1, is the share of the question's rarity that the document covers."""

    document: Document
    score: float


class Nearby:
    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._documents: list[Document] = []
        self._postings: dict[str, list[int]] = {}
        for document in documents:
            self.add(document)

    def add(self, document: Document) -> None:
        for word in set(terms(document.text).words):
            self._postings.setdefault(word, []).append(len(self._documents))
        self._documents.append(document)

    def nearest(self, text: str, limit: int) -> list[Near]:
        """The `limit` documents that share most with `text`, best first; none that shares nothing."""
        total = len(self._documents)
        asked = content_words(terms(text).words)
        weights = {word: log(1 + total / (0.5 + len(self._postings.get(word, ())))) for word in asked}
        known = sorted((w for w in asked if w in self._postings), key=lambda w: (len(self._postings[w]), w))
        followed = [word for word in known if len(self._postings[word]) <= COMMON] or known[:1]
        scores: dict[int, float] = {}
        for word in followed:
            for at in self._postings[word][:COMMON]:
                scores[at] = scores.get(at, 0.0) + weights[word]
        whole = sum(weights.values())
        best = nsmallest(limit, scores.items(), key=lambda row: (-round(row[1], 9), row[0]))
        return [Near(self._documents[at], round(score / whole, 3)) for at, score in best]
