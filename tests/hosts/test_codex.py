"""Codex's payloads become events, answers take the one form it reads, and what it was not told to trust is named."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import codex, registry, settings
from khms.hosts.base import Event

COMMON = {"session_id": "s-1", "transcript_path": "/t/s-1.jsonl", "cwd": "/home/ada/api", "model": "m"}
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-old\n+new\n*** Add File: b.py\n+++ x\n*** End Patch\n"
SAYS = ("SessionStart", "SessionStart-ephemeral", "UserPromptSubmit", "PreToolUse-Bash", "PreToolUse-apply_patch")


def payload(name: str, **more: object) -> dict[str, object]:
    return {**COMMON, "hook_event_name": name, **more}


def tool(name: str, given: object) -> dict[str, object]:
    return payload("PreToolUse", tool_name=name, tool_input=given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (payload("SessionStart", source="resume"), Event("session-start", name="SessionStart", source="resume")),
        (payload("UserPromptSubmit", prompt="why?"), Event("prompt", prompt="why?", name="UserPromptSubmit")),
        (payload("SubagentStart"), Event("subagent-start", name="SubagentStart")),
        (tool("Bash", {"command": "make"}), Event("pre-shell", command="make", name="PreToolUse")),
        (tool("apply_patch", {"command": PATCH}),
         Event("pre-edit", path="src/a.py", text="new\n++ x", name="PreToolUse")),
        (tool("apply_patch", {"command": 5}), Event("pre-edit", name="PreToolUse")),
        (tool("Bash", "make"), Event("pre-shell", name="PreToolUse")),
        (tool("update_plan", {}), Event("other", name="PreToolUse")),
        (payload("PreCompact", trigger="auto"), Event("pre-compact", name="PreCompact")),
        (payload("SessionEnd", reason="other"), Event("session-end", name="SessionEnd")),
        (payload("Stop"), Event("other", name="Stop")),
    ],
)  # fmt: skip
def test_a_payload_becomes_an_event(given: dict[str, object], expected: Event) -> None:
    assert codex.event(given) == expected._replace(
        session="s-1", cwd="/home/ada/api", host="codex", transcript="/t/s-1.jsonl"
    )


@pytest.mark.parametrize("pattern", ["gemini-*.json", "copilot-*.json", "vscode-*.json", "cursor-*.json"])
def test_what_another_host_sends_is_no_event(shared: Callable[[str], Path], pattern: str) -> None:
    files = [file for file in shared("real/hosts").glob(pattern) if "hooks" not in file.name]
    assert files
    assert all(codex.event(json.loads(file.read_text(encoding="utf-8"))) is None for file in files)
    assert all(codex.event(value) is None for value in (None, 1, "x", [], {}, {"hook_event_name": 3}))


def test_every_real_payload_gets_an_answer_of_its_form_or_none(
    shared: Callable[[str], Path], answers: Callable[[str, bytes], str]
) -> None:
    heard = []
    for file in sorted(shared("real/hosts").glob("codex-*.json")):
        if out := answers("codex", file.read_bytes()):
            assert valid(out) == json.loads(file.read_bytes())["hook_event_name"]
            heard.append(file.stem.removeprefix("codex-"))
    assert sorted(heard) == sorted(SAYS)


def test_whatever_comes_there_is_silence_or_a_valid_answer(
    answers: Callable[[str, bytes], str], hostile: tuple[bytes, ...]
) -> None:
    for raw in hostile:
        out = answers("codex", raw)
        assert not out or valid(out)


def valid(out: str) -> str:
    """The event that the answer names; Codex refuses an answer with any other key."""
    inner = json.loads(out).pop("hookSpecificOutput")
    assert json.loads(out).keys() == {"hookSpecificOutput"} and inner.keys() == {"hookEventName", "additionalContext"}
    assert inner["additionalContext"].startswith("[khms] ") and len(inner["additionalContext"]) < 10_000
    return str(inner["hookEventName"])


def problems(scope: Any = "user", project: Path = Path("/")) -> str:
    return "\n".join(settings.status(registry.host("codex"), scope, project).problems)


def trust(home: Path, file: Path, *, skip: str = "") -> None:
    """Writes what `/hooks` writes for each of khms's entries in `file`, but for that of the event `skip`."""
    lines = []
    for event, groups in json.loads(file.read_text(encoding="utf-8"))["hooks"].items():
        for index, group in enumerate(groups):
            known: dict[str, Any] = {"event_name": "".join("_" * c.isupper() + c.lower() for c in event)[1:]}
            known["hooks"] = [{**hook, "async": False} for hook in group["hooks"]]
            known |= {"matcher": group["matcher"]} if "matcher" in group else {}
            text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            if event != skip:
                lines.append(f'[hooks.state."{file}:{known["event_name"]}:{index}:0"]')
                lines.append(f'trusted_hash = "sha256:{hashlib.sha256(text.encode()).hexdigest()}"')
    (home / ".codex" / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_what_is_not_trusted_is_named_with_the_step_that_is_left(own_environment: Path, tmp_path: Path) -> None:
    host = registry.host("codex")
    file = own_environment / ".codex" / "hooks.json"
    file.parent.mkdir()
    others = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true", "timeout": 9}]}]}}'
    file.write_text(others, encoding="utf-8")
    settings.install(host, "user", tmp_path)
    assert "does not run PreToolUse, SessionStart, UserPromptSubmit" in problems() and "/hooks" in problems()
    trust(own_environment, file, skip="SessionEnd")
    assert problems().startswith("Codex does not run SessionEnd yet")
    trust(own_environment, file)
    assert problems() == ""

    config = own_environment / ".codex" / "config.toml"
    trusted = config.read_text(encoding="utf-8")
    config.write_text(trusted.replace("pre_tool_use:1:0", "pre_tool_use:7:0"), encoding="utf-8")
    assert "does not run PreToolUse yet" in problems(), "trust holds for a place in the file"
    config.write_text(trusted + "enabled = false\n[features]\nhooks = false\n", encoding="utf-8")
    assert "runs no hooks" in problems() and "was told not to run" in problems()
    config.write_text("[hooks", encoding="utf-8")
    assert "cannot read" in problems()

    settings.uninstall(host, "user", tmp_path)
    assert file.read_text(encoding="utf-8") == others


def test_a_folder_of_hooks_is_trusted_by_itself(own_environment: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    settings.install(registry.host("codex"), "project", project)
    (own_environment / ".codex").mkdir()
    trust(own_environment, project / ".codex" / "hooks.json")
    assert (
        problems("project", project) == f"Codex runs hooks of this folder once you trust it: start codex in {project}"
    )
    with (own_environment / ".codex" / "config.toml").open("a", encoding="utf-8") as config:
        config.write(f'[projects."{project}"]\ntrust_level = "trusted"\n')
    assert problems("project", project) == ""


def test_codex_home_moves_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "moved"))
    assert codex.settings_path("user", tmp_path) == tmp_path / "moved" / "hooks.json"
    assert codex.settings_path("project", tmp_path) == tmp_path / ".codex" / "hooks.json"
