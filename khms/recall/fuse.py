"""The channels as one order: by evidence, not by rank.

What a rank says depends on what else was found; where the words of a question match nothing but by chance, the first by
words is still the first. So each document is given what is known of it: how well BM25 liked it and how much of the
question's rarity it covers, how far its vector stands out of the base, and how well its words meet the question's.
Where the best document meets them well, words decide; where none does, nearness.
"""

from __future__ import annotations

from math import exp, log

from khms.index.lexical import Found, Scored
from khms.index.meaning import Feeling, Felt
from khms.model.document import Document
from khms.recall.rank import Ranked
from khms.recall.relevance import by_both, by_words
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Weights:
    """`turn` is how well the best document's words must meet the question's for words to decide, `width` how sharply.
    Then what each kind of evidence is worth on that side, and on the other (`…_else`): a unit of BM25, all of the
    question's words met, a spread of each reading of nearness, a document's own length, of which more than `enough`
    pieces counts no more: a short answer in a conversation says little.

    Measured on the development sets, each as words alone -> fused; halves: two of the five conversations and every
    second of the other questions, then the rest. Chat turns, recall@5 / @10: 57.5 / 64.2 -> 61.7 / 71.2, 54.3 /
    62.2 -> 59.4 / 67.8; with speaker and date as titles 60.4 / 67.6 -> 65.1 / 72.6, 58.2 / 65.3 -> 62.3 / 69.0.
    MRR@10 of identifiers: 100 -> 100 twice; of paraphrases 2 -> 54, 0 -> 52; of notes by their descriptions 96.8 ->
    96.6, 97.7 -> 96.7. The form was found with all of it in view. As a check its figures were searched anew on one
    half alone, which on the other gave chat turns 59.8 / 67.2 and 61.4 / 70.5, titled 61.2 / 69.0 and 64.4 / 73.2,
    identifiers 100, paraphrases 45 and 46, notes 96 and 97. It is a wide plateau: to change one figure by a quarter
    moves hardly a row by more than 1, but for paraphrases, which lose 5 where the turn comes at 0.25, for there
    chance words begin to decide.
    """

    turn: float = 0.31
    width: float = 0.03
    strength: float = 0.05
    met: float = 1.7
    near: float = 0.05
    out: float = 0.06
    length: float = 0.1
    enough: int = 40
    met_else: float = 2.0
    aside_else: float = 0.06
    out_else: float = 0.06


@dataclass(frozen=True, slots=True)
class Certainty:
    """What turns nearness into a score from 0 to 1: the logistic function of `start` plus `apart` times the document's
    cosine without the direction that all vectors share, less `rows` times the logarithm of the number of vectors, for
    among many the nearest is nearer by chance. A hit is about the question from a score of 0.3 on (recall.floor), or
    where it covers 0.6 of the question's own rarity: that is what half of the coverage says.

    Chosen with 60 questions of everyday life and other trades in view, which nothing in the bases answers, and with
    what it costs paraphrases. Silent to these: 90 % over 60 cards, 93 % over 200 notes; to 40 more, written
    afterwards, 98 and 92 %; to 30 about software that is not on record, 67 and 70 % (tests/recall/unrelated.txt).
    Of related questions answered: chat turns 100 %, titled 99 %, notes 100 %, cards by an identifier 100 %, by a
    paraphrase 83 %, whose MRR is 46 for it instead of 53. The cosine as it is tells paraphrases from the unrelated
    worse: of two, one of each, it puts the right one higher in 84 of 100 cases, this one in 91. Nothing tried
    beside it (words met, distance from the rest, coverage, length) told more.
    """

    start: float = -5.76
    apart: float = 22.0
    rows: float = 0.44
    few: int = 20  # vectors that a base is counted larger by


WEIGHTS, CERTAINTY = Weights(), Certainty()


def fuse(found: Found, feeling: Feeling, documents: Mapping[int, Document], weights: Weights = WEIGHTS) -> list[Ranked]:
    """Every document that a channel found, best first, exact matches before all others. `documents` holds those that
    only the model found."""
    by_slot = {one.slot: one for one in feeling.felt}
    words = {hit.slot: (rank, hit) for rank, hit in enumerate(found.hits, 1)}
    covered = max((hit.coverage for hit in found.hits), default=0.0) or 1.0
    # A document that has no vector yet has its words alone to speak for it: what it covers of the question's own rarity
    # stands for what it meets, and for how well.
    alone = {hit.slot: _own(found, hit) for hit in found.hits if hit.slot not in by_slot}
    gate = _gate(max([*(one.well for one in feeling.felt), *alone.values()], default=0.0), weights)
    ranked = []
    for slot in dict.fromkeys([*words, *by_slot]):
        rank, hit = words.get(slot, (None, None))
        one = by_slot.get(slot)
        document = hit.document if hit else documents.get(slot)
        if document is None:  # gone since
            continue
        coverage = hit.coverage if hit else 0.0
        strength = hit.strength * (coverage / covered) ** 0.5 if hit else 0.0
        own = _own(found, hit) if hit else 0.0
        certain = certainty(one.apart, feeling.rows) if one else 0.0
        ranked.append(
            Ranked(
                document,
                by_both(found, hit, one, feeling.rows) if one else by_words(found, hit) if hit else 0.0,
                max(0.0, _worth(strength, own, one, gate, weights)),
                hit.exact if hit else 0,
                lexical_rank=rank,
                dense_rank=one.rank if one else None,
                evidence=max(certain, own / 2 if one else own),
                slot=slot,
            )
        )
    return sorted(ranked, key=lambda hit: (-hit.exact, -hit.strength, hit.document.path, hit.document.line))


def certainty(apart: float, rows: int, c: Certainty = CERTAINTY) -> float:
    """The score of a document by meaning alone."""
    return round(1 / (1 + exp(-(c.start + c.apart * apart - c.rows * log(rows + c.few)))), 4)


def _own(found: Found, hit: Scored) -> float:
    """The share of the question's own rarity that a hit covers."""
    return hit.coverage / found.reach if found.reach else 0.0


def _worth(strength: float, own: float, one: Felt | None, gate: float, w: Weights) -> float:
    """The evidence for a document, added up."""
    if one is None:
        return gate * (w.strength * strength + w.met * own) + (1 - gate) * w.met_else * own
    length = log(min(max(one.pieces, 1), w.enough))
    by_words = w.strength * strength + w.met * one.met + w.near * one.near + w.out * one.out + w.length * length
    by_nearness = w.met_else * one.met + w.aside_else * one.aside + w.out_else * one.out
    return gate * by_words + (1 - gate) * by_nearness


def _gate(best: float, weights: Weights) -> float:
    """How much words decide, 0-1."""
    return 1 / (1 + exp((weights.turn - best) / weights.width))
