"""`khms hook install git|github|gitlab` as a person calls it: what is said, and what comes of it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.hosts import hookscript
from khms.hosts.registry import HOSTS
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def hook(base: Base) -> Path:
    return base.root / ".git" / "hooks" / "pre-commit"


def test_git_from_installing_to_uninstalling(base: Base, hook: Path, run_khms: Run) -> None:
    done = run_khms("hook", "install", "git")
    assert done.returncode == 0 and f"{hook}: made" in done.stdout
    assert "linted and audited first" in done.stdout and "undo: khms hook uninstall git" in done.stdout
    script = hook.read_bytes()
    assert "already installed" in run_khms("hook", "install", "git").stdout and hook.read_bytes() == script
    done = run_khms("hook", "status")
    assert (
        done.returncode == 0
        and f"pre-commit  yes        {hook}" in done.stdout
        and "khms-review.yml" not in done.stdout
    )
    assert run_khms("hook", "uninstall", "git").stdout == f"{hook}: removed: khms had made it\n"
    assert not hook.exists()
    done = run_khms("hook", "uninstall", "git")
    assert done.returncode == 0 and "there is no such hook" in done.stdout
    done = run_khms("hook", "status", "git")
    assert "next: khms hook install git" in done.stdout


def test_the_base_is_the_one_that_is_named(base: Base, hook: Path, tmp_path: Path, run_khms: Run) -> None:
    assert run_khms("--root", base.root, "hook", "install", "git", cwd=tmp_path).returncode == 0
    assert hook.exists()
    done = run_khms("hook", "install", "git", cwd=tmp_path)
    assert done.returncode == 4 and "no base" in done.stderr


def test_status_as_json(base: Base, hook: Path, run_khms: Run) -> None:
    run_khms("hook", "install", "git")
    run_khms("hook", "install", "github")
    value = json.loads(run_khms("hook", "status", "--json").stdout)
    assert value["schema"] == "khms.hook-status/1" and {row["host"] for row in value["hosts"]} == set(HOSTS)
    rows = {(row["guard"], row["what"]): row for row in value["guards"]}
    assert set(rows) == {("git", "pre-commit"), ("github", "khms-review.yml"), ("github", "khms-approve.yml")}
    assert rows["git", "pre-commit"] == {
        "guard": "git",
        "what": "pre-commit",
        "installed": True,
        "path": str(hook),
        "command": rows["git", "pre-commit"]["command"],
        "problems": [],
    }
    assert Path(rows["git", "pre-commit"]["command"]).parent == Path(sys.executable).parent
    hook.chmod(0o644)
    workflow = Path(rows["github", "khms-review.yml"]["path"])
    workflow.write_text("name: mine\n", encoding="utf-8")
    value = json.loads(run_khms("hook", "status", "--json").stdout)
    problems = [problem for row in value["guards"] for problem in row["problems"]]
    assert any("not executable" in problem for problem in problems)
    assert any("not as khms wrote it" in problem for problem in problems)
    assert set(json.loads(run_khms("hook", "status", "claude-code", "--json").stdout)) == {
        "schema",
        "hosts",
        "base",
        "moments",
        "incognito",
        "problems",
    }


def test_what_cannot_be_edited_is_refused_with_the_way_out(base: Base, hook: Path, run_khms: Run) -> None:
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes(b"#!/usr/bin/env python3\n")
    hook.chmod(0o755)
    done = run_khms("hook", "install", "git")
    assert done.returncode == 3 and "python3" in done.stderr and "--print pre-commit" in done.stderr
    done = run_khms("hook", "install", "git", "--print", "pre-commit")
    assert done.returncode == 0 and done.stdout.startswith("#!/bin/sh\n") and "for base in .; do" in done.stdout
    assert sys.executable not in done.stdout


def test_a_folder_of_hooks_elsewhere_is_a_problem_that_status_tells(
    base: Base, tmp_path: Path, git: Callable[..., str], run_khms: Run
) -> None:
    git(base, "config", "core.hooksPath", str(tmp_path / "elsewhere"))
    assert run_khms("hook", "install", "git").returncode == 3
    done = run_khms("hook", "status")
    assert done.returncode == 0 and "outside of the repository" in done.stdout


def test_a_server(base: Base, tmp_path: Path, git: Callable[..., str], run_khms: Run) -> None:
    bare = tmp_path / "it is.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(base.root), str(bare))
    path = bare / "hooks" / "pre-receive"
    done = run_khms("hook", "install", "git", "--server", bare, cwd=tmp_path)
    assert done.returncode == 0 and path.exists() and f"khms hook uninstall git --server '{bare}'" in done.stdout
    done = run_khms("hook", "status", "git", "--server", bare.name, cwd=tmp_path)
    assert done.returncode == 0 and f"pre-receive  yes        {path}" in done.stdout
    assert run_khms("hook", "uninstall", "git", "--server", bare, cwd=tmp_path).returncode == 0 and not path.exists()
    done = run_khms("hook", "install", "git", "--server", tmp_path / "none", cwd=tmp_path)
    assert done.returncode == 4 and "no git repository" in done.stderr


def test_a_server_whose_head_points_nowhere(base: Base, tmp_path: Path, git: Callable[..., str], run_khms: Run) -> None:
    bare = tmp_path / "project.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=master", str(bare))
    done = run_khms("hook", "install", "git", "--server", bare, cwd=tmp_path)
    assert "HEAD names master" in done.stderr and "symbolic-ref HEAD refs/heads/NAME" in done.stderr
    git(bare, "fetch", "--quiet", str(base.root), "main:main")
    for command in ("install", "status"):
        done = run_khms("hook", command, "git", "--server", bare, cwd=tmp_path)
        told = done.stdout + done.stderr
        assert "HEAD names master, which is not there" in told and "symbolic-ref HEAD refs/heads/main" in told
    git(bare, "symbolic-ref", "HEAD", "refs/heads/main")
    done = run_khms("hook", "status", "git", "--server", bare, cwd=tmp_path)
    assert "HEAD" not in done.stdout + done.stderr


def test_the_script_for_a_server_that_khms_cannot_reach(tmp_path: Path, run_khms: Run) -> None:
    done = run_khms("hook", "install", "git", "--print", "pre-receive", cwd=tmp_path)
    assert done.returncode == 0
    found = hookscript.find(done.stdout.encode())
    assert found and found.own and "audit --receive" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["install", "claude-code", "--server", "x"],
        ["install", "--server", "x"],
        ["install", "github", "--print", "pre-commit"],
        ["install", "git", "--print", "post-commit"],
        ["install", "gitea"],
        ["uninstall", "gitlab", "--server", "x"],
    ],
)
def test_a_wrong_call(base: Base, run_khms: Run, words: list[str]) -> None:
    done = run_khms("hook", *words)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert not (base.root / ".github").exists()


@pytest.mark.parametrize("host", ["github", "gitlab"])
def test_the_files_of_a_host(base: Base, git: Callable[..., str], run_khms: Run, host: str) -> None:
    done = run_khms("hook", "install", host)
    assert done.returncode == 0 and "next: read them, then commit them: git add " in done.stdout
    assert git(base, "diff", "--cached", "--name-only") == "", "nothing is committed or staged for anyone"
    added = done.stdout.split("git add ")[1].splitlines()[0].split()
    assert sorted(added) == sorted(git(base, "ls-files", "--others", "--exclude-standard").splitlines())
    done = run_khms("hook", "install", host)
    assert "next:" not in done.stdout and done.stdout.count("unchanged") == len(added)
    done = run_khms("hook", "uninstall", host)
    assert done.stdout.count("removed") == len(added)
    assert git(base, "status", "--porcelain") == ""


def test_gitlabs_own_file_needs_a_line(base: Base, write: Callable[..., Path], run_khms: Run) -> None:
    write(base, ".gitlab-ci.yml", "stages: [test]\n")
    done = run_khms("hook", "install", "gitlab")
    assert done.returncode == 0 and "local: .gitlab/khms.yml" in done.stdout
    done = run_khms("hook", "status", "gitlab")
    assert "does not include it" in done.stdout


def test_a_workflow_of_ones_own_is_kept(base: Base, write: Callable[..., Path], run_khms: Run) -> None:
    path = write(base, ".github/workflows/khms-review.yml", "name: mine\n")
    done = run_khms("hook", "install", "github")
    assert done.returncode == 3 and "move it away" in done.stderr
    assert path.read_text(encoding="utf-8") == "name: mine\n"
    assert "kept: it is not as khms wrote it" in run_khms("hook", "uninstall", "github").stdout and path.exists()


def test_approvals_go_to_the_branch_that_receives_them(base: Base, write: Callable[..., Path], run_khms: Run) -> None:
    write(base, "khms.toml", '[git]\nbranch = "trunk"\n')
    assert run_khms("hook", "install", "github").returncode == 0
    text = (base.root / ".github/workflows/khms-approve.yml").read_text(encoding="utf-8")
    assert 'branches: ["trunk"]' in text
