"""The real programs of agent hosts, asked once without a terminal, against a model on loopback: the answer is read, a
limit is known for one, and nothing of the user's own reaches the model or is left behind."""

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.hosts import headless
from khms.hosts.headless.base import Reply, Request
from khms.store import schema
from tests.end_to_end.headless_lab import MODELS, PROGRAMS, Endpoint, endpoint

pytestmark = pytest.mark.host

RUN = "01JEX00000000000000000SEEN"
TEXT = f"[khms-run {RUN}]\n\nDecide on: “the ground was loose” — 測試 $HOME `x`\n| a second line"
SYSTEM = "You decide about one MARK and answer with one JSON object."
VERDICT = {"verdict": "not-carded", "reason": "it is a matter of one day"}
MEMORY = "the-users-own-memory"
ALL_HOSTS = pytest.mark.parametrize("host", [*PROGRAMS, "openai"])


@dataclass(frozen=True)
class Lab:
    """A user with settings, hooks and memory of their own; a model; what it was asked."""

    root: Path
    home: Path
    endpoint: Endpoint

    def ask(self, host: str, *, seconds: float = 100, verdict: bool = True) -> Reply:
        settings = {"proposer": host, "model": MODELS[host], "allow_tools": True, "openai_url": self.endpoint.url}
        agent = headless.agent(Config([("lab", {f"nightly.{name}": value for name, value in settings.items()})]))
        form = schema.definition("verdict") if verdict else None
        return agent.ask(Request(SYSTEM, TEXT, form, seconds, RUN))


def texts(value: Any) -> list[str]:
    """Every text in a request's body."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in texts(part)]


def tools(body: dict[str, Any]) -> set[str]:
    """The names of the tools that a request offers the model."""
    found = set()
    for tool in body.get("tools") or []:
        for one in [*(tool.get("functionDeclarations") or []), tool]:
            if name := one.get("name") or one.get("function", {}).get("name") or one.get("type"):
                found.add(name)
    return found


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> Lab:
    host = request.node.callspec.params["host"]
    home, reached = own_environment, endpoint(host, tmp_path, monkeypatch)
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hook-ran", "timeout": 5000}]}
    settings = {"hooks": {"SessionStart": [hook], "UserPromptSubmit": [hook], "BeforeAgent": [hook]}}
    for place in (".claude", ".codex", ".gemini"):
        (home / place).mkdir()
    for path in (".claude/CLAUDE.md", ".gemini/GEMINI.md"):
        (home / path).write_text(MEMORY, encoding="utf-8")
    (home / ".claude/settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (home / ".codex/hooks.json").write_text(json.dumps(settings), encoding="utf-8")
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini/settings.json").write_text(json.dumps(settings | auth), encoding="utf-8")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Lab(tmp_path, home, reached)


@ALL_HOSTS
def test_the_answer_is_read_and_nothing_of_the_users_is_asked(
    host: str, lab: Lab, shared: Callable[[str], Path]
) -> None:
    before = {path for path in lab.home.rglob("*") if path.is_file()}
    with lab.endpoint.model(shared("hosts-lab/model_server.py"), "script", json.dumps(VERDICT)):
        for verdict in (True, False):
            reply = lab.ask(host, verdict=verdict)
            assert (reply.kind, json.loads(reply.text)) == ("answer", VERDICT), reply
            assert reply.tokens == (11, 7)
    requests = lab.endpoint.requests()
    assert len(requests) == 2
    for body in requests:
        said = texts(body)
        assert any(text.rstrip("\n") == TEXT for text in said), "the text did not arrive as it was given"
        assert any(text == SYSTEM for text in said) and MEMORY not in "\n".join(said)
        # The first two are how Claude Code has an answer given in a form; the third asks the user, and none is there.
        assert tools(body) <= {"StructuredOutput", "DeferredToolPlaceholder", "request_user_input"}
    assert "StructuredOutput" not in tools(requests[1])
    assert not (lab.root / "hook-ran").exists()
    left = {path.relative_to(lab.home).as_posix() for path in lab.home.rglob("*") if path.is_file()} - {
        path.relative_to(lab.home).as_posix() for path in before
    }
    assert not [path for path in left if path.startswith((".claude/projects", ".codex/sessions", ".gemini"))], left
    kept = [path for path in left if TEXT.encode() in (lab.home / path).read_bytes()]
    assert not kept, "it wrote down what it was asked"
    assert not list(lab.root.glob("khms-agent-*"))


@ALL_HOSTS
def test_a_limit_is_known_for_one(host: str, lab: Lab, shared: Callable[[str], Path]) -> None:
    with lab.endpoint.model(shared("hosts-lab/model_server.py"), "429", json.dumps(VERDICT)):
        reply = lab.ask(host)
    assert reply.kind == "limit", reply
    assert {"claude": "(429)", "codex": "usage limit", "gemini": "quota", "openai": "usage limit"}[host] in reply.text
    assert (host == "codex") == bool(reply.resets)


@ALL_HOSTS
def test_a_model_that_never_answers_is_given_up(host: str, lab: Lab) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", lab.endpoint.port))
        silent.listen(16)
        reply = lab.ask(host, seconds=5)
    assert reply.kind == "timeout"
    asked = [path for path in Path("/proc").glob("[0-9]*/environ") if RUN.encode() in read(path)]
    assert not asked, "something of it lives on"


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
