"""Reading a file of lines from a position on, and placing what is told of each line.

A position is the number of bytes read and the checksum of all of them, so that it fits only the very file it was taken
from, however that file came to be another one. What stands shortly before it is read again in silence: calls and their
outcomes, or two records of one thing, may lie on either side.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from khms.hosts.transcripts.base import INJECTED, OUTCOME, Record
from khms.hosts.transcripts.words import unframed, whole

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any, BinaryIO

LONGEST = 8 * 1024 * 1024  # bytes of a line; a longer one is passed over, so that memory stays bounded
REMEMBERED = 256 * 1024  # bytes before a position that are read again
_CHUNK = 256 * 1024
_BLANK = b" \t\r\n\0"  # a crash of the machine leaves zeros where the end of a file was to be


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, `value` being what it holds. `before` and `after` are the positions around it, `skip` how
    many of its records have been told. A `known` line stands before the position: it is to be learnt from only."""

    value: Any
    before: str
    after: str
    skip: int
    known: bool


def json_lines(path: Path, since: str, tally: Counter[str]) -> Iterator[Line]:
    """The lines that hold a JSON object. A last line without an end counts as whole if it is one."""
    for line in raw_lines(path, since, tally):
        raw: bytes = line.value
        value = parsed(raw)
        if value is not None:
            yield Line(value, line.before, line.after, line.skip, line.known)
        elif not line.known:
            tally["garbage" if raw.endswith(b"\n") else "torn"] += 1


def parsed(raw: bytes) -> dict[str, Any] | None:
    """The JSON object that a line holds, None for anything else."""
    text = raw.strip(_BLANK)
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return None
    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def told(
    line: Line, records: Iterable[Record | None] | str, tally: Counter[str], *, open_end: bool = False
) -> Iterator[Record]:
    """The records of one line with their positions, those told before left out; counts the line. A text in their place
    is the reason why there are none; None among them stands for one that an earlier line told. With `open_end` the line
    may yet get more of them, so that no position is behind it.

    Here at the latest, what khms itself had put in is cut out of what was said, so no reader can forget it."""
    if line.known:
        return
    if isinstance(records, str):
        tally[f"skipped:{records}"] += 1
        return
    kept = [(record, text) for record in records if (text := _words(record)) is not None]
    tally["used" if any(record for record, _ in kept) else "skipped:rewritten" if kept else "skipped:empty"] += 1
    for place, (record, text) in enumerate(kept, 1):
        if record and place > line.skip:
            position = line.after if place == len(kept) and not open_end else f"{line.before}+{place}"
            identity, tool = whole(record.id), whole(record.tool)
            yield Record(record.role, identity, record.at, text, tool, record.state, position)


def raw_lines(path: Path, since: str, tally: Counter[str]) -> Iterator[Line]:
    """Each line that is not blank, with its end if it has one; one that is longer than LONGEST is counted and left out.
    The file's end as it is met is the end, even if the file grows meanwhile."""
    with opened(path) as file:
        offset, check, skip, remembered = _found(file, since)
        if since and offset < 0:
            tally["anew"] += 1
        if offset < 0:
            file.seek(0)
            offset = check = skip = 0
        for raw in remembered:
            if raw.strip(_BLANK):
                yield Line(raw, "", "", 0, True)
        while raw := file.readline(LONGEST):
            before = f"{offset}-{check:08x}"
            long = len(raw) == LONGEST and not raw.endswith(b"\n")
            while True:
                offset, check = offset + len(raw), crc32(raw, check)
                if not long or not raw or raw.endswith(b"\n"):
                    break
                raw = file.readline(_CHUNK)
            if long:
                tally["lines"] += 1
                tally["long" if raw else "torn"] += 1
            elif raw.strip(_BLANK):
                tally["lines"] += 1
                yield Line(raw, before, f"{offset}-{check:08x}", skip, False)
            if not raw.endswith(b"\n"):
                return
            skip = 0


def opened(path: Path) -> BinaryIO:
    """A regular file, open for reading; raises OSError for anything else. A pipe is not waited for."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = open(fd, "rb", buffering=_CHUNK)  # noqa: SIM115
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return file
    file.close()
    raise OSError(f"not a regular file: {path}")


def head(path: Path, most: int = 64) -> Iterator[dict[str, Any]]:
    """The JSON objects among the first lines of a file; nothing where it cannot be read."""
    try:
        with opened(path) as file:
            for _ in range(most):
                raw = file.readline(LONGEST)
                if not raw.endswith(b"\n") and len(raw) == LONGEST:
                    return
                if (value := parsed(raw)) is not None:
                    yield value
    except OSError:
        return


def number(text: str) -> int:
    """The number that a position has there; -1 where there is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1


def _found(file: BinaryIO, since: str) -> tuple[int, int, int, list[bytes]]:
    """The place of a position in the file, read up to there: bytes, checksum, records told of the next line, and the
    lines shortly before. The bytes are -1 where it has no such place."""
    nowhere = -1, 0, 0, list[bytes]()
    place, _, skip = since.partition("+")
    length, dash, check = place.partition("-")
    if not dash or number(length) < 0 or number(skip or "0") < 0:
        return nowhere
    offset, seen, last = number(length), 0, b""
    if offset > os.fstat(file.fileno()).st_size:
        return nowhere
    left = offset
    while left:
        chunk = file.read(min(_CHUNK, left))
        if not chunk:
            return nowhere
        left -= len(chunk)
        seen = crc32(chunk, seen)
        last = (last + chunk)[-REMEMBERED:] if left < REMEMBERED else chunk
    if f"{seen:08x}" != check:
        return nowhere
    lines = last.splitlines(keepends=True)
    return offset, seen, number(skip or "0"), lines if len(last) == offset else lines[1:]


def _words(record: Record | None) -> str | None:
    """The record's text as it may be told, empty for None; None where nothing is left of it."""
    if record is None:
        return ""
    text = whole(record.text) if record.role == INJECTED else unframed(whole(record.text))
    if not text.strip() and record.role != OUTCOME and not record.tool:
        return None
    return text.strip("\n")
