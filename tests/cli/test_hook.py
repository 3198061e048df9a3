"""`khms hook`: what a person sees of it, and what it leaves alone."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hooks import sessions
from khms.index import sync
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def khms(run_khms: Run, base: Base, add_card: Callable[..., Path], commit: Callable[..., str]) -> Run:
    """The command on a base with one card and an index; the base is named, unless `root` is False."""
    add_card(
        base, "K-00001", title="The checksum fails on deploy", body="SYMPTOM: the checksum fails on each deploy.\n"
    )
    commit(base, "one card")
    sync.refresh(base)

    def run(*words: str, root: bool = True, **more: Any) -> "subprocess.CompletedProcess[str]":
        return run_khms(*(("--root", str(base.root)) if root else ()), "hook", *words, **more)

    return run


def test_install_and_uninstall_say_what_is_next(khms: Run, own_environment: Path) -> None:
    settings = own_environment / ".claude" / "settings.json"
    done = khms("install", "claude-code")
    assert done.returncode == 0 and str(settings) in done.stdout
    assert "next: khms hook test" in done.stdout and "undo: khms hook uninstall claude-code" in done.stdout
    assert "UserPromptSubmit" in settings.read_text(encoding="utf-8")
    assert "already installed" in khms("install", "claude-code").stdout
    done = khms("uninstall", "claude-code")
    assert done.returncode == 0 and not settings.exists()
    assert khms("uninstall", "claude-code").returncode == 0


def test_install_names_what_will_keep_it_from_answering(khms: Run, own_environment: Path) -> None:
    done = khms("install", "claude-code", root=False)
    assert done.returncode == 0 and "is not trusted yet: khms trust" in done.stderr
    sessions.switch(False)
    assert "switched off for every session: khms hook on" in khms("install", "claude-code").stderr


def test_a_projects_own_settings(khms: Run, base: Base, own_environment: Path) -> None:
    done = khms("install", "claude-code", "--scope", "project")
    assert done.returncode == 0 and "uninstall claude-code --scope project" in done.stdout
    assert (base.root / ".claude" / "settings.json").exists() and not (own_environment / ".claude").exists()


def test_a_host_that_must_trust_hooks_first_leaves_a_step_that_is_named(khms: Run, run_khms: Run) -> None:
    assert "start codex, type /hooks" in khms("install", "codex").stderr
    done = khms("status", "codex")
    assert "problem: Codex does not run SessionStart" in done.stdout and "note: " in done.stdout
    assert "start codex, type /hooks" in run_khms("doctor").stdout.replace("\n", " ")


@pytest.mark.parametrize("words", [["install", "nobody"], ["status", "nobody"], ["install", "--scope", "all"]])
def test_an_unknown_host_or_scope_is_a_wrong_call(khms: Run, words: list[str]) -> None:
    done = khms(*words)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_status_tells_where_and_why_not(khms: Run, base: Base) -> None:
    done = khms("status")
    assert done.returncode == 0 and f"answers here come from {base.root}" in done.stdout
    assert "next: khms hook install claude-code" in done.stdout
    khms("install", "claude-code")
    value = json.loads(khms("status", "--json", root=False).stdout)
    assert value["schema"] == "khms.hook-status/1" and value["base"] is None
    installed = {(row["host"], row["scope"]): row["installed"] for row in value["hosts"]}
    assert [place for place, there in installed.items() if there] == [("claude-code", "user")]
    assert ("codex", "project") in installed
    assert any("khms trust" in problem for problem in value["problems"])


def test_test_shows_what_would_be_said(khms: Run, base: Base) -> None:
    done = khms("test", "why does the checksum fail on deploy?")
    assert done.returncode == 0
    assert done.stdout.startswith("[khms] Reference data from ") and "\nK-00001 " in done.stdout
    assert "K-00001  injected" in done.stderr and "threshold 0.5" in done.stderr
    assert khms("test", "why does the checksum fail on deploy?").stdout == done.stdout, "nothing is kept"
    assert not base.log.exists() and not (base.state / "sessions").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["please paint the login button blue"], "nothing on record has its words"),
        (["what does the checksum tell the kitchen staff about the weather in spring"], "below the threshold"),
        (["<system-reminder>checksum deploy</system-reminder>"], "no question is left"),
        (["--event", "shell", "ls -la"], "no question is left"),
        (["ok"], "too short"),
    ],
)
def test_test_names_the_gate_that_says_no(khms: Run, words: list[str], why: str) -> None:
    done = khms("test", *words)
    assert (done.returncode, done.stdout) == (1, "") and why in done.stderr


def test_test_of_other_moments_as_json(khms: Run, base: Base) -> None:
    for words in (
        ["--event", "shell", "verify checksum deploy"],
        ["--event", "edit", "d.sh checksum fails deploy"],
    ):
        value = json.loads(khms("test", "--json", *words).stdout)
        assert (value["schema"], value["decision"], value["reason"]) == ("khms.hook-test/1", "inject", None)
        assert (value["event"], value["threshold"]) == (words[1], {"shell": 0.5, "edit": 0.6}[words[1]])
        assert value["hits"][0]["id"] == "K-00001" and value["hits"][0]["injected"] is True
        assert value["base"] == str(base.root) and value["text"].endswith("[/khms]")
    done = khms("test", "--json", "ok")
    value = json.loads(done.stdout)
    assert done.returncode == 1 and (value["decision"], value["reason"], value["text"]) == ("silent", "short", None)


def test_test_shows_the_other_moments(khms: Run, base: Base, add_card: Callable[..., Path]) -> None:
    add_card(base, "K-00002", type="policy", title="No forced push", tags=["git"], body="RULE: never.\n")
    sync.refresh(base)
    done = khms("test", "--event", "shell", "git push --force origin main")
    assert done.returncode == 0 and "[policy] No forced push" in done.stdout
    assert "a risky command: git" in done.stderr and "K-00002  injected" in done.stderr
    done = khms("test", "--event", "failure", "error: the checksum fails on deploy")
    assert done.returncode == 1 and "khms config set hooks.after_failure true" in done.stderr
    for moment in ("start", "subagent"):
        done = khms("test", "--event", moment)
        assert done.returncode == 1 and "nothing waits" in done.stderr
    done = khms("test", "the checksum fails on deploy", env={"KHMS_INCOGNITO": "1"})
    assert done.returncode == 1 and "KHMS_INCOGNITO is set here" in done.stderr


def test_status_shows_each_moment_and_who_is_incognito(khms: Run) -> None:
    khms("install", "claude-code")
    done = khms("status")
    for event in ("SessionStart", "SubagentStart", "PreToolUse", "PostToolUseFailure", "PreCompact", "SessionEnd"):
        assert event in done.stdout
    khms("off", "--session", "s9")
    found = json.loads(khms("status", "--json", env={"KHMS_INCOGNITO": "1", "CLAUDE_CODE_SESSION_ID": "s9"}).stdout)
    assert found["incognito"] is True and {row["runs"] for row in found["moments"]} == {"yes"}
    assert any("this session is incognito" in problem for problem in found["problems"])


def test_an_older_installation_is_brought_up_to_date(khms: Run, own_environment: Path) -> None:
    khms("install", "claude-code")
    settings = own_environment / ".claude" / "settings.json"
    value = json.loads(settings.read_text(encoding="utf-8"))
    value["theme"] = "dark"
    del value["hooks"]["SessionEnd"], value["hooks"]["PreCompact"]
    settings.write_text(json.dumps(value), encoding="utf-8")
    assert "no entry for PreCompact, SessionEnd: install again" in khms("status").stdout.replace("\n  ", " ")
    assert khms("install", "claude-code").returncode == 0
    again = json.loads(settings.read_text(encoding="utf-8"))
    assert again["theme"] == "dark" and {"SessionEnd", "PreCompact"} <= set(again["hooks"])
    assert all(len(groups) == 1 for groups in again["hooks"].values())


def test_test_knows_no_base_no_trust_and_the_switch(khms: Run, run_khms: Run, tmp_path: Path) -> None:
    assert "khms trust" in khms("test", "the checksum", root=False).stderr
    assert "no base here" in run_khms("hook", "test", "the checksum", cwd=tmp_path).stderr
    khms("off")
    done = khms("test", "why does the checksum fail on deploy?")
    assert done.returncode == 1 and "switched off" in done.stderr and "khms hook on" in done.stderr


def test_test_without_an_index_says_how_to_build_it(run_khms: Run, base: Base) -> None:
    done = run_khms("--root", str(base.root), "hook", "test", "why does it fail?")
    assert done.returncode == 4 and "khms index" in done.stderr and "Traceback" not in done.stderr


def test_off_and_on_for_all_and_for_one_session(khms: Run) -> None:
    assert "off for every session" in khms("off").stdout and sessions.is_off()
    assert "already off" in khms("off").stdout
    assert "on for every session" in khms("on").stdout and not sessions.is_off()
    assert "off for session s1" in khms("off", "--session", "s1").stdout and sessions.is_off("s1")
    assert khms("on", "--session", "s1").returncode == 0 and not sessions.is_off("s1")
    assert khms("off", "--session", "-", env={"CLAUDE_CODE_SESSION_ID": "s2"}).returncode == 0
    assert sessions.is_off("s2") and not sessions.is_off()
    done = khms("off", "--session", "-")
    assert done.returncode == 2 and "which session?" in done.stderr


def test_help_of_run_shows_how(run_khms: Run) -> None:
    for words in (["hook", "run", "--help"], ["hook", "run", "-h"]):
        done = run_khms(*words)
        assert done.returncode == 0 and "khms hook run --host claude-code < event.json" in done.stdout


def test_test_says_that_the_base_here_was_passed_over(
    run_khms: Run, base: Base, own_environment: Path, add_card: Callable[..., Path]
) -> None:
    """Another base answers, and has no index: both are said, with commands that act on the right one."""
    assert run_khms("init", "--global").returncode == 0
    other = own_environment / "data" / "base"
    done = run_khms("hook", "test", "why does it fail?")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"{base.root} is not used: it is not trusted yet: khms trust {base.root}" in done.stderr
    assert f"khms --root {other} index" in done.stderr and "it: khms index" not in done.stderr
    assert run_khms("--root", str(other), "index").returncode == 0
    done = run_khms("hook", "test", "why does it fail?")
    assert done.returncode == 1 and f"khms trust {base.root}" in done.stderr
