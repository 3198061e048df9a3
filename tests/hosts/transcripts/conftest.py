"""One conversation as each host would have written it down, and a reader that checks its own accounts."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import transcripts
from khms.hosts.transcripts import logs
from khms.hosts.transcripts.base import Record
from khms.model.frame import framed

FRAME = framed("/home/dev/base", ["K-00007 Poll the valve slowly (memory/know/K-00007.md)"])
PROMPT = "why does the build fail <on> CI?"
OUTPUT = "collected 3 items\nmake: *** [test] Error 1\nbye"


@dataclass(frozen=True)
class Reading:
    records: list[Record]
    tally: Counter[str]

    @property
    def said(self) -> list[tuple[str, str, str, str]]:
        return [(record.role, record.text, record.tool, record.state) for record in self.records]

    @property
    def position(self) -> str:
        return self.records[-1].position if self.records else ""


Read = Callable[..., Reading]
Write = Callable[..., Path]


def records(host: str, path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
    reader = logs if host == "log" else transcripts.reader(host.removesuffix("-old"))
    assert reader
    return reader.records(path, since, tally)


@pytest.fixture
def read() -> Read:
    """Reads a transcript, and wants every line of it told or counted once."""

    def reading(host: str, path: Path, since: str = "") -> Reading:
        tally: Counter[str] = Counter()
        found = list(records(host, path, since, tally))
        accounted = sum(count for name, count in tally.items() if name not in ("lines", "anew"))
        assert tally["lines"] == accounted, tally
        assert tally["used"] or not found
        return Reading(found, tally)

    return reading


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the conversation as this host would; or, of a host that writes lines, these bytes in its place."""

    def written(host: str, data: bytes | None = None) -> Path:
        if host == "opencode":
            return opencode(tmp_path / "opencode.db")
        suffix = {"gemini-old": ".json", "log": ".md"}.get(host, ".jsonl")
        path = tmp_path / f"session-{host}{suffix}"
        path.write_bytes(DIALECTS[host]() if data is None else data)
        return path

    return written


def stamp(number: int) -> str:
    return f"2026-03-04T10:00:{number:02}.500Z"


def lines(values: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def claude_code() -> bytes:
    def said(kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"type": kind, "message": {"role": kind, "content": content, **more}}

    def result(call: str, text: str, failed: bool = False) -> dict[str, Any]:
        return said(
            "user", [{"type": "tool_result", "tool_use_id": call, "content": [{"text": text}], "is_error": failed}]
        )

    def use(call: str, tool: str, given: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": call, "name": tool, "input": given}

    added = {"type": "hook_additional_context", "content": [FRAME]}
    values = [
        {"type": "attachment", "attachment": added},
        said("user", PROMPT),
        {"type": "attachment", "attachment": {"type": "environment"}},
        said("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I run it."}], id="m1"),
        said("assistant", [use("c1", "sh", {"command": "make test"}), use("c2", "look", {"p": "notes.txt"})], id="m1"),
        result("c1", "Exit code 2\n" + OUTPUT, failed=True),
        result("c2", "secret error notes"),
        said("assistant", [use("c3", "look", {"p": "gone.txt"})], id="m2"),
        result("c3", "gone.txt is not there", failed=True),
        said("assistant", [{"type": "text", "text": "The valve was polled too fast."}], id="m3"),
        {"type": "system", "subtype": "compact_boundary"},
        said("user", [{"type": "text", "text": "thanks"}]),
        said("assistant", "Glad to.", id="m4"),
        {"type": "last-prompt"},
    ]
    # One message makes both calls: the order of the shared table is that of one after the other.
    values[4:7] = [
        said("assistant", [use("c1", "sh", {"command": "make test"})], id="m1"),
        values[5],
        said("assistant", [use("c2", "look", {"p": "notes.txt"})], id="m1"),
        values[6],
    ]
    return lines({**value, "timestamp": stamp(at), "cwd": "/w", "uuid": f"u{at}"} for at, value in enumerate(values))


def codex(old: bool = False) -> bytes:
    def message(role: str, kind: str, text: str) -> dict[str, Any]:
        passed = {} if old else {"internal_chat_message_metadata_passthrough": {"content_item_kinds": [kind]}}
        return response("message", role=role, content=[{"type": "input_text", "text": text}], **passed)

    def response(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": {"type": kind, **more}}

    def event(new: str, then: str, **more: Any) -> dict[str, Any]:
        if old:
            return {"type": "event_msg", "payload": {"type": then, **more}}
        content = [{"type": "Text", "text": more.pop("message")}] if "message" in more else None
        item = {"type": new, "id": more.pop("call_id", "i"), "content": content, **more}
        return {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}

    def call(name: str, call_id: str, given: Any) -> dict[str, Any]:
        return response("function_call", name=name, call_id=call_id, arguments=json.dumps(given))

    def output(call_id: str, text: str) -> dict[str, Any]:
        return response("function_call_output", call_id=call_id, output=text)

    def both(role: str, text: str) -> list[dict[str, Any]]:
        new, then = ("UserMessage", "user_message") if role == "user" else ("AgentMessage", "agent_message")
        return [message(role, "user.text", text), event(new, then, message=text)]

    ended = {"call_id": "c1", "exit_code": 2, "aggregated_output": OUTPUT}
    values = [
        {"type": "session_meta", "payload": {"id": "t", "cwd": "/w", "source": "cli"}},
        message("developer", "hooks.additional_context", FRAME),
        message("user", "environments.environment_context", "<environment_context>\n</environment_context>"),
        *both("user", PROMPT),
        response("reasoning", summary=[{"text": "hm"}]),
        *reversed(both("assistant", "I run it.")),
        call("sh", "c1", {"cmd": "make test"}),
        event("CommandExecution", "exec_command_end", **ended),
        output("c1", f"Wall time: 1.0 seconds\nProcess exited with code 2\nOutput:\n{OUTPUT}"),
        call("look", "c2", {"p": "notes.txt"}),
        output("c2", "Wall time: 1.0 seconds\nProcess exited with code 0\nOutput:\nsecret error notes"),
        {"type": "event_msg", "payload": {"type": "token_count"}},
        call("look", "c3", {"p": "gone.txt"}),
        response("function_call_output", call_id="c3", output={"content": "gone.txt is not there", "success": False}),
        *both("assistant", "The valve was polled too fast."),
        *both("user", "thanks"),
        *both("assistant", "Glad to."),
    ]
    return lines({"timestamp": stamp(at), **value} for at, value in enumerate(values))


def gemini_messages() -> list[dict[str, Any]]:
    def call(name: str, given: Any, response: Any, status: str = "success") -> dict[str, Any]:
        result = [{"functionResponse": {"name": name, "response": response}}]
        return {"id": f"{name}-{given}", "name": name, "args": {"p": given}, "status": status, "result": result}

    def said(number: int, text: str, *calls: Any) -> dict[str, Any]:
        own = {"toolCalls": list(calls)} if calls else {}
        return {"id": f"g{number}", "timestamp": stamp(number), "type": "gemini", "content": text, **own}

    def asked(number: int, *parts: Any) -> dict[str, Any]:
        return {"id": f"u{number}", "timestamp": stamp(number), "type": "user", "content": list(parts)}

    hooked = FRAME.replace("<", "&lt;").replace(">", "&gt;")
    failed = {"output": f"Output: {OUTPUT}\nExit Code: 2"}
    return [
        asked(1, {"text": f"<hook_context>{hooked}</hook_context>{PROMPT}"}),
        said(2, "I run it.", call("sh", "make test", failed)),
        said(3, "", call("look", "notes.txt", {"output": "secret error notes"})),
        said(4, "", call("look", "gone.txt", {"error": "gone.txt is not there"}, "error")),
        said(5, "The valve was polled too fast."),
        asked(6, {"text": "thanks"}),
        said(7, "Glad to."),
    ]


def gemini() -> bytes:
    """As the host writes it: a message with calls first without them, and its answers once more as the user's."""
    context = {"id": "s", "timestamp": stamp(0), "type": "user", "content": [{"text": "<session_context>…"}]}
    values: list[Any] = [{"sessionId": "abc", "kind": "main"}, {"$set": {"messages": [context]}}]
    for message in gemini_messages():
        if calls := message.get("toolCalls"):
            values += [{**message, "toolCalls": []}, {"$set": {"lastUpdated": "x"}}, message]
            values.append({**message, "id": "a" + message["id"], "type": "user", "content": calls[0]["result"]})
        else:
            values.append(message)
    return lines(values)


def gemini_old() -> bytes:
    return json.dumps({"sessionId": "abc", "messages": gemini_messages()}).encode()


def copilot() -> bytes:
    def requests(*made: tuple[str, str, str]) -> list[dict[str, Any]]:
        return [{"toolCallId": call, "name": name, "arguments": {"p": given}} for call, name, given in made]

    def said(text: str, *made: tuple[str, str, str]) -> tuple[str, dict[str, Any]]:
        return "assistant.message", {"messageId": text, "content": text, "toolRequests": requests(*made)}

    def done(call: str, **more: Any) -> tuple[str, dict[str, Any]]:
        return "tool.execution_complete", {"toolCallId": call, **more}

    values: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"context": {"cwd": "/w"}}),
        ("hook.end", {"output": {"additionalContext": FRAME}}),
        ("user.message", {"content": PROMPT, "transformedContent": f"{PROMPT}\n{FRAME}"}),
        ("system.message", {"content": "You are"}),
        said("I run it.", ("c1", "sh", "make test")),
        ("tool.execution_start", {"toolCallId": "c1", "toolName": "sh", "arguments": {"p": "make test"}}),
        done("c1", success=True, shellExecution={"exitCode": 2}, result={"content": f"{OUTPUT}\n<shellId: 1 failed>"}),
        said("", ("c2", "look", "notes.txt")),
        done("c2", success=True, result={"content": "secret error notes"}),
        said("", ("c3", "look", "gone.txt")),
        done("c3", success=False, error={"message": "gone.txt is not there"}),
        said("The valve was polled too fast."),
        ("user.message", {"content": "thanks"}),
        said("Glad to."),
        ("session.shutdown", {}),
    ]
    return lines({"type": kind, "data": data, "timestamp": stamp(at)} for at, (kind, data) in enumerate(values))


LOG = """# Tuesday

User: why does the sum
fail?

## Agent

Because of this:
```
a

b
```

**Me:** thanks
"""


DIALECTS: dict[str, Callable[[], bytes]] = {
    "claude-code": claude_code,
    "codex": codex,
    "codex-old": lambda: codex(old=True),
    "gemini": gemini,
    "gemini-old": gemini_old,
    "copilot": copilot,
    "log": LOG.encode,
}

SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer,
    data text);
"""


def insert(base: sqlite3.Connection, table: str, *row: Any) -> None:
    values = [json.dumps(value) if isinstance(value, dict) else value for value in row]
    base.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)


def opencode(database: Path) -> Path:
    """The path of the session `ses`, in a new database, with a sub-agent's below it."""

    def tool(name: str, given: str, **state: Any) -> dict[str, Any]:
        return {"type": "tool", "tool": name, "state": {"status": "completed", "input": {"p": given}, **state}}

    messages: list[tuple[str, list[dict[str, Any]]]] = [
        ("user", [{"type": "text", "text": FRAME, "synthetic": True}, {"type": "text", "text": PROMPT}]),
        (
            "assistant",
            [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "I run it."},
                tool("sh", "make test", output=OUTPUT, metadata={"exit": 2}),
                tool("look", "notes.txt", output="secret error notes"),
                tool("look", "gone.txt", status="error", error="gone.txt is not there"),
            ],
        ),
        ("assistant", [{"type": "text", "text": "The valve was polled too fast."}, {"type": "step-finish"}]),
        ("user", [{"type": "text", "text": "thanks"}]),
        ("assistant", [{"type": "text", "text": "Glad to."}]),
    ]
    with closing(sqlite3.connect(database)) as base, base:
        base.executescript(SCHEMA)
        insert(base, "session", "ses", None, "/w", 1, 1772618400000)
        insert(base, "session", "child", "ses", "/w", 2, 1772618400000)
        number = 0
        for at, (role, parts) in enumerate(messages):
            data = {"role": role, "time": {"completed": 9}} if role == "assistant" else {"role": role}
            insert(base, "message", f"m{at}", "ses", 1000 + at, 0, data)
            for part in parts:
                number += 1
                insert(base, "part", f"p{number:02}", f"m{at}", "ses", 1772618400000 + number, 0, part)
        insert(base, "message", "c0", "child", 1000, 0, {"role": "user"})
        insert(base, "part", "cp0", "c0", "child", 1, 0, {"type": "text", "text": "what the agent wants"})
        insert(base, "message", "c1", "child", 1001, 0, {"role": "assistant", "time": {"completed": 9}})
        insert(base, "part", "cp1", "c1", "child", 2, 0, {"type": "text", "text": "what the sub-agent says"})
    return database / "ses"
