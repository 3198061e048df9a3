"""Units on branches of their own: found in git's files, read through git, and made beside the work tree."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused
from khms.store import branches, gitdir
from khms.store.commit import exclusive
from khms.store.layout import Base
from khms.store.receipts import ledger
from khms.store.repo import GitFailed, Repo

Git = Callable[..., str]
RECEIPT = {"mark": "M-0123456789ab", "stage": "propose", "verdict": "new", "run": "01", "at": "2026-03-04T00:00:00Z"}
UNIT = {
    "memory/inbox/one/C1.md": b"---\nid: C1\ntitle: one\n---\nbody\n",
    "memory/inbox/one/C2.md": b"---\nid: C2\nid: C2\n---\n",
    "memory/inbox/one/REPORT.md": b"# one\n",
    "memory/inbox/one/dropped/C3.md": b"---\nid: C3\n---\nbody\n",
    "memory/inbox/one/unit.json": b'{"run": "01"}\n',
    "memory/receipts/01.jsonl": (json.dumps(RECEIPT) + "\n").encode(),
}


def make(base: Base, unit: str = "one") -> str:
    repo = Repo(base.root)
    with exclusive(repo, "a test") as tx:
        return tx.commit_to(branches.branch_ref(unit), repo.head() or "", UNIT, "a unit\n")


def test_a_commit_beside_the_work_tree_changes_nothing_else(base: Base, git: Git, write: Callable[..., Path]) -> None:
    write(base, "staged.txt", "mine\n")
    git(base, "add", "staged.txt")
    write(base, "khms.toml", "# edited\n")
    before = [git(base, *asked) for asked in (("status", "--porcelain"), ("rev-parse", "HEAD"), ("ls-files", "-s"))]
    commit = make(base)
    after = [git(base, *asked) for asked in (("status", "--porcelain"), ("rev-parse", "HEAD"), ("ls-files", "-s"))]
    assert before == after
    assert git(base, "rev-parse", "khms/inbox/one", "khms/inbox/one^").split() == [commit, before[1]]
    assert git(base, "diff", "--name-only", "main", "khms/inbox/one").split() == list(UNIT)
    assert sorted(path.name for path in (base.root / ".git" / "khms").iterdir()) == ["approve.lock"]


def test_a_branch_that_is_there_is_not_moved(base: Base, git: Git) -> None:
    first = make(base)
    with pytest.raises(GitFailed):
        make(base)
    assert git(base, "rev-parse", "khms/inbox/one") == first


def test_loose_packed_and_remote_tracking_branches_are_found_and_no_others(base: Base, git: Git) -> None:
    commit = make(base)
    git(base, "update-ref", "refs/remotes/origin/khms/inbox/one", commit)
    git(base, "update-ref", "refs/remotes/up/khms/inbox/two", commit)
    git(base, "branch", "--quiet", "mykhms/inbox/three", commit)
    git(base, "tag", "khms/inbox/four", commit)
    expected = ["khms/inbox/one", "origin/khms/inbox/one", "up/khms/inbox/two"]
    assert [branch.name for branch in branches.branches(base)] == expected
    git(base, "pack-refs", "--all")
    assert [branch.name for branch in branches.branches(base)] == expected
    git(base, "branch", "--quiet", "--force", "khms/inbox/one", "main")
    found = {branch.name: branch.commit for branch in branches.branches(base)}
    assert found["khms/inbox/one"] == git(base, "rev-parse", "main")
    assert branches.unmerged(base)["one"].name == "origin/khms/inbox/one"
    (base.inbox / "one").mkdir()
    assert list(branches.unmerged(base)) == ["two"]


def test_a_linked_work_tree_sees_them_too(base: Base, git: Git, tmp_path: Path) -> None:
    make(base)
    git(base, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    tree = Base((tmp_path / "tree").resolve())
    assert [branch.unit for branch in branches.branches(tree)] == ["one"]
    assert [receipt.run for receipt in ledger(tree).receipts] == ["01"]


def test_each_receipt_counts_once_however_many_branches_hold_it(base: Base, git: Git) -> None:
    make(base)
    git(base, "branch", "--quiet", "khms/inbox/two", "khms/inbox/one")
    assert [receipt.mark for receipt in ledger(base).receipts] == ["M-0123456789ab"]
    git(base, "merge", "--quiet", "khms/inbox/one")
    assert [receipt.mark for receipt in ledger(base).receipts] == ["M-0123456789ab"]


def test_no_process_is_started_where_there_is_no_such_branch(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **options: object) -> None:
        raise AssertionError("git was started")

    monkeypatch.setattr(Repo, "_execute", never)
    assert ledger(base).receipts == ()
    assert branches.branches(base) == []


def test_a_unit_is_read_from_its_branch(base: Base, git: Git) -> None:
    make(base)
    repo = Repo(base.root)
    (branch,) = branches.branches(base)
    unit = branches.unit(repo, branch)
    assert (unit.name, unit.path, unit.meta) == ("one", "memory/inbox/one", {"run": "01"})
    assert [candidate.title for candidate in unit.candidates] == ["one"]
    assert [problem.path for problem in unit.broken] == ["memory/inbox/one/C2.md"]
    assert unit.dropped == ("C3",)
    assert set(branches.added(repo, branch, "HEAD", ("memory/receipts",))) == {"memory/receipts/01.jsonl"}
    git(base, "branch", "--quiet", "khms/inbox/empty", "main")
    empty = next(branch for branch in branches.branches(base) if branch.unit == "empty")
    with pytest.raises(Refused, match="does not hold"):
        branches.unit(repo, empty)


def test_a_folder_in_no_repository_has_none(tmp_path: Path) -> None:
    assert branches.branches(Base(tmp_path)) == []
    assert gitdir.find(tmp_path) is None
