"""opencode's transcripts: one SQLite database for all sessions, `~/.local/share/opencode/opencode.db` (XDG_DATA_HOME
moves the folder). The path of a session is the database's with the session's id below it.

What was seen with 1.18: a message's words and tool calls are rows of `part`, changed in place until they are done; a
part that says `synthetic` was put in by a plugin or the host. A sub-agent is a session with a parent.

The host is never in the way of being read, and never read half written: where it has a write-ahead log, readers and
the writer do not meet; where it has none, nothing is open. Reading makes no file in the host's folder.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from khms.hosts.base import home
from khms.hosts.transcripts.base import AGENT, CALL, FAILED, INJECTED, OK, OUTCOME, USER, Record, Session, modified
from khms.hosts.transcripts.lines import LONGEST, Line, number, opened, parsed, told
from khms.hosts.transcripts.words import error_lines, seconds, text_of, texts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from typing import Any

HOST = "opencode"
_WAIT = 1.0  # seconds for which the owner's lock is waited for
_MAGIC = b"SQLite format 3\0"
_LISTED = "SELECT id, directory, time_updated FROM session WHERE parent_id IS NULL ORDER BY time_created, id"
_CHILDREN = "SELECT id FROM session WHERE parent_id = ? ORDER BY time_created, id"
_MESSAGES = (
    "SELECT id, time_created, CASE WHEN length(data) <= ? THEN data END FROM message"
    " WHERE session_id = ? AND (time_created, id) >= (?, ?) ORDER BY time_created, id"
)
_PARTS = (
    "SELECT id, time_created, CASE WHEN length(data) <= ? THEN data END FROM part"
    " WHERE message_id = ? AND id > ? ORDER BY id"
)
_BEFORE = (
    "SELECT 1 FROM part JOIN message ON message.id = part.message_id"
    " WHERE message.session_id = ? AND (message.time_created, message.id, part.id) <= (?, ?, ?) LIMIT 1"
)
_LAST = "SELECT id FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1"


def sessions() -> Iterator[Session]:
    """A database that cannot be read comes as one session: reading it tells the reason."""
    for path in sorted(home("XDG_DATA_HOME", ".local", "share").glob("opencode/opencode*.db")):
        try:
            with _connected(path) as base:
                rows = base.execute(_LISTED).fetchall()
        except OSError:
            yield Session(HOST, path.stem, path, "", modified(path))
            continue
        for identity, folder, changed in rows:
            yield Session(HOST, _text(identity), path / _text(identity), _text(folder), seconds(changed))


def cwd(session: Session) -> str:
    return session.cwd


def threads(path: Path) -> list[Path]:
    try:
        with _connected(path.parent) as base:
            return [path, *(path.parent / _text(row[0]) for row in base.execute(_CHILDREN, (path.name,)))]
    except OSError:
        return [path]


def records(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    database, session = (path, "") if path.is_file() else (path.parent, path.name)
    with _connected(database) as base:
        child = base.execute("SELECT parent_id FROM session WHERE id = ?", (session,)).fetchone()
        if child is None:
            raise OSError(f"no such session: {path}")
        for line, message in _rows(base, session, since, tally):
            yield from told(line, _records(line.value, message, child[0] is not None), tally)


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """The database for reading; what SQLite finds wrong with it is an OSError, here and in what is done with it."""
    with opened(path) as file:  # a pipe would be waited for, for ever
        if file.read(len(_MAGIC)) != _MAGIC:
            raise OSError(f"not a database: {path}")
    with ExitStack() as stack:
        log, shared = Path(f"{path}-wal"), Path(f"{path}-shm")
        how = "mode=ro"
        if modified(Path(f"{path}-journal")):
            raise OSError(f"in the middle of a change: {path}")
        if not (log.exists() and log.stat().st_size):
            how = "immutable=1"
        elif not shared.exists():
            # Its owner holds it for itself, or is gone without an end: read as it is on the disk, elsewhere.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="khms-")))
            for file_path in (path, log):
                shutil.copyfile(file_path, folder / file_path.name)
            path = folder / path.name
        try:
            base = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=_WAIT, isolation_level=None)
            stack.callback(base.close)
            base.text_factory = bytes
            for pragma in ("query_only=ON", "trusted_schema=OFF"):
                base.execute(f"PRAGMA {pragma}")
            base.execute("BEGIN")
            yield base
        except sqlite3.Error as error:
            raise OSError(f"{error}: {path}") from error


def _rows(
    base: sqlite3.Connection, session: str, since: str, tally: Counter[str]
) -> Iterator[tuple[Line, dict[str, Any]]]:
    """The parts after a position with their messages, message by message."""
    place, _, skip = since.partition("+")
    created, message_id, part_id = _place(place)
    known = not place or base.execute(_BEFORE, (session, created, message_id, part_id)).fetchone()
    if not known or (since and number(skip or "0") < 0):
        tally["anew"] += 1
        place, skip, created, message_id, part_id = "", "", 0, "", ""
    before, last = place, _text((base.execute(_LAST, (session,)).fetchone() or (b"",))[0])
    for identity, at, data in base.execute(_MESSAGES, (LONGEST, session, created, message_id)):
        owner = _text(identity)
        message = parsed(data) if isinstance(data, bytes) else None
        after_part = part_id if owner == message_id else ""
        for part_identity, written, part in base.execute(_PARTS, (LONGEST, identity.decode(), after_part)):
            tally["lines"] += 1
            value = parsed(part) if isinstance(part, bytes) else None
            if part is None:
                tally["long"] += 1
            elif value is None or message is None:
                tally["garbage"] += 1
            elif owner == last and _goes_on(message, value):
                tally["torn"] += 1
                return
            else:
                after = f"{at}/{owner}/{_text(part_identity)}"
                value |= {"id": owner, "at": seconds(written)}
                yield Line(value, before, after, number(skip or "0"), False), message
                before = after
            skip = ""


def _place(place: str) -> tuple[int, str, str]:
    created, _, rest = place.partition("/")
    message, _, part = rest.partition("/")
    return (number(created), message, part) if part else (-1, "", "")


def _goes_on(message: dict[str, Any], part: dict[str, Any]) -> bool:
    """Whether the host is still at this part of the last message."""
    time, state, own = message.get("time"), part.get("state"), part.get("time")
    if message.get("role") != "assistant" or message.get("error") or (isinstance(time, dict) and "completed" in time):
        return False
    if part.get("type") == "tool":
        return isinstance(state, dict) and state.get("status") in ("pending", "running")
    return part.get("type") == "text" and not (isinstance(own, dict) and "end" in own)


def _records(part: dict[str, Any], message: dict[str, Any], side: bool) -> list[Record] | str:
    kind, role, identity, at = part.get("type"), message.get("role"), part["id"], part["at"]
    if kind == "tool":
        return list(_called(part, identity, at))
    if kind != "text":
        return "thinking" if kind == "reasoning" else "chrome"
    words = text_of(part.get("text"))
    if part.get("ignored") is True:
        return "chrome"
    if part.get("synthetic") is True:
        return [Record(INJECTED, identity, at, words)]
    if role == "user":
        return "sidechain" if side else [Record(USER, identity, at, words)]
    return "summary" if message.get("summary") is True else [Record(AGENT, identity, at, words)]


def _called(part: dict[str, Any], identity: str, at: float) -> Iterator[Record]:
    tool, state = text_of(part.get("tool")), part.get("state")
    state = state if isinstance(state, dict) else {}
    yield Record(CALL, identity, at, "\n".join(texts(state.get("input"))), tool)
    held, time = state.get("metadata"), state.get("time")
    at = seconds(time.get("end")) if isinstance(time, dict) and time.get("end") else at
    code = held.get("exit") if isinstance(held, dict) else None
    if state.get("status") != "completed":
        yield Record(OUTCOME, identity, at, error_lines(text_of(state.get("error")), first=True), tool, FAILED)
    elif isinstance(code, int) and code:
        yield Record(OUTCOME, identity, at, error_lines(text_of(state.get("output"))), tool, f"exit {code}")
    else:
        yield Record(OUTCOME, identity, at, "", tool, OK)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else text_of(value)
