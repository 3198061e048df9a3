"""Copilot CLI's transcripts: `~/.copilot/session-state/<session>/events.jsonl`; COPILOT_HOME moves the first folder.

What was seen with 1.0.102: a prompt's `content` is what was typed and its `transformedContent` what the model got; what
a hook added stands in `hook.end`; a command's exit code stands with a success; events of a sub-agent name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from khms.hosts.base import home
from khms.hosts.transcripts.base import AGENT, CALL, FAILED, INJECTED, OK, OUTCOME, USER, Record, Session, modified
from khms.hosts.transcripts.lines import head, json_lines, told
from khms.hosts.transcripts.pairs import Pairs
from khms.hosts.transcripts.words import error_lines, seconds, text_of, texts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

HOST = "copilot"
_CONTEXT = "additionalContext"


def sessions() -> Iterator[Session]:
    """The folder is named after its session."""
    for path in sorted(home("COPILOT_HOME", ".copilot").glob("session-state/*/events.json[l]")):
        yield Session(HOST, path.parent.name, path, "", modified(path))


def cwd(session: Session) -> str:
    for record in head(session.path, 8):
        data = record.get("data")
        context = data.get("context") if isinstance(data, dict) else None
        if isinstance(context, dict):
            return text_of(context.get("cwd"))
    return ""


def threads(path: Path) -> list[Path]:
    return [path]


def records(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    calls = Pairs()
    for line in json_lines(path, since, tally):
        yield from told(line, _records(line.value, line.after, calls), tally)


def _records(record: dict[str, Any], place: str, calls: Pairs) -> list[Record] | str:
    kind, data, at = record.get("type"), record.get("data"), seconds(record.get("timestamp"))
    if not isinstance(data, dict):
        return "unknown shape"
    if record.get("agentId") or data.get("agentId") or data.get("parentToolCallId"):
        return "sidechain"
    identity = text_of(data.get("messageId")) or text_of(record.get("id")) or place
    if kind == "user.message":
        if data.get("source") not in (None, "", "user"):
            return "chrome"
        return [Record(USER, identity, at, text_of(data.get("content")))]
    if kind == "assistant.message":
        return list(_said(data, identity, at, calls)) or "empty"
    if kind == "tool.execution_start":
        calls.begin(data.get("toolCallId"), text_of(data.get("toolName")))
        return "duplicate"
    if kind == "tool.execution_complete":
        return [_outcome(data, identity, at, calls.end(data.get("toolCallId")))]
    if kind == "hook.end":
        added = "\n".join(_added(data.get("output")))
        return [Record(INJECTED, identity, at, added)] if added else "hook"
    if kind == "assistant.reasoning":
        return "thinking"
    return "system" if kind == "system.message" else "chrome" if text_of(kind) else "unknown type"


def _said(data: dict[str, Any], identity: str, at: float, calls: Pairs) -> Iterator[Record]:
    if text := text_of(data.get("content")):
        yield Record(AGENT, identity, at, text)
    requests = data.get("toolRequests")
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, dict):
            tool = text_of(request.get("name"))
            calls.begin(request.get("toolCallId"), tool)
            yield Record(CALL, identity, at, "\n".join(texts(request.get("arguments"))), tool)


def _outcome(data: dict[str, Any], identity: str, at: float, tool: str) -> Record:
    shell, result, error = data.get("shellExecution"), data.get("result"), data.get("error")
    code = shell.get("exitCode") if isinstance(shell, dict) else None
    if isinstance(code, int) and code:
        shown = text_of(result.get("content")) if isinstance(result, dict) else ""
        lines = [line for line in shown.splitlines() if not line.startswith("<shellId:")]
        return Record(OUTCOME, identity, at, error_lines("\n".join(lines)), tool, f"exit {code}")
    if data.get("success") is True:
        return Record(OUTCOME, identity, at, "", tool, OK)
    said = text_of(error.get("message")) if isinstance(error, dict) else text_of(error)
    return Record(OUTCOME, identity, at, error_lines(said, first=True), tool, FAILED)


def _added(output: object, depth: int = 3) -> Iterator[str]:
    """What a hook added, whether it stands at the top of its output or nested as other hosts want it."""
    if depth and isinstance(output, dict):
        for key, value in output.items():
            yield from texts(value) if key == _CONTEXT else _added(value, depth - 1)
