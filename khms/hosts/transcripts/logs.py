"""Plain logs, which belong to no host: Markdown or text, and JSON lines of any make. Which ones, a person says.

In Markdown a record is a paragraph, a fenced block in one piece. A heading or a line such as `User:` says whose words
follow; where nobody is named they are AGENT's, because nothing shows that a person said them. In JSON lines the usual
names are looked for: a role, a text, a time. Both are read on as they grow.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from khms.hosts.transcripts.base import AGENT, CALL, FAILED, OK, OUTCOME, USER, Record, modified
from khms.hosts.transcripts.lines import Line, json_lines, raw_lines, told
from khms.hosts.transcripts.pairs import Pairs
from khms.hosts.transcripts.words import blocks, error_lines, seconds, text_of, texts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

JSON = (".jsonl", ".ndjson")
PARAGRAPH = 64 * 1024  # bytes after which a paragraph is told though it goes on
SETTLED = 60.0  # seconds without a change after which a last line without an end is whole
_USERS = ("user", "human", "me", "you", "person", "operator")
_AGENTS = ("assistant", "agent", "ai", "model", "bot", "claude", "codex", "gemini", "copilot", "gpt", "chatgpt")
_SPEAKER = re.compile(r"^(?:#{1,6}\s+)?(?:[-*]\s+)?\*{0,2}(\w{1,20})\*{0,2}\s*(:?)\*{0,2}\s*(.*)$", re.DOTALL)
_FENCE = re.compile(r"^\s{0,3}(```|~~~)")
_ROLES, _TEXTS = ("role", "type", "author", "sender", "speaker", "from"), ("content", "text", "message", "body", "msg")
_TIMES = ("timestamp", "time", "ts", "at", "created_at", "date")
_THOUGHT = ("thinking", "redacted_thinking", "reasoning")


def records(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    if path.suffix.lower() not in JSON:
        yield from _paragraphs(path, since, tally)
        return
    calls = Pairs()
    for line in json_lines(path, since, tally):
        yield from told(line, _records(line.value, line.after, calls), tally)


def _paragraphs(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    settled = time.time() - modified(path) > SETTLED
    role, fence, size = AGENT, "", 0
    held: list[Line] = []
    for line in raw_lines(path, since, tally):
        raw: bytes = line.value
        if held and (held[-1].known != line.known or size > PARAGRAPH or (not fence and _apart(held[-1], line))):
            role, told_now = _paragraph(held, role)
            yield from _told(held, told_now, tally)
            held, size, fence = [], 0, "" if size > PARAGRAPH else fence
        if not raw.endswith(b"\n") and not settled and not line.known:
            tally["torn"] += 1
            break
        held.append(line)
        size += len(raw)
        if mark := _FENCE.match(raw[:8].decode("utf-8", "replace")):
            fence = mark[1] if not fence else "" if fence == mark[1] else fence
    if held:
        yield from _told(held, _paragraph(held, role)[1], tally)


def _apart(before: Line, line: Line) -> bool:
    """Whether something blank stands between the two lines, or a heading begins."""
    return before.after != line.before or bytes(line.value).startswith(b"#")


def _told(held: list[Line], found: list[Record] | str, tally: Counter[str]) -> Iterator[Record]:
    whole = replace(held[-1], before=held[0].before, skip=held[0].skip)
    if not whole.known and len(held) > 1:
        more: Counter[str] = type(tally)()
        yield from told(whole, found, more)
        tally.update({name: len(held) for name in more})
        return
    yield from told(whole, found, tally)


def _paragraph(held: list[Line], role: str) -> tuple[str, list[Record] | str]:
    """Who speaks from here on, and what is said."""
    text = b"".join(line.value for line in held).decode("utf-8", "replace").replace("\r\n", "\n")
    named = _SPEAKER.match(text)
    first = text.partition("\n")[0]
    if named and (named[2] or first.startswith("#") or first.strip().startswith("**")):
        who = named[1].casefold()
        speaker = USER if who in _USERS else AGENT if who in _AGENTS else ""
        if speaker:
            role, text = speaker, named[3]
    return role, [Record(role, held[0].before, 0.0, text)] if text.strip() else "chrome"


def _records(record: dict[str, Any], place: str, calls: Pairs) -> list[Record] | str:
    inner = next((value for key in _TEXTS if isinstance(value := record.get(key), dict)), {})
    named = [_word(held.get(key)) for held in (record, inner) for key in _ROLES]
    role = next((who for word in named if (who := _role(word))), "")
    if role == "system":
        return "system"
    at = next((when for key in _TIMES if (when := _at(record.get(key)))), 0.0)
    identity = text_of(record.get("id")) or text_of(record.get("uuid")) or place
    held = inner or record
    content = blocks(next((held[key] for key in _TEXTS if isinstance(held.get(key), str | list)), None))
    if role == "tool":
        return [Record(OUTCOME, identity, at, "", text_of(record.get("name")), OK)]
    found = [part for block in content for part in _block(block, role or AGENT, identity, at, calls)]
    return found or ("thinking" if any(block.get("type") in _THOUGHT for block in content) else "unknown shape")


def _block(block: dict[str, object], role: str, identity: str, at: float, calls: Pairs) -> Iterator[Record]:
    kind = block.get("type")
    if kind == "tool_use":
        tool = text_of(block.get("name"))
        calls.begin(block.get("id"), tool)
        yield Record(CALL, identity, at, "\n".join(texts(block.get("input"))), tool)
    elif kind == "tool_result":
        failed = block.get("is_error") is True
        said = error_lines("\n".join(texts(block.get("content"))), first=True) if failed else ""
        yield Record(OUTCOME, identity, at, said, calls.end(block.get("tool_use_id")), FAILED if failed else OK)
    elif kind not in _THOUGHT:
        yield Record(role, identity, at, text_of(block.get("text")))


def _word(value: object) -> str:
    return text_of(value.get("role") or value.get("name")) if isinstance(value, dict) else text_of(value)


def _role(word: str) -> str:
    small = word.casefold()
    if small in _USERS:
        return USER
    if small in _AGENTS:
        return AGENT
    return "system" if small in ("system", "developer") else "tool" if small in ("tool", "function") else ""


def _at(value: object) -> float:
    """A time as JSON lines have it: ISO 8601, or a number of seconds or milliseconds."""
    small = isinstance(value, int | float) and not isinstance(value, bool) and value < 1e11
    return seconds(value * 1000 if small and isinstance(value, int | float) else value)
