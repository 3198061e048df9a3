"""What becomes of the hits between the search and the answer: a line of small steps, each a pure function.

    fuse -> once -> succeeded -> visible -> on record -> weighed (`priors`) -> spread (`diversity`)

A card that was superseded is never shown in its successor's place, and never alone.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from khms.index.lexical import BY_ID, Found
from khms.model.document import FOG, GOTCHA, UNREVIEWED, Document
from khms.recall.relevance import by_words
from khms.values import dataclass

_FLAGS = {"challenged": "CHALLENGED", "refuted": "REFUTED", "superseded": "SUPERSEDED", "condensed": "CONDENSED"}
# Of a strength below this share of the best one's a document without a word of the question is left out. On the
# development sets nothing that is right lies there (recall@10 of chat turns 69.1 and 70.4 with it, 69.3 and 70.5
# without), and questions by an identifier lose the half of their ten hits that has nothing to do with them.
FAR_BEHIND = 0.5
Successors = Callable[[Document], Sequence[Document]]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hit on its way to the answer. `told` gives its score: a function, for only of what is shown it is asked. Ranks
    count from 1; `note` says what is special about it. `evidence` is 0-1: how much speaks for its being about the
    question at all, which neither its place nor its score tells: the best of nothing is first, and a short question
    wholly covered scores little. `slot` is where its vectors are found."""

    document: Document
    told: Callable[[], float]
    strength: float
    exact: int
    lexical_rank: int | None = None
    dense_rank: int | None = None
    note: str = ""
    evidence: float = 1.0
    slot: int = -1

    @property
    def score(self) -> float:
        return self.told()


def fuse(found: Found) -> list[Ranked]:
    """What words alone found, best first; `fuse.fuse` brings the other channels in."""
    return [
        Ranked(
            hit.document,
            partial(by_words, found, hit),
            hit.strength,
            hit.exact,
            lexical_rank=rank,
            evidence=hit.coverage / found.reach if found.reach else 0.0,
            slot=hit.slot,
        )
        for rank, hit in enumerate(found.hits, 1)
    ]


def on_record(hits: Sequence[Ranked], floor: float) -> list[Ranked]:
    """The hits, if any of them is about the question; else none: nothing on record is an answer too. What shares no
    word with the question must not be far behind the best."""
    if not any(hit.exact or hit.evidence >= floor for hit in hits):
        return []
    least = FAR_BEHIND * max(hit.strength for hit in hits)
    return [hit for hit in hits if hit.lexical_rank or hit.strength >= least]


def once(hits: Iterable[Ranked]) -> list[Ranked]:
    """Of the sections of one document, and of files that share an id, the best alone."""
    found: dict[tuple[str, str], Ranked] = {}
    for hit in hits:
        found.setdefault((hit.document.kind, hit.document.id), hit)
    return list(found.values())


def succeeded(hits: Sequence[Ranked], successors: Successors) -> list[Ranked]:
    """Puts before each superseded card those that stand in its place now, with a note."""
    own = {hit.document.id: hit for hit in hits if hit.document.status != "superseded"}
    placed: dict[str, Ranked] = {}
    for hit in hits:
        if hit.document.status == "superseded":
            for document in successors(hit.document):
                known = own.get(document.id)
                better = Ranked(
                    document,
                    partial(_better, known, hit) if known else hit.told,
                    max(known.strength, hit.strength) if known else hit.strength,
                    max(known.exact, hit.exact) if known else hit.exact,
                    known.lexical_rank if known else None,
                    known.dense_rank if known else None,
                    f"supersedes {hit.document.id}, which matched",
                    max(known.evidence, hit.evidence) if known else hit.evidence,
                    known.slot if known else -1,
                )
                placed.setdefault(document.id, better)
        placed.setdefault(hit.document.id, hit)
    return list(placed.values())


def _better(one: Ranked, other: Ranked) -> float:
    return max(one.score, other.score)


def visible(hits: Iterable[Ranked], *, include_fog: bool) -> list[Ranked]:
    """Without the archive, and without superseded cards wherever they lie, unless fog is asked for or the question
    names the very id."""
    return [
        hit
        for hit in hits
        if include_fog
        or hit.exact >= BY_ID
        or not (hit.document.shelf == FOG or hit.document.status in ("superseded", "condensed"))
    ]


def weighed(hits: Sequence[Ranked], worth: Callable[[Document], float]) -> list[Ranked]:
    """Exact matches first, then by strength times what the document is worth (`priors`), equals as they stand: so a
    superseded card comes after what stands in its place."""
    held = [hit if (factor := worth(hit.document)) == 1 else _times(hit, factor) for hit in hits]
    return sorted(held, key=lambda hit: (-hit.exact, -hit.strength))


def _times(hit: Ranked, factor: float) -> Ranked:
    return Ranked(
        hit.document,
        hit.told,
        hit.strength * factor,
        hit.exact,
        hit.lexical_rank,
        hit.dense_rank,
        hit.note,
        hit.evidence,
        hit.slot,
    )


def flags(document: Document) -> tuple[str, ...]:
    found = [_FLAGS[document.status]] if document.status in _FLAGS and document.kind == "card" else []
    if GOTCHA in document.tags:
        found.append(GOTCHA)
    if document.shelf == FOG:
        found.append("fog")
    if document.shelf == UNREVIEWED:
        found.append("UNREVIEWED")
    return tuple(found)
