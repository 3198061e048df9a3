"""Gemini CLI's payloads become events, answers take the one form it reads, and what keeps its hooks off is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import gemini, registry, settings
from khms.hosts.base import Event

COMMON = {"session_id": "s-1", "transcript_path": "/t/s-1.jsonl", "cwd": "/home/ada/api", "timestamp": "t"}
SAYS = ("SessionStart", "BeforeAgent", "AfterTool-shell", "AfterTool-shell-nonzero")
FAILED = "Output: no rule\nExit Code: 2"


def payload(name: str, **more: object) -> dict[str, object]:
    return {**COMMON, "hook_event_name": name, **more}


def after(name: str, given: object, **response: object) -> dict[str, object]:
    return payload("AfterTool", tool_name=name, tool_input=given, tool_response=response)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (payload("SessionStart", source="startup"), Event("session-start", name="SessionStart", source="startup")),
        (payload("BeforeAgent", prompt="why?"), Event("prompt", prompt="why?", name="BeforeAgent")),
        (payload("BeforeAgent", prompt="<hook_context>[khms] x</hook_context>\n\nwhy?"),
         Event("prompt", prompt="\n\nwhy?", name="BeforeAgent")),
        (payload("BeforeAgent", prompt="what is <hook_context>?"),
         Event("prompt", prompt="what is <hook_context>?", name="BeforeAgent")),
        (after("run_shell_command", {"command": "make"}, llmContent="Output: done"),
         Event("pre-shell", command="make", name="AfterTool")),
        (after("run_shell_command", {"command": "make"}, llmContent=FAILED),
         Event("pre-shell", command="make", error=FAILED, name="AfterTool")),
        (after("run_shell_command", {"command": "make"}, error={"message": "x"}), Event("other", name="AfterTool")),
        (after("write_file", {"file_path": "/a.py", "content": "all"}),
         Event("pre-edit", path="/a.py", text="all", name="AfterTool")),
        (after("replace", {"file_path": "/a.py", "old_string": "b", "new_string": "c"}),
         Event("pre-edit", path="/a.py", text="c", name="AfterTool")),
        (after("read_file", {"file_path": "/a.py"}), Event("other", name="AfterTool")),
        (after("replace", ["x"]), Event("pre-edit", name="AfterTool")),
        (payload("BeforeTool", tool_name="run_shell_command", tool_input={"command": "make"}),
         Event("other", name="BeforeTool")),
        (payload("PreCompress", trigger="auto"), Event("other", name="PreCompress")),
        (payload("SessionEnd", reason="exit"), Event("session-end", name="SessionEnd")),
    ],
)  # fmt: skip
def test_a_payload_becomes_an_event(given: dict[str, object], expected: Event) -> None:
    assert gemini.event(given) == expected._replace(
        session="s-1", cwd="/home/ada/api", host="gemini", transcript="/t/s-1.jsonl"
    )


@pytest.mark.parametrize("pattern", ["claude-*.json", "codex-*.json", "cursor-*.json", "vscode-*.json"])
def test_what_another_host_sends_is_no_event(shared: Callable[[str], Path], pattern: str) -> None:
    files = [
        file for file in shared("real/hosts").glob(pattern) if file.stem.split("-")[1] not in ("hooks", "settings")
    ]
    assert files
    assert all(gemini.event(json.loads(file.read_text(encoding="utf-8"))) is None for file in files)
    assert all(gemini.event(value) is None for value in (None, 1, "x", [], {}, {"hook_event_name": 3}))


def test_every_real_payload_gets_an_answer_of_its_form_or_none(
    shared: Callable[[str], Path], answers: Callable[[str, bytes], str]
) -> None:
    heard = []
    for file in sorted(shared("real/hosts").glob("gemini-*.json")):
        if out := answers("gemini", file.read_bytes()):
            assert valid(out) == json.loads(file.read_bytes())["hook_event_name"]
            heard.append(file.stem.removeprefix("gemini-"))
    assert sorted(heard) == sorted(SAYS)


def test_whatever_comes_there_is_silence_or_a_valid_answer(
    answers: Callable[[str, bytes], str], hostile: tuple[bytes, ...]
) -> None:
    for raw in hostile:
        out = answers("gemini", raw)
        assert not out or valid(out)


def valid(out: str) -> str:
    """The event that the answer names."""
    value = json.loads(out)
    inner = value["hookSpecificOutput"]
    assert value.keys() == {"hookSpecificOutput"} and inner.keys() == {"hookEventName", "additionalContext"}
    assert inner["additionalContext"].startswith("[khms] ")
    return str(inner["hookEventName"])


def problems(scope: Any = "user", project: Path = Path("/")) -> str:
    return "\n".join(settings.status(registry.host("gemini"), scope, project).problems)


def test_the_entries_stand_among_comments_and_go_without_a_trace(own_environment: Path, tmp_path: Path) -> None:
    host = registry.host("gemini")
    file = own_environment / ".gemini" / "settings.json"
    file.parent.mkdir()
    before = '{\n  // mine\n  "ui": {"theme": "GitHub"},\n  "hooks": {"AfterTool": [{"hooks": []}]}\n}\n'
    file.write_text(before, encoding="utf-8")
    assert settings.install(host, "user", tmp_path).changed
    written = file.read_text(encoding="utf-8")
    assert "// mine" in written and '"timeout": 5000' in written and '"name": "khms"' in written
    assert not settings.install(host, "user", tmp_path).changed and problems() == ""
    file.write_text(written.replace("GitHub", "Dracula"), encoding="utf-8")
    settings.uninstall(host, "user", tmp_path)
    assert file.read_text(encoding="utf-8") == before.replace("GitHub", "Dracula")


def test_what_keeps_hooks_off_is_named(own_environment: Path, tmp_path: Path) -> None:
    host = registry.host("gemini")
    file = own_environment / ".gemini" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"hooksConfig": {"enabled": false, "disabled": ["a", "khms"]}}', encoding="utf-8")
    settings.install(host, "user", tmp_path)
    assert "switch all hooks off" in problems() and "/hooks enable khms" in problems()

    project = tmp_path / "project"
    project.mkdir()
    settings.install(host, "project", project)
    assert (
        problems("project", project)
        == f"Gemini CLI runs hooks of this folder once you trust it: start gemini in {project}"
    )
    trusted = own_environment / ".gemini" / "trustedFolders.json"
    trusted.write_text(json.dumps({str(tmp_path): "TRUST_FOLDER"}), encoding="utf-8")
    assert problems("project", project) == ""
