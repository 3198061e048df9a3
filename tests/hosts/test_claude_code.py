"""Claude Code's payloads become events, whatever stands in them, and answers take the one form it reads."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Usage
from khms.hosts import claude_code, registry
from khms.hosts.base import Event

COMMON = {"session_id": "s-1", "transcript_path": "/t/s-1.jsonl", "cwd": "/home/ada/api"}


def payload(name: str, **more: object) -> dict[str, object]:
    return {**COMMON, "hook_event_name": name, **more}


def tool(name: str, given: object) -> dict[str, object]:
    return payload("PreToolUse", tool_name=name, tool_input=given)


def test_the_registry_gives_the_host_and_names_the_known_ones_else() -> None:
    host = registry.host("claude-code")
    assert (host.ID, host.TITLE) == ("claude-code", "Claude Code")
    assert all(name == registry.host(name).ID for name in registry.HOSTS)
    with pytest.raises(Usage) as refused:
        registry.host("claude")
    assert "claude-code" in refused.value.hint


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (payload("SessionStart", source="startup"), Event("session-start", name="SessionStart", source="startup")),
        (payload("UserPromptSubmit", prompt="why?\n"), Event("prompt", prompt="why?\n", name="UserPromptSubmit")),
        (
            payload("UserPromptSubmit", prompt="<x>", source="system"),
            Event("other", prompt="<x>", name="UserPromptSubmit"),
        ),
        (payload("SubagentStart", agent_type="Explore"), Event("subagent-start", name="SubagentStart")),
        (tool("Bash", {"command": "make"}), Event("pre-shell", command="make", name="PreToolUse")),
        (
            tool("Edit", {"file_path": "/a.py", "old_string": "b", "new_string": "c"}),
            Event("pre-edit", path="/a.py", text="c", name="PreToolUse"),
        ),
        (
            tool("Write", {"file_path": "/a.py", "content": "all"}),
            Event("pre-edit", path="/a.py", text="all", name="PreToolUse"),
        ),
        (
            tool("MultiEdit", {"file_path": "/a.py", "edits": [{"new_string": "c"}, 5, {"new_string": "d"}, {}]}),
            Event("pre-edit", path="/a.py", text="c\nd\n", name="PreToolUse"),
        ),
        (
            tool("NotebookEdit", {"notebook_path": "/n.ipynb", "new_source": "x = 1"}),
            Event("pre-edit", path="/n.ipynb", text="x = 1", name="PreToolUse"),
        ),
        (tool("Read", {"file_path": "/a.py"}), Event("other", name="PreToolUse")),
        (payload("PostToolUse", tool_name="Bash"), Event("other", name="PostToolUse")),
        (payload("Stop"), Event("other", name="Stop")),
        (
            payload("PostToolUseFailure", tool_name="Bash", error="Exit code 2\nno"),
            Event("after-failure", error="Exit code 2\nno", name="PostToolUseFailure"),
        ),
        (payload("PostToolUseFailure", tool_name="Edit"), Event("other", name="PostToolUseFailure")),
        (
            payload("PostToolUseFailure", tool_name="Bash", is_interrupt=True),
            Event("other", name="PostToolUseFailure"),
        ),
        (payload("PreCompact", trigger="auto"), Event("pre-compact", name="PreCompact")),
        (payload("SessionEnd", reason="other"), Event("session-end", name="SessionEnd")),
    ],
)
def test_a_payload_becomes_an_event(given: dict[str, object], expected: Event) -> None:
    assert claude_code.event(given) == expected._replace(
        session="s-1", cwd="/home/ada/api", host="claude-code", transcript="/t/s-1.jsonl"
    )


HOSTILE: list[Any] = [None, True, 0, 1.5, "text", [], {}, [1], {"a": 1}, float("nan")]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_field_of_the_wrong_type_is_empty(value: Any) -> None:
    wanted = value if isinstance(value, str) else ""
    found = claude_code.event(
        {"hook_event_name": "UserPromptSubmit", "prompt": value, "session_id": value, "cwd": value}
    )
    assert found == Event(
        "prompt", session=wanted, cwd=wanted, prompt=wanted, name="UserPromptSubmit", host="claude-code"
    )
    for name in ("Bash", "Edit", "MultiEdit"):
        inner = dict.fromkeys(("command", "file_path", "new_string", "edits"), value)
        for inputs in (value, inner):
            event = claude_code.event(tool(name, inputs))
            assert event is not None
            assert all(isinstance(part, str) for part in event)
    event = claude_code.event({"hook_event_name": "PreToolUse", "tool_name": value, "tool_input": value})
    assert event == Event("other", name="PreToolUse", host="claude-code")


@pytest.mark.parametrize(
    "given",
    [
        *HOSTILE,
        {"hook_event_name": None},
        {"hook_event_name": ["PreToolUse"]},
        {"hookEventName": "UserPromptSubmit", "sessionId": "v", "timestamp": "t", "prompt": "from VS Code"},
        payload("beforeSubmitPrompt", conversation_id="c", cursor_version="2", prompt="from Cursor"),
        {"hook_event_name": "PreToolUse", "session_id": "c", "timestamp": "t", "tool_name": "Bash", "tool_input": {}},
    ],
)
def test_what_claude_code_does_not_send_is_no_event(given: Any) -> None:
    assert claude_code.event(given) is None


def test_every_hostile_line_gives_an_event_or_none(shared: Callable[[str], Path]) -> None:
    seen = []
    for line in shared("cases/34-hook-payloads.txt").read_text(encoding="utf-8").splitlines():
        try:
            given = json.loads(line)
        except ValueError:
            continue
        event = claude_code.event(given)
        seen.append(event.moment if event else None)
        assert event is None or all(isinstance(part, str) for part in event)
    assert seen == [None, None, None, None, "prompt", "prompt", "prompt", "prompt", "other", "pre-shell"]


def test_the_real_payloads_of_each_event(shared: Callable[[str], Path]) -> None:
    moments = {}
    for file in sorted(shared("real/hosts").glob("claude-*.json")):
        if file.name != "claude-settings.json":
            event = claude_code.event(json.loads(file.read_text(encoding="utf-8")))
            assert event is not None and event.session and event.cwd, file.name
            moments[file.stem.removeprefix("claude-")] = event.moment
    assert {name: moment for name, moment in moments.items() if moment != "other"} == {
        "SessionStart": "session-start",
        "SessionStart-compact": "session-start",
        "UserPromptSubmit": "prompt",
        "PreToolUse-Bash": "pre-shell",
        "PreToolUse-Edit": "pre-edit",
        "PreToolUse-Write": "pre-edit",
        "PostToolUseFailure-Bash": "after-failure",
        "PreCompact": "pre-compact",
        "SessionEnd": "session-end",
    }


@pytest.mark.parametrize("pattern", ["cursor-*.json", "vscode-*.json", "copilot-*.json"])
def test_another_host_that_runs_claudes_hooks_gets_no_answer(shared: Callable[[str], Path], pattern: str) -> None:
    files = [file for file in shared("real/hosts").glob(pattern) if "hooks" not in file.name]
    assert files
    for file in files:
        given = json.loads(file.read_text(encoding="utf-8"))
        event = claude_code.event(given)
        assert event is None or event.moment == "other", file.name


@pytest.mark.parametrize("name", ["SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse"])
def test_an_answer_is_one_line_of_ascii_json(name: str) -> None:
    text = '[khms] one\nübergröße "quoted" \u2028 \ud800\n[/khms]'
    line = claude_code.answer(Event("other", name=name), text)
    assert line.isascii() and "\n" not in line
    assert json.loads(line) == {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


@pytest.mark.parametrize(
    ("name", "text"), [("PreCompact", "x"), ("SessionEnd", "x"), ("Stop", "x"), ("", "x"), ("PreToolUse", "")]
)
def test_no_answer_where_the_event_takes_none_or_there_is_nothing_to_say(name: str, text: str) -> None:
    assert claude_code.answer(Event("other", name=name), text) == ""


def test_every_watched_event_has_a_moment_and_a_limit() -> None:
    silent = {watch.event for watch in claude_code.WATCHES} - claude_code.ANSWERS
    assert silent == {"PreCompact", "SessionEnd"}, "where nothing said would reach the model"
    assert all(watch.timeout == 5 for watch in claude_code.WATCHES)


def test_where_the_settings_stand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert claude_code.settings_path("user", tmp_path) == tmp_path / "home" / ".claude" / "settings.json"
    assert claude_code.settings_path("project", tmp_path / "p") == tmp_path / "p" / ".claude" / "settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    assert claude_code.settings_path("user", tmp_path) == tmp_path / "moved" / "settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "")
    assert claude_code.settings_path("user", tmp_path) == tmp_path / "home" / ".claude" / "settings.json"
