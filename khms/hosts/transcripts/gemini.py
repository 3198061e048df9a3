"""Gemini CLI's transcripts: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`, those of sub-agents in a folder
`chats/<session>/`; GEMINI_CLI_HOME stands for the home folder where it is set.

What was seen with 0.61: the file is a log of writes. A message is written again, with the same id, when its tool calls
are known, and then once more as a user's message of their answers; `$set` changes the session's own record, and puts
messages there that the host made or that stand elsewhere in the file. The last write of a message counts, so one is
held back until another follows. What a write adds to a message that was told is told as well.

Older versions rewrote one JSON document at each turn, `session-….json`: there the position counts messages.
"""

from __future__ import annotations

import html
import json
import re
from collections import OrderedDict
from typing import TYPE_CHECKING
from zlib import crc32

from khms.hosts.base import home
from khms.hosts.transcripts import lines
from khms.hosts.transcripts.base import AGENT, CALL, FAILED, INJECTED, OK, OUTCOME, USER, Record, Session, modified
from khms.hosts.transcripts.lines import Line, head, json_lines, opened, told
from khms.hosts.transcripts.words import blocks, error_lines, seconds, text_of, texts, without

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

HOST = "gemini"
KEPT = 1000  # messages whose last write is kept in mind
LARGEST = 8 * lines.LONGEST  # bytes of a whole document; a larger one is not read
_HEAD = 4096
_ID = re.compile(rb'"sessionId"\s*:\s*"([A-Za-z0-9._-]{1,128})"')
_HOOKED = re.compile(r"<hook_context>(.*?)(?:</hook_context>|\Z)", re.DOTALL)
_FILES = re.compile(r"\n?--- Content from referenced files ---.*?(?:--- End of content ---|\Z)", re.DOTALL)
_CHROME = ("<session_context>", "<state_snapshot>", "This is the Gemini CLI. We are setting up the context")
_EXIT = re.compile(r"^Exit Code: (-?\d{1,6})\s*$", re.MULTILINE)
_SIDE = "subagent"
_ENDED = ("success", "error", "cancelled")


def sessions() -> Iterator[Session]:
    """The id stands in the file's first record, its name has the beginning of it."""
    root = _home()
    for path in sorted(root.glob("tmp/*/chats/session-*.json*")):
        if path.suffix in (".json", ".jsonl"):
            yield Session(HOST, _identity(path), path, "", modified(path))


def cwd(session: Session) -> str:
    """The folder of the project, which the host keeps beside the chats, or in its list of projects."""
    project = session.path.parent.parent
    try:
        with opened(project / ".project_root") as file:
            return file.read(_HEAD).decode("utf-8", "replace").strip()
    except OSError:
        pass
    try:
        with opened(_home() / "projects.json") as file:
            held = lines.parsed(file.read(lines.LONGEST)) or {}
    except OSError:
        return ""
    known = held.get("projects")
    return next((path for path, slug in known.items() if slug == project.name), "") if isinstance(known, dict) else ""


def threads(path: Path) -> list[Path]:
    return [path, *sorted((path.parent / _identity(path)).glob("*.jsonl"))]


def records(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    if path.suffix == ".json":
        yield from _document(path, since, tally)
        return
    state = _State(side=any(record.get("kind") == _SIDE for record in head(path, 1)))
    held: Line | None = None
    for line in json_lines(path, since, tally):
        message = line.value
        if isinstance(message.get("id"), str) and isinstance(message.get("type"), str):
            over = held and held.value["id"] == message["id"] and not held.skip and not held.known
            if held:
                yield from told(held, "rewritten" if over else state.records(held.value, held.after), tally)
            held = line
            continue
        patch = message.get("$set")
        found: list[Record | None] = []
        if isinstance(patch, dict) and isinstance(patch.get("messages"), list):
            if held:
                yield from told(held, state.records(held.value, held.after), tally)
            held, found = None, _patched(patch["messages"], state)
        yield from told(line, found or "chrome", tally)
    if held:
        yield from told(held, state.records(held.value, held.after), tally)


class _State:
    """What of each message has been told: its text, and how far its tool calls have come."""

    def __init__(self, side: bool) -> None:
        self._side, self._newest = side, 0.0
        self._told: OrderedDict[str, set[object]] = OrderedDict()

    def is_new(self, message: dict[str, Any]) -> bool:
        return text_of(message.get("id")) not in self._told and seconds(message.get("timestamp")) > self._newest

    def records(self, message: dict[str, Any], place: str) -> list[Record | None] | str:
        """All that a write holds, None standing for what an earlier write of the message held too."""
        identity, at = text_of(message.get("id")) or place, seconds(message.get("timestamp"))
        known = self._told.setdefault(identity, set())
        self._told.move_to_end(identity)
        if len(self._told) > KEPT:
            self._told.popitem(last=False)
        self._newest = max(self._newest, at)
        kind = message.get("type")
        if kind == "gemini":
            keyed = list(_answered(message, identity, at))
        elif kind == "user":
            asked = _asked(message, identity, at, self._side)
            if isinstance(asked, str):
                return asked
            keyed = [(record.role, record) for record in asked]
        else:
            return "chrome"
        found = [None if key in known else record for key, record in keyed]
        known.update(key for key, _ in keyed)
        return found


def _patched(messages: list[object], state: _State) -> list[Record | None]:
    """Messages that stand nowhere but in a change of the session's record: those later than all that were told."""
    found: list[Record | None] = []
    for message in messages:
        if isinstance(message, dict) and state.is_new(message):
            told_now = state.records(message, "")
            found += told_now if isinstance(told_now, list) else ()
    return found


def _asked(message: dict[str, Any], identity: str, at: float, side: bool) -> list[Record] | str:
    parts = blocks(message.get("content"))
    if parts and all("functionResponse" in part for part in parts):
        return "duplicate"
    whole = "".join(text_of(part.get("text")) for part in parts)
    hooked = "\n".join(html.unescape(text) for text in _HOOKED.findall(whole))
    found = [Record(INJECTED, identity, at, hooked)] if hooked.strip() else []
    if side:
        return found or "sidechain"
    shown = blocks(message.get("displayContent")) or parts
    typed = "\n".join(text_of(part.get("text")) for part in shown if not _is_chrome(part))
    typed = without(_HOOKED.sub("", _FILES.sub("", typed)), "session_context")
    if typed.strip():
        found.append(Record(USER, identity, at, typed))
    return found or "chrome"


def _is_chrome(part: dict[str, object]) -> bool:
    return text_of(part.get("text")).lstrip().startswith(_CHROME)


def _answered(message: dict[str, Any], identity: str, at: float) -> Iterator[tuple[object, Record]]:
    """The records of one of the model's messages, each with what tells it from others of that message."""
    said = "\n".join(text_of(part.get("text")) for part in blocks(message.get("content")) if not part.get("thought"))
    if said.strip():
        yield hash(said), Record(AGENT, identity, at, said)
    calls = message.get("toolCalls")
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, dict):
            continue
        key, tool = text_of(call.get("id")) or str(number), text_of(call.get("name"))
        yield f"call {key}", Record(CALL, identity, at, "\n".join(texts(call.get("args"))), tool)
        if call.get("status") in _ENDED:
            yield f"end {key}", _outcome(call, identity, seconds(call.get("timestamp")) or at, tool)


def _outcome(call: dict[str, Any], identity: str, at: float, tool: str) -> Record:
    output = "\n".join(texts([_response(part) for part in blocks(call.get("result"))]))
    code = _EXIT.search(output)
    if code and code[1] != "0":
        lines = (line.removeprefix("Output: ") for line in output.splitlines() if not _EXIT.match(line))
        return Record(OUTCOME, identity, at, error_lines("\n".join(lines)), tool, f"exit {code[1]}")
    if call.get("status") == "success":
        return Record(OUTCOME, identity, at, "", tool, OK)
    said = output or text_of(call.get("resultDisplay"))
    return Record(OUTCOME, identity, at, error_lines(said, first=True), tool, FAILED)


def _response(part: dict[str, object]) -> object:
    held = part.get("functionResponse")
    return held.get("response") if isinstance(held, dict) else None


def _document(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    """The older form. The last message may yet get more: its place is that of what was told of it."""
    with opened(path) as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(f"too large to be read as one document: {path}")
    try:
        held = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise OSError(f"not a JSON document: {path}") from None
    held = held if isinstance(held, dict) else {}
    state, messages = _State(side=held.get("kind") == _SIDE), held.get("messages")
    messages = messages if isinstance(messages, list) else []
    places = list(_places(messages))
    given, _, skip = since.partition("+")
    if since and given not in places:
        tally["anew"] += 1
        given, skip = places[0], ""
    start = places.index(given or places[0])
    for number, message in enumerate(messages):
        skipped = max(0, lines.number(skip)) if number == start else 0
        line = Line(message, places[number], places[number + 1], skipped, number < start)
        tally["lines"] += not line.known
        found = state.records(message, line.after) if isinstance(message, dict) else "unknown shape"
        yield from told(line, found, tally, open_end=number == len(messages) - 1)


def _places(messages: list[Any]) -> Iterator[str]:
    """The positions around the messages: how many stand before, and the checksum of all their ids."""
    check = 0
    yield "0-00000000"
    for number, message in enumerate(messages, 1):
        identity = text_of(message.get("id")) if isinstance(message, dict) else ""
        check = crc32(f"{identity}\n".encode("utf-8", "replace"), check)
        yield f"{number}-{check:08x}"


def _identity(path: Path) -> str:
    try:
        with opened(path) as file:
            found = _ID.search(file.read(_HEAD))
    except OSError:
        found = None
    return found[1].decode("ascii") if found else path.stem.removeprefix("session-")


def _home() -> Path:
    return home("GEMINI_CLI_HOME") / ".gemini"
