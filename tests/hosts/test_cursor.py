"""Cursor: its events and answers, its hooks file, and the rule beside it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Refused
from khms.hosts import claude_code, cursor, settings
from khms.hosts.base import Event
from khms.hosts.settings import install, status, uninstall

COMMON = {"conversation_id": "c-1", "workspace_roots": ["/home/ada/api"], "transcript_path": "/t/c-1.jsonl"}
EVENTS = ["sessionStart", "beforeSubmitPrompt", "preToolUse", "postToolUseFailure", "preCompact", "sessionEnd"]
FOREIGN = '{\n    "version": 1,\n    "hooks": {\n        "stop": [{"command": "say done"}]\n    }\n}'


def payload(name: str, **more: object) -> dict[str, object]:
    return {**COMMON, "hook_event_name": name, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (payload("sessionStart", session_id="c-1"), Event("session-start", source="startup")),
        (payload("beforeSubmitPrompt", prompt="why?"), Event("prompt", prompt="why?")),
        (
            payload("preToolUse", tool_name="Shell", tool_input={"command": "make", "working_directory": "/w"}),
            Event("pre-shell", command="make"),
        ),
        (
            payload("preToolUse", tool_name="Write", tool_input={"file_path": "/a", "content": "all"}),
            Event("pre-edit", path="/a", text="all"),
        ),
        (
            payload("preToolUse", tool_name="Write", tool_input={"path": "/a", "edits": [{"new_string": "b"}, 5]}),
            Event("pre-edit", path="/a", text="b"),
        ),
        (payload("preToolUse", tool_name="Read", tool_input={}), Event("other")),
        (
            payload("postToolUseFailure", tool_name="Shell", error_message="no rule"),
            Event("after-failure", error="no rule"),
        ),
        (
            payload("postToolUseFailure", tool_name="Shell", error_message="no", is_interrupt=True),
            Event("other", error="no"),
        ),
        (payload("preCompact"), Event("pre-compact")),
        (payload("sessionEnd"), Event("session-end")),
        (payload("stop"), Event("other")),
    ],
)
def test_a_payload_becomes_an_event(given: dict[str, object], expected: Event) -> None:
    assert cursor.event(given) == expected._replace(
        session="c-1", cwd="/home/ada/api", name=given["hook_event_name"], host="cursor", transcript="/t/c-1.jsonl"
    )


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "text", [], {}, [1], {"a": 1}])
def test_a_field_of_the_wrong_type_is_empty_and_no_sign_of_cursor_is_no_event(value: Any) -> None:
    for name in EVENTS:
        odd = dict.fromkeys(
            ("conversation_id", "workspace_roots", "cwd", "prompt", "tool_name", "tool_input", "error_message"), value
        )
        event = cursor.event({"hook_event_name": name, **odd})
        assert event and all(isinstance(part, str) for part in event)
        edit = cursor.event(payload(name, tool_name="Write", tool_input={"file_path": value, "edits": value}))
        assert edit and all(isinstance(part, str) for part in edit)
    assert cursor.event(value) is None and cursor.event({"hook_event_name": value, "conversation_id": "c"}) == (
        Event("other", session="c", name="text", host="cursor") if value == "text" else None
    )
    assert cursor.event({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash"}) is None


def test_an_answer_has_the_form_of_its_event_and_allows_nothing() -> None:
    text = '[khms] one\nüber "quoted" \u2028\n[/khms]'
    for name in cursor.ANSWERS:
        line = cursor.answer(Event("other", name=name), text)
        assert line.isascii() and "\n" not in line
        going = {"continue": True} if name == "beforeSubmitPrompt" else {}
        assert json.loads(line) == {**going, "additional_context": text}, "no permission: that is the user's"
        assert cursor.answer(Event("other", name=name), "") == ""
    for name in ("preCompact", "sessionEnd", "stop", "subagentStart", ""):
        assert cursor.answer(Event("other", name=name), text) == ""


def test_the_samples_become_events_and_are_nothing_to_claude(shared: Callable[[str], Path]) -> None:
    moments = {}
    for file in sorted(shared("real/hosts").glob("cursor-*.json")):
        given = json.loads(file.read_text(encoding="utf-8"))
        event = cursor.event(given)
        if event is None:
            assert file.name == "cursor-hooks.json"
            continue
        assert event.session and event.cwd == "/home/dev/acme-api" and event.transcript, file.name
        assert claude_code.event(given) is None, "Cursor runs the hooks of Claude's settings too"
        moments[event.name] = event.moment
    assert {name: moment for name, moment in moments.items() if moment != "other"} == {
        "sessionStart": "session-start",
        "beforeSubmitPrompt": "prompt",
        "preToolUse": "pre-shell",
        "postToolUseFailure": "after-failure",
        "preCompact": "pre-compact",
        "sessionEnd": "session-end",
    }


@pytest.fixture
def file(own_environment: Path) -> Path:
    path = own_environment / ".cursor" / "hooks.json"
    path.parent.mkdir()
    return path


def test_the_entries_stand_flat_beside_others_and_all_bytes_come_back(file: Path, tmp_path: Path) -> None:
    file.write_text(FOREIGN, encoding="utf-8")
    assert install(cursor, "user", tmp_path).changed
    command = settings.hook_command(cursor)
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["version"] == 1 and found["hooks"].pop("stop") == [{"command": "say done"}]
    plain = {"type": "command", "command": command, "timeout": 5}
    assert found["hooks"] == {
        **{event: [plain] for event in EVENTS},
        "preToolUse": [{**plain, "matcher": "Shell|Write"}],
        "postToolUseFailure": [{**plain, "matcher": "Shell"}],
    }
    assert status(cursor, "user", tmp_path) == settings.Status(True, file, command, (), tuple(EVENTS))
    after = file.read_bytes()
    assert not install(cursor, "user", tmp_path).changed and file.read_bytes() == after
    assert uninstall(cursor, "user", tmp_path).changed and file.read_text(encoding="utf-8") == FOREIGN


def test_a_project_gets_a_rule_besides_and_both_go_again(tmp_path: Path) -> None:
    project = tmp_path / "api"
    (project / ".cursor").mkdir(parents=True)
    rule = project / ".cursor" / "rules" / "khms.mdc"
    report = install(cursor, "project", project)
    assert report.changed and str(rule) in report.note
    text = rule.read_text(encoding="utf-8")
    assert text.startswith("---\n") and "\nalwaysApply: true\n---\n" in text
    assert status(cursor, "project", project).problems == ()
    assert not install(cursor, "project", project).changed
    rule.write_text(text + "more\n", encoding="utf-8")
    assert any(str(rule) in problem for problem in status(cursor, "project", project).problems)
    assert install(cursor, "project", project).changed and rule.read_text(encoding="utf-8") == text
    assert uninstall(cursor, "project", project).changed
    assert list((project / ".cursor").iterdir()) == []


def test_a_rule_of_somebody_elses_stops_the_installation_before_anything_changed(tmp_path: Path) -> None:
    rule = tmp_path / ".cursor" / "rules" / "khms.mdc"
    rule.parent.mkdir(parents=True)
    rule.write_text("mine\n", encoding="utf-8")
    with pytest.raises(Refused) as refused:
        install(cursor, "project", tmp_path)
    assert str(rule) in str(refused.value)
    assert not (tmp_path / ".cursor" / "hooks.json").exists() and rule.read_text(encoding="utf-8") == "mine\n"
    assert not uninstall(cursor, "project", tmp_path).changed and rule.exists()
