"""Codex's transcripts: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl` (CODEX_HOME moves the folder).

What was seen with 0.171: what the model gets and gives stands in records of type `response_item`, and most of it once
more in an `event_msg` of type `item_completed`; older versions wrote `user_message`, `agent_message` and
`exec_command_end` there instead. Neither source has everything in every version, so both are read and what they share
is told once. A sub-agent is a thread of its own, whose file says so in its first record.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from khms.hosts.base import home
from khms.hosts.transcripts.base import AGENT, CALL, FAILED, INJECTED, OK, OUTCOME, USER, Record, Session, modified
from khms.hosts.transcripts.lines import head, json_lines, told
from khms.hosts.transcripts.pairs import Pairs, Twins
from khms.hosts.transcripts.words import blocks, error_lines, seconds, text_of, texts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

HOST = "codex"
ARCHIVED, COMPRESSED = "archived by the host", "compressed by the host"
_HOOKED, _TYPED = "hooks.additional_context", "user.text"
# How texts begin that the host put into the user's mouth, where no kind of text is given.
_CHROME = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<turn_aborted>",
    "<skill>", "<user_shell_command>", "<subagent_notification>", "<permissions instructions>", "<user_action>",
    "<collaboration_mode>", "<personality_spec>",
)  # fmt: skip
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")
_RESPONSES = (*_CALLS, "message", "reasoning", "function_call_output", "custom_tool_call_output")
_ROLES = {"UserMessage": USER, "user_message": USER, "AgentMessage": AGENT, "agent_message": AGENT, "Plan": AGENT}
_CHROMES = ("session_meta", "turn_context", "world_state", "token_usage_record")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,6})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID", re.MULTILINE)
_BODY = re.compile(r"^Output:\n", re.MULTILINE)
_REFUSED = re.compile(r"fail|error|unsupported|unknown|invalid|reject|denied|blocked|abort|not found", re.IGNORECASE)


def sessions() -> Iterator[Session]:
    """A file's name ends in its thread's id. Archived and compressed ones come too: reading them tells the reason."""
    root = _home()
    found = [*root.glob("sessions/*/*/*/rollout-*.jsonl*"), *root.glob("archived_sessions/**/rollout-*.jsonl*")]
    for path in sorted(found):
        yield Session(HOST, path.name.partition(".jsonl")[0][-36:], path, "", modified(path))


def cwd(session: Session) -> str:
    for record in head(session.path, 8):
        payload = record.get("payload")
        if isinstance(payload, dict) and text_of(payload.get("cwd")):
            return text_of(payload.get("cwd"))
    return ""


def threads(path: Path) -> list[Path]:
    return [path]


def records(path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    if path.suffix != ".jsonl":
        raise OSError(f"{COMPRESSED}: {path}")
    if path.is_relative_to(_home() / "archived_sessions"):
        raise OSError(f"{ARCHIVED}: {path}")
    calls, twins, side = Pairs(), Twins(), _is_side(path)
    for line in json_lines(path, since, tally):
        found = "sidechain" if side else _records(line.value, line.after, calls, twins)
        yield from told(line, found, tally)


def _home() -> Path:
    return home("CODEX_HOME", ".codex")


def _is_side(path: Path) -> bool:
    for record in head(path, 1):
        payload = record.get("payload")
        if isinstance(payload, dict):
            source = payload.get("source")
            return payload.get("thread_source") == "subagent" or (isinstance(source, dict) and "subagent" in source)
    return False


def _records(record: dict[str, Any], place: str, calls: Pairs, twins: Twins) -> list[Record] | str:
    kind, payload, at = record.get("type"), record.get("payload"), seconds(record.get("timestamp"))
    if kind in _RESPONSES and not isinstance(payload, dict):  # the first versions wrote the item alone
        kind, payload = "response_item", record
    if kind in _CHROMES:
        return "chrome"
    if kind == "compacted":
        return "summary"
    if not isinstance(payload, dict):
        return "unknown shape"
    if kind == "response_item":
        return _response(payload, at, place, calls, twins)
    return _event(payload, at, place, calls, twins) if kind == "event_msg" else "unknown type"


def _response(item: dict[str, Any], at: float, place: str, calls: Pairs, twins: Twins) -> list[Record] | str:
    kind, identity = item.get("type"), text_of(item.get("id")) or place
    if kind == "message":
        return _message(item, at, identity, twins)
    if kind in _CALLS:
        tool = text_of(item.get("name")) or text_of(kind).removesuffix("_call")
        calls.begin(item.get("call_id"), tool)
        return [Record(CALL, identity, at, "\n".join(texts(_given(item))), tool)]
    if kind in ("function_call_output", "custom_tool_call_output"):
        output, failed = _output(item.get("output"))
        if _RUNNING.search(output[:1000]):
            return "running"
        if twins.told("response", OUTCOME, text_of(item.get("call_id")) or place):
            return "duplicate"
        return [_outcome(output, failed, identity, at, calls.end(item.get("call_id")))]
    return "thinking" if kind == "reasoning" else "summary" if "compaction" in str(kind) else "unknown type"


def _message(item: dict[str, Any], at: float, identity: str, twins: Twins) -> list[Record] | str:
    role, passed = item.get("role"), item.get("internal_chat_message_metadata_passthrough")
    content = blocks(item.get("content"))
    said = [text_of(block.get("text")) for block in content]
    if role == "assistant":
        words = "\n".join(said)
        return "duplicate" if twins.told("response", AGENT, words) else [Record(AGENT, identity, at, words)]
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    if isinstance(kinds, list) and len(kinds) == len(said):
        hooked = "\n".join(text for text, kind in zip(said, kinds, strict=True) if kind == _HOOKED)
        typed = "\n".join(text for text, kind in zip(said, kinds, strict=True) if kind == _TYPED)
    else:
        hooked, typed = "", "\n".join(text for text in said if not text.lstrip().startswith(_CHROME))
    found = [Record(INJECTED, identity, at, hooked)] if hooked else []
    if role != "user" or not typed.strip():
        return found or ("chrome" if role == "user" else "system")
    if twins.told("response", USER, typed):
        return found or "duplicate"
    return [*found, Record(USER, identity, at, typed)]


def _event(event: dict[str, Any], at: float, place: str, calls: Pairs, twins: Twins) -> list[Record] | str:
    kind, item = event.get("type"), event.get("item")
    if kind == "item_completed" and isinstance(item, dict):
        kind, event = item.get("type"), item
    role, identity = _ROLES.get(text_of(kind), ""), text_of(event.get("id"))
    identity = identity or text_of(event.get("call_id")) or place
    if role:
        words = text_of(event.get("message")) or text_of(event.get("text"))
        words = words or "\n".join(text_of(block.get("text")) for block in blocks(event.get("content")))
        if role == USER and words.lstrip().startswith(_CHROME):
            return "chrome"
        return "duplicate" if twins.told("event", role, words) else [Record(role, identity, at, words)]
    if kind in ("CommandExecution", "exec_command_end"):
        if twins.told("event", OUTCOME, identity):
            return "duplicate"
        output = text_of(event.get("aggregated_output")) or f"{event.get('stdout', '')}\n{event.get('stderr', '')}"
        return [_ended(event.get("exit_code"), output, identity, at, calls.end(identity))]
    return "thinking" if kind in ("agent_reasoning", "agent_reasoning_raw_content", "Reasoning") else "event"


def _given(item: dict[str, Any]) -> object:
    """What a tool was given, out of the text that the host wrote it as."""
    given = item.get("arguments", item.get("input", item.get("action")))
    if isinstance(given, str) and given.startswith("{"):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given
    return given


def _output(output: object) -> tuple[str, bool]:
    """A tool's output as text, and whether the host says that it failed."""
    failed = isinstance(output, dict) and output.get("success") is False
    text = "\n".join(texts(output.get("content") if isinstance(output, dict) else output))
    if text.startswith('{"output"'):
        try:
            held = json.loads(text)
            return f"Exit code: {held['metadata']['exit_code']}\nOutput:\n{held['output']}", failed
        except (ValueError, RecursionError, KeyError, TypeError):
            return text, failed
    return text, failed


def _outcome(output: str, failed: bool, identity: str, at: float, tool: str) -> Record:
    top = output[:1000]
    code, body = _EXIT.search(top), _BODY.search(top)
    if code:
        return _ended(int(code[1]), output[body.end() :] if body else output, identity, at, tool)
    if failed or (not body and _REFUSED.search(output.partition("\n")[0][:300])):
        return Record(OUTCOME, identity, at, error_lines(output, first=True), tool, FAILED)
    return Record(OUTCOME, identity, at, "", tool, OK)


def _ended(code: object, output: str, identity: str, at: float, tool: str) -> Record:
    if code == 0:
        return Record(OUTCOME, identity, at, "", tool, OK)
    state = f"exit {code}" if isinstance(code, int) else FAILED
    return Record(OUTCOME, identity, at, error_lines(output), tool, state)
