"""Claude Code's transcripts: `~/.claude/projects/<folder>/<session>.jsonl`, those of sub-agents in the folder
`<session>/subagents/` beside it.

What was seen with 2.1.332: one record for each block of an answer, all with the answer's own id; what a hook added is
a record of type `attachment`; records of other types come and go with versions. The model's thinking is left out:
newer models hand out none of it, so a figure that counted it would change with the model.
"""

from __future__ import annotations

from pathlib import Path

from khms.hosts.transcripts.base import AGENT, INJECTED, Message, json_lines, seconds, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from typing import Any

ADDED = "hook_additional_context"
_MARKS = (b'"assistant"', ADDED.encode())


def sessions() -> Iterator[tuple[str, Path]]:
    """A file is named after its session."""
    from khms.hosts.claude_code import settings_path

    folder = settings_path("user", Path()).parent / "projects"
    for path in sorted(folder.glob("*/*.jsonl")):
        yield path.stem, path


def threads(path: Path) -> list[Path]:
    return [path, *sorted((path.with_suffix("") / "subagents").glob("agent-*.jsonl"))]


def messages(path: Path, tally: Counter[str]) -> Iterator[Message]:
    for number, record in enumerate(json_lines(path, _MARKS, tally)):
        at = seconds(record.get("timestamp"))
        kind, message, attachment = record.get("type"), record.get("message"), record.get("attachment")
        if kind == "assistant" and isinstance(message, dict):
            identity = message.get("id")
            known = identity if isinstance(identity, str) and identity else f"record {number}"
            yield Message(AGENT, known, at, "\n".join(_said(message.get("content"))))
        elif kind == "attachment" and isinstance(attachment, dict) and attachment.get("type") == ADDED:
            yield Message(INJECTED, "", at, "\n".join(texts(attachment.get("content"))))


def _said(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text":
            yield from texts(block.get("text"))
        elif isinstance(block, dict) and block.get("type") == "tool_use":
            yield from texts(block.get("input"))
