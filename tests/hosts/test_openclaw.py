"""OpenClaw: the hook's folder, and what its program does with the files that are put before the model."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from khms.errors import Refused, Usage
from khms.hosts import openclaw, settings
from khms.hosts.base import Event
from khms.hosts.settings import install, status, uninstall

DRIVER = """
import khms from "./handler.mjs"
import { readFileSync } from "node:fs"
const events = JSON.parse(readFileSync(0, "utf8"))
for (const event of events) await khms(event)
console.log(JSON.stringify(events))
"""
CLIENT = """
import json, sys
print(json.dumps({"text": json.dumps(json.load(sys.stdin), sort_keys=True)}))
"""


@pytest.fixture
def home(own_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENCLAW_STATE_DIR", raising=False)
    return own_environment / ".openclaw"


def drive(folder: Path, events: list[Any], words: list[str]) -> Any:
    node = shutil.which("node")
    if not node:
        pytest.skip("needs node")
    text = openclaw.form().add("", settings.hook_command(openclaw))
    start = text.index("const COMMAND = ")
    text = text.replace(text[start : text.index("\n", start)], "const COMMAND = " + json.dumps(words))
    (folder / "handler.mjs").write_text(text.replace("LIMIT_MS = 5000", "LIMIT_MS = 20000"), encoding="utf-8")
    (folder / "driver.mjs").write_text(DRIVER, encoding="utf-8")
    done = subprocess.run(
        [node, "driver.mjs"], cwd=folder, input=json.dumps(events), capture_output=True, encoding="utf-8", timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def bootstrap(key: str, **context: object) -> dict[str, Any]:
    files = [{"name": "AGENTS.md", "path": "/w/AGENTS.md", "content": "mine", "missing": False}]
    return {
        "type": "agent",
        "action": "bootstrap",
        "sessionKey": key,
        "context": {"workspaceDir": "/w", "bootstrapFiles": files, **context},
    }


def test_a_session_gets_one_file_more_and_nothing_else_is_touched(tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text(CLIENT, encoding="utf-8")
    events = [
        bootstrap("agent:main:main", sessionId="s"),
        bootstrap("agent:main:subagent:7"),
        {"type": "command", "action": "new", "context": {"bootstrapFiles": []}},
        {"type": "agent", "action": "bootstrap"},
        {},
        None,
    ]
    main, child, *rest = drive(tmp_path, events, [sys.executable, str(client)])
    assert rest == events[2:]
    first, added = main["context"]["bootstrapFiles"]
    assert first["content"] == "mine"
    assert (added["name"], added["path"], added["missing"]) == ("KHMS.md", "/w/KHMS.md", False)
    moments = []
    for files in (main["context"]["bootstrapFiles"], child["context"]["bootstrapFiles"]):
        found = openclaw.event(json.loads(files[-1]["content"]))
        assert found and found.cwd == "/w"
        moments.append((found.moment, found.session, found.source))
    assert moments == [("session-start", "s", "startup"), ("subagent-start", "agent:main:subagent:7", "")]


@pytest.mark.parametrize("words", [["/nowhere/python"], ["false"], ["echo", "no JSON"]], ids=" ".join)
def test_whatever_the_client_does_the_session_goes_on(tmp_path: Path, words: list[str]) -> None:
    assert drive(tmp_path, [bootstrap("k")], words) == [bootstrap("k")]


def test_an_answer_and_what_is_no_event() -> None:
    line = openclaw.answer(Event("session-start", name="agent:bootstrap"), "[khms] ü\n[/khms]")
    assert line.isascii() and json.loads(line) == {"text": "[khms] ü\n[/khms]"}
    assert openclaw.answer(Event("session-start", name="agent:bootstrap"), "") == ""
    odd: Any
    for odd in (None, [], 5, {}, {"hook_event_name": "UserPromptSubmit"}):
        assert openclaw.event(odd) is None


def test_the_folder_comes_and_goes_and_the_switch_is_the_users(home: Path, tmp_path: Path) -> None:
    folder = home / "hooks" / "khms"
    report = install(openclaw, "user", tmp_path)
    assert report.changed and sorted(path.name for path in folder.iterdir()) == ["HOOK.md", "handler.ts"]
    head = yaml.safe_load((folder / "HOOK.md").read_text(encoding="utf-8").split("---\n")[1])
    assert head["name"] == "khms" and head["metadata"]["openclaw"]["events"] == ["agent:bootstrap"]
    found = status(openclaw, "user", tmp_path)
    assert found.installed and found.command == settings.hook_command(openclaw)
    assert len(found.problems) == 1 and "openclaw hooks enable khms" in found.problems[0]
    on = {"hooks": {"internal": {"enabled": True, "entries": {"khms": {"enabled": True}}}}}
    (home / "openclaw.json").write_text("{a: 'JSON5'}", encoding="utf-8")
    assert status(openclaw, "user", tmp_path).problems == found.problems
    (home / "openclaw.json").write_text(json.dumps(on), encoding="utf-8")
    assert status(openclaw, "user", tmp_path).problems == ()
    assert not install(openclaw, "user", tmp_path).changed
    (folder / "HOOK.md").unlink()
    assert any("HOOK.md" in problem for problem in status(openclaw, "user", tmp_path).problems)
    assert install(openclaw, "user", tmp_path).changed
    assert uninstall(openclaw, "user", tmp_path).changed
    assert sorted(path.name for path in home.iterdir()) == ["openclaw.json"]
    with pytest.raises(Usage):
        install(openclaw, "project", tmp_path)


def test_somebody_elses_hook_of_that_name_stays(home: Path, tmp_path: Path) -> None:
    (home / "hooks" / "khms").mkdir(parents=True)
    (home / "hooks" / "khms" / "HOOK.md").write_text("mine\n", encoding="utf-8")
    with pytest.raises(Refused):
        install(openclaw, "user", tmp_path)
    assert [path.name for path in (home / "hooks" / "khms").iterdir()] == ["HOOK.md"]
