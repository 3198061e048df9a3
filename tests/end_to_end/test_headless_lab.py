"""The real programs of agent hosts, asked once without a terminal, against a model on loopback: the answer is read, a
limit is known for one, and nothing of the user's own reaches the model or is left behind."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.hosts import headless
from khms.hosts.headless.base import Reply, Request
from khms.store import schema

pytestmark = pytest.mark.host

HOSTS = Path(os.environ.get("KHMS_TEST_HOSTS") or os.path.normpath(Path(__file__).parents[2] / ".." / "hosts"))
PROGRAMS = {
    "claude": "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude",
    "codex": "node_modules/@openai/codex-linux-*/vendor/*/bin/codex",
    "gemini": "node_modules/@google/gemini-cli/bundle/gemini.js",
}
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
    port: int

    def ask(self, host: str, *, seconds: float = 100, verdict: bool = True) -> Reply:
        models = {"claude": "", "codex": "gpt-5.4", "gemini": "gemini-2.5-pro", "openai": "tiny"}
        url = f"http://127.0.0.1:{self.port}/v1"
        settings = {"proposer": host, "model": models[host], "allow_tools": True, "openai_url": url}
        agent = headless.agent(Config([("lab", {f"nightly.{name}": value for name, value in settings.items()})]))
        form = schema.definition("verdict") if verdict else None
        return agent.ask(Request(SYSTEM, TEXT, form, seconds, RUN))

    def requests(self) -> list[dict[str, Any]]:
        files = sorted((self.root / "req").glob("[0-9]*.json"))
        return [json.loads(file.read_text(encoding="utf-8"))["body"] for file in files]


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
    home, folder = own_environment, tmp_path / "bin"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir()
    (tmp_path / "req").mkdir()
    if host in PROGRAMS:
        program = next(iter(HOSTS.glob(PROGRAMS[host])), None)
        if program is None:
            pytest.skip(f"needs the program of {host}: {HOSTS / PROGRAMS[host]}")
        provider = {"name": "lab", "base_url": f"http://127.0.0.1:{port}/v1", "wire_api": "responses",
                    "env_key": "CODEX_API_KEY"}  # fmt: skip
        # Codex is called without the user's configuration, which is where another endpoint would be named.
        flags = [f"-c model_providers.lab.{name}='{value}'" for name, value in provider.items()]
        before = {"codex": " ".join(["-c model_provider=lab", *flags])}.get(host, "")
        start = f"node '{program}'" if host == "gemini" else f"'{program}'"
        (folder / host).write_text(f'#!/bin/sh\nexec {start} {before} "$@"\n', encoding="utf-8")
        (folder / host).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in ("ANTHROPIC_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{port}")
    for name in ("HTTPS_PROXY", "https_proxy"):  # nothing but loopback can be reached
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
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
    return Lab(tmp_path, home, port)


@contextlib.contextmanager
def model(lab: Lab, program: Path, mode: str) -> Iterator[None]:
    """The laboratory's model; in `script` mode it calls what tools it is offered before it answers."""
    answer = lab.root / "reply.json"
    answer.write_text(json.dumps(VERDICT), encoding="utf-8")
    env = {**os.environ, "REPLY": str(answer), "LABDIR": str(lab.root / "req"), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        [sys.executable, program, str(lab.port), str(lab.root / "req"), mode], env=env, stderr=subprocess.PIPE
    ) as process:
        try:
            while True:
                assert process.poll() is None, process.stderr and process.stderr.read()
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", lab.port), 1):
                    break
            yield
        finally:
            process.kill()


@ALL_HOSTS
def test_the_answer_is_read_and_nothing_of_the_users_is_asked(
    host: str, lab: Lab, shared: Callable[[str], Path]
) -> None:
    before = {path for path in lab.home.rglob("*") if path.is_file()}
    with model(lab, shared("hosts-lab/model_server.py"), "script"):
        for verdict in (True, False):
            reply = lab.ask(host, verdict=verdict)
            assert (reply.kind, json.loads(reply.text)) == ("answer", VERDICT), reply
            assert reply.tokens == (11, 7)
    requests = lab.requests()
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
    with model(lab, shared("hosts-lab/model_server.py"), "429"):
        reply = lab.ask(host)
    assert reply.kind == "limit", reply
    assert {"claude": "(429)", "codex": "usage limit", "gemini": "quota", "openai": "usage limit"}[host] in reply.text
    assert (host == "codex") == bool(reply.resets)


@ALL_HOSTS
def test_a_model_that_never_answers_is_given_up(host: str, lab: Lab) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", lab.port))
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
