"""Five stats see every commit and every write by rename, and say when nothing has moved."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.index import sync
from khms.index.freshness import freshness
from khms.store.files import write_atomic
from khms.store.layout import Base


@pytest.fixture
def settled(base: Base, add_card: Callable[..., Path], commit: Callable[..., str]) -> Base:
    """A base whose index is fresh; its files and folders are old enough not to count as being written."""
    add_card(base, "K-00001")
    commit(base)
    _age(base)
    sync.refresh(base)
    assert not freshness(base).behind
    return base


def _age(base: Base) -> None:
    for path in (base.root, *base.root.rglob("*")):
        if ".khms" not in path.parts:
            os.utime(path, (1_700_000_000, 1_700_000_000))


def test_no_index_is_behind(base: Base) -> None:
    seen = freshness(base)
    assert seen.behind and seen.why == "there is no index yet" and seen.checked_at == 0


def test_an_index_that_cannot_be_used_is_behind(settled: Base) -> None:
    (settled.index / "manifest.json").write_text("{", encoding="utf-8")
    assert "cannot be used" in freshness(settled).why


def test_a_look_costs_no_process_and_writes_nothing(settled: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    before = {path: path.stat().st_mtime_ns for path in settled.root.rglob("*")}
    seen = freshness(settled)
    assert not seen.behind and seen.checked_at > 1_700_000_000
    assert {path: path.stat().st_mtime_ns for path in settled.root.rglob("*")} == before


@pytest.mark.parametrize(
    "path",
    ["memory/know/K-00002.md", "memory/archive/know/K-00003.md", "memory/inbox/u/C1.md", "journal/2026-03-05.md"],
)
def test_a_write_by_rename(settled: Base, path: str) -> None:
    write_atomic(settled.root / path, b"new\n")
    seen = freshness(settled)
    assert seen.behind and path.split("/")[0] in seen.why


def test_a_replaced_and_a_removed_file(settled: Base) -> None:
    write_atomic(settled.root / "memory/know/K-00001.md", b"changed\n")
    assert freshness(settled).behind
    sync.refresh(settled)
    _age(settled)
    sync.refresh(settled)
    assert not freshness(settled).behind
    (settled.root / "memory/know/K-00001.md").unlink()
    assert freshness(settled).behind


def test_commit_branch_and_packing(settled: Base, git: Callable[..., str]) -> None:
    """What moves HEAD's commit is seen; packing, and another name for the same commit, is no reason to look again."""

    def moved(*args: str) -> bool:
        git(settled, *args)
        seen = freshness(settled)
        sync.refresh(settled)
        _age(settled)
        sync.refresh(settled)
        assert not freshness(settled).behind
        assert seen.why in ("", "git moved since the last look")
        return seen.behind

    assert moved("commit", "--quiet", "--allow-empty", "-m", "x")
    assert not moved("checkout", "--quiet", "-b", "other")
    assert moved("commit", "--quiet", "--allow-empty", "-m", "y")
    assert moved("checkout", "--quiet", "--detach", "main")
    assert not moved("checkout", "--quiet", "main")
    assert not moved("pack-refs", "--all")
    assert moved("update-ref", "refs/heads/main", "HEAD~1")


def test_gits_own_index_is_no_reason(settled: Base, git: Callable[..., str], commit: Callable[..., str]) -> None:
    """`git status` writes git's index anew; no document has changed by that."""
    git(settled, "status")
    os.utime(settled.root / ".git" / "index")
    assert not freshness(settled).behind
    (settled.root / "memory/know/K-00001.md").write_text("edited in place\n", encoding="utf-8")
    commit(settled)
    assert freshness(settled).why == "git moved since the last look"


def test_a_linked_worktree(settled: Base, tmp_path: Path, git: Callable[..., str]) -> None:
    git(settled, "worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "side")
    tree = Base(tmp_path / "tree")
    _age(tree)
    os.utime(settled.root / ".git", (1_700_000_000, 1_700_000_000))
    sync.refresh(tree)
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "x")
    assert freshness(tree).behind


def test_what_changed_during_the_look_is_looked_at_again(base: Base, add_card: Callable[..., Path]) -> None:
    add_card(base, "K-00001")
    os.utime(base.know, (4_000_000_000, 4_000_000_000))  # later than any look, however slow the machine is
    sync.refresh(base)
    assert freshness(base).behind
