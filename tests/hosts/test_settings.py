"""A settings file gains and loses khms's entries, and nothing else of it ever changes."""

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from khms.errors import Refused, Unavailable, Usage
from khms.hosts import claude_code, registry, settings
from khms.hosts.settings import install, status, uninstall

HOST = registry.host("claude-code")
EVENTS = [
    *("SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUseFailure", "PreCompact"),
    "SessionEnd",
]
FOREIGN = {
    "permissions": {"allow": ["Bash(make *)"]},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard --strict", "timeout": 9}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
    "model": "x",
}


def put_in() -> settings.Report:
    return install(HOST, "user", Path())


def take_out() -> settings.Report:
    return uninstall(HOST, "user", Path())


def look() -> settings.Status:
    return status(HOST, "user", Path())


def commands(file: Path) -> dict[str, list[str]]:
    """Every command in the file, by event, as the host would read it."""
    hooks = json.loads(file.read_text(encoding="utf-8-sig")).get("hooks", {})
    return {
        event: [handler["command"] for group in groups for handler in group["hooks"]] for event, groups in hooks.items()
    }


def without_ours(file: Path) -> Any:
    found = json.loads(file.read_text(encoding="utf-8-sig"))
    for groups in found.get("hooks", {}).values():
        groups[:] = [group for group in groups if "client.py" not in json.dumps(group)]
    return found


def user_files(file: Path) -> set[Path]:
    return {path for path in file.parents[1].rglob("*") if "data" not in path.parts}


def test_the_command_runs_the_client_with_this_python_and_finds_khms_and_its_engine(tmp_path: Path) -> None:
    words = shlex.split(settings.hook_command(HOST))
    assert words[:2] == [sys.executable, "-IS"] and words[3] == "claude-code" and len(words) == 5
    assert Path(words[2]).is_file() and Path(words[2]).name == "client.py"
    code = f"import sys; sys.path.extend({words[4].split(os.pathsep)!r}); import khms.errors, tantivy"
    assert subprocess.run([words[0], "-IS", "-c", code], cwd=tmp_path, check=False).returncode == 0


def test_a_command_that_a_host_could_not_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "")
        with pytest.raises(Unavailable):
            settings.hook_command(HOST)
    with monkeypatch.context() as patch:
        patch.setattr(settings, "__file__", f"/opt/a{os.pathsep}b/khms/hosts/settings.py")
        with pytest.raises(Refused):
            settings.hook_command(HOST)
    monkeypatch.setattr(sys, "executable", "/opt/\udcff/python")
    with pytest.raises(Refused):
        settings.hook_command(HOST)


def test_where_there_is_no_file_one_is_made_and_goes_again(file: Path) -> None:
    before = user_files(file)
    report = put_in()
    assert report.changed and report.path == file and report.backup is None
    command = settings.hook_command(HOST)
    assert commands(file) == {event: [command] for event in EVENTS}
    assert file.read_bytes().endswith(b"}\n")
    hooks = json.loads(file.read_text(encoding="utf-8"))["hooks"]
    assert hooks["SessionStart"] == [
        {
            "matcher": "startup|resume|clear|compact|fork",
            "hooks": [{"type": "command", "command": command, "timeout": 5}],
        }
    ]
    assert "matcher" not in hooks["UserPromptSubmit"][0]
    assert hooks["PreToolUse"][0]["matcher"] == "Bash|Edit|Write|MultiEdit|NotebookEdit"
    assert look() == settings.Status(True, file, command, (), tuple(EVENTS))
    assert take_out().changed
    assert user_files(file) == before
    assert look() == settings.Status(False, file, "", ())
    assert not take_out().changed


SHAPES = {
    "spaces": json.dumps(FOREIGN, indent=4) + "\n",
    "tabs, no final newline": json.dumps(FOREIGN, indent="\t"),
    "one line": json.dumps(FOREIGN),
    "compact": json.dumps(FOREIGN, separators=(",", ":")),
    "crlf": json.dumps(FOREIGN, indent=2).replace("\n", "\r\n") + "\r\n",
    "bom": "\ufeff" + json.dumps(FOREIGN, indent=2),
    "no hooks": '{\n  "model" : "x" ,\n\n  "env":{"A":"ü \\u00fc \\/"} }\n\n',
    "empty hooks": '{"hooks": {}}',
    "empty lists": '{\n  "hooks": {\n    "PreToolUse": [],\n    "SessionStart": [ ]\n  }\n}',
    "empty object": "{}",
    "numbers": '{"a": 1.0, "b": 1e5, "c": 100000000000000000000000}',
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_only_our_entries_are_added_and_all_bytes_come_back(
    file: Path, write: Callable[[str], bytes], text: str
) -> None:
    before = write(text)
    report = put_in()
    after = file.read_bytes()
    assert report.changed and report.backup and report.backup.read_bytes() == before
    ours = settings.hook_command(HOST)
    assert all(commands(file)[event][-1] == ours for event in EVENTS)
    read = json.loads(before.decode("utf-8-sig"))
    assert {k: v for k, v in without_ours(file).get("hooks", {}).items() if v} == {
        k: v for k, v in read.get("hooks", {}).items() if v
    }
    assert list(json.loads(after.decode("utf-8-sig"))) == list(dict.fromkeys([*read, "hooks"]))
    assert is_subsequence(before, after)
    assert (b"\r\n" in before) == (b"\r\n" in after) and after.count(b"\n") - after.count(b"\r\n") in (
        0,
        after.count(b"\n"),
    )

    again = put_in()
    assert not again.changed and file.read_bytes() == after
    assert report.backup.read_bytes() == before
    assert take_out().changed and file.read_bytes() == before
    assert not report.backup.exists()


def is_subsequence(small: bytes, large: bytes) -> bool:
    """Whether every byte of `small` stands in `large`, in order; blanks that closed an empty container may go."""
    rest = iter(large)
    return all(byte in rest for byte in small.replace(b"[ ]", b"[]"))


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_without_its_record_an_installation_is_taken_out_entry_by_entry(
    file: Path, own_environment: Path, write: Callable[[str], bytes], text: str
) -> None:
    before = write(text)
    put_in()
    for kept in (own_environment / "data" / "hosts").iterdir():
        kept.unlink()
    assert take_out().changed
    left = json.loads(file.read_bytes().decode("utf-8-sig"))
    for event in EVENTS:  # emptied lists that may be the user's own stay
        if left["hooks"].get(event) == []:
            del left["hooks"][event]
    read = json.loads(before.decode("utf-8-sig"))
    assert {**left, "hooks": {k: v for k, v in left["hooks"].items() if v}} == {
        **read,
        "hooks": {k: v for k, v in read.get("hooks", {}).items() if v},
    }


@pytest.mark.parametrize("text", ["", " \n", "\ufeff"])
def test_an_empty_file_is_an_empty_object(file: Path, write: Callable[[str], bytes], text: str) -> None:
    before = write(text)
    assert put_in().changed and set(commands(file)) == set(EVENTS)
    assert take_out().changed and file.read_bytes() == before


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_what_the_user_changed_since_stays(file: Path, write: Callable[[str], bytes], indent: Any) -> None:
    write(json.dumps(FOREIGN, indent=indent))
    put_in()
    changed = json.loads(file.read_text(encoding="utf-8"))
    changed["theme"] = "dark"
    changed["hooks"]["SessionStart"].insert(0, {"hooks": [{"type": "command", "command": "greet"}]})
    write(json.dumps(changed, indent=indent))
    report = take_out()
    assert report.changed and "stays" in report.note
    expected = json.loads(json.dumps(FOREIGN))
    expected["theme"] = "dark"
    expected["hooks"]["SessionStart"] = [{"hooks": [{"type": "command", "command": "greet"}]}]
    assert file.read_text(encoding="utf-8") == json.dumps(
        expected | {"hooks": reordered(expected, changed)}, indent=indent
    )


def reordered(expected: Any, changed: Any) -> Any:
    return {event: expected["hooks"][event] for event in changed["hooks"] if event in expected["hooks"]}


@pytest.mark.parametrize("indent", [None, 2])
def test_containers_that_were_made_go_with_the_last_entry(
    file: Path, write: Callable[[str], bytes], indent: Any
) -> None:
    write(json.dumps({"model": "x"}, indent=indent))
    put_in()
    changed = json.loads(file.read_text(encoding="utf-8")) | {"theme": "dark"}
    write(json.dumps(changed, indent=indent))
    assert take_out().changed
    assert file.read_text(encoding="utf-8") == json.dumps({"model": "x", "theme": "dark"}, indent=indent)


def test_a_file_that_was_made_and_holds_nothing_else_goes(file: Path, write: Callable[[str], bytes]) -> None:
    put_in()
    write(json.dumps(json.loads(file.read_text(encoding="utf-8"))))
    assert take_out().changed
    assert not file.parent.exists()
    put_in()
    (file.parent / "CLAUDE.md").write_text("mine", encoding="utf-8")
    assert take_out().changed
    assert not file.exists() and (file.parent / "CLAUDE.md").exists()


def test_an_entry_that_shares_its_group_leaves_the_group(file: Path, write: Callable[[str], bytes]) -> None:
    put_in()
    changed = json.loads(file.read_text(encoding="utf-8"))
    changed["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "guard"})
    write(json.dumps(changed))
    take_out()
    assert commands(file) == {"PreToolUse": ["guard"]}


def test_a_comment_in_a_container_keeps_the_container(file: Path, write: Callable[[str], bytes]) -> None:
    put_in()
    write(file.read_text(encoding="utf-8").replace('"SessionStart": [', '"SessionStart": [ // mine'))
    take_out()
    assert "// mine" in file.read_text(encoding="utf-8")
    assert "client.py" not in file.read_text(encoding="utf-8")


def moved(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    "command",
    [
        "/old/python -IS /old/lib/python3.11/site-packages/khms/resources/hooks/client.py claude-code /old/site",
        "'/old dir/python' -IS '/old dir/khms/hooks/client.py' claude-code '/old dir'",
        r"C:/py/python.exe -IS 'C:\khms\hooks\client.py' claude-code C:/site",
        "env NICE=1 /old/python -IS /home/ada/khms/hooks/client.py claude-code /a:/b",
    ],
)
def test_an_older_installation_is_recognised_and_replaced(
    file: Path, write: Callable[[str], bytes], command: str
) -> None:
    entry = {"type": "command", "command": command, "timeout": 10}
    write(json.dumps({"hooks": {"Stop": [{"hooks": [entry]}], "PreToolUse": [{"hooks": [entry]}]}}, indent=2))
    before = look()
    assert before.installed and before.command == command
    assert any("client is missing" in problem for problem in before.problems)
    assert any("no entry for SessionStart, UserPromptSubmit, SubagentStart" in problem for problem in before.problems)
    assert put_in().changed
    ours = settings.hook_command(HOST)
    assert commands(file) == {"Stop": [], **{event: [ours] for event in EVENTS}}
    assert look().problems == ()
    assert take_out().changed and "client.py" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command",
    [
        "python hooks/client.py claude-code",
        "python -IS /x/hooks/client.py",
        "python -IS /x/hooks/client.py other-host /s",
        "python -IS /x/myclient.py claude-code /s",
        "echo 'unclosed -IS /x/hooks/client.py claude-code /s",
        "khms-guard -IS",
        "-IS /x/hooks/client.py claude-code /s",
        "",
    ],
)
def test_a_command_that_is_not_ours_stays(file: Path, write: Callable[[str], bytes], command: str) -> None:
    text = json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}})
    before = write(text)
    assert not look().installed
    assert not take_out().changed and file.read_bytes() == before


def test_a_new_interpreter_renews_the_entries_and_keeps_the_first_backup(
    file: Path, write: Callable[[str], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = write(json.dumps(FOREIGN, indent=2))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/gone/bin/python")
        put_in()
    problems = " ".join(look().problems)
    assert "interpreter is missing: /gone/bin/python" in problems and "the khms you run now" in problems
    report = put_in()
    assert report.changed and report.backup and report.backup.read_bytes() == before
    assert look().problems == ()
    assert "/gone" not in file.read_text(encoding="utf-8")
    assert take_out().changed and file.read_bytes() == before


def test_renewing_after_an_edit_of_the_user_keeps_the_edit(
    file: Path, write: Callable[[str], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    write('{\n  "model": "x"\n}\n')
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/gone/bin/python")
        put_in()
    moved(file, '"x"', '"y"')
    put_in()
    assert take_out().changed and file.read_text(encoding="utf-8") == '{\n  "model": "y"\n}\n'


def test_a_backup_that_was_tampered_with_is_not_put_back(file: Path, write: Callable[[str], bytes]) -> None:
    before = write('{\n  "model": "x"\n}\n')
    report = put_in()
    assert report.backup
    report.backup.write_bytes(b"rm -rf")
    assert take_out().changed and file.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": "x"}', b'{"made": 1, "folders": {}}', b"\xff"])
def test_a_damaged_record_counts_as_none(file: Path, write: Callable[[str], bytes], content: bytes) -> None:
    write('{\n  "model": "x"\n}\n')
    report = put_in()
    assert report.backup
    report.backup.with_suffix(".json").write_bytes(content)
    assert not put_in().changed
    assert take_out().changed
    assert json.loads(file.read_bytes())["model"] == "x" and b"client.py" not in file.read_bytes()


def test_the_backup_is_the_users_alone_and_the_mode_of_the_settings_stays(
    file: Path, write: Callable[[str], bytes]
) -> None:
    write('{"env": {"KEY": "secret"}}')
    file.chmod(0o600)
    report = put_in()
    assert report.backup
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(report.backup.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(report.backup.stat().st_mode) == 0o600
    take_out()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_through_a_link_its_target_is_edited(file: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    target = dotfiles / "claude.json"
    target.write_text('{"model": "x"}', encoding="utf-8")
    file.parent.mkdir()
    file.symlink_to(target)
    report = put_in()
    assert report.path == target and file.is_symlink() and set(commands(target)) == set(EVENTS)
    assert not put_in().changed and look().problems == ()
    take_out()
    assert file.is_symlink() and target.read_text(encoding="utf-8") == '{"model": "x"}'
    target.unlink()
    put_in()
    assert file.is_symlink() and target.is_file()
    take_out()
    assert file.is_symlink() and not target.exists() and dotfiles.is_dir()


def test_a_project_has_its_own_file_and_no_link_leads_out_of_it(tmp_path: Path, file: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    report = install(HOST, "project", project)
    assert report.path == project / ".claude" / "settings.json" and not file.exists()
    assert "this machine" in report.note
    assert status(HOST, "project", project).installed and not look().installed
    assert uninstall(HOST, "project", project).changed and list(project.iterdir()) == []
    (project / ".claude").symlink_to(outside)
    for act in (install, uninstall):
        with pytest.raises(Refused):
            act(HOST, "project", project)
    assert list(outside.iterdir()) == []
    assert status(HOST, "project", project).problems
    with pytest.raises(Refused):
        install(HOST, "project", tmp_path / "nowhere")
    with pytest.raises(Usage):
        install(HOST, "everywhere", project)  # type: ignore[arg-type]


def test_the_hosts_own_switch_is_a_problem(file: Path, write: Callable[[str], bytes]) -> None:
    write('{\n  "disableAllHooks": true\n}')
    put_in()
    assert look().installed and [p for p in look().problems if "line 2" in p and "disableAllHooks" in p]


def test_two_installations_in_one_event_are_a_problem_and_become_one(file: Path, write: Callable[[str], bytes]) -> None:
    put_in()
    found = json.loads(file.read_text(encoding="utf-8"))
    found["hooks"]["PreToolUse"] *= 2
    write(json.dumps(found))
    assert any("more than one" in problem for problem in look().problems)
    put_in()
    assert look().problems == () and len(commands(file)["PreToolUse"]) == 1


KILLED = """
import sys
from pathlib import Path
from khms.hosts import registry, settings
getattr(settings, sys.argv[1])(registry.host("claude-code"), "user", Path())
"""


@pytest.mark.parametrize("act", ["install", "uninstall"])
def test_a_kill_at_any_write_loses_nothing(file: Path, write: Callable[[str], bytes], act: str) -> None:
    text = json.dumps(FOREIGN, indent=2)
    before = write(text)
    put_in()
    after = file.read_bytes()
    for n in range(1, 60):
        take_out()
        assert write(text) == before
        if act == "uninstall":
            put_in()
        done = subprocess.run(
            [sys.executable, "-c", KILLED, act], env={**os.environ, "KHMS_KILL_AT": str(n)}, check=False
        )
        assert file.read_bytes() in (before, after)
        if done.returncode == 0:
            assert n > 4
            break
        getattr(settings, act)(HOST, "user", Path())
        assert file.read_bytes() == (after if act == "install" else before)
        take_out()
        assert file.read_bytes() == before
        assert list(file.parent.iterdir()) == [file]
    else:
        pytest.fail("never ended by itself")


HANDLER = st.fixed_dictionaries({"type": st.just("command"), "command": st.sampled_from(["a", "b -IS", "ünï 'c'"])})
GROUP = st.fixed_dictionaries({"hooks": st.lists(HANDLER, max_size=2)}, optional={"matcher": st.just("Bash")})
HOOKS = st.dictionaries(st.sampled_from([*EVENTS, "Stop", "Other"]), st.lists(GROUP, max_size=2), max_size=4)
OTHER = st.dictionaries(st.text(max_size=4).filter(lambda key: key != "hooks"), st.integers() | st.text(max_size=4))
INDENT = st.sampled_from([None, 1, 2, "\t"])


@hypothesis_settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hooks=st.none() | HOOKS, other=OTHER, first=INDENT, second=INDENT, rewritten=st.booleans())
def test_any_settings_survive_both_ways(
    own_environment: Path, hooks: Any, other: dict[str, Any], first: Any, second: Any, rewritten: bool
) -> None:
    file = own_environment / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    given = {**other, **({} if hooks is None else {"hooks": hooks})}
    before = json.dumps(given, indent=first, ensure_ascii=False)
    file.write_text(before, encoding="utf-8", newline="")
    put_in()
    ours = settings.hook_command(HOST)
    assert [event for event in EVENTS if ours in commands(file)[event]] == EVENTS
    if rewritten:  # by the host itself, in its own style
        file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")), indent=second), encoding="utf-8")
    take_out()
    if rewritten:
        assert json.loads(file.read_text(encoding="utf-8")) == given
    else:
        assert file.read_text(encoding="utf-8") == before


def test_the_real_sample_settings(shared: Callable[[str], Path], file: Path, write: Callable[[bytes], bytes]) -> None:
    before = write(shared("real/hosts/claude-settings.json").read_bytes())
    put_in()
    found = commands(file)
    theirs = json.loads(before).get("hooks", {})
    assert all(len(found[event]) == len(theirs.get(event, [])) + 1 for event in EVENTS) and len(found["Stop"]) == 1
    assert take_out().changed and file.read_bytes() == before


def test_all_watches_are_of_the_shape_the_host_reads() -> None:
    assert [watch.event for watch in claude_code.WATCHES] == EVENTS
