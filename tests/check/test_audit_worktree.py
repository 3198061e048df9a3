"""The audit of a work tree: every changed byte is seen, whatever git was told to pass over, and nothing else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Git = Callable[..., str]
HIDING = {
    "core.trustctime": "false",
    "core.checkStat": "minimal",
    "core.ignoreStat": "true",
    "core.fileMode": "false",
    "core.symlinks": "false",
    "core.preloadIndex": "false",
    "core.untrackedCache": "true",
    "core.splitIndex": "true",
    "core.ignoreCase": "true",
    "core.autocrlf": "input",
    "core.excludesFile": "{ignore}",
    "core.worktree": "",
    "status.showUntrackedFiles": "no",
    "status.relativePaths": "false",
    "status.submoduleSummary": "true",
    "diff.ignoreSubmodules": "all",
    "submodule.memory/know.ignore": "all",
    "index.skipHash": "true",
    "index.version": "4",
    "feature.manyFiles": "true",
}


def settled(held: Any, git: Git) -> None:
    """What git remembers of the files is older than what it looks at: it does not read their bytes again."""
    for path in [*held.base.know.iterdir(), *held.base.approvals.iterdir()]:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    git(held.base, "add", "--all")
    git(held.base, "update-index", "-q", "--really-refresh")


def same_look(path: Path, old: bytes, new: bytes) -> None:
    """Changes bytes in place; size and time stay."""
    data, look = path.read_bytes(), path.stat()
    assert old in data and len(old) == len(new)
    with path.open("r+b") as file:
        file.write(data.replace(old, new))
    os.utime(path, ns=(look.st_atime_ns, look.st_mtime_ns))


@pytest.mark.parametrize("setting", HIDING)
def test_no_setting_of_the_repository_hides_a_change(
    reviewed: Any, git: Git, setting: str, tmp_path: Path, add_card: Callable[..., Path]
) -> None:
    ignore = tmp_path / "ignore"
    ignore.write_text("*\n", encoding="utf-8")
    if value := HIDING[setting].format(ignore=ignore):
        git(reviewed.base, "config", setting, value)
    settled(reviewed, git)
    assert not reviewed.whole().troubles
    same_look(reviewed.base.know / "K-00001.md", b"says", b"said")
    record = sorted(reviewed.base.approvals.iterdir())[0]
    same_look(record, b"Ada Tester", b"Eve Tester")
    add_card(reviewed.base, "K-00009")
    told = {(one.finding.code, one.finding.path.rpartition("/")[2]) for one in reviewed.whole().troubles}
    assert {("KA002", "K-00001.md"), ("KA005", record.name), ("KA001", "K-00009.md")} <= told


def test_a_record_whose_mode_alone_changed(reviewed: Any) -> None:
    sorted(reviewed.base.approvals.iterdir())[0].chmod(0o755)
    report = reviewed.whole()
    assert not report.troubles and not report.uncommitted
    reviewed.commit()
    assert not reviewed.whole().troubles


def test_a_record_that_was_brought_back_is_whole_before_it_is_committed(reviewed: Any, git: Git) -> None:
    record = sorted(reviewed.base.approvals.iterdir())[0].relative_to(reviewed.base.root).as_posix()
    git(reviewed.base, "rm", "--quiet", record)
    reviewed.commit()
    (trouble,) = (one for one in reviewed.whole().troubles if one.finding.code == "KA005")
    command = trouble.finding.mend.partition("restore it: git ")[2].partition(" (")[0]
    git(reviewed.base, *command.split())
    report = reviewed.whole()
    assert not report.troubles and report.uncommitted == (record,)
    same_look(reviewed.base.path(record), b"Ada Tester", b"Eve Tester")
    assert [one.finding.code for one in reviewed.whole().troubles] == ["KA005"]
