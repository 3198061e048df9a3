"""Where the pre-commit hook of a base goes, and that every byte of what was there comes back."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused, Unavailable
from khms.hosts import githooks, hookscript
from khms.store.layout import Base
from khms.store.repo import Repo

THEIRS = b'#!/bin/sh\necho theirs >> "$(git rev-parse --git-dir)/told"\nexit 0\n'


def hook_at(path: Path, script: bytes = THEIRS, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(script)
    path.chmod(mode)
    return path


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, git: Callable[..., str]) -> Path:
    """A repository with code and a base in .memory/."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet")
    write(root, "code.py", "print()\n")
    write(root, ".memory/khms.toml", "")
    write(root, ".memory/memory/know/.keep", "")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "code and a base")
    return root


def of(root: Path) -> githooks.Hook:
    return githooks.of_base(Repo(root))


def test_a_file_of_its_own_comes_and_goes(base: Base) -> None:
    hook = of(base.root)
    path = base.root / ".git" / "hooks" / "pre-commit"
    assert (hook.path, hook.base, hook.shared) == (path, ".", False)
    report = githooks.install(hook)
    assert report.changed and os.access(path, os.X_OK) and sys.executable.encode() in path.read_bytes()
    assert githooks.status(hook) == githooks.Status(True, "pre-commit", path, sys.executable)
    script = path.read_bytes()
    assert not githooks.install(hook).changed and path.read_bytes() == script
    assert githooks.uninstall(hook).changed and not path.exists()
    assert not githooks.uninstall(hook).changed and not githooks.status(hook).installed


def test_a_script_that_was_there_keeps_its_bytes_and_mode(base: Base) -> None:
    path = hook_at(base.root / ".git/hooks/pre-commit", mode=0o751)
    hook = of(base.root)
    githooks.install(hook)
    assert path.read_bytes().endswith(THEIRS.partition(b"\n")[2]) and path.stat().st_mode & 0o777 == 0o751
    githooks.uninstall(hook)
    assert path.read_bytes() == THEIRS and path.stat().st_mode & 0o777 == 0o751


def test_what_others_add_later_stays(base: Base) -> None:
    path, hook = base.root / ".git/hooks/pre-commit", of(base.root)
    githooks.install(hook)
    path.write_bytes(path.read_bytes() + b"echo later\n")
    githooks.uninstall(hook)
    assert path.read_bytes() == b"#!/bin/sh\necho later\n"


def test_a_base_below_the_top_and_a_second_one(project: Path) -> None:
    write(project, "lib/notes/khms.toml", "")
    first, second = of(project / ".memory"), of(project / "lib/notes")
    githooks.install(first)
    assert "checks .memory, not this base" in githooks.status(second).problems[0]
    githooks.install(second)
    found = hookscript.find(first.path.read_bytes())
    assert found and found.bases == (".memory", "lib/notes")
    assert githooks.status(first).installed and githooks.status(second).installed
    githooks.uninstall(first)
    assert not githooks.status(first).installed and githooks.status(second).installed
    githooks.uninstall(second)
    assert not first.path.exists()


def test_linked_work_trees_share_the_hook(project: Path, git: Callable[..., str]) -> None:
    tree = project.parent / "tree"
    git(project, "worktree", "add", "--quiet", str(tree))
    hook = of(tree / ".memory")
    assert hook == of(project / ".memory") and hook.path == project / ".git/hooks/pre-commit"
    assert githooks.install(hook).changed and not githooks.install(of(project / ".memory")).changed
    assert str(project) not in hook.path.read_text(encoding="utf-8"), "no tree's own path stands in it"


def test_a_submodule(project: Path, base: Base, git: Callable[..., str]) -> None:
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(base.root), "mem")
    hook = of(project / "mem")
    assert hook.path == project / ".git/modules/mem/hooks/pre-commit" and not hook.shared
    assert githooks.install(hook).changed


def test_a_tracked_folder_of_hooks_names_no_machine(project: Path, git: Callable[..., str]) -> None:
    git(project, "config", "core.hooksPath", ".githooks")
    path = hook_at(project / ".githooks/pre-commit")
    hook = of(project / ".memory")
    assert hook.path == path and hook.shared
    report = githooks.install(hook)
    script = path.read_text(encoding="utf-8")
    assert sys.executable not in script and 'run_khms() { khms "$@"; }' in script and "commit it" in report.remarks[0]
    assert githooks.status(hook).command == "khms" and not githooks.status(hook).problems
    githooks.uninstall(hook)
    assert path.read_bytes() == THEIRS


def test_an_ignored_folder_of_hooks_is_this_machines(project: Path, git: Callable[..., str]) -> None:
    write(project, ".gitignore", ".githooks/\n")
    git(project, "config", "core.hooksPath", ".githooks")
    assert not of(project / ".memory").shared


def test_husky_calls_the_script_one_folder_up(project: Path, git: Callable[..., str]) -> None:
    """Husky 9: `.husky/_` is written anew by each install; its scripts run those beside it, executable or not."""
    git(project, "config", "core.hooksPath", ".husky/_")
    generated = hook_at(project / ".husky/_/pre-commit", b'#!/usr/bin/env sh\n. "${0%/*}/h"\n')
    path = hook_at(project / ".husky/pre-commit", b"npm test\n", 0o644)
    hook = of(project / ".memory")
    assert hook.path == path and hook.shared
    before = generated.read_bytes()
    githooks.install(hook)
    assert path.read_bytes().endswith(b"npm test\n") and generated.read_bytes() == before
    assert not githooks.status(hook).problems
    githooks.uninstall(hook)
    assert path.read_bytes() == b"npm test\n"


def test_a_folder_outside_is_refused(project: Path, git: Callable[..., str]) -> None:
    outside = hook_at(project.parent / "everywhere/pre-commit")
    git(project, "config", "core.hooksPath", str(outside.parent))
    for is_there in (True, False):
        with pytest.raises(Refused, match="outside of the repository") as refused:
            of(project / ".memory")
        assert "khms hook install git --print pre-commit" in refused.value.hint
        if is_there:
            assert outside.read_bytes() == THEIRS
            outside.unlink()


def test_a_link_into_the_repository_is_followed(project: Path) -> None:
    target = hook_at(project / "scripts/check.sh")
    link = project / ".git/hooks/pre-commit"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("../../scripts/check.sh")
    hook = of(project / ".memory")
    assert hook.path == target and hook.shared
    githooks.install(hook)
    assert link.is_symlink() and hookscript.find(target.read_bytes())
    githooks.uninstall(hook)
    assert link.is_symlink() and target.read_bytes() == THEIRS


@pytest.mark.parametrize("leads", ["out", "nowhere", "round"])
def test_a_link_elsewhere_is_refused(project: Path, leads: str) -> None:
    target = hook_at(project.parent / "own-hooks/check.sh")
    link = project / ".git/hooks/pre-commit"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to({"out": str(target), "nowhere": "/no/such/hook", "round": "pre-commit"}[leads])
    with pytest.raises(Refused):
        of(project / ".memory")
    assert target.read_bytes() == THEIRS


def test_what_is_no_shell_script_stays_and_the_way_out_is_named(base: Base) -> None:
    path = hook_at(base.root / ".git/hooks/pre-commit", b"#!/usr/bin/env python3\nprint()\n")
    with pytest.raises(Refused, match="written for python3") as refused:
        githooks.install(of(base.root))
    assert "khms hook install git --print pre-commit" in refused.value.hint
    assert path.read_bytes() == b"#!/usr/bin/env python3\nprint()\n"
    assert not githooks.status(of(base.root)).installed and not githooks.uninstall(of(base.root)).changed


def test_a_script_that_was_switched_off_does_not_come_to_life(base: Base) -> None:
    path = hook_at(base.root / ".git/hooks/pre-commit", mode=0o644)
    with pytest.raises(Refused, match="not executable") as refused:
        githooks.install(of(base.root))
    assert "chmod" in refused.value.hint and path.read_bytes() == THEIRS


def test_a_read_only_hook_and_a_folder_in_its_place(base: Base) -> None:
    path = hook_at(base.root / ".git/hooks/pre-commit", mode=0o555)
    with pytest.raises(Unavailable, match="read-only"):
        githooks.install(of(base.root))
    assert path.read_bytes() == THEIRS
    path.unlink()
    path.mkdir()
    with pytest.raises(Unavailable, match="cannot read"):
        githooks.install(of(base.root))
    assert githooks.status(of(base.root)).problems


def test_damaged_marks_are_said_and_kept(base: Base) -> None:
    hook = of(base.root)
    githooks.install(hook)
    broken = hook.path.read_bytes().replace(hookscript.END, b"")
    hook.path.write_bytes(broken)
    for act in (githooks.install, githooks.uninstall):
        with pytest.raises(Refused, match="line 3: the marks"):
            act(hook)
    assert hook.path.read_bytes() == broken and "the marks" in githooks.status(hook).problems[0]


def test_lines_of_another_khms_are_brought_up_to_date(base: Base, tmp_path: Path) -> None:
    path, hook = hook_at(base.root / ".git/hooks/pre-commit"), of(base.root)
    githooks.install(hook)
    now = path.read_bytes()
    path.write_bytes(now.replace(sys.executable.encode(), b"/gone/bin/python"))
    assert any("interpreter is missing: /gone/bin/python" in problem for problem in githooks.status(hook).problems)
    path.write_bytes(path.read_bytes().replace(b"  refused=", b"  older="))
    assert any("not as this khms writes them" in problem for problem in githooks.status(hook).problems)
    assert "up to date" in githooks.install(hook).note and path.read_bytes() == now
    path.chmod(0o644)
    assert any("not executable" in problem for problem in githooks.status(hook).problems)


def test_the_script_of_the_pre_commit_program(base: Base) -> None:
    """`pre-commit install` writes its script anew, and moves a foreign one to pre-commit.legacy, which it calls."""
    theirs = b'#!/usr/bin/env bash\nINSTALL_PYTHON=/usr/bin/python3\nexec "$INSTALL_PYTHON" -mpre_commit "$@"\n'
    path = hook_at(base.root / ".git/hooks/pre-commit", theirs)
    report = githooks.install(of(base.root))
    assert "khms-lint" in report.remarks[0]
    githooks.uninstall(of(base.root))
    assert path.read_bytes() == theirs
    legacy = hook_at(path.with_name("pre-commit.legacy"))
    assert of(base.root).path == legacy
    githooks.install(of(base.root))
    assert hookscript.find(legacy.read_bytes()) and path.read_bytes() == theirs


def test_a_server_bare_or_not(tmp_path: Path, base: Base, git: Callable[..., str]) -> None:
    bare = tmp_path / "srv" / "base.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(base.root), str(bare))
    hook = githooks.of_server(bare)
    assert (hook.path, hook.base) == (bare / "hooks/pre-receive", "")
    assert githooks.install(hook).changed and not githooks.install(hook).changed
    assert githooks.status(hook).installed and not githooks.status(hook).problems
    assert githooks.uninstall(hook).changed and not hook.path.exists()
    assert githooks.of_server(base.root).path == base.root / ".git/hooks/pre-receive"
    for nowhere in (tmp_path / "none", tmp_path):
        with pytest.raises(Unavailable, match="no git repository"):
            githooks.of_server(nowhere)


def test_a_killed_installation_leaves_the_old_script_or_the_new(base: Base) -> None:
    """The file is replaced whole: after the n-th writing primitive it is one or the other."""
    path = hook_at(base.root / ".git/hooks/pre-commit")
    program = [sys.executable, "-m", "khms", "--root", str(base.root), "hook", "install", "git"]
    seen = set()
    for at in range(1, 9):
        path.write_bytes(THEIRS)
        done = subprocess.run(program, env={**os.environ, "KHMS_KILL_AT": str(at)}, capture_output=True, check=False)
        whole = path.read_bytes()
        assert whole == THEIRS or hookscript.find(whole), at
        seen.add(whole == THEIRS)
        if done.returncode == 0:
            break
    assert done.returncode == 0 and seen == {True, False}
