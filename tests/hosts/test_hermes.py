"""Hermes: its events and answers, and the entry in a configuration of which no other byte changes."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from khms.errors import Refused, Usage
from khms.hosts import hermes, settings
from khms.hosts.base import Event
from khms.hosts.settings import install, status, uninstall

TEXTS = {
    "no hooks": "model: x  # mine\n\nterminal:\n    backend: local\n",
    "no newline at the end": "model: x",
    "null": "hooks:\nmodel: x\n",
    "null, with a comment": "hooks:   # shell hooks\n# more\nmodel: x\n",
    "tilde": "a: 1\nhooks: ~\nb: 2\n",
    "empty": "a: 1\nhooks: {}   # none yet\nb: 2\n",
    "another event": "hooks:\n  post_tool_call:\n    - command: audit\n      timeout: 9\nb: 2\n",
    "the same event": "hooks:\n  pre_llm_call:\n  - matcher: x\n    command: 'm'\n  # and\n  - command: n\nb: [1, 2]\n",
    "the same event, empty": "hooks:\n    pre_llm_call: []\n    post_tool_call:\n        - {command: audit}\n",
    "crlf": "a: 1\r\nhooks:\r\n  on_session_end:\r\n    - command: bye\r\n",
    "bom": "\ufeffa: 1\n",
    "only comments": "# nothing\n\n",
    "empty file": "",
    "anchors": "x: &a {b: 1}\ny: *a\nhooks:\n  post_llm_call:\n    - command: c\n",
    "block text": "prompt: |\n  hooks:\n    pre_llm_call: no\nz: 1\n",
}


@pytest.fixture
def file(own_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HERMES_HOME", raising=False)
    path = own_environment / ".hermes" / "config.yaml"
    path.parent.mkdir()
    return path


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_bytes()) or {}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_only_our_entry_is_added_and_all_bytes_come_back(file: Path, tmp_path: Path, text: str) -> None:
    file.write_bytes(text.encode())
    before = read(file)
    assert install(hermes, "user", tmp_path).changed
    after = file.read_bytes()
    command = settings.hook_command(hermes)
    wanted = {**before, "hooks": before.get("hooks") or {}}
    wanted["hooks"] = {**wanted["hooks"], "pre_llm_call": wanted["hooks"].get("pre_llm_call") or []}
    wanted["hooks"]["pre_llm_call"] = [{"command": command, "timeout": 5}, *wanted["hooks"]["pre_llm_call"]]
    assert read(file) == wanted
    kept = [line for line in text.splitlines() if "hooks" not in line and "pre_llm_call" not in line]
    assert [line for line in after.decode().splitlines() if line in kept] == kept
    assert (b"\r\n" in after) == ("\r\n" in text)
    found = status(hermes, "user", tmp_path)
    assert (found.installed, found.command, found.events) == (True, command, ("pre_llm_call",))
    assert len(found.problems) == 1 and "consent" in found.problems[0]

    assert not install(hermes, "user", tmp_path).changed and file.read_bytes() == after
    assert uninstall(hermes, "user", tmp_path).changed and file.read_bytes() == text.encode()
    assert not uninstall(hermes, "user", tmp_path).changed


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_changed_since_stays(file: Path, tmp_path: Path, text: str) -> None:
    file.write_bytes(text.encode())
    before = read(file)
    install(hermes, "user", tmp_path)
    file.write_bytes(file.read_bytes() + b"added: later\n")
    assert uninstall(hermes, "user", tmp_path).changed
    left = read(file)
    assert left.pop("added") == "later"

    def without_empty(value: Any) -> Any:
        hooks = {event: items for event, items in (value.get("hooks") or {}).items() if items}
        return {**{key: held for key, held in value.items() if key != "hooks"}, **({"hooks": hooks} if hooks else {})}

    assert without_empty(left) == without_empty(before)
    assert list(left.get("hooks") or {}) == [event for event, items in (before.get("hooks") or {}).items() if items]
    assert ("hooks" in left) <= ("hooks" in before)
    assert b"client.py" not in file.read_bytes()


REFUSED = {
    "broken": "a: [1\nb: 2\n",
    "tab": "a:\n\tb: 1\n",
    "flow": "{a: 1}\n",
    "flow hooks": "a: 1\nhooks: {post_tool_call: [{command: x}]}\n",
    "flow list": "hooks:\n  pre_llm_call: [{command: x}]\n",
    "list": "- a\n- b\n",
    "hooks is text": "hooks: none\n",
    "event is text": "hooks:\n  pre_llm_call: none\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "ended": "a: 1\n...\n",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_edited_safely_is_refused_with_its_line(file: Path, tmp_path: Path, text: str) -> None:
    file.write_bytes(text.encode())
    with pytest.raises(Refused) as refused:
        install(hermes, "user", tmp_path)
    assert f"{file}:" in str(refused.value) and refused.value.hint
    assert file.read_bytes() == text.encode()
    assert not status(hermes, "user", tmp_path).installed


def test_where_there_is_no_file_one_is_made_and_goes_again(file: Path, tmp_path: Path) -> None:
    install(hermes, "user", tmp_path)
    assert list(read(file)) == ["hooks"]
    assert uninstall(hermes, "user", tmp_path).changed and not file.exists()


def test_an_older_entry_is_replaced_by_the_one_of_today(file: Path, tmp_path: Path) -> None:
    old = shlex.join(["/old/python", "-IS", "/old/hooks/client.py", "hermes", "/old"])
    file.write_text(f"hooks:\n  pre_llm_call:\n    - command: {old}\n    - command: mine\n", encoding="utf-8")
    problems = status(hermes, "user", tmp_path).problems
    assert any("interpreter is missing" in problem for problem in problems)
    assert install(hermes, "user", tmp_path).changed
    commands = [entry["command"] for entry in read(file)["hooks"]["pre_llm_call"]]
    assert commands == [settings.hook_command(hermes), "mine"]


def test_the_consent_is_the_users_and_is_looked_for(file: Path, tmp_path: Path) -> None:
    install(hermes, "user", tmp_path)
    allowed = file.with_name("shell-hooks-allowlist.json")
    assert not allowed.exists()
    for odd in ("", "{", "[]", '{"approvals": 5}', '{"approvals": [5]}'):
        allowed.write_text(odd, encoding="utf-8")
        assert status(hermes, "user", tmp_path).problems
    one = {"event": "pre_llm_call", "command": settings.hook_command(hermes)}
    allowed.write_text(json.dumps({"approvals": [one]}), encoding="utf-8")
    assert status(hermes, "user", tmp_path).problems == ()


def test_a_project_has_no_settings(file: Path, tmp_path: Path) -> None:
    with pytest.raises(Usage) as refused:
        install(hermes, "project", tmp_path)
    assert "user" in str(refused.value)


def test_the_samples_become_events(shared: Callable[[str], Path]) -> None:
    found = {}
    for path in sorted(shared("real/hosts").glob("hermes-*.json")):
        event = hermes.event(json.loads(path.read_text(encoding="utf-8")))
        found[path.stem.removeprefix("hermes-")] = event and (event.moment, bool(event.session and event.cwd))
    assert found == {
        "on_session_end": ("other", True),
        "on_session_start": ("session-start", True),
        "post_tool_call": ("other", True),
        "pre_llm_call": ("prompt", True),
        "pre_tool_call": ("other", True),
        "shell-hooks-allowlist": None,
    }


def test_a_prompt_and_its_answer() -> None:
    given = {"hook_event_name": "pre_llm_call", "session_id": "s", "cwd": "/c", "extra": {"user_message": "why?"}}
    event = hermes.event(given)
    assert event == Event("prompt", session="s", cwd="/c", prompt="why?", name="pre_llm_call", host="hermes")
    line = hermes.answer(event, "[khms] ü\n[/khms]")
    assert line.isascii() and json.loads(line) == {"context": "[khms] ü\n[/khms]"}
    assert hermes.answer(event._replace(name="on_session_start"), "x") == ""
    odd: Any
    for odd in (None, [], 5, {}, {"hook_event_name": 5}, {"hook_event_name": "x", "extra": []}):
        assert hermes.event(odd) is None
