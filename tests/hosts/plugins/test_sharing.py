"""Folders that are shared: written once, brought up to date, never over what is somebody else's."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import KhmsError, Refused
from khms.hosts.plugins import contents, sharing

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ALL = ("claude-code", "codex", "gemini")


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shared" / "plugin"


@pytest.mark.parametrize("kind", contents.KINDS)
def test_a_second_time_changes_nothing(folder: Path, kind: str) -> None:
    first = sharing.write(kind, folder)
    before = held(folder)
    stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert set(first.changed) == set(contents.KINDS[kind]()) == before.keys() - {sharing.RECORD}
    assert sharing.write(kind, folder).changed == ()
    assert held(folder) == before and {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == stamps


def test_one_folder_is_for_all_three_whatever_came_first(tmp_path: Path) -> None:
    for kind in ALL:
        sharing.write(kind, tmp_path / "one")
    for kind in reversed(ALL):
        written = sharing.write(kind, tmp_path / "two")
    assert written.kinds == ALL
    assert held(tmp_path / "one") == held(tmp_path / "two")


def test_what_an_older_khms_wrote_is_replaced_and_what_it_wrote_besides_goes(folder: Path) -> None:
    sharing.write("claude-code", folder)
    new = held(folder)
    (folder / "khms/commands").mkdir()
    for path in ("khms/hooks/hooks.json", "khms/commands/gone.md"):
        (folder / path).write_text("as it was\n", encoding="utf-8")
    record = json.loads(new[sharing.RECORD])
    for path in ("khms/hooks/hooks.json", "khms/commands/gone.md"):
        record["files"][path] = sharing._sha256(b"as it was\n")
    (folder / sharing.RECORD).write_text(json.dumps(record), encoding="utf-8")
    (folder / "LICENSE").write_text("theirs\n", encoding="utf-8")

    changed = sharing.write("claude-code", folder).changed
    assert changed == ("khms/hooks/hooks.json", "khms/commands/gone.md")
    assert held(folder) == {**new, "LICENSE": b"theirs\n"} and not (folder / "khms/commands").exists()


def test_a_clone_with_other_line_ends_is_no_change(folder: Path) -> None:
    sharing.write("codex", folder)
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert sharing.write("codex", folder).changed == ()


def _foreign(folder: Path) -> None:
    (folder / "notes.txt").write_text("theirs\n", encoding="utf-8")


def _edited(folder: Path) -> None:
    sharing.write("claude-code", folder)
    (folder / "khms/.mcp.json").write_text("{}\n", encoding="utf-8")


def _in_the_way(folder: Path) -> None:
    sharing.write("claude-code", folder)
    (folder / ".agents/plugins").mkdir(parents=True)
    (folder / ".agents/plugins/marketplace.json").write_text("{}\n", encoding="utf-8")


def _other_market(folder: Path) -> None:
    (folder / ".agents/plugins").mkdir(parents=True)
    (folder / ".agents/plugins/marketplace.json").write_text("{}\n", encoding="utf-8")


def _linked(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    (folder / "khms").symlink_to(folder.parent / "elsewhere")


def _link_for_a_file(folder: Path) -> None:
    sharing.write("claude-code", folder)
    (folder.parent / "victim").write_text("theirs\n", encoding="utf-8")
    (folder / ".agents/plugins").mkdir(parents=True)
    (folder / ".agents/plugins/marketplace.json").symlink_to(folder.parent / "victim")


def _folder_for_a_file(folder: Path) -> None:
    (folder / "khms/.mcp.json").mkdir(parents=True)


def _broken_record(folder: Path) -> None:
    sharing.write("claude-code", folder)
    (folder / sharing.RECORD).write_text("[" * 100_000, encoding="utf-8")


@pytest.mark.parametrize(
    "prepare",
    [_foreign, _edited, _in_the_way, _other_market, _linked, _link_for_a_file, _folder_for_a_file, _broken_record],
)
def test_what_is_not_khmss_is_refused_and_nothing_changes(folder: Path, prepare: Callable[[Path], None]) -> None:
    folder.mkdir(parents=True)
    prepare(folder)
    before = held(folder.parent)
    with pytest.raises(Refused) as error:
        sharing.write("codex", folder)
    assert str(folder) in error.value.where and error.value.hint
    assert held(folder.parent) == before


def test_a_record_from_a_stranger_reaches_nothing_outside(folder: Path, tmp_path: Path) -> None:
    """The record comes along with a clone: what it names is not to be removed elsewhere."""
    sharing.write("codex", folder)
    victim = tmp_path / "shared" / "victim"
    victim.write_text("theirs\n", encoding="utf-8")
    (folder / "out").symlink_to(victim.parent)
    record = json.loads((folder / sharing.RECORD).read_bytes())
    for path in ("../victim", str(victim), "khms/../../victim", "out/victim", ".git/config"):
        spoilt = {**record, "files": {**record["files"], path: sharing._sha256(b"theirs\n")}}
        (folder / sharing.RECORD).write_text(json.dumps(spoilt), encoding="utf-8")
        with contextlib.suppress(Refused):
            sharing.write("codex", folder)
        assert victim.read_text(encoding="utf-8") == "theirs\n", path


def test_a_killed_run_is_completed_by_the_next(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "khms", "hook", "plugin", "claude-code"]
    whole = tmp_path / "whole"
    sharing.write("claude-code", whole)
    for at in (1, 5, 9, 14, 26):
        folder = tmp_path / f"killed-{at}"
        done = subprocess.run(
            [*command, folder], env={**os.environ, "KHMS_KILL_AT": str(at)}, capture_output=True, check=False
        )
        assert done.returncode == -9
        sharing.write("claude-code", folder)
        found = {path: data for path, data in held(folder).items() if ".khms-tmp-" not in path}
        assert found == held(whole)


def test_the_command_says_what_to_do_and_keeps_to_its_folder(tmp_path: Path, run_khms: Run) -> None:
    (tmp_path / "work").mkdir()
    done = run_khms("hook", "plugin", "claude-code", cwd=tmp_path / "work")
    assert done.returncode == 0 and "claude plugin install khms@khms-market" in done.stdout, done.stderr
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["khms-plugin"]
    assert run_khms("hook", "plugin", "claude-code", cwd=tmp_path / "work").stdout.count("nothing to do") == 1

    skills = tmp_path / "work" / ".claude" / "skills"
    (skills / "other").mkdir(parents=True)
    assert run_khms("hook", "plugin", "skills", ".claude/skills", cwd=tmp_path / "work").returncode == 0
    assert (skills / "khms/SKILL.md").read_bytes() == contents.skill()
    assert sorted(path.name for path in skills.iterdir()) == ["khms", "other"]
    for wrong in (("hook", "plugin", "skills"), ("hook", "plugin", "nothing")):
        done = run_khms(*wrong, cwd=tmp_path / "work")
        assert done.returncode == 2 and "claude" in done.stderr
    assert run_khms("hook", "plugin", "codex", tmp_path, cwd=tmp_path).returncode == 3


def test_an_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    with pytest.raises(KhmsError):
        sharing.write("codex", file)
    with pytest.raises(KhmsError):
        sharing.write("codex", file / "below")
    assert file.read_bytes() == b""
