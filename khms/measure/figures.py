"""The figures of an evaluation: what a ranked list is worth, given the documents that answer. Pure functions; every
document either answers or does not.

Recall at k is the share of the answers that stand among the first k, averaged over the questions (Manning, Raghavan and
Schütze, Introduction to Information Retrieval, 2008, chapter 8). MRR is the mean of 1 / rank of the first answer
(Voorhees, The TREC-8 Question Answering Track Report, 1999), nDCG the discounted gain as a share of the greatest that
could be had (Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002), here with a gain of 1
for an answer and the discount 1 / log2(rank + 1). A list that is cut at 10 is worth nothing beyond.
"""

from collections.abc import Iterable, Sequence
from math import log2

CUT = 10
METRICS = ("recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10")


def figures(asked: Iterable[tuple[Sequence[str], Sequence[str]]]) -> dict[str, float]:
    """The METRICS over questions given as (found ids best first, gold ids), the mean over all that have gold; 0 where
    none has."""
    sums, count = dict.fromkeys(METRICS, 0.0), 0
    for found, gold in asked:
        if not gold:
            continue
        count += 1
        for k in (1, 5, 10):
            sums[f"recall@{k}"] += recall_at(found, gold, k)
        sums["mrr@10"] += reciprocal(found, gold)
        sums["ndcg@10"] += ndcg(found, gold)
    return {name: round(total / count, 6) if count else 0.0 for name, total in sums.items()}


def recall_at(found: Sequence[str], gold: Sequence[str], k: int) -> float:
    return len(set(gold).intersection(found[:k])) / len(set(gold))


def rank(found: Sequence[str], gold: Sequence[str]) -> int | None:
    """The place of the first answer, from 1."""
    return next((place for place, name in enumerate(found, 1) if name in gold), None)


def reciprocal(found: Sequence[str], gold: Sequence[str], cut: int = CUT) -> float:
    place = rank(found[:cut], gold)
    return 1 / place if place else 0.0


def ndcg(found: Sequence[str], gold: Sequence[str], cut: int = CUT) -> float:
    wanted = set(gold)
    gain = sum(1 / log2(place + 1) for place, name in enumerate(found[:cut], 1) if name in wanted)
    return gain / sum(1 / log2(place + 1) for place in range(1, min(len(wanted), cut) + 1))
