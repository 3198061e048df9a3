"""How well recall finds what golden queries ask for, by channel: what `khms recall` answers (hybrid), and each channel
alone with nothing held back (lexical, dense)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from khms.config import Config
from khms.errors import Unavailable, Usage
from khms.index import current, models, sync
from khms.measure.figures import CUT, METRICS, figures, rank
from khms.measure.golden import Golden
from khms.model.document import FOG, UNREVIEWED
from khms.recall import links
from khms.recall import rank as ranking
from khms.recall.query import parse
from khms.recall.rank import Ranked
from khms.recall.search import HYBRID, LEXICAL, recall
from khms.store.layout import Base

if TYPE_CHECKING:
    from khms.index.lexical import Reader
    from khms.index.meaning import Meaning

SCHEMA = "khms.eval/1"
DENSE = "dense"
CHANNELS = (HYBRID, LEXICAL, DENSE)
SILENT = "silent"  # the share of the questions without an answer that got none
Asker = Callable[[str, int], list[str]]


@dataclass(frozen=True, slots=True)
class Gate:
    """A line that must hold: one of its answers among the first `k`. `rank` is where the first one stands, None where
    it is not among those that were looked at."""

    id: str
    query: str
    k: int
    rank: int | None

    @property
    def passed(self) -> bool:
        return self.rank is not None and self.rank <= self.k


@dataclass(frozen=True, slots=True)
class Floor:
    """What a figure must reach; `value` is None where its channel cannot be asked here."""

    channel: str
    metric: str
    least: float
    value: float | None = None

    @property
    def passed(self) -> bool:
        return self.value is not None and self.value >= self.least

    def as_json(self) -> dict[str, Any]:
        own = {"channel": self.channel, "metric": self.metric, "floor": self.least, "value": self.value}
        return own | {"passed": self.passed}


@dataclass(frozen=True, slots=True)
class Lost:
    """A gold id that cannot be found, and why."""

    id: str
    line: int
    gold: str
    why: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`channels` holds the figures by channel, None for one that cannot be asked here, `notes` the reasons; `kinds` the
    same by the lines' kind. `unrelated` counts the lines without gold, `drafts` those that nobody corrected."""

    golden: tuple[Golden, ...]
    channels: Mapping[str, Mapping[str, float] | None]
    kinds: Mapping[str, Mapping[str, Mapping[str, float] | None]]
    gates: tuple[Gate, ...]
    floors: tuple[Floor, ...]
    lost: tuple[Lost, ...]
    notes: Mapping[str, str]

    @property
    def unrelated(self) -> int:
        return sum(not one.gold for one in self.golden)

    @property
    def drafts(self) -> int:
        return sum(one.draft for one in self.golden)

    @property
    def passed(self) -> bool:
        return all(gate.passed for gate in self.gates) and all(floor.passed for floor in self.floors)

    def as_json(self) -> dict[str, Any]:
        gates = [{"id": g.id, "passed": g.passed, "rank": g.rank, "k": g.k, "query": g.query} for g in self.gates]
        return {
            "schema": SCHEMA,
            "n": len(self.golden),
            "channels": self.channels,
            "gates": gates,
            "floors": [floor.as_json() for floor in self.floors],
            "kinds": self.kinds,
            "unrelated": self.unrelated,
            "drafts": self.drafts,
            "unknown": [{"id": x.id, "line": x.line, "gold": x.gold, "why": x.why} for x in self.lost],
            "notes": self.notes,
            "passed": self.passed,
        }


def floor(text: str, channels: Sequence[str]) -> Floor:
    """`METRIC=VALUE` or `CHANNEL:METRIC=VALUE` as a person writes it; the first of the channels asked where none is
    named. Raises Usage."""
    name, _, value = text.partition("=")
    channel, _, metric = name.rpartition(":")
    channel = channel or channels[0]
    if channel not in channels:
        raise Usage(f"--floor {text}: channel {channel!r} is not asked", hint="asked: " + ", ".join(channels))
    if metric not in (*METRICS, SILENT):
        known = ", ".join((*METRICS, SILENT))
        raise Usage(f"--floor {text}: there is no figure {metric!r}", hint=f"known: {known}; such as mrr@10=0.8")
    try:
        least = float(value)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise Usage(f"--floor {text}: {value!r} is no number from 0 to 1", hint=f"such as {metric}=0.8")
    return Floor(channel, metric, least)


def evaluate(
    base: Base,
    config: Config,
    golden: Sequence[Golden],
    *,
    channels: Sequence[str] = CHANNELS,
    floors: Sequence[Floor] = (),
    unreviewed: bool = False,
    whole: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Brings the index up to date and asks every channel every question. Gates are judged by the first of the
    `channels` that can be asked. Raises Unavailable where there is no index that can be used and, if it is to be
    `whole`, where one of the channels cannot be asked."""
    sync.refresh(base, config=config)
    models.at_hand(base, config)
    askers, notes = askers_of(base, config, channels, unreviewed)
    if whole and (lacking := [channel for channel in channels if channel not in askers]):
        raise Unavailable(
            f"the channel {lacking[0]} cannot be asked: {notes[lacking[0]]}",
            where=str(base.root),
            hint="it needs an embedding model and vectors: khms config get recall.model, then khms index;"
            " --channel lexical needs neither",
        )
    depth = max([CUT, *(one.k or 0 for one in golden)])
    found: dict[str, list[list[str]]] = {channel: [] for channel in askers}
    for number, one in enumerate(golden, 1):
        for channel, ask in askers.items():
            found[channel].append(list(dict.fromkeys(ask(one.query, depth))))
        if progress:
            progress(number, len(golden))
    measured = {channel: _figures(golden, found.get(channel)) for channel in channels}
    judge = next((channel for channel in channels if channel in found), None)
    return Evaluation(
        golden=tuple(golden),
        channels=measured,
        kinds=_by_kind(golden, channels, found),
        gates=tuple(_gates(golden, found[judge], config["recall.limit"])) if judge else (),
        floors=tuple(_judged(floor, measured) for floor in floors),
        lost=tuple(_lost(current.opened(base)[0], golden, unreviewed)),
        notes=notes,
    )


def _figures(golden: Sequence[Golden], found: Sequence[Sequence[str]] | None) -> dict[str, float] | None:
    if found is None:
        return None
    held = figures((names, one.gold) for names, one in zip(found, golden, strict=True))
    if golden and not any(one.gold for one in golden):
        held = {}
    quiet = [not names for names, one in zip(found, golden, strict=True) if not one.gold]
    return held | ({SILENT: round(sum(quiet) / len(quiet), 6)} if quiet else {})


def _by_kind(
    golden: Sequence[Golden], channels: Sequence[str], found: Mapping[str, Sequence[Sequence[str]]]
) -> dict[str, dict[str, dict[str, float] | None]]:
    kinds: dict[str, dict[str, dict[str, float] | None]] = {}
    for kind in sorted({one.kind for one in golden if one.kind}):
        at = [number for number, one in enumerate(golden) if one.kind == kind]
        lines = [golden[number] for number in at]
        kinds[kind] = {
            channel: _figures(lines, [found[channel][number] for number in at] if channel in found else None)
            for channel in channels
        }
    return kinds


def _gates(golden: Sequence[Golden], found: Sequence[Sequence[str]], limit: int) -> Iterator[Gate]:
    """A gate without gold holds where nothing was found: its rank is then 1."""
    for one, names in zip(golden, found, strict=True):
        if one.gate:
            place = rank(names, one.gold) if one.gold else None if names else 1
            yield Gate(one.id, one.query, one.k or limit, place)


def _judged(floor: Floor, measured: Mapping[str, Mapping[str, float] | None]) -> Floor:
    return Floor(floor.channel, floor.metric, floor.least, (measured[floor.channel] or {}).get(floor.metric))


def _lost(reader: Reader, golden: Sequence[Golden], unreviewed: bool) -> Iterator[Lost]:
    for one in golden:
        for name in one.gold:
            shelves = {document.shelf for document in reader.by_id(name)}
            if not shelves:
                yield Lost(one.id, one.line, name, "there is no such document in the index")
            elif shelves == {FOG}:
                yield Lost(one.id, one.line, name, "it stands in the archive, and answers no question")
            elif shelves == {UNREVIEWED} and not unreviewed:
                yield Lost(one.id, one.line, name, "nobody has reviewed it (--unreviewed asks for such too)")


def askers_of(
    base: Base, config: Config, channels: Sequence[str], unreviewed: bool
) -> tuple[dict[str, Asker], dict[str, str]]:
    """How each channel is asked, and for those that cannot be, why."""
    reader, known = current.opened(base)
    meaning, why = current.meaning(base, config, reader, known)
    held: dict[str, Asker] = {}
    notes: dict[str, str] = {}
    for channel in channels:
        if channel != LEXICAL and meaning is None:
            notes[channel] = why
            continue
        if channel != LEXICAL and why:
            notes[channel] = why
        if channel == DENSE and meaning is not None:
            held[channel] = _nearest(reader, meaning, config, unreviewed)
        else:
            held[channel] = _recall(base, config, channel == HYBRID, unreviewed)
    return held, notes


def _recall(base: Base, config: Config, by_meaning: bool, unreviewed: bool) -> Asker:
    def ask(text: str, depth: int) -> list[str]:
        answer = recall(
            base,
            text,
            limit=depth,
            unreviewed=unreviewed,
            config=config,
            snippets=False,
            by_meaning=by_meaning,
        )
        return [hit.id for hit in answer]

    return ask


def _nearest(reader: Reader, meaning: Meaning, config: Config, unreviewed: bool) -> Asker:
    """Asks by meaning alone: the nearest documents, in the order of their nearness."""
    hidden = () if unreviewed else (UNREVIEWED,)

    def successors(document: Any) -> Any:
        return links.successors(reader, document)

    def ask(text: str, depth: int) -> list[str]:
        query = parse(text, limit=config["recall.query_chars"])
        felt = meaning.ask(query, (), depth=max(depth, config["recall.depth"]), hidden=hidden).felt
        held = meaning.documents(one.slot for one in felt)
        near = [
            Ranked(held[one.slot], float, float(-place), 0, dense_rank=place + 1)
            for place, one in enumerate(felt)
            if one.slot in held
        ]
        known = ranking.succeeded(ranking.once(near), successors)
        return [hit.document.id for hit in ranking.visible(known, include_fog=False)][:depth]

    return ask
