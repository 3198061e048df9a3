"""Copilot's payloads, of its CLI in both spellings and of VS Code, become events; each program gets its own form."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import claude_code, copilot, registry, settings
from khms.hosts.base import Event

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-old\n+new\n*** End Patch\n"
CLI = {"session_id": "s-1", "cwd": "/home/ada/api", "timestamp": "t"}
CAMEL = {"sessionId": "s-1", "cwd": "/home/ada/api", "timestamp": 1796048042261}
EDITOR = {**CAMEL, "transcript_path": "/t/s-1.json"}
SAYS = {
    "copilot": (
        "PascalCase-PreToolUse",
        "PascalCase-SessionStart",
        "preToolUse",
        "sessionStart",
        "userPromptSubmitted",
    ),
    "vscode": ("PreToolUse", "SessionStart"),
}


def cli(name: str, **more: object) -> dict[str, object]:
    return {**CLI, "hook_event_name": name, **more}


def camel(**more: object) -> dict[str, object]:
    return {**CAMEL, **more}


def editor(name: str, **more: object) -> dict[str, object]:
    return {**EDITOR, "hookEventName": name, **more}


START = Event("session-start", name="SessionStart", source="new")
PROMPT = Event("prompt", prompt="why?", name="UserPromptSubmit")
SHELL = Event("pre-shell", command="make", name="PreToolUse")
EDIT = Event("pre-edit", path="/a.py", text="c", name="PreToolUse")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (cli("SessionStart", source="new", initial_prompt="why?"), START),
        (camel(source="new", initialPrompt="why?"), START),
        (editor("SessionStart", source="new"), START),
        (cli("UserPromptSubmit", prompt="why?"), PROMPT),
        (camel(prompt="why?"), PROMPT),
        (editor("UserPromptSubmit", prompt="why?"), PROMPT),
        (cli("PreToolUse", tool_name="Bash", tool_input={"command": "make"}), SHELL),
        (camel(toolName="bash", toolArgs={"command": "make"}), SHELL),
        (editor("PreToolUse", tool_name="run_in_terminal", tool_input={"command": "make"}), SHELL),
        (cli("PreToolUse", tool_name="Write", tool_input={"path": "/a.py", "file_text": "c"}), EDIT),
        (camel(toolName="edit", toolArgs={"path": "/a.py", "old_str": "b", "new_str": "c"}), EDIT),
        (editor("PreToolUse", tool_name="create_file", tool_input={"filePath": "/a.py", "content": "c"}), EDIT),
        (cli("PreToolUse", tool_name="apply_patch", tool_input=PATCH), EDIT._replace(path="src/a.py", text="new")),
        (editor("PreToolUse", tool_name="apply_patch", tool_input={"input": PATCH}),
         EDIT._replace(path="src/a.py", text="new")),
        (cli("PreToolUse", tool_name="Edit", tool_input=5), EDIT._replace(path="", text="")),
        (cli("PreToolUse", tool_name="Read", tool_input={"path": "/a.py"}), Event("other", name="PreToolUse")),
        (cli("SubagentStart"), Event("subagent-start", name="SubagentStart")),
        (cli("PostToolUse", tool_name="Bash"), Event("other", name="PostToolUse")),
    ],
)  # fmt: skip
def test_a_payload_becomes_an_event(given: dict[str, object], expected: Event) -> None:
    own = "vscode" if "hookEventName" in given else "copilot"
    transcript = "/t/s-1.json" if own == "vscode" else ""
    assert copilot.event(given) == expected._replace(
        session="s-1", cwd="/home/ada/api", host=own, transcript=transcript
    )


def test_the_end_of_a_session_leads_to_its_transcript(own_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = copilot.event(cli("SessionEnd", reason="complete"))
    assert ended and ended.moment == "session-end"
    assert ended.transcript == str(own_environment / ".copilot" / "session-state" / "s-1" / "events.jsonl")
    strange = copilot.event({**cli("SessionEnd"), "session_id": "../../etc"})
    assert strange and strange.transcript == ""
    monkeypatch.setenv("COPILOT_HOME", "/moved")
    moved = copilot.event(camel(reason="complete"))
    assert moved and moved.transcript == "/moved/session-state/s-1/events.jsonl"
    given = camel(trigger="auto", transcriptPath="/x/events.jsonl")
    cut = copilot.event(given)
    assert cut and (cut.moment, cut.transcript, cut.host) == ("pre-compact", "/x/events.jsonl", "copilot")


@pytest.mark.parametrize("pattern", ["claude-*.json", "codex-*.json", "cursor-*.json", "gemini-*.json"])
def test_what_another_host_sends_gets_no_answer(shared: Callable[[str], Path], pattern: str) -> None:
    files = [
        file for file in shared("real/hosts").glob(pattern) if file.stem.split("-")[1] not in ("hooks", "settings")
    ]
    assert files
    for file in files:
        event = copilot.event(json.loads(file.read_text(encoding="utf-8")))
        assert event is None or not copilot.answer(event, "text") or event.name == "SessionStart", file.name
    assert all(copilot.event(value) is None for value in (None, 1, "x", [], {}, {"hook_event_name": 3}))


def test_claudes_hooks_are_silent_where_copilot_or_vs_code_runs_them(shared: Callable[[str], Path]) -> None:
    later = {**cli("PreToolUse", tool_name="Bash", tool_input={"command": "make"}), "transcript_path": "/t/s-1.json"}
    assert claude_code.event(later) is None and claude_code.event(editor("SessionStart")) is None
    event = copilot.event(later)
    assert event and event.host == "vscode" and "hookSpecificOutput" in copilot.answer(event, "text")


@pytest.mark.parametrize("host", ["copilot", "vscode"])
def test_every_real_payload_gets_an_answer_of_its_form_or_none(
    shared: Callable[[str], Path], answers: Callable[[str, bytes], str], host: str
) -> None:
    heard = []
    for file in sorted(shared("real/hosts").glob(f"{host}-*.json")):
        if out := answers("copilot", file.read_bytes()):
            text = valid(out) if host == "copilot" else valid(json.dumps(json.loads(out)["hookSpecificOutput"]), host)
            assert text.startswith("[khms] ")
            heard.append(file.stem.removeprefix(f"{host}-"))
    assert sorted(heard) == sorted(SAYS[host])


def test_whatever_comes_there_is_silence_or_a_valid_answer(
    answers: Callable[[str, bytes], str], hostile: tuple[bytes, ...]
) -> None:
    for raw in hostile:
        out = answers("copilot", raw)
        assert not out or valid(out)


def valid(out: str, host: str = "copilot") -> str:
    """The text of an answer that has the keys which count, and no other."""
    value = json.loads(out)
    assert value.keys() == ({"additionalContext"} if host == "copilot" else {"hookEventName", "additionalContext"})
    return str(value["additionalContext"])


def test_khms_has_a_file_of_its_own_that_others_may_write_in(own_environment: Path, tmp_path: Path) -> None:
    host: Any = registry.host("copilot")
    file = own_environment / ".copilot" / "hooks" / "khms.json"
    settings.install(host, "user", tmp_path)
    value = json.loads(file.read_text(encoding="utf-8"))
    assert value["version"] == 1 and set(value["hooks"]) == {watch.event for watch in copilot.WATCHES}
    assert all(entry.get("matcher") != "" for entries in value["hooks"].values() for entry in entries)
    assert not settings.install(host, "user", tmp_path).changed
    assert settings.status(host, "user", tmp_path).problems == ()

    other = {"type": "command", "bash": "true", "timeoutSec": 3}
    value["hooks"]["PreToolUse"].append(other)
    file.write_text(json.dumps(value), encoding="utf-8")
    settings.uninstall(host, "user", tmp_path)
    assert json.loads(file.read_text(encoding="utf-8")) == {"version": 1, "hooks": {"PreToolUse": [other]}}

    file.write_text("{}", encoding="utf-8")
    settings.install(host, "user", tmp_path)
    changed = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**changed, "mine": 1}), encoding="utf-8")
    settings.uninstall(host, "user", tmp_path)
    assert json.loads(file.read_text(encoding="utf-8")) == {"mine": 1}

    file.unlink()
    settings.install(host, "user", tmp_path)
    settings.uninstall(host, "user", tmp_path)
    assert not file.exists()
