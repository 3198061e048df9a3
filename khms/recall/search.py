"""The answer to a question: search, rank, and say what each hit is."""

from __future__ import annotations

import time
from functools import partial

from khms.errors import Busy, Unavailable
from khms.index import current, freshness
from khms.index.lexical import Reader
from khms.model.document import FOG, UNREVIEWED, Hit, Query
from khms.recall import links, rank, snippet
from khms.recall.query import parse, plain
from khms.recall.rank import Ranked
from khms.store.layout import Base
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

SCHEMA = "khms.recall/1"
LEXICAL_ONLY = "by words alone: this version builds no vectors"


@dataclass(frozen=True, slots=True)
class Answer:
    """`note` says why the channel is not hybrid. `behind` is empty, or says why the index may be behind the base.
    `rebuilt` is empty, or says why the index that was there could not be used and was built anew on the way.
    `elsewhere` counts, where there are no hits, what the shelves that were not asked hold: unreviewed, fog."""

    query: str
    hits: tuple[Hit, ...]
    channel: str
    note: str | None
    elapsed_ms: float
    behind: str
    checked_at: float
    rebuilt: str = ""
    elsewhere: tuple[tuple[str, int], ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "query": self.query,
            "channel": self.channel,
            "note": self.note,
            "elapsed_ms": self.elapsed_ms,
            "behind": self.behind or None,
            "rebuilt": self.rebuilt or None,
            "elsewhere": dict(self.elsewhere),
            "hits": [hit.as_json() for hit in self.hits],
        }


def recall(
    base: Base,
    text: str,
    *,
    limit: int | None = None,
    include_fog: bool = False,
    unreviewed: bool = False,
    config: Mapping[str, Any] | None = None,
    as_text: bool = False,
    snippets: bool = True,
    refresh: bool = False,
) -> Answer:
    """The `limit` best hits for `text`, best first; none is an answer too.

    `include_fog` takes in the archive, `unreviewed` journals and inbox. `as_text` gives quotes and filters no meaning,
    for a text that was not written for a search. `snippets` False reads no file and lists correctors alone. `refresh`
    brings the index up to date first; where that cannot be done, the index as it is answers and `behind` says why.
    Raises Unavailable where there is no index that can be trusted.
    """
    began = time.perf_counter()
    if config is None:
        from khms.config import load

        config = load(base.root)
    failed, rebuilt = _refreshed(base, config) if refresh else ("", "")
    reader, known = current.opened(base)
    fresh = freshness.compare(base, known)
    query = (plain if as_text else parse)(text, limit=config["recall.query_chars"])
    depth = config["recall.depth"]
    ranked, weights = _ranked(base, reader, query, depth, include_fog, unreviewed)
    most = config["recall.limit"] if limit is None else limit
    hits = [_hit(base, reader, hit, weights, snippets) for hit in ranked[:most]]
    return Answer(
        query=text,
        hits=tuple(hits),
        channel="lexical",
        note=LEXICAL_ONLY,
        elapsed_ms=round((time.perf_counter() - began) * 1000, 2),
        behind=failed if refresh else fresh.why,
        checked_at=fresh.checked_at,
        rebuilt=rebuilt,
        elsewhere=() if hits else _elsewhere(base, reader, query, depth, include_fog, unreviewed),
    )


def _refreshed(base: Base, config: Mapping[str, Any]) -> tuple[str, str]:
    """Why the index could not be brought up to date, and why it was built anew; raises only where there is no index."""
    from khms.index.sync import refresh

    try:
        return "", refresh(base, config=config).rebuilt or ""
    except (Busy, Unavailable) as error:
        try:
            current.opened(base)
        except Unavailable:
            raise error from None
        return error.message, ""


def _ranked(
    base: Base, reader: Reader, query: Query, depth: int, include_fog: bool, unreviewed: bool
) -> tuple[list[Ranked], dict[str, float]]:
    found = reader.search(query, depth=depth, hidden=() if unreviewed else (UNREVIEWED,))
    hits = rank.once(rank.fuse(found.hits))
    if unreviewed:
        hits = _waiting(base, hits)
    hits = rank.succeeded(hits, partial(links.successors, reader))
    return rank.by_status(rank.visible(hits, include_fog=include_fog)), found.weights


def _waiting(base: Base, hits: list[Ranked]) -> list[Ranked]:
    """Without the candidates that were approved: their cards answer for them."""
    if not any(hit.document.kind == "inbox" for hit in hits):
        return hits
    from khms.store.cards import approvals

    done = {f"{_unit(record.unit)}/{card.label}" for record in approvals(base) for card in record.cards}
    return [hit for hit in hits if hit.document.kind != "inbox" or hit.document.id not in done]


def _unit(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _elsewhere(
    base: Base, reader: Reader, query: Query, depth: int, include_fog: bool, unreviewed: bool
) -> tuple[tuple[str, int], ...]:
    found = []
    if not unreviewed:
        hits, _ = _ranked(base, reader, query, depth, include_fog, True)
        found.append((UNREVIEWED, len(hits)))
    if not include_fog:
        hits, _ = _ranked(base, reader, query, depth, True, unreviewed)
        found.append((FOG, len(hits)))
    return tuple((shelf, count) for shelf, count in found if count)


def _hit(base: Base, reader: Reader, hit: Ranked, weights: dict[str, float], snippets: bool) -> Hit:
    document = hit.document
    correcting = links.correctors(reader, document) if document.kind == "card" else ()
    line, text = document.line, ""
    if snippets:
        line, text = snippet.best_line(base.root, document, weights, reader.language)
    return Hit(
        id=document.id,
        kind=document.kind,
        type=document.type,
        title=document.title,
        path=document.path,
        line=line,
        score=hit.score,
        lexical_rank=hit.lexical_rank,
        dense_rank=hit.dense_rank,
        status=document.status,
        flags=rank.flags(document),
        snippet=text,
        tags=document.tags,
        date=document.date,
        links=links.neighbours(reader, document, correcting) if snippets else (),
        correctors=correcting,
        note=hit.note,
    )
