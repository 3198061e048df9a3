"""A scripted agent in place of each host's program: it notes what it was given, and does what the test has written down
for it, in the host's own form."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.hosts import headless
from khms.hosts.headless.base import Reply, Request

RUN = "01JEX0000000000000000AGENT"
SYSTEM = "Answer with one JSON object."
# The text of the request: a marker, other scripts, a lone carriage return, no newline at its end.
TEXT = f"[khms-run {RUN}]\n\nWas heißt 測試?\r| MARK[solved] “ground” was loose\n\ttab, NUL-free, $HOME `x` \\n"
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["answer"],
    "properties": {"answer": {"type": "string"}, "why": {"type": "string"}},
}
PROGRAM = """#!{python} -IS
import json, os, sys
here = os.path.dirname(os.path.abspath(sys.argv[0]))
given = open(here + "/plan.json", encoding="utf-8").read()
plan = json.loads(given)
seen = dict(env=dict(os.environ), args=sys.argv[1:], folder=os.getcwd(), inside=os.listdir(), pid=os.getpid())
if not plan.get("deaf"):
    with open(here + "/stdin", "wb") as file:
        file.write(sys.stdin.buffer.read())
words = [word for part in sys.argv[1:] for word in (part, part.partition("=")[2].strip('"'))]
words += [value for name, value in os.environ.items() if name.endswith("_MD")]
seen["read"] = {{word: open(word, encoding="utf-8").read() for word in words if os.path.isfile(word)}}
with open(here + "/seen.json", "w", encoding="utf-8") as file:
    json.dump(seen, file)
exec(plan.get("do", ""))
sys.stderr.write(plan.get("err", "")); sys.stderr.flush()
sys.stdout.buffer.write(plan.get("out", "").encode("utf-8") * plan.get("times", 1)); sys.stdout.flush()
sys.exit(plan.get("code", 0))
"""


@dataclass
class Scripted:
    """The program of one host: `does(...)` sets what it will do, `ask()` asks the agent, then see what it was given."""

    host: str
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)

    def does(self, out: str = "", err: str = "", code: int = 0, do: str = "", **more: Any) -> "Scripted":
        plan = {"out": out, "err": err, "code": code, "do": do, **more}
        (self.folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        return self

    def agent(self) -> headless.base.Agent:
        values = {
            "nightly.proposer": self.host,
            "nightly.allow_tools": True,
            "nightly.command": "scripted --flag 'a b'",
        }
        return headless.agent(Config([("test", values | self.settings)]))

    def ask(self, *, seconds: float = 60, schema: Any = SCHEMA, text: str = TEXT, system: str = SYSTEM) -> Reply:
        return self.agent().ask(Request(system, text, schema, seconds, RUN))

    @property
    def given(self) -> bytes:
        return (self.folder / "stdin").read_bytes()

    @property
    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "seen.json").read_text(encoding="utf-8"))
        return found


def claude(answer: Any, **result: Any) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    events = [
        {"type": "system", "subtype": "init", "tools": [], "model": "claude-test"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": text}], "stop_reason": None}},
        {"type": "result", "subtype": "success", "is_error": False, "result": text, "total_cost_usd": 0.25,
         "usage": {"input_tokens": 5, "cache_read_input_tokens": 6, "output_tokens": 7}, **result},
    ]  # fmt: skip
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def codex(answer: Any, **_: Any) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    events = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "0", "type": "error", "message": "Model metadata not found."}},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": text}},
        {"type": "turn.completed", "usage": {"input_tokens": 11, "output_tokens": 7}},
    ]
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def gemini(answer: Any, **_: Any) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    stats = {"models": {"gemini-test": {"tokens": {"prompt": 11, "candidates": 7}}}, "tools": {"totalCalls": 0}}
    return json.dumps({"session_id": "s", "response": text, "stats": stats}, indent=2, ensure_ascii=False)


def command(answer: Any, **_: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


FORMS: dict[str, Callable[..., str]] = {"claude": claude, "codex": codex, "gemini": gemini, "command": command}


@pytest.fixture
def form() -> Callable[..., str]:
    """form("codex", answer): what the host's program prints when the model answers so."""
    return lambda host, answer, **more: FORMS[host](answer, **more)


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Scripted]]:
    folder, temporary = tmp_path / "bin", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    def make(host: str) -> Scripted:
        program = folder / ("scripted" if host == "command" else host)
        program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)
        return Scripted(host, folder)

    yield make
    assert list(temporary.iterdir()) == [], "a call left its folder behind"
