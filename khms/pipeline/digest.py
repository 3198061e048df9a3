"""A session as its digest: what the person and the agent said, which tools ran, which of them failed and with which
error lines. No tool output, no thinking, nothing that khms itself put into the session.

A digest is cut into chunks at the borders of records. A chunk is a source like a journal file: it has lines, a hash,
and a name under which a quote finds it.
"""

import hashlib
import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from khms.hosts.transcripts.base import AGENT, CALL, OUTCOME, USER, Record
from khms.model.frame import FRAME_START, FRAME_TAIL, RUN_MARKER
from khms.model.redact import redact
from khms.pipeline.sources import SESSION, Page, clean

LONGEST = 4000  # characters of one message; a pasted log is no knowledge
FIRST = 200  # characters of a tool's input: enough for the command that then failed
_FRAME = re.compile(re.escape(FRAME_START) + r".*?(?:" + re.escape(FRAME_TAIL) + r"|\Z)", re.DOTALL)
_ESCAPED = re.compile(r"&lt;hook_context&gt;.*?(?:&lt;/hook_context&gt;|\Z)", re.DOTALL)
_NAME = re.compile(r"[^\w.-]")


class Own(Exception):
    """The session is one of khms's own calls."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """`path` is its source's name and, below that, the day and the hash of the text. `after` is the position in the
    transcript behind it, `key` names the transcript in the cursors, `session` is the host's id."""

    path: str
    text: str
    key: str
    after: str
    session: str

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def source(self) -> str:
        return source_of(self.path)

    @property
    def page(self) -> Page:
        data = self.text.encode("utf-8", "surrogatepass")
        return Page(self.path, data, hashlib.sha256(data).hexdigest(), tuple(self.text.split("\n")), ())

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "text": self.text,
            "key": self.key,
            "after": self.after,
            "session": self.session,
        }


def source(host: str, session: str) -> str:
    """How quotes and cards name a session; an id is somebody else's text, so odd characters of it are replaced."""
    return f"{SESSION}{host}/{_NAME.sub('_', session)[:100] or 'unnamed'}"


def source_of(path: str) -> str:
    """The session's name in a chunk's path."""
    return path.rpartition("/")[0]


def chunks(records: Iterable[Record], *, of: str, key: str, session: str, day: str, size: int) -> Iterator[Chunk]:
    """The digest of `records`, in chunks of at most `size` characters (one record may be longer). `of` is the source,
    `day` the day for records without a time. Raises Own where the session turns out to be khms's own call."""
    lines: list[str] = []
    length, after, first = 0, "", ""
    for record in records:
        if record.role == USER and any(line.startswith(RUN_MARKER) for line in record.text.split("\n")):
            raise Own
        told = tell(record)
        if told and length and length + len(told) > size:
            yield _chunk(lines, of, first, key, after, session)
            lines, length, first = [], 0, ""
        if told:
            first = first or (_day(record.at) or day)
            lines.append(told)
            length += len(told) + 1
        after = record.position or after
    if lines:
        yield _chunk(lines, of, first, key, after, session)


def tell(record: Record) -> str:
    """One record as lines of a digest; nothing for what has no place in one."""
    if record.role in (USER, AGENT):
        text = _plain(record.text)
        who = "person" if record.role == USER else "agent"
        return f"{who}{_clock(record.at)}: {text}" if text else ""
    if record.role == CALL:
        lead = _plain(record.text).partition("\n")[0]
        lead = lead if len(lead) <= FIRST else lead[:FIRST].rstrip() + " …"
        return f"tool {_tool(record)}: {lead}".rstrip(": ")
    if record.role == OUTCOME and record.state not in ("", "ok", "exit 0"):
        text = _plain(record.text)
        return f"tool {_tool(record)} ended: {record.state}" + (f"\n{text}" if text else "")
    return ""


def _tool(record: Record) -> str:
    return " ".join(clean(record.tool).split())[:60] or "unnamed"


def _plain(text: str) -> str:
    if "&lt;" in text:
        text = html.unescape(_ESCAPED.sub("", text))
    text = redact(clean(_FRAME.sub("", text))).strip()
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rstrip()}\n[{len(text) - LONGEST} characters are left out]"


def _clock(at: float) -> str:
    return f" {_moment(at):%H:%M}" if at else ""


def _day(at: float) -> str:
    return f"{_moment(at):%Y-%m-%d}" if at else ""


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at).astimezone()


def _chunk(lines: list[str], of: str, day: str, key: str, after: str, session: str) -> Chunk:
    text = "\n".join(lines) + "\n"
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Chunk(f"{of}/{day}.{name}", text, key, after, session)


def chunk_from(value: Any) -> Chunk:
    """The chunk that one parsed value holds; raises KeyError or TypeError for what is none."""
    return Chunk(**{name: str(value[name]) for name in ("path", "text", "key", "after", "session")})
