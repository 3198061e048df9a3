"""What a repository's own configuration would run is set to something harmless; the user's own stays."""

from collections.abc import Callable
from pathlib import Path

from khms.store import programs
from khms.store.layout import Base
from khms.store.repo import Repo

Git = Callable[..., str]


def set_up(git: Git, base: Base, script: Path, *where: str) -> None:
    script.write_text(f"#!/bin/sh\ntouch '{script}.ran'\ncat\n", encoding="utf-8")
    script.chmod(0o755)
    (base.root / ".gitattributes").write_text("*.txt filter=odd.name=x\n", encoding="utf-8")
    (base.root / "a.txt").write_text("one\n", encoding="utf-8")
    git(base, "add", "--all")
    git(base, "commit", "--quiet", "-m", "a file")
    git(base, "config", *where, "filter.odd.name=x.clean", str(script))
    (base.root / "a.txt").write_text("two\n", encoding="utf-8")


def test_a_filter_of_the_repository_does_not_run(base: Base, git: Git, tmp_path: Path) -> None:
    set_up(git, base, tmp_path / "filter")
    assert Repo(base.root).dirty(".") == ["a.txt"]
    assert not (tmp_path / "filter.ran").exists()
    git(base, "status")  # git alone would run it
    assert (tmp_path / "filter.ran").exists()


def test_a_filter_of_an_included_file_does_not_run(base: Base, git: Git, tmp_path: Path) -> None:
    set_up(git, base, tmp_path / "filter", "--file", str(base.root / ".git/more"))
    git(base, "config", "include.path", "more")
    assert Repo(base.root).dirty(".") == ["a.txt"]
    assert not (tmp_path / "filter.ran").exists()


def test_a_filter_of_a_work_tree_does_not_run(base: Base, git: Git, tmp_path: Path) -> None:
    git(base, "config", "extensions.worktreeConfig", "true")
    set_up(git, base, tmp_path / "filter", "--worktree")
    assert Repo(base.root).dirty(".") == ["a.txt"]
    assert not (tmp_path / "filter.ran").exists()


def test_a_filter_of_the_user_runs(base: Base, git: Git, tmp_path: Path) -> None:
    set_up(git, base, tmp_path / "filter", "--global")
    assert Repo(base.root).dirty(".") == ["a.txt"]
    assert (tmp_path / "filter.ran").exists()


def test_only_the_repository_is_disarmed() -> None:
    listed = (
        b"global\0filter.lfs.clean\0local\0filter.a.clean\0local\0filter.a.clean\0worktree\0merge.b.driver\0"
        b"local\0merge.conflictstyle\0local\0filter.a.required\0"
    )
    assert programs.disarmed(listed) == {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "filter.a.clean",
        "GIT_CONFIG_VALUE_0": "",
        "GIT_CONFIG_KEY_1": "merge.b.driver",
        "GIT_CONFIG_VALUE_1": "false",
        "GIT_CONFIG_KEY_2": "filter.a.required",
        "GIT_CONFIG_VALUE_2": "false",
    }


def test_an_ordinary_configuration_costs_no_process(base: Base, git: Git) -> None:
    git(base, "config", "branch.main.merge", "refs/heads/main")
    git(base, "config", "merge.conflictStyle", "diff3")
    assert not programs.suspect(base.root)
