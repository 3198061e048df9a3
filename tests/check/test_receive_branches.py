"""Which branches of a server stay, and from what state each is judged: real pushes to a real bare repository."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Push = Callable[..., "subprocess.CompletedProcess[str]"]
KHMS = Path(sys.executable).parent / "khms"


@pytest.fixture
def bare(tmp_path: Path, git: Any) -> Path:
    folder = tmp_path / "server.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=master", str(folder))
    git(folder, "config", "receive.denyDeleteCurrent", "ignore")
    hook = folder / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {KHMS} audit --receive\n", encoding="utf-8")
    hook.chmod(0o755)
    return folder


@pytest.fixture
def push(bare: Path, reviewed: Any) -> Push:
    def run(*what: str) -> "subprocess.CompletedProcess[str]":
        command = ["git", "push", "--quiet", str(bare), *what]
        return subprocess.run(command, cwd=reviewed.base.root, capture_output=True, encoding="utf-8", check=False)

    return run


def refused(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert done.returncode != 0 and "pre-receive hook declined" in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def orphan(reviewed: Any, git: Any, add_card: Callable[..., Path]) -> None:
    git(reviewed.base, "checkout", "--quiet", "--orphan", "evil")
    git(reviewed.base, "rm", "-r", "--quiet", "--force", "memory")
    reviewed.base.path("khms.toml").write_text("", encoding="utf-8")
    reviewed.commit("a base without a past")


@pytest.mark.parametrize("name", ["main", "develop"])
@pytest.mark.parametrize("head", ["master", "gone"])
def test_heads_branch_is_missing(
    reviewed: Any, push: Push, bare: Path, git: Any, add_card: Callable[..., Path], name: str, head: str
) -> None:
    git(bare, "symbolic-ref", "HEAD", f"refs/heads/{head}")
    assert push(f"main:{name}").returncode == 0
    git(reviewed.base, "branch", "back", "HEAD~1")
    orphan(reviewed, git, add_card)
    refused(push("--force", f"evil:{name}"), "KA005", f"rewinds {name}", "symbolic-ref HEAD")
    refused(push("evil:other"), "KA005", "a history of its own")
    refused(push("evil:master"), "KA005", "a history of its own")
    refused(push("--force", f"back:{name}"), f"rewinds {name}")
    refused(push(f":{name}"), f"removes {name}")
    refused(push(f":{name}", "evil:other"), f"removes {name}")


def test_a_branch_that_its_own_base_names(reviewed: Any, push: Push, bare: Path, git: Any) -> None:
    """HEAD names a branch of the project's that holds no base."""
    git(bare, "symbolic-ref", "HEAD", "refs/heads/code")
    reviewed.base.path("khms.toml").write_text('[git]\nbranch = "knowledge"\n', encoding="utf-8")
    reviewed.commit()
    git(reviewed.base, "branch", "back", "HEAD~1")
    git(reviewed.base, "branch", "knowledge")
    git(reviewed.base, "checkout", "--quiet", "--orphan", "code")
    git(reviewed.base, "rm", "-r", "--quiet", "--force", ".")
    git(reviewed.base, "commit", "--quiet", "--allow-empty", "-m", "code")
    assert push("code").returncode == 0 and push("knowledge").returncode == 0
    refused(push("--force", "back:knowledge"), "rewinds knowledge")
    refused(push(":knowledge"), "removes knowledge")
    git(reviewed.base, "commit", "--quiet", "--amend", "--allow-empty", "-m", "code, again")
    assert push("--force", "code").returncode == 0, "what holds no base is the project's own business"


@pytest.mark.parametrize("head", ["main", "master"])
@pytest.mark.parametrize("name", ["topic", "khms/inbox/2026-03-09-nightly", "khms/approval/2026-03-09"])
def test_a_feature_branch_comes_is_rebased_and_goes(
    reviewed: Any, push: Push, bare: Path, git: Any, head: str, name: str
) -> None:
    git(bare, "symbolic-ref", "HEAD", f"refs/heads/{head}")
    assert push("main").returncode == 0
    git(reviewed.base, "switch", "--quiet", "-c", name)
    reviewed.propose("2026-03-09-nightly", "C1")
    done = push(name)
    assert done.returncode == 0, done.stderr
    git(reviewed.base, "commit", "--quiet", "--amend", "-m", "again")
    assert push("--force", name).returncode == 0
    git(reviewed.base, "switch", "--quiet", "main")
    reviewed.propose("2026-03-08-nightly", "C1")
    reviewed.approve("2026-03-08-nightly")
    assert push("main").returncode == 0
    git(reviewed.base, "switch", "--quiet", name)
    git(reviewed.base, "rebase", "--quiet", "main")
    assert push("--force", name).returncode == 0
    assert push("--delete", name).returncode == 0


def test_a_card_on_a_feature_branch_is_judged_from_where_it_parted(
    reviewed: Any, push: Push, git: Any, add_card: Callable[..., Path]
) -> None:
    assert push("main").returncode == 0
    git(reviewed.base, "switch", "--quiet", "-c", "topic")
    add_card(reviewed.base, "K-00009")
    reviewed.commit()
    refused(push("topic"), "KA001")
    refused(push("topic:master"), "KA001")


def test_what_cannot_be_read_is_no_clean_push(reviewed: Any) -> None:
    from khms.store import history
    from khms.store.repo import GitFailed

    with pytest.raises(GitFailed):
        history.own_bases(reviewed.repo, "1" * 40)


def test_a_second_base_is_refused_once(reviewed: Any, push: Push, write: Callable[..., Path]) -> None:
    assert push("main").returncode == 0
    write(reviewed.base, "src/khms.toml", "")
    reviewed.commit()
    done = push("main")
    refused(done, "KA008", "src/khms.toml", "khms init --separate")
    assert done.stderr.count("KA008") == 1
