"""The process as Cursor, opencode, Kiro, Hermes and OpenClaw run it: each answer in the form that the host takes."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.index import sync
from khms.store.layout import Base

AddCard = Callable[..., Path]
Logged = Callable[[Base | None], list[dict[str, Any]]]
ASKED = "Why does make test fail?"
FORCE = "git push --force origin main"
HOSTS = ("cursor", "opencode", "kiro", "hermes", "openclaw")
GARBAGE = [
    b"", b" \n", b"{}", b"null", b"[]", b"7", b'{"a":1}{"b":2}', b"\xff\xfe\x00",
    b"[" * 100_000, b'{"n":' + b"9" * 6000 + b"}",
    b'{"hook_event_name":"sessionStart","conversation_id":"../../x","workspace_roots":["/no/such"]}',
    b'{"hook_event_name":"chat.message","session_id":"../../x\\u0000","prompt":"cut off',
    b'{"hook_event_name":"UserPromptSubmit","session_id":"' + b"s" * 5_000_000 + b'"}',
]  # fmt: skip


@pytest.fixture
def known(indexed: Base, add_card: AddCard) -> Base:
    """A base that knows something about the samples' prompt, command and edit."""
    add_card(indexed, "K-00031", title="Why make test fails: the fixtures need a fake clock", body="FIX: set it.\n")
    add_card(indexed, "K-00032", type="policy", title="Nobody rewrites a published branch", tags=["git"])
    sync.refresh(indexed)
    return indexed


@pytest.fixture
def run(patient: list[str], tmp_path: Path) -> Callable[..., str]:
    """What the host reads: exit code 0, nothing on standard error, UTF-8."""

    def call(host: str, raw: bytes, base: Base) -> str:
        done = subprocess.run(
            [*patient[:3], host, *patient[4:]],
            input=raw,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "KHMS_ROOT": str(base.root)},
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode("utf-8")

    return call


def told(host: str, name: str, out: str) -> str:
    """The text that reaches the model, out of an answer that the host takes; anything else fails."""
    if host == "cursor":
        answer = json.loads(out)  # always an object
        going = answer.pop("continue", True)
        assert going is True and set(answer) <= {"additional_context"}
        return str(answer.get("additional_context", ""))
    if host == "kiro":
        return out
    if not out:
        return ""
    answer = json.loads(out)
    key = "context" if host == "hermes" else "text"
    assert list(answer) == [key] and out.count("\n") == 1
    return str(answer[key])


def event(host: str, kind: str, session: str = "s1") -> dict[str, Any]:
    """A prompt, a risky command, or a session's start, as the host tells it; {} where it has no such event."""
    base: dict[str, Any] = {"session_id": session, "cwd": "/"}
    if host == "cursor":
        base = {"conversation_id": session, "workspace_roots": ["/"]}
        tool = {"tool_name": "Shell", "tool_input": {"command": FORCE}}
        names = {"prompt": "beforeSubmitPrompt", "shell": "preToolUse", "start": "sessionStart"}
    elif host == "opencode":
        tool = {"tool_name": "bash", "tool_input": {"command": FORCE}}
        names = {"prompt": "chat.message", "shell": "tool.execute.after", "start": "session.created"}
        base["source"] = "startup"
    else:
        tool = {}
        names = {
            "kiro": {"prompt": "UserPromptSubmit", "start": "SessionStart"},
            "hermes": {"prompt": "pre_llm_call"},
            "openclaw": {"start": "agent:bootstrap"},
        }[host]
    said = {"extra": {"user_message": ASKED}} if host == "hermes" else {"prompt": ASKED}
    more = {"prompt": said, "shell": tool, "start": {}}[kind]
    return {"hook_event_name": names[kind], **base, **more} if kind in names else {}


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_known_is_said_once_at_each_moment_that_the_host_has(
    run: Callable[..., str], known: Base, write: Callable[..., Path], host: str
) -> None:
    write(known, "memory/inbox/2026-11-30-nightly/C1.md", "x")
    for kind, wanted in (("start", "awaits review"), ("prompt", "K-00031"), ("shell", "K-00032")):
        given = event(host, kind)
        if given:
            text = told(host, given["hook_event_name"], run(host, json.dumps(given).encode(), known))
            assert wanted in text and text.startswith("[khms] ") and text.rstrip().endswith("[/khms]"), kind
    if again := event(host, "prompt"):
        assert told(host, again["hook_event_name"], run(host, json.dumps(again).encode(), known)) == ""


@pytest.mark.parametrize("host", HOSTS)
def test_garbage_is_nothing_or_one_valid_answer_with_the_reason_in_the_log(
    run: Callable[..., str], logged: Logged, known: Base, host: str
) -> None:
    for raw in GARBAGE:
        assert told(host, "", run(host, raw, known)) == ""
    lines = logged(known)
    assert len(lines) == len(GARBAGE) and all(line["decision"] == "silent" and line["reason"] for line in lines)


def test_every_sample_gets_an_answer_that_its_host_takes(
    run: Callable[..., str], logged: Logged, known: Base, shared: Callable[[str], Path]
) -> None:
    heard = set()
    count = 0
    for host in HOSTS:
        for file in sorted(shared("real/hosts").glob(f"{host}-*.json")):
            text = told(host, file.stem, run(host, file.read_bytes(), known))
            count += 1
            if text:
                heard.add(file.stem)
                assert "K-00031" in text
    lines = logged(known)
    assert count > 25 and len(lines) == count and all(line["decision"] for line in lines)
    assert not [line for line in lines if line["reason"] == "error"]
    # opencode's samples are what its plugin is given; what that makes of them is tested beside it.
    assert heard == {"cursor-beforeSubmitPrompt", "kiro-userPromptSubmit", "hermes-pre_llm_call"}
