"""The hook as a host runs it: the shipped client as a process, the event on its standard input.

hook        hook(event or raw bytes, root=base, env={…}) -> the text that would reach the model, or None; asserts
            exit code 0, silence on standard error, and one valid answer or none
prompt      prompt("why …", session="s", cwd=…) -> an event
logged      logged(base) -> the lines of its log; logged(None) -> those of the user's own log
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.config import user_data
from khms.hosts import claude_code
from khms.hosts.settings import hook_command
from khms.store.layout import Base

QUESTION = "why does the checksum keep failing on deploy"
Hook = Callable[..., str | None]


@pytest.fixture
def prompt() -> Callable[..., dict[str, Any]]:
    def make(text: object = QUESTION, session: object = "s1", **more: object) -> dict[str, Any]:
        return {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "/", "prompt": text, **more}

    return make


@pytest.fixture
def command() -> list[str]:
    """What a host's settings run."""
    words = shlex.split(hook_command(claude_code))
    assert words[0] == sys.executable
    return words


@pytest.fixture
def patient(command: list[str], tmp_path: Path) -> list[str]:
    """The same with a deadline that a busy machine does not reach; the deadline has tests of its own."""
    client = tmp_path / "client.py"
    text = Path(command[2]).read_text(encoding="utf-8")
    assert "\nDEADLINE_MS = 800 " in text
    client.write_text(text.replace("\nDEADLINE_MS = 800 ", "\nDEADLINE_MS = 30000 "), encoding="utf-8")
    return [*command[:2], str(client), *command[3:]]


@pytest.fixture
def hook(patient: list[str], tmp_path: Path) -> Hook:
    def run(event: object, root: Base | None = None, env: dict[str, str] | None = None) -> str | None:
        raw = event if isinstance(event, bytes) else json.dumps(event).encode()
        named = {"KHMS_ROOT": str(root.root)} if root else {}
        done = subprocess.run(
            patient,
            input=raw,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, **named, **(env or {})},
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        if not done.stdout:
            return None
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert set(answer) == {"hookEventName", "additionalContext"}
        return str(answer["additionalContext"])

    return run


@pytest.fixture
def logged() -> Callable[[Base | None], list[dict[str, Any]]]:
    def read(base: Base | None) -> list[dict[str, Any]]:
        path = (base.log if base else user_data() / "log") / "inject.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    return read
