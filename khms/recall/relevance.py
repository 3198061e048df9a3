"""How sure it is that a document is about the question: the score of a hit, from 0 to 1.

It is what a threshold is compared with, so it means the same whichever channels answered and however large the base is:
from 0.5 on, a pointer is more likely right than not. Its place among the hits says nothing of that, for the best of
nothing is first too; nor does the covered share of the question alone, since a long note covers a few everyday words of
any sentence. What tells most is whether the words stand in the document's title: titles say what a thing is about.
"""

from __future__ import annotations

from math import exp, log

from khms.index.lexical import BY_ID, COVERAGE_POWER, Found, Scored
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from khms.index.meaning import Felt

_MOST_LIKED = 1.5  # BM25 per unit of the question's rarity; a word that is repeated all over a document counts no more


@dataclass(frozen=True, slots=True)
class Words:
    """What each kind of evidence adds to the log of the odds where words alone were asked: the question covered, that
    in the title, liked by BM25, named exactly.

    Fitted with those of `Both` by logistic regression over what was found for 200 prompts (half of them related, in
    natural words, half agents' everyday work, other software, other matters), for questions by an identifier or a
    paraphrase, descriptions of notes, and the 130 unrelated questions that the floor of recall was tried on; each in
    bases of 20, 60, 375, 435 and 10,435 documents. Both starts are then moved by 0.5, so that a threshold of 0.5 gives
    what is in tests/hooks/test_prompts.py. Fitted on every second prompt and tried on the others, precision was 0.93 to
    0.98 and recall 0.64 to 0.82 without other documents, 0.79 to 0.94 and 0.76 to 0.88 beside 10,000 others; the lower
    ends are by words alone.
    """

    start: float = -7.69
    covered: float = 3.71
    title: float = 11.24
    liked: float = 2.39
    exact: float = 3.15


@dataclass(frozen=True, slots=True)
class Both:
    """The same where the model was asked too: its vector's cosine without what all vectors share, how well the words
    meet, how far it stands out of the base, less what is near by chance among so many rows."""

    start: float = -5.47
    title: float = 7.10
    liked: float = 1.13
    exact: float = 2.71
    apart: float = 4.16
    met: float = 2.74
    out: float = 0.48
    rows: float = -0.41
    few: int = 20  # rows that a base is counted larger by


WORDS, BOTH = Words(), Both()


def by_words(found: Found, hit: Scored, w: Words = WORDS) -> float:
    """The score of a hit by words alone. A question of filters alone is met or not."""
    if hit.exact & BY_ID or not found.asked:
        return hit.coverage
    named, title = w.exact if hit.exact else 0.0, found.in_title(hit.document.title)
    return _share(w.start + w.covered * hit.coverage + w.title * title + w.liked * _liked(found, hit) + named)


def by_both(found: Found, hit: Scored | None, one: Felt, rows: int, w: Both = BOTH) -> float:
    """The score of a document that the model looked at too; `hit` is None where no word found it."""
    odds = w.start + w.apart * one.apart + w.met * one.met + w.out * one.out + w.rows * log(rows + w.few)
    if hit is not None:
        if hit.exact & BY_ID or not found.asked:
            return hit.coverage
        odds += w.title * found.in_title(hit.document.title) + w.liked * _liked(found, hit)
        odds += w.exact if hit.exact else 0.0
    return _share(odds)


def _liked(found: Found, hit: Scored) -> float:
    """BM25, for each unit of the question's own rarity."""
    if not (found.reach and hit.coverage):
        return 0.0
    liked: float = hit.strength / (hit.coverage**COVERAGE_POWER * found.reach * found.asked)
    return min(_MOST_LIKED, liked)


def _share(odds: float) -> float:
    share: float = round(1 / (1 + exp(-odds)), 4)
    return share
