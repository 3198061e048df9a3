"""Kiro: its events of both versions, its answers, and its own file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Refused, Unavailable
from khms.hosts import kiro, settings
from khms.hosts.base import Event
from khms.hosts.settings import install, status, uninstall


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"hook_event_name": "SessionStart", "session_id": "s"}, Event("session-start", "s", source="startup")),
        ({"hook_event_name": "agentSpawn"}, Event("session-start", source="startup")),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "why?"}, Event("prompt", prompt="why?")),
        ({"hook_event_name": "userPromptSubmit", "prompt": "why?"}, Event("prompt", prompt="why?")),
        ({"hook_event_name": "preToolUse", "tool_name": "execute_bash", "tool_input": {}}, Event("other")),
        ({"hook_event_name": "stop", "prompt": 5, "session_id": {}}, Event("other")),
    ],
)
def test_a_payload_becomes_an_event(given: dict[str, object], expected: Event) -> None:
    name = str(given["hook_event_name"])
    assert kiro.event({**given, "cwd": "/c"}) == expected._replace(cwd="/c", name=name, host="kiro")


def test_an_answer_is_the_text_itself_where_it_reaches_the_model() -> None:
    text = "[khms] ü\n[/khms]"
    for name in ("SessionStart", "agentSpawn", "UserPromptSubmit", "userPromptSubmit"):
        assert kiro.answer(Event("other", name=name), text) == text
    for name in ("PreToolUse", "preToolUse", "stop", ""):
        assert kiro.answer(Event("other", name=name), text) == ""
    odd: Any
    for odd in (None, [], 5, {}, {"hook_event_name": 5}):
        assert kiro.event(odd) is None


def test_the_samples_become_events(shared: Callable[[str], Path]) -> None:
    found = {}
    for path in sorted(shared("real/hosts").glob("kiro-*.json")):
        event = kiro.event(json.loads(path.read_text(encoding="utf-8")))
        found[path.stem.removeprefix("kiro-")] = event and event.moment
    assert found == {
        "agentSpawn": "session-start",
        "hooks-v1": None,
        "postToolUse": "other",
        "preToolUse": "other",
        "stop": "other",
        "userPromptSubmit": "prompt",
    }


@pytest.mark.parametrize("scope", ["user", "project"])
def test_the_file_comes_and_goes_and_leaves_nothing(own_environment: Path, tmp_path: Path, scope: Any) -> None:
    project = tmp_path / "api"
    project.mkdir()
    root = own_environment if scope == "user" else project
    before = {path for path in root.rglob("*") if "data" not in path.parts}
    report = install(kiro, scope, project)
    path = root / ".kiro" / "hooks" / "khms.json"
    assert report.changed and report.path == path
    command = settings.hook_command(kiro)
    plain = {"action": {"type": "command", "command": command}, "timeout": 5, "enabled": True}
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "version": "v1",
        "hooks": [
            {"name": "khms-session-start", "trigger": "SessionStart", **plain},
            {"name": "khms-prompt", "trigger": "UserPromptSubmit", **plain},
        ],
    }
    events = ("SessionStart", "UserPromptSubmit")
    assert status(kiro, scope, project) == settings.Status(True, path, command, (), events)
    assert not install(kiro, scope, project).changed
    assert uninstall(kiro, scope, project).changed
    assert {path for path in root.rglob("*") if "data" not in path.parts} == before


def test_somebody_elses_file_a_read_only_one_and_a_link_out(
    own_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own_environment / ".kiro" / "hooks" / "khms.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"version": "v1", "hooks": []}', encoding="utf-8")
    with pytest.raises(Refused):
        install(kiro, "user", tmp_path)
    assert not uninstall(kiro, "user", tmp_path).changed
    assert path.read_text(encoding="utf-8") == '{"version": "v1", "hooks": []}'
    path.unlink()
    install(kiro, "user", tmp_path)
    written = path.read_bytes()
    path.write_bytes(written.replace(b'"enabled": true', b'"enabled": false'))
    changed = path.read_bytes()
    path.chmod(0o444)
    for step in (install, uninstall):
        with pytest.raises(Unavailable):
            step(kiro, "user", tmp_path)
    assert path.read_bytes() == changed and any("install again" in p for p in status(kiro, "user", tmp_path).problems)
    project = tmp_path / "api"
    (project / ".kiro").mkdir(parents=True)
    (project / ".kiro" / "hooks").symlink_to(own_environment / ".kiro" / "hooks")
    with pytest.raises(Refused):
        install(kiro, "project", project)
    assert path.read_bytes() == changed
