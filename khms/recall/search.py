"""The answer to a question: search, rank, and say what each hit is."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial

from khms.errors import Busy, Unavailable
from khms.index import current, freshness
from khms.index.freshness import Freshness
from khms.index.lexical import Damaged, Found, Reader
from khms.model.belief import figures as belief_figures
from khms.model.document import FOG, UNREVIEWED, Hit, Query
from khms.recall import diversity, links, priors, project, rank, snippet
from khms.recall.belief import belief
from khms.recall.query import demand, parse, plain
from khms.recall.rank import Ranked
from khms.store.layout import Base
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from khms.index.meaning import Meaning
    from khms.index.sync import Report
    from khms.model.belief import Belief

SCHEMA = "khms.recall/1"
HYBRID, LEXICAL = "hybrid", "lexical"
_NEAR = 2  # so many times what is shown can belief bring up
LEXICAL_ONLY = "by words alone, as it was asked"
PATIENCE = 0.8  # seconds that a question waits for others who refresh the index; then it is answered by what is there


@dataclass(frozen=True, slots=True)
class Answer:
    """`note` says why the channel is not hybrid, or what of it is missing. `behind` is empty, or says why the index may
    be behind the base. `rebuilt` is empty, or says why the index that was there could not be used and was built anew on
    the way. `failed` is empty, or says why the index could not be brought up to date. `skipped` counts the files that
    it could not take in: what they say is missing from every answer. `elsewhere` counts, where there are no hits, what
    the shelves that were not asked hold: unreviewed, fog. `others` are further bases that were asked too, each by its
    root, with what is to be known of its part; all else is said of the first base."""

    query: str
    hits: tuple[Hit, ...]
    channel: str
    note: str | None
    elapsed_ms: float
    behind: str
    checked_at: float
    rebuilt: str = ""
    failed: str = ""
    skipped: int = 0
    elsewhere: tuple[tuple[str, int], ...] = ()
    others: tuple[tuple[str, str], ...] = ()

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
            "failed": self.failed or None,
            "skipped": self.skipped,
            "elsewhere": dict(self.elsewhere),
            "others": [{"root": root, "note": note or None} for root, note in self.others],
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
    strict: bool = False,
    by_meaning: bool = True,
    here: Path | None = None,
) -> Answer:
    """The `limit` best hits for `text`, best first; none is an answer too.

    `include_fog` takes in the archive, `unreviewed` journals and inbox. `as_text` gives quotes and filters no meaning,
    for a text that was not written for a search; `strict` raises Usage for a filter that nothing can pass, as a person
    who typed it wants to know. `snippets` False reads no file and lists correctors alone. `refresh` brings the index up
    to date first; where that cannot be done, the index as it is answers and `failed` says why. `by_meaning` False asks
    by words alone, which loads no model, and leaves it to the caller what is too little to be said. `here` is the
    folder that is worked in: what holds for its project comes before what is nearly as good. Raises Unavailable where
    there is no index that can be trusted.
    """
    began = time.perf_counter()
    if config is None:
        from khms.config import load

        config = load(base.root)
    limits = config["recall.query_chars"]
    query = plain(text, limit=limits) if as_text else parse(text, limit=limits, strict=strict)
    depth = config["recall.depth"]
    most = config["recall.limit"] if limit is None else limit
    held = current.vouched(base, config)
    if refresh and by_meaning and not held:
        _meanwhile(config)
    looked = _refreshed(base, config, held) if refresh else _Look()

    def answer() -> Answer:
        reader, known = current.opened(base)
        if strict:
            from khms.model.card import card_types

            demand(query, lambda name, value: reader.frequency(name, value) > 0, card_types(config["cards.types"]))
        fresh = Freshness(False, "", known.at / 1e9) if held else freshness.compare(base, known)
        meaning, said = current.meaning(base, config, reader, known) if by_meaning else (None, LEXICAL_ONLY)
        if meaning is None and by_meaning and looked.wordless:
            said = f"by words alone: {looked.wordless}"
        floor = config["recall.floor"] if by_meaning else 0.0
        for taken in (query, *_loosened(query)):
            asked = _Asked(base, reader, meaning, taken, depth, floor, config, here)
            ranked, weights = _ranked(asked, include_fog, unreviewed)
            if ranked:
                break
        ranked, believed = _placed(asked, ranked, most, snippets)
        hits = [_hit(base, reader, hit, weights, snippets, believed) for hit in ranked[:most]]
        return Answer(
            query=text,
            hits=_flagged(base, hits) if refresh and snippets else tuple(hits),
            channel=HYBRID if meaning else LEXICAL,
            note=said or None,
            elapsed_ms=round((time.perf_counter() - began) * 1000, 2),
            behind="" if refresh and not looked.failed else fresh.why,
            checked_at=fresh.checked_at,
            rebuilt=looked.rebuilt,
            failed=looked.failed,
            skipped=len(known.skipped) if looked.skipped is None else looked.skipped,
            elsewhere=() if hits else _elsewhere(asked, include_fog, unreviewed),
        )

    try:
        return answer()
    except Damaged as error:
        if not refresh:
            raise current.unusable(base, str(error)) from error
        looked = _refreshed(base, config, None, str(error))
    try:
        return answer()
    except Damaged as error:
        raise current.unusable(base, str(error)) from error


def _loosened(query: Query) -> tuple[Query, ...]:
    """The question with its phrases as plain words, to be asked where nothing holds them: beside other words they are
    as likely the quotes of a pasted error message or stack trace. A phrase that stands alone means what it says."""
    if not (query.text and query.phrases):
        return ()
    return (Query(" ".join([query.text, *query.phrases]), (), query.filters),)


def _meanwhile(config: Mapping[str, Any]) -> None:
    """Loads the libraries of arrays while git is waited for: a tenth of a whole `khms recall` without a server. The
    thread is waited for at the end of the process, which must not end in the middle of loading one."""
    from threading import Thread

    from khms.index.models import OFF

    if config["recall.model"] == OFF:
        return

    def load() -> None:
        with suppress(Exception):  # whoever needs them says what is missing
            import khms.index.arrays  # noqa: F401

    Thread(target=load).start()


@dataclass(frozen=True, slots=True)
class _Look:
    """What came of bringing the index up to date: why it failed, why the index was built anew, the files left out, why
    no vectors could be made."""

    failed: str = ""
    rebuilt: str = ""
    skipped: int | None = None
    wordless: str = ""


def _refreshed(base: Base, config: Mapping[str, Any], held: Report | None, damage: str = "") -> _Look:
    """Brings the index up to date unless the look that `held` reports still counts, or builds it anew for the `damage`
    that was found in it; raises only where there is no index that could answer."""
    from khms.index.catchup import NEW
    from khms.index.sync import refresh

    try:
        report = held or refresh(base, config=config, rebuild=bool(damage), vectors=NEW, wait=PATIENCE)
        return _Look("", damage or report.rebuilt or "", len(report.skipped), report.wordless)
    except (Busy, Unavailable) as error:
        try:
            current.opened(base)
        except Unavailable:
            raise error from None
        return _Look(error.message)


def _flagged(base: Base, hits: list[Hit]) -> tuple[Hit, ...]:
    """The hits, those marked whose bytes are not the approved ones."""
    from dataclasses import replace

    from khms.recall.proof import changed

    found = changed(base, {hit.id: hit.path for hit in hits if hit.kind == "card"})
    return tuple(replace(hit, flags=(*hit.flags, "CHANGED")) if hit.id in found else hit for hit in hits)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question and what answers it."""

    base: Base
    reader: Reader
    meaning: Meaning | None
    query: Query
    depth: int
    floor: float
    config: Mapping[str, Any]
    here: Path | None


def _ranked(asked: _Asked, include_fog: bool, unreviewed: bool) -> tuple[list[Ranked], dict[str, float]]:
    hidden = () if unreviewed else (UNREVIEWED,)
    found = asked.reader.search(asked.query, depth=asked.depth, hidden=hidden)
    hits = rank.once(_fused(asked, found, hidden))
    if unreviewed:
        hits = _waiting(asked.base, hits)
    hits = rank.succeeded(hits, partial(links.successors, asked.reader))
    return rank.on_record(rank.visible(hits, include_fog=include_fog), asked.floor), found.weights


def _placed(asked: _Asked, hits: list[Ranked], most: int, snippets: bool) -> tuple[list[Ranked], dict[int, Belief]]:
    """The hits in the order in which they are shown, and what is believed of those that could be shown."""
    config = asked.config
    by = priors.figures(config)
    scoped = any(hit.document.scope not in priors.EVERYWHERE for hit in hits)
    here = project.at_hand(asked.base, config, asked.here) if scoped else frozenset()
    placed = rank.weighed(hits, lambda document: priors.worth(document, by, here))
    weights = belief_figures(config)
    known = ((id(hit.document), belief(asked.reader, hit.document, weights)) for hit in placed[: _NEAR * most])
    held = {at: found for at, found in known if found is not None}
    if held:
        values = {at: priors.of_belief(found.value, by.belief) for at, found in held.items()}
        placed = rank.weighed(placed, lambda document: values.get(id(document), 1.0))
    alike = _alike(asked, diversity.pool(placed, most), snippets)
    if alike is not None:
        share, least = config["recall.diversity"], config["recall.alike"]
        placed = diversity.spread(placed, alike, most=most, share=share, least=least)
    return placed, held


def _alike(asked: _Asked, hits: Sequence[Ranked], snippets: bool) -> diversity.Alike | None:
    """How the likeness of hits is told: by their vectors, else by their words where files may be read for it."""
    if asked.meaning is not None:
        return diversity.by_vectors(asked.meaning.directions([hit.slot for hit in hits]))
    root = asked.base.root
    return diversity.by_words(hits, lambda hit: snippet.body(root, hit.document)) if snippets else None


def _fused(asked: _Asked, found: Found, hidden: tuple[str, ...]) -> list[Ranked]:
    """The channels' hits as one list; those by words alone where the model has nothing to say."""
    if asked.meaning is None or not (asked.query.text or asked.query.phrases):
        return rank.fuse(found)
    from khms.recall.fuse import fuse

    slots = [hit.slot for hit in found.hits]
    feeling = asked.meaning.ask(asked.query, slots, depth=asked.depth, hidden=hidden)
    others = asked.meaning.documents({one.slot for one in feeling.felt}.difference(slots))
    return fuse(found, feeling, others) if feeling.felt else rank.fuse(found)


def _waiting(base: Base, hits: list[Ranked]) -> list[Ranked]:
    """Without the candidates that were approved: their cards answer for them."""
    if not any(hit.document.kind == "inbox" for hit in hits):
        return hits
    from khms.recall.proof import readable

    done = {f"{_unit(record.unit)}/{card.label}" for record in readable(base) for card in record.cards}
    return [hit for hit in hits if hit.document.kind != "inbox" or hit.document.id not in done]


def _unit(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _elsewhere(asked: _Asked, include_fog: bool, unreviewed: bool) -> tuple[tuple[str, int], ...]:
    found = []
    if not unreviewed:
        hits, _ = _ranked(asked, include_fog, True)
        found.append((UNREVIEWED, sum(hit.document.shelf == UNREVIEWED for hit in hits)))
    if not include_fog:
        hits, _ = _ranked(asked, True, unreviewed)
        found.append((FOG, len(hits) - len(rank.visible(hits, include_fog=False))))
    return tuple((shelf, count) for shelf, count in found if count)


def _hit(
    base: Base,
    reader: Reader,
    hit: Ranked,
    weights: dict[str, float],
    snippets: bool,
    believed: Mapping[int, Belief],
) -> Hit:
    document = hit.document
    correcting = links.correctors(reader, document) if document.kind == "card" else ()
    line, text = document.line, ""
    if snippets:
        line, text = snippet.best_line(base.root, document, weights, reader.language)
    return Hit.of(
        document,
        line,
        hit.score,
        lexical_rank=hit.lexical_rank,
        dense_rank=hit.dense_rank,
        flags=rank.flags(document),
        snippet=text,
        links=links.neighbours(reader, document, correcting) if snippets else (),
        correctors=correcting,
        note=hit.note,
        belief=believed.get(id(document)),
        exact=hit.exact,
    )
