"""What of the agents' sessions is new for a base, as chunks of digests.

Which sessions are the base's is told by the folder that they ran in, or by the pointer that a hook of this base left.
A session that its user kept to himself, and khms's own calls, are never read. What could not be read is told.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from khms.config import Config
from khms.hosts import transcripts
from khms.hosts.transcripts.base import Record, Session, modified
from khms.model.finding import Finding
from khms.pipeline import commits, cursors, digest
from khms.pipeline.cursors import Cursor
from khms.pipeline.digest import Chunk, Own
from khms.store import files
from khms.store.layout import Base

if TYPE_CHECKING:
    from khms.hosts.transcripts.base import Reader

SCHEMA = "khms.gathered/1"
ALL, NONE = "all", "none"
POINTERS = "run"
_DAY = 86400.0


@dataclass(frozen=True)
class Gathered:
    """`ends` says for each transcript that was opened where reading ended; `notes` tells a person what was and was not
    read."""

    chunks: tuple[Chunk, ...] = ()
    ends: Mapping[str, Cursor] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "chunks": [chunk.as_json() for chunk in self.chunks],
            "ends": {key: cursor.as_json() for key, cursor in self.ends.items()},
            "problems": [problem.as_json() for problem in self.problems],
            "notes": list(self.notes),
        }

    def moved(self, unread: frozenset[str]) -> dict[str, Cursor]:
        """The cursors after a run in which the chunks of these paths were not asked about: each stands behind the last
        chunk before the first of them."""
        found = dict(self.ends)
        held: set[str] = set()
        for chunk in self.chunks:
            if chunk.path in unread and chunk.key not in held:
                held.add(chunk.key)
                found[chunk.key] = Cursor(_before(self.chunks, chunk))
        return {key: cursor for key, cursor in found.items() if cursor.position or cursor.modified or cursor.own}


def _before(chunks: tuple[Chunk, ...], first: Chunk) -> str:
    """The position behind the chunk that stands before `first` in the same transcript, else where that began."""
    position = ""
    for chunk in chunks:
        if chunk is first:
            return position
        if chunk.key == first.key:
            position = chunk.after
    return position


@dataclass
class _Work:
    """One gathering under way."""

    base: Base
    config: Config
    held: Mapping[str, Cursor]
    since: float
    day: str
    chunks: list[Chunk] = field(default_factory=list)
    ends: dict[str, Cursor] = field(default_factory=dict)
    problems: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    tally: Counter[str] = field(default_factory=Counter)

    @property
    def full(self) -> bool:
        return len(self.chunks) >= int(self.config["nightly.max_chunks"])


def gather(base: Base, config: Config, day: str, left_alone: Callable[[str], bool]) -> Gathered:
    """The new chunks of all configured sources, the oldest sessions first. `left_alone` knows the sessions that their
    user switched off. Nothing is written."""
    since = time.time() - float(config["nightly.first_days"]) * _DAY
    work = _Work(base, config, cursors.load(base), since, day)
    pointers = _pointers(base)
    for reader, session in sorted(_sessions(config, pointers, work), key=lambda row: (row[1].modified, row[1].id)):
        _session(work, reader, session, session.id in pointers, left_alone)
    for name, path in dict(config["nightly.logs"]).items():
        _log(work, name, Path(path).expanduser())
    for name, path in dict(config["nightly.repositories"]).items():
        _commits(work, name, Path(path).expanduser())
    return Gathered(tuple(work.chunks), work.ends, tuple(work.problems), tuple(_notes(work)))


def _sessions(config: Config, pointers: Mapping[str, Session], work: _Work) -> Iterator[tuple[Reader, Session]]:
    wanted = [name.strip() for name in config["nightly.transcripts"].split(",") if name.strip() not in ("", NONE)]
    hosts = list(transcripts.READERS) if ALL in wanted else [host for host in wanted if host in transcripts.READERS]
    for host in wanted:
        if host != ALL and host not in transcripts.READERS:
            said = f"khms reads no transcripts of {host!r}"
            hint = "one of: " + ", ".join((ALL, NONE, *transcripts.READERS))
            work.problems.append(Finding("KH001", "warning", "khms.toml", 0, said, hint))
    for host in hosts:
        reader = transcripts.reader(host)
        if reader is None:
            continue
        seen = set()
        try:
            for session in reader.sessions():
                seen.add(session.path)
                yield reader, session
        except OSError as error:
            work.problems.append(_problem(f"transcripts of {host}", f"they cannot be listed: {error}"))
        for session in pointers.values():
            if session.host == host and session.path not in seen:
                yield reader, session


def _pointers(base: Base) -> dict[str, Session]:
    """Sessions that a hook of this base pointed to, by id."""
    found = {}
    folder = base.local / POINTERS
    for path in sorted(folder.glob("digest-*.json")) if folder.is_dir() else ():
        try:
            value = files.read_json(path)
            where = Path(value["transcript"])
            session = Session(str(value["host"]), str(value["session"]), where, str(value["cwd"]), modified(where))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found[session.id] = session
    return found


def _session(work: _Work, reader: Reader, session: Session, pointed: bool, left_alone: Callable[[str], bool]) -> None:
    key = f"{session.host}:{session.path}"
    if _read_before(work, key, session):
        return
    if key not in work.held and session.modified and session.modified < work.since:
        work.counts["older"] += 1
        return
    if left_alone(session.id):
        work.counts["left alone"] += 1
        return
    try:
        if not pointed and not _belongs(work, cwd := _cwd(reader, session)):
            work.counts["of other bases" if cwd else "that tell no folder"] += 1
            return
    except OSError as error:
        work.problems.append(_problem(key, f"it cannot be read: {error}"))
        return
    of = digest.source(session.host, session.id)
    _read(work, key, of, session, lambda since: reader.records(session.path, since, work.tally))


def _read_before(work: _Work, key: str, session: Session) -> bool:
    """Whether nothing of it can be new: it is khms's own call, or has not changed since it was read to its end."""
    cursor = work.held.get(key, Cursor())
    if not cursor.own and not (cursor.modified and cursor.modified == session.modified):
        return False
    work.counts["read before"] += 1
    return True


def _cwd(reader: Reader, session: Session) -> str:
    """The folder that the session ran in; empty where it tells none. Raises OSError for a session that cannot be read:
    that is another thing than one of another base."""
    found = session.cwd or reader.cwd(session)
    if not found:
        next(reader.records(session.path, "", Counter()), None)
    return found


def _read(work: _Work, key: str, of: str, session: Session, records: Callable[[str], Iterator[Record]]) -> None:
    """The chunks of one source from its cursor on, up to the bound."""
    if work.full:
        work.counts["waiting"] += 1
        return
    since, torn = work.held.get(key, Cursor()).position, work.tally["torn"]
    last = [since]

    def told() -> Iterator[Record]:
        for record in records(since):
            if since or not record.at or record.at >= work.since:
                yield record
            last[0] = record.position or last[0]

    size = int(work.config["nightly.chunk_chars"])
    start = len(work.chunks)
    try:
        for chunk in digest.chunks(told(), of=of, key=key, session=session.id, day=work.day, size=size):
            work.chunks.append(chunk)
            if work.full:
                work.ends[key] = Cursor(chunk.after)
                work.counts["read"] += 1
                return
    except Own:
        del work.chunks[start:]
        work.ends[key] = Cursor(own=True)
        work.counts["khms's own"] += 1
        return
    except OSError as error:
        del work.chunks[start:]
        work.problems.append(_problem(key, f"it cannot be read: {error}"))
        return
    # A last line that is not whole yet may be whole later without a change of the file: it is to be looked at again.
    work.ends[key] = Cursor(last[0], session.modified if work.tally["torn"] == torn else 0.0)
    work.counts["read" if len(work.chunks) > start else "without news"] += 1


def _belongs(work: _Work, cwd: str) -> bool:
    """Whether a session that ran in this folder is this base's: the nearest base above it, or the user's own base where
    there is none."""
    from khms.store import layout

    try:
        found = layout.walk(Path(cwd)) if Path(cwd).is_absolute() else None
    except (OSError, ValueError, RuntimeError):
        return False
    if found is not None:
        return found.root.resolve() == work.base.root.resolve()
    own = work.config["base.default"]
    return bool(own) and Path(own).expanduser().resolve() == work.base.root.resolve()


def _log(work: _Work, name: str, path: Path) -> None:
    from khms.hosts.transcripts import logs

    session = Session("log", name, path, modified=modified(path))
    key = f"log:{path}"
    if not _read_before(work, key, session):
        _read(work, key, digest.source("log", name), session, lambda since: logs.records(path, since, work.tally))


def _commits(work: _Work, name: str, path: Path) -> None:
    session = Session("git", name, path)
    _read(
        work, f"git:{path}", digest.source("git", name), session, lambda since: commits.records(path, since, work.since)
    )


def _problem(where: str, said: str) -> Finding:
    """The name of a file need not be text in any encoding, and a report is."""
    where, said = (text.encode("utf-8", "backslashreplace").decode("utf-8") for text in (where, said))
    return Finding("KH001", "warning", where, 0, said, "check the file and its permissions")


def _notes(work: _Work) -> Iterator[str]:
    """What was read, and what was not, in one line each. Nothing found is said too: it is not inferred."""
    counts = work.counts
    parts = [f"{counts[what]} {what}" for what in ("read", "without news", "read before", "older", "left alone",
             "of other bases", "that tell no folder", "khms's own", "waiting") if counts[what]]  # fmt: skip
    yield f"sessions and logs: {', '.join(parts) or 'none found'}; {len(work.chunks)} chunks to look through"
    odd = {kind: work.tally[kind] for kind in ("garbage", "long", "torn", "anew") if work.tally[kind]}
    if odd:
        told = {"garbage": "make no sense", "long": "are too long", "torn": "are still being written",
                "anew": "files were rotated or cut and read from their start"}  # fmt: skip
        yield "of the transcripts' lines: " + ", ".join(f"{count} {told[kind]}" for kind, count in odd.items())
    if counts["waiting"]:
        yield f"{counts['waiting']} of them wait for the next run (nightly.max_chunks)"


def gathered_from(value: Mapping[str, Any]) -> Gathered:
    """What a file of an earlier process holds; raises KeyError, TypeError or ValueError for what is none."""
    if value["schema"] != SCHEMA:
        raise ValueError("it is of another form")
    return Gathered(
        tuple(digest.chunk_from(one) for one in value["chunks"]),
        {str(key): cursors.cursor_from(row) for key, row in value["ends"].items()},
        tuple(Finding(**{key: row[key] for key in ("code", "severity", "path", "line", "message", "mend")})
              for row in value["problems"]),
        tuple(map(str, value["notes"])),
    )  # fmt: skip


def file_bytes(found: Gathered) -> bytes:
    return (json.dumps(found.as_json()) + "\n").encode("ascii")
