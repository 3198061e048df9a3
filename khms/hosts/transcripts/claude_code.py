"""Claude Code's transcripts: `~/.claude/projects/<folder>/<session>.jsonl`, those of sub-agents in the folder
`<session>/subagents/` beside it.

What was seen with 2.1.332: one record for each block of an answer, all with the answer's own id; a tool's result is a
record of type `user`; what a hook added is one of type `attachment`; records of other types come and go with versions.
Older versions wrote sub-agents' records into the session's own file, marked as side chains.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from khms.hosts.transcripts.base import AGENT, CALL, FAILED, INJECTED, OK, OUTCOME, USER, Record, Session, modified
from khms.hosts.transcripts.lines import head, json_lines, told
from khms.hosts.transcripts.pairs import Pairs
from khms.hosts.transcripts.words import blocks, error_lines, seconds, text_of, texts, without

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from typing import Any

HOST = "claude-code"
ADDED = "hook_additional_context"
# Prompts that nobody typed for this turn, by the record's `promptSource`.
_MADE = ("system", "poll_event", "loop_wakeup", "schedule_wakeup")
# What a user record begins with that the host wrote: slash commands, their output, notices, the summary of what was
# compacted. Of `system-reminder` there may be some within a person's words.
_CHROME = (
    "<command-name>", "<command-message>", "<command-args>", "<local-command-", "<bash-input>", "<bash-stdout>",
    "<bash-stderr>", "<task-notification>", "<user-prompt-submit-hook>", "<user-memory-input>", "[Request interrupted",
    "Caveat: The messages below", "This session is being continued from a previous conversation",
)  # fmt: skip
_EXIT = "Exit code "


def sessions() -> Iterator[Session]:
    """A file is named after its session."""
    for path in sorted(_folder().glob("*/*.jsonl")):
        yield Session(HOST, path.stem, path, "", modified(path))


def cwd(session: Session) -> str:
    return next((found for record in head(session.path) if (found := text_of(record.get("cwd")))), "")


def threads(path: Path) -> list[Path]:
    return [path, *sorted((path.with_suffix("") / "subagents").glob("agent-*.jsonl"))]


def records(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    calls, side = Pairs(), path.parent.name == "subagents"
    for line in json_lines(path, since, tally):
        yield from told(line, _records(line.value, line.after, calls, side), tally)


def _folder() -> Path:
    from khms.hosts.claude_code import settings_path

    return settings_path("user", Path()).parent / "projects"


def _records(record: dict[str, Any], place: str, calls: Pairs, side: bool) -> list[Record] | str:
    kind, message, at = record.get("type"), record.get("message"), seconds(record.get("timestamp"))
    if kind == "attachment":
        return _attached(record.get("attachment"), at)
    if kind not in ("user", "assistant"):
        return "system" if kind == "system" else "summary" if kind == "summary" else "unknown type"
    if not isinstance(message, dict):
        return "unknown shape"
    if record.get("isSidechain") is True and not side:
        return "sidechain"
    identity = text_of(message.get("id")) or text_of(record.get("uuid")) or place
    if kind == "assistant":
        return "chrome" if record.get("isApiErrorMessage") else _said(message.get("content"), identity, at, calls)
    found = list(_outcomes(message.get("content"), identity, at, calls))
    return found or _asked(record, message.get("content"), identity, at, side)


def _attached(attachment: object, at: float) -> list[Record] | str:
    if not isinstance(attachment, dict) or attachment.get("type") != ADDED:
        return "attachment"
    return [Record(INJECTED, "", at, "\n".join(texts(attachment.get("content"))))]


def _said(content: object, identity: str, at: float, calls: Pairs) -> list[Record] | str:
    found: list[Record] = []
    thought = False
    for block in blocks(content):
        if block.get("type") == "text":
            found.append(Record(AGENT, identity, at, text_of(block.get("text"))))
        elif block.get("type") == "tool_use":
            tool = text_of(block.get("name"))
            calls.begin(block.get("id"), tool)
            found.append(Record(CALL, identity, at, "\n".join(texts(block.get("input"))), tool))
        else:
            thought |= block.get("type") in ("thinking", "redacted_thinking")
    return found or ("thinking" if thought else "empty")


def _outcomes(content: object, identity: str, at: float, calls: Pairs) -> Iterator[Record]:
    for block in blocks(content):
        if block.get("type") != "tool_result":
            continue
        tool = calls.end(block.get("tool_use_id"))
        if block.get("is_error") is not True:
            yield Record(OUTCOME, identity, at, "", tool, OK)
            continue
        output = "\n".join(text_of(part.get("text")) for part in blocks(block.get("content")))
        output = output.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
        start, _, rest = output.partition("\n")
        code = start.removeprefix(_EXIT).strip()
        if start.startswith(_EXIT) and code.isdecimal():
            yield Record(OUTCOME, identity, at, error_lines(rest), tool, f"exit {code[:6]}")
        else:
            yield Record(OUTCOME, identity, at, error_lines(output, first=True), tool, FAILED)


def _asked(record: dict[str, Any], content: object, identity: str, at: float, side: bool) -> list[Record] | str:
    if side:
        return "sidechain"
    if record.get("isCompactSummary") is True:
        return "summary"
    if record.get("isMeta") is True or record.get("promptSource") in _MADE:
        return "chrome"
    said = [text_of(block.get("text")) for block in blocks(content) if block.get("type") == "text"]
    kept = [without(text, "system-reminder") for text in said if not text.lstrip().startswith(_CHROME)]
    text = "\n".join(kept)
    return [Record(USER, identity, at, text)] if text.strip() else "chrome" if said else "empty"
