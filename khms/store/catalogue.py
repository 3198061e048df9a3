"""Every card without its body, as approval and the generated files need them, kept from run to run.

To read 10,000 cards takes 0.7 s, to see that they did not change 0.1 s. What is kept in `.khms/state/cards.json` is
this machine's alone and can be deleted at any time. A file counts as unchanged while its size, times and inode are the
same and it had rested for two seconds when it was read.
"""

import json
import os
import time
from dataclasses import dataclass
from typing import Any

from khms.errors import KhmsError
from khms.model.card import RELATIONS, Card, Links
from khms.model.claim import claim, key
from khms.store import cards, files, local
from khms.store.layout import Base
from khms.store.markdown import Unreadable

SCHEMA = 2
REST = 2_000_000_000  # nanoseconds; the coarsest time stamps of file systems in use are two seconds (FAT)
FEW = 200  # so many cards are read again (15 ms) rather than writing everything anew (60 ms)
Look = list[int]
Row = list[Any]
NO_LINKS = Links()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every card that can be read, by id, with an empty body; of two files with one id the first counts. `claims` maps
    the key of what a card says (`model.claim`) to the cards that say it. `paths` are all files of cards, those that
    cannot be read too."""

    cards: dict[str, Card]
    claims: dict[str, list[str]]
    paths: tuple[str, ...]


def catalogue(base: Base) -> Catalogue:
    """The cards as their files are now; what was kept answers only for files that did not change. Raises Refused where
    a folder of cards is a link out of the base."""
    rested = time.time_ns() - REST
    kept = _load(base)
    rows: dict[str, Row] = {}
    found: dict[str, Card] = {}
    claims: dict[str, list[str]] = {}
    fresh = 0
    paths = tuple(cards.card_paths(base))
    for path in paths:
        look = _look(f"{base.root}/{path}", rested)
        row = kept.get(path)
        if row is None or look is None or row[:4] != look:
            try:
                row = _row(look, cards.load(base, path))
            except Unreadable:
                continue
            fresh += 1
        rows[path] = row
        card = _card(path, row)
        if found.setdefault(card.id, card) is card and row[-1]:
            claims.setdefault(row[-1], []).append(card.id)
    if fresh > FEW or len(kept) > len(rows) + FEW:
        _keep(base, rows)
    return Catalogue(found, claims, paths)


def _look(place: str, rested: int) -> Look | None:
    """The file's size, times and inode; None where it changed after `rested`, too lately for them to tell."""
    try:
        seen = os.stat(place)  # noqa: PTH116  a Path for each of 10,000 files costs more than the look
    except OSError:
        return None
    if seen.st_mtime_ns > rested or seen.st_ctime_ns > rested:
        return None
    return [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino]


def _row(look: Look | None, card: Card) -> Row:
    links = [list(getattr(card.links, name)) for name in RELATIONS]
    texts = [card.id, card.type, card.level, card.status, card.title, card.scope, card.evidence, card.source, card.date]
    return [
        *(look or (0, 0, 0, 0)),
        *texts,
        list(card.tags),
        links if any(links) else None,
        card.body_line,
        key(claim(card.body)),
    ]


def _card(path: str, row: Row) -> Card:
    _, _, _, _, card_id, kind, level, status, title, scope, evidence, source, date, tags, links, body_line, _ = row
    return Card(
        id=card_id,
        type=kind,
        level=level,
        status=status,
        title=title,
        tags=tuple(tags),
        scope=scope,
        evidence=evidence,
        source=source,
        date=date,
        links=Links(*map(tuple, links)) if links else NO_LINKS,
        path=path,
        body_line=body_line,
    )


def _load(base: Base) -> dict[str, Row]:
    try:
        value = files.read_json(base.state / "cards.json")
        if value["schema"] == SCHEMA and all(len(row) == 17 for row in value["cards"].values()):
            rows: dict[str, Row] = value["cards"]
            return rows
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return {}


def _keep(base: Base, rows: dict[str, Row]) -> None:
    """Writes what was read; where that fails, the next run reads again."""
    try:
        local.make(base)
        text = json.dumps({"schema": SCHEMA, "cards": rows}, separators=(",", ":"))
        files.write_atomic(base.state / "cards.json", text.encode("utf-8"))
    except KhmsError:
        pass
