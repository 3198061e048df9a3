"""opencode's plugin, its events and the answers to them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Refused
from khms.hosts import opencode, settings
from khms.hosts.base import Event
from khms.hosts.settings import install, status, uninstall

PATIENCE = 60  # seconds after which a plugin counts as hanging
# Runs the plugin as opencode does: loads it, gives each hook what it is given, shows what became of that.
DRIVER = """
import { Khms } from "./khms.mjs"
import { readFileSync } from "node:fs"
const hooks = await Khms({ directory: "/home/ada/api" })
const again = await Khms({ directory: "/home/ada/api" })
const out = []
for (const [name, input, output] of JSON.parse(readFileSync(0, "utf8"))) {
  for (const each of [hooks, again]) await each[name](input, output)
  out.push(output)
}
console.log(JSON.stringify(out))
"""
# Stands for the client: keeps the event, and says the name of each.
CLIENT = """
import json, sys
event = json.load(sys.stdin)
with open({log!r}, "a") as file:
    file.write(json.dumps(event) + "\\n")
print(json.dumps({{"text": "<" + event["hook_event_name"] + ">"}}))
"""
Drive = Callable[..., tuple[Any, list[dict[str, Any]]]]


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """Runs calls of the plugin's hooks; returns what each output became, and what the client was asked."""
    node = shutil.which("node")
    if not node:
        pytest.skip("needs node")
    log = tmp_path / "asked.jsonl"
    client = tmp_path / "client.py"
    client.write_text(CLIENT.format(log=str(log)), encoding="utf-8")
    (tmp_path / "driver.mjs").write_text(DRIVER, encoding="utf-8")

    def call(calls: list[Any], words: list[str] | None = None, limit: int = 5000) -> tuple[Any, list[dict[str, Any]]]:
        text = opencode.form().add("", settings.hook_command(opencode))
        start = text.index("const COMMAND = ")
        line = text[start : text.index("\n", start)]
        text = text.replace(line, "const COMMAND = " + json.dumps(words or [sys.executable, str(client)]))
        text = text.replace("const LIMIT_MS = 5000", f"const LIMIT_MS = {limit}")
        (tmp_path / "khms.mjs").write_text(text, encoding="utf-8")
        log.unlink(missing_ok=True)
        done = subprocess.run(
            [str(node), "driver.mjs"], cwd=tmp_path, input=json.dumps(calls), capture_output=True, encoding="utf-8",
            timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        asked = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return json.loads(done.stdout), [json.loads(line) for line in asked]

    return call


def message(session: str, number: int, *texts: str) -> Any:
    parts = [
        {"type": "text", "text": text, "id": f"prt_{number}{at}", "sessionID": session, "messageID": f"msg_{number}"}
        for at, text in enumerate(texts)
    ]
    return ["chat.message", {"sessionID": session}, {"message": {"id": f"msg_{number}"}, "parts": parts}]


def happened(kind: str, **known: object) -> Any:
    return ["event", {"event": {"type": kind, "properties": known}}, {}]


def used(tool: str, args: object, output: object, call: str = "c1", **metadata: object) -> Any:
    given = {"tool": tool, "sessionID": "s", "callID": call, "args": args}
    return ["tool.execute.after", given, {"title": "", "output": output, "metadata": metadata}]


def names(asked: list[dict[str, Any]]) -> list[str]:
    return sorted(event["hook_event_name"] for event in asked)


def test_a_prompt_gets_one_part_of_its_own_after_the_last(drive: Drive) -> None:
    (first, second), asked = drive([message("s", 1, "why?", "and when?"), message("s", 2, "again?")])
    parts = first["parts"]
    assert [part["text"] for part in parts] == ["why?", "and when?", "<session.created>\n<chat.message>"]
    assert parts[2] == {
        "id": "prt_11k", "sessionID": "s", "messageID": "msg_1", "type": "text", "text": parts[2]["text"],
        "synthetic": True,
    }  # fmt: skip
    assert parts[2]["id"] > parts[1]["id"]
    assert [part["text"] for part in second["parts"]] == ["again?", "<chat.message>"]
    prompts = [event for event in asked if event["hook_event_name"] == "chat.message"]
    assert [event["prompt"] for event in prompts] == ["why?\nand when?", "again?"]
    assert {(event["session_id"], event["cwd"]) for event in asked} == {("s", "/home/ada/api")}
    assert names(asked) == ["chat.message", "chat.message", "session.created"], "once, though it was loaded twice"
    assert all(opencode.event(event) for event in asked)


def test_a_sub_agent_gets_a_start_and_a_compaction_another(drive: Drive) -> None:
    _, asked = drive([happened("session.created", info={"id": "k", "parentID": "s"}), message("k", 1, "look around")])
    assert [(event["hook_event_name"], event["parent_id"]) for event in asked] == [("session.created", "s")]
    found = opencode.event(asked[0])
    assert found and (found.moment, found.source) == ("subagent-start", "")
    _, asked = drive(
        [message("s", 1, "a"), happened("session.compacted", sessionID="s"), happened("x"), message("s", 2, "b")]
    )
    assert names(asked) == ["chat.message", "chat.message", "session.created", "session.created"]
    sources = [event["source"] for event in asked if event["hook_event_name"] == "session.created"]
    assert sources == ["startup", "compact"]


def test_what_is_said_on_a_tool_call_stands_below_its_result(drive: Drive) -> None:
    calls = [
        used("bash", {"command": "make"}, "done", "1", exit=0),
        used("bash", {"command": "make"}, "no rule", "2", exit=2),
        used("edit", {"filePath": "/a", "newString": "x" * 200_000}, "ok", "3"),
        used("read", {"filePath": "/a"}, "text", "4"),
        used("bash", {"command": "make"}, {"odd": 1}, "5", exit=0),
    ]
    outputs, asked = drive(calls)
    assert [each["output"] for each in outputs] == [
        "done\n\n<tool.execute.after>",
        "no rule\n\n<tool.execute.after>\n<tool.failed>",
        "ok\n\n<tool.execute.after>",
        "text",
        {"odd": 1},
    ]
    assert [event.get("error") for event in asked if event["hook_event_name"] == "tool.failed"] == ["no rule"]
    edit = next(event for event in asked if event["tool_name"] == "edit")
    assert len(edit["tool_input"]["newString"]) == 100_000


@pytest.mark.parametrize(
    "words",
    [
        ["/nowhere/python"],
        ["false"],
        ["true"],
        ["echo", "no JSON"],
        ["echo", '{"text": 5}'],
        ["echo", "null"],
        ["sleep", "600"],
        ["head", "-c", "30000000", "/dev/zero"],
    ],
    ids=" ".join,
)
def test_whatever_the_client_does_the_session_goes_on(drive: Drive, words: list[str]) -> None:
    calls = [message("s", 1, "why?"), used("bash", {"command": "make"}, "no rule", exit=2)]
    outputs, _ = drive(calls, words, 300)
    assert outputs == [call[2] for call in calls]


def test_odd_input_leaves_everything_as_it_was(drive: Drive) -> None:
    calls = [
        ["chat.message", {}, {"parts": []}],
        ["chat.message", {}, {}],
        ["tool.execute.after", {}, {}],
        ["event", {}, {}],
        ["event", {"event": {"type": "session.created"}}, {}],
    ]
    outputs, asked = drive(calls)
    assert outputs == [call[2] for call in calls] and asked == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"hook_event_name": "session.created", "source": "startup", "parent_id": ""},
            Event("session-start", source="startup"),
        ),
        ({"hook_event_name": "session.created", "parent_id": "p"}, Event("subagent-start")),
        ({"hook_event_name": "chat.message", "prompt": "why?"}, Event("prompt", prompt="why?")),
        (
            {"hook_event_name": "tool.execute.after", "tool_name": "bash", "tool_input": {"command": "make"}},
            Event("pre-shell", command="make"),
        ),
        (
            {
                "hook_event_name": "tool.execute.after",
                "tool_name": "edit",
                "tool_input": {"filePath": "/a", "oldString": "b", "newString": "c"},
            },
            Event("pre-edit", path="/a", text="c"),
        ),
        (
            {
                "hook_event_name": "tool.execute.after",
                "tool_name": "multiedit",
                "tool_input": {"filePath": "/a", "edits": [{"newString": "c"}, 5, {"newString": "d"}]},
            },
            Event("pre-edit", path="/a", text="c\nd"),
        ),
        ({"hook_event_name": "tool.execute.after", "tool_name": "read", "tool_input": {}}, Event("other")),
        ({"hook_event_name": "tool.failed", "error": "no rule"}, Event("after-failure", error="no rule")),
    ],
)
def test_what_the_plugin_sends_becomes_an_event(given: dict[str, object], expected: Event) -> None:
    given = {**given, "session_id": "s", "cwd": "/c"}
    name = str(given["hook_event_name"])
    assert opencode.event(given) == expected._replace(session="s", cwd="/c", name=name, host="opencode")
    line = opencode.answer(Event("other", name=name), "[khms] ü\n[/khms]")
    assert line.isascii() and json.loads(line) == {"text": "[khms] ü\n[/khms]"}
    assert opencode.answer(Event("other", name=name), "") == ""


@pytest.mark.parametrize(
    "given", [None, 5, [], {}, {"hook_event_name": ["chat.message"]}, {"hook_event_name": "UserPromptSubmit"}]
)
def test_anything_else_is_no_event(given: Any) -> None:
    assert opencode.event(given) is None


def test_a_field_of_the_wrong_type_is_empty() -> None:
    odd = {"a": 1}
    given = {
        "hook_event_name": "tool.execute.after",
        "tool_name": "edit",
        "tool_input": {"filePath": odd, "edits": odd},
    }
    found = opencode.event({**given, "session_id": odd, "cwd": 5})
    assert found == Event("pre-edit", name="tool.execute.after", host="opencode")


def test_the_real_samples_give_what_the_plugin_makes_of_them(shared: Callable[[str], Path], drive: Drive) -> None:
    def sample(name: str) -> Any:
        return json.loads((shared("real/hosts") / f"opencode-{name}.json").read_text(encoding="utf-8"))

    calls = [
        ["event", {"event": sample("event-session.created")}, {}],
        ["chat.message", *sample("chat.message")],
        ["tool.execute.after", *sample("tool.execute.after")],
        ["event", {"event": sample("event-session.idle")}, {}],
    ]
    _, asked = drive(calls)
    moments = sorted(found.moment for event in asked if (found := opencode.event(event)))
    assert moments == ["after-failure", "pre-shell", "prompt", "session-start"]
    assert opencode.event(sample("tool.execute.before")) is None


@pytest.fixture
def plugin(own_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return own_environment / ".config" / "opencode" / "plugin" / "khms.js"


def test_the_plugin_comes_and_goes_and_leaves_nothing(plugin: Path, tmp_path: Path) -> None:
    command = settings.hook_command(opencode)
    assert install(opencode, "user", tmp_path).changed
    written = plugin.read_bytes()
    found = status(opencode, "user", tmp_path)
    assert (found.installed, found.path, found.command, found.problems) == (True, plugin, command, ())
    assert set(found.events) == opencode.ANSWERS
    assert not install(opencode, "user", tmp_path).changed and plugin.read_bytes() == written
    plugin.write_bytes(written.replace(b"const LIMIT_MS = 5000", b"const LIMIT_MS = 9000"))
    assert any("install again" in problem for problem in status(opencode, "user", tmp_path).problems)
    assert install(opencode, "user", tmp_path).changed and plugin.read_bytes() == written
    assert uninstall(opencode, "user", tmp_path).changed
    assert not (tmp_path / "home" / ".config").exists()
    assert not uninstall(opencode, "user", tmp_path).changed
    assert not status(opencode, "user", tmp_path).installed


def test_a_project_has_a_plugin_of_its_own(tmp_path: Path) -> None:
    report = install(opencode, "project", tmp_path)
    assert report.path == tmp_path / ".opencode" / "plugin" / "khms.js" and "share" in report.note


def test_somebody_elses_file_and_a_read_only_one_stay(plugin: Path, tmp_path: Path) -> None:
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export const Mine = 1\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            install(opencode, "user", tmp_path)
        assert str(plugin) in str(refused.value)
    assert not uninstall(opencode, "user", tmp_path).changed
    assert plugin.read_text(encoding="utf-8") == "export const Mine = 1\n"
    assert not status(opencode, "user", tmp_path).installed
    plugin.write_bytes(b"\xff\xfe")
    with pytest.raises(Refused):
        install(opencode, "user", tmp_path)
    assert status(opencode, "user", tmp_path).problems
    assert plugin.read_bytes() == b"\xff\xfe"
