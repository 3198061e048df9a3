"""The audit in a server's pre-receive hook: real pushes to a real bare repository."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.check.receive import updates
from khms.errors import Usage

KHMS = Path(sys.executable).parent / "khms"
Push = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def bare(tmp_path: Path, git: Any) -> Path:
    folder = tmp_path / "server.git"
    git(tmp_path, "init", "--quiet", "--bare", str(folder))
    hook = folder / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {KHMS} audit --receive\n", encoding="utf-8")
    hook.chmod(0o755)
    return folder


@pytest.fixture
def push(bare: Path, reviewed: Any) -> Push:
    """Pushes from the reviewed base, to which the server belongs."""

    def run(*what: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["git", "push", "--quiet", str(bare), *what],
            cwd=reviewed.base.root,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    assert run("main").returncode == 0, "the first push brings the whole base"
    return run


def refused(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    assert done.returncode != 0 and "pre-receive hook declined" in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def changed(held: Any, path: str, old: str, new: str) -> None:
    file = held.base.path(path)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    held.commit()


def test_what_came_in_through_the_review_goes_through(reviewed: Any, push: Push, bare: Path, git: Any) -> None:
    reviewed.propose("2026-03-07-nightly", "C1")
    reviewed.approve("2026-03-07-nightly")
    done = push("main")
    assert done.returncode == 0, done.stderr
    assert "1 card, 1 record" in done.stderr and git(bare, "rev-parse", "main") == reviewed.head()


def test_a_card_slipped_in(reviewed: Any, push: Push, add_card: Callable[..., Path], bare: Path, git: Any) -> None:
    before = git(bare, "rev-parse", "main")
    add_card(reviewed.base, "K-00009")
    reviewed.commit()
    refused(push("main"), "memory/know/K-00009.md", "KA001", "move it into an inbox unit", "khms approve UNIT C1")
    assert git(bare, "rev-parse", "main") == before


def test_a_changed_byte(reviewed: Any, push: Push) -> None:
    changed(reviewed, "memory/know/K-00001.md", "says", "said")
    refused(push("main"), "KA002", "restore it: git checkout", "a correction is a new card that supersedes it")


def test_a_record_that_was_touched_and_put_back(reviewed: Any, push: Push) -> None:
    path = sorted(reviewed.base.approvals.glob("*.json"))[0].relative_to(reviewed.base.root).as_posix()
    changed(reviewed, path, "Ada Tester", "Bob Tester")
    changed(reviewed, path, "Bob Tester", "Ada Tester")
    refused(push("main"), path, "KA005", "put back later")


def test_the_receiving_branch_neither_goes_back_nor_away(reviewed: Any, push: Push, bare: Path, git: Any) -> None:
    git(bare, "config", "receive.denyDeleteCurrent", "ignore")
    before = git(bare, "rev-parse", "main")
    refused(push("--delete", "main"), "KA005", "removes main")
    git(reviewed.base, "reset", "--quiet", "--hard", "HEAD~1")
    refused(push("--force", "main"), "KA005", "rewinds main", "push without --force")
    assert git(bare, "rev-parse", "main") == before


def test_other_branches_come_and_go(reviewed: Any, push: Push, git: Any) -> None:
    git(reviewed.base, "switch", "--quiet", "-c", "khms/inbox/2026-03-07-nightly")
    reviewed.propose("2026-03-07-nightly", "C1")
    assert push("khms/inbox/2026-03-07-nightly").returncode == 0
    git(reviewed.base, "commit", "--quiet", "--amend", "-m", "again")
    assert push("--force", "khms/inbox/2026-03-07-nightly").returncode == 0
    assert push("--delete", "khms/inbox/2026-03-07-nightly").returncode == 0


def test_a_card_on_another_branch_is_found_where_it_comes_in(
    reviewed: Any, push: Push, git: Any, add_card: Callable[..., Path]
) -> None:
    git(reviewed.base, "switch", "--quiet", "-c", "topic")
    add_card(reviewed.base, "K-00009")
    reviewed.commit()
    refused(push("topic"), "KA001")
    git(reviewed.base, "switch", "--quiet", "main")
    reviewed.commit("mine")
    refused(push("main", "topic"), "topic: no approval record lets K-00009 in")


def test_a_branch_behind_the_receiving_one_is_no_fault(reviewed: Any, push: Push, git: Any) -> None:
    git(reviewed.base, "branch", "topic")
    reviewed.propose("2026-03-07-nightly", "C1")
    reviewed.approve("2026-03-07-nightly")
    assert push("main").returncode == 0
    git(reviewed.base, "switch", "--quiet", "topic")
    reviewed.commit("aside")
    assert push("topic").returncode == 0


def test_every_base_in_the_tree_is_audited(reviewed: Any, push: Push, git: Any, add_card: Callable[..., Path]) -> None:
    inner = reviewed.base.root / "project/.memory"
    (inner / "memory/know").mkdir(parents=True)
    text = add_card(reviewed.base, "K-00001").read_text(encoding="utf-8")
    git(reviewed.base, "checkout", "--", "memory/know/K-00001.md")
    (inner / "memory/know/K-00001.md").write_text(text, encoding="utf-8")
    reviewed.commit("a second base, without khms.toml")
    refused(push("main"), "project/.memory/memory/know/K-00001.md", "KA001")


def test_the_first_push_is_judged_as_a_whole(
    reviewed: Any, bare: Path, git: Any, add_card: Callable[..., Path]
) -> None:
    add_card(reviewed.base, "K-00009")
    reviewed.commit()
    done = subprocess.run(
        ["git", "push", "--quiet", str(bare), "main"],
        cwd=reviewed.base.root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    refused(done, "KA001")


def test_a_push_through_a_hook_sees_the_pushed_objects_only_there(reviewed: Any, push: Push, git: Any) -> None:
    """What is refused leaves nothing behind, and the hook's variables lead no later command astray."""
    reviewed.propose("2026-03-07-nightly", "C1")
    changed(reviewed, "memory/know/K-00001.md", "says", "said")
    refused(push("main"), "KA002")
    git(reviewed.base, "reset", "--quiet", "--hard", "HEAD~1")
    assert push("main").returncode == 0


def test_tags_are_left_alone(reviewed: Any, push: Push, git: Any, add_card: Callable[..., Path]) -> None:
    git(reviewed.base, "tag", "v1")
    assert push("v1").returncode == 0


def test_other_lines_are_a_wrong_call() -> None:
    assert [u.ref for u in updates(f"{'0' * 40} {'1' * 40} refs/heads/a b\n")] == ["refs/heads/a b"]
    with pytest.raises(Usage, match="OLD NEW REF"):
        updates("hello\n")


def test_a_hook_outside_a_repository_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(KHMS), "audit", "--receive"],
        cwd=tmp_path,
        input=f"{'0' * 40} {'1' * 40} refs/heads/main\n",
        env={**os.environ},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 4 and "bug" not in done.stderr, done.stderr
