"""A settings file that cannot be edited safely is refused, by file and line, and nothing of it changes."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused, Unavailable
from khms.hosts import registry, settings

HOST = registry.host("claude-code")


def put_in() -> settings.Report:
    return settings.install(HOST, "user", Path())


def take_out() -> settings.Report:
    return settings.uninstall(HOST, "user", Path())


def look() -> settings.Status:
    return settings.status(HOST, "user", Path())


BROKEN: dict[str, tuple[str | bytes, int]] = {
    "cut off": ('{\n  "model": "x",\n  "hooks": {', 3),
    "two values": ("{}\n{}", 2),
    "no object": ("[]", 1),
    "latin-1": (b'{\n "a": "\xfc"}', 2),
    "utf-16": ('{"a": 1}'.encode("utf-16"), 1),
    "deep": ('{"a":\n' + "[" * 5000, 2),
    "a comment": ('{\n  // mine\n  "model": "x"\n}', 2),
    "a trailing comma": ('{\n  "model": "x",\n}', 2),
    "hooks a list": ('{\n "hooks": []}', 2),
    "hooks null": ('{\n "hooks": null}', 2),
    "hooks twice": ('{"hooks": {},\n "hooks": {}}', 2),
    "event an object": ('{"hooks": {\n"SessionStart": {}}}', 2),
    "event twice": ('{"hooks": {"SessionStart": [],\n"SessionStart": []}}', 2),
    "group a text": ('{"hooks": {"PreToolUse": [\n"x"]}}', 2),
    "group without hooks": ('{"hooks": {"PreToolUse": [\n\n{"matcher": "Bash"}]}}', 3),
    "handlers an object": ('{"hooks": {"PreToolUse": [\n\n{"hooks": {}}]}}', 3),
}


@pytest.mark.parametrize(("content", "line"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_edited_safely_is_refused_with_its_line_and_nothing_changes(
    file: Path, own_environment: Path, write: Callable[[str | bytes], bytes], content: str | bytes, line: int
) -> None:
    before = write(content)
    with pytest.raises(Refused) as refused:
        put_in()
    assert refused.value.where == f"{file}:{line}" and refused.value.hint and refused.value.message
    assert file.read_bytes() == before
    assert not (own_environment / "data").exists() and list(file.parent.iterdir()) == [file]
    look()


@pytest.mark.parametrize("name", ["cut off", "latin-1", "no object"])
def test_a_broken_file_is_no_reason_for_taking_out_either(
    file: Path, write: Callable[[str | bytes], bytes], name: str
) -> None:
    put_in()
    before = write(BROKEN[name][0])
    with pytest.raises(Refused):
        take_out()
    assert file.read_bytes() == before
    found = look()
    assert not found.installed and len(found.problems) == 1 and str(file) in found.problems[0]


def test_the_shapes_that_are_refused_for_adding_do_not_hinder_taking_out(
    file: Path, write: Callable[[str], bytes]
) -> None:
    left = '{"hooks": {"PreToolUse": ["x", {"hooks": {}}, {"hooks": [5]}], "Stop": "y"}, }'
    entry = json.dumps({"type": "command", "command": settings.hook_command(HOST)})
    write(left.replace("[5]", f"[5, {entry}]"))
    assert look().installed and any("not plain JSON" in problem for problem in look().problems)
    assert take_out().changed
    assert (
        file.read_text(encoding="utf-8")
        == '{"hooks": {"PreToolUse": ["x", {"hooks": {}}, {"hooks": [5]}], "Stop": "y"}, }'
    )


def test_what_is_no_writable_file_is_named_and_left(file: Path, write: Callable[[str], bytes], tmp_path: Path) -> None:
    file.mkdir(parents=True)
    for act in (put_in, take_out):
        with pytest.raises(Refused):
            act()
    file.rmdir()
    os.mkfifo(file)
    with pytest.raises(Refused):
        put_in()
    file.unlink()
    write("{}")
    file.chmod(0o444)
    with pytest.raises(Unavailable) as refused:
        put_in()
    assert refused.value.where == str(file) and file.read_bytes() == b"{}"
    file.chmod(0o644)
    put_in()
    after = file.read_bytes()
    file.chmod(0o444)
    assert not put_in().changed and look().installed
    with pytest.raises(Unavailable):
        take_out()
    assert file.read_bytes() == after
    file.chmod(0o644)
    take_out()
    write("{" + " " * (5 * 1024 * 1024) + "}")
    with pytest.raises(Refused):
        put_in()


def test_a_file_in_the_folders_place_is_named(file: Path, own_environment: Path) -> None:
    file.parent.write_text("not a folder", encoding="utf-8")
    with pytest.raises(Unavailable) as refused:
        put_in()
    assert str(file.parent) in refused.value.where
    assert file.parent.read_text(encoding="utf-8") == "not a folder"
    assert (
        not (own_environment / "data" / "hosts").exists() or list((own_environment / "data" / "hosts").iterdir()) == []
    )


def test_a_link_to_itself_is_named(file: Path) -> None:
    file.parent.mkdir()
    file.symlink_to(file)
    with pytest.raises(Unavailable):
        put_in()
    assert look().problems
