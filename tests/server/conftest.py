"""Servers in tests. Each test has a folder of sockets of its own, and no server outlives it.

sockets     the folder XDG_RUNTIME_DIR (short: a socket's path may not be long), whose servers are ended afterwards
stocked     the `indexed` base of tests/conftest.py
inside      inside(base) -> a Server in a thread of this process, listening as a real one would
event       event("why …", session="s", cwd=…) -> a prompt of Claude Code as bytes
ask         ask(base, b"hook", blocks, env={…}, seconds=…) -> (blocks or None, why), as a client in that base
hook        hook(base, event, …) -> the text of the answer, "" for silence, None where no server answered
logged      logged(base) -> the lines of its log
status      status(base) -> what the base's server says of itself, None where none answers
running     running(base) -> the same, once it answers
client      client(event, env) -> the text of the answer of the hook as a host runs it, "" for silence
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import claude_code
from khms.hosts.settings import hook_command
from khms.server import address, asking, launch, process
from khms.server.service import Server
from khms.store.layout import Base

QUESTION = "why does the checksum keep failing on deploy"
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="khms-t-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.delenv("KHMS_SERVER_OFF")
    yield folder
    for lock in folder.glob("khms*/*.lock"):
        _end(lock)
    shutil.rmtree(folder, ignore_errors=True)


def _end(lock: Path) -> None:
    """Ends the server behind a lock. One that is only being started has not yet written its own number there."""
    until = time.monotonic() + PATIENCE
    while launch.claimed(os.fsencode(lock)):
        assert time.monotonic() < until, f"the server behind {lock} does not end"
        number = lock.read_text(encoding="ascii").strip()
        if number and int(number) != os.getpid() and b"server" in _command(int(number)):
            os.kill(int(number), signal.SIGKILL)
        time.sleep(0.01)


def _command(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def stocked(indexed: Base) -> Base:
    return indexed


@pytest.fixture
def inside(sockets: Path) -> Iterator[Callable[..., Server]]:
    running: list[tuple[Server, threading.Thread, socket.socket]] = []

    def start(base: Base, command: Any = lambda asked: None) -> Server:
        place, why = launch.made()
        assert not why
        path = launch.lock_path(place, str(base.root)).removesuffix(launch.LOCK) + address.SOCKET
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(process.BACKLOG)
        server = Server(base, command)
        thread = threading.Thread(target=server.serve, args=(listener,), daemon=True)
        thread.start()
        running.append((server, thread, listener))
        return server

    yield start
    for server, thread, listener in running:
        server.stop()
        thread.join(PATIENCE)
        listener.close()


@pytest.fixture
def event() -> Callable[..., bytes]:
    def make(text: str = QUESTION, session: str = "s1", cwd: str = "/", **more: Any) -> bytes:
        value = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": cwd, "prompt": text, **more}
        return json.dumps(value).encode()

    return make


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[bytes] | None, str]]:
    monkeypatch.setattr(address, "real", os.path.realpath)  # a client's own way is for processes with one thread

    def one(
        base: Base,
        kind: bytes,
        blocks: tuple[bytes, ...] = (),
        env: dict[bytes, bytes] | None = None,
        seconds: float = PATIENCE,
        **more: Any,
    ) -> tuple[list[bytes] | None, str]:
        until = time.monotonic() + seconds
        return asking.ask({**os.environb, **(env or {})}, os.fsencode(base.root), kind, blocks, until, **more)

    return one


@pytest.fixture
def hook(ask: Callable[..., tuple[list[bytes] | None, str]]) -> Callable[..., str | None]:
    def one(base: Base, event: bytes, env: dict[bytes, bytes] | None = None, seconds: float = PATIENCE) -> str | None:
        told = {b"KHMS_ROOT": os.fsencode(base.root)} if env is None else env
        blocks = (b"claude-code", b"/", asking.told(told), event, repr(time.time()).encode())
        answer, _ = ask(base, b"hook", blocks, seconds=seconds, take=lambda answer: None)
        if answer is None:
            return None
        return str(json.loads(answer[0])["hookSpecificOutput"]["additionalContext"]) if answer[0] else ""

    return one


@pytest.fixture
def logged() -> Callable[[Base], list[dict[str, Any]]]:
    def read(base: Base) -> list[dict[str, Any]]:
        path = base.log / "inject.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    return read


@pytest.fixture
def status(ask: Callable[..., tuple[list[bytes] | None, str]]) -> Callable[[Base], dict[str, Any] | None]:
    def look(base: Base) -> dict[str, Any] | None:
        answer, _ = ask(base, b"status")
        return json.loads(answer[0]) if answer else None

    return look


@pytest.fixture
def running(status: Callable[[Base], dict[str, Any] | None]) -> Callable[[Base], dict[str, Any]]:
    """Waits until the base's server answers; what it says of itself."""

    def wait(base: Base) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while (found := status(base)) is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        return found

    return wait


@pytest.fixture
def client(tmp_path: Path) -> Callable[..., str]:
    """The hook as a host runs it, with time enough for a busy machine; its answer's text."""

    def run(event: bytes, env: dict[str, str]) -> str:
        words = ["sh", "-c", f"exec {hook_command(claude_code)}"]
        done = subprocess.run(words, input=event, capture_output=True, env={**os.environ, **env}, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""

    return run
