"""The settings file of the host under test, in the test's own home, and what khms says to a host's event."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

HOSTILE = (
    *(b"", b"\n", b"{", b"null", b'"text"', b"[]", b"{}", b"\xff\xfe{", b"[" * 100_000),
    b'{"hook_event_name": "SessionStart", "session_id": "../../../escaped", "cwd": "/nowhere/\\u0000"}',
    b'{"hook_event_name": "UserPromptSubmit", "prompt": 12, "session_id": [], "timestamp": {}, "cwd": null}',
    b'{"hook_event_name": "BeforeAgent", "prompt": "\\ud800 make test fails", "timestamp": "t"}',
    b'{"timestamp": 1, "toolName": {}, "toolArgs": "not an object", "sessionId": "../.."}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": ["rm"], "session_id": "s"}',
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "' + b"make test " * 200_000 + b'"}',
)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def file(own_environment: Path) -> Path:
    return own_environment / ".claude" / "settings.json"


@pytest.fixture
def write(file: Path) -> Callable[[str | bytes], bytes]:
    def put(content: str | bytes) -> bytes:
        file.parent.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        file.write_bytes(data)
        return data

    return put


@pytest.fixture
def hostile() -> tuple[bytes, ...]:
    """What no host should send, as it could stand on standard input."""
    return HOSTILE


@pytest.fixture
def answers(
    base: Base, add_card: Callable[..., Path], put_candidate: Callable[..., Path], run_khms: Run
) -> Callable[[str, bytes], str]:
    """answers("codex", event): what `khms hook run` says to the event, from a base that has something to say at every
    moment: nothing, or one line. Whatever the event is, it ends well and without another word."""
    add_card(base, "K-00001", title="make test fails on CI without DATABASE_URL", body="Set it for the tests.\n")
    add_card(base, "K-00002", title="notes.txt says alpha and beta", body="The importer reads it.\n")
    put_candidate(base, "C1")
    settings = {"deadline_ms": 30000, "per_window": 1000, "card_hours": 0, "query_minutes": 0}
    settings |= {"prompt_threshold": 0, "shell_threshold": 0, "edit_threshold": 0}
    lines = [f"{name} = {value}" for name, value in settings.items()]
    (base.root / "khms.toml").write_text("\n".join(["[hooks]", *lines, ""]), encoding="utf-8")
    done = run_khms("index", cwd=base.root)
    assert done.returncode == 0, done.stderr

    def ask(host: str, event: bytes) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "khms", "hook", "run", "--host", host],
            input=event,
            env={**os.environ, "KHMS_ROOT": str(base.root)},
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b""), event[:200]
        out = done.stdout.decode("ascii")
        assert out == "" or (out.count("\n") == 1 and isinstance(json.loads(out), dict)), out
        return out

    return ask
