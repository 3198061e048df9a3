"""The all-or-nothing commit, with real git: odd repositories, other people's work, and every moment of a kill."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Busy, Refused, Unavailable
from khms.store.commit import exclusive, pending
from khms.store.repo import Repo

Git = Callable[..., str]


@pytest.fixture
def top(tmp_path: Path, git: Git) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "kept.txt").write_text("kept\n", encoding="utf-8")
    (folder / "gone.txt").write_text("gone\n", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "start")
    return folder


CHANGES: dict[str, bytes | None] = {
    "new/deep/a.md": b"a\n",
    "new/b.md": b"b\n",
    "kept.txt": b"changed\n",
    "gone.txt": None,
}


def make(folder: Path, changes: dict[str, bytes | None] | None = None, *, hooks: bool = False) -> str:
    with exclusive(Repo(folder), "test") as tx:
        return tx.commit(CHANGES if changes is None else changes, "A commit\n\nwhy\n", what="test", user_hooks=hooks)


def assert_made(folder: Path, git: Git) -> None:
    assert (folder / "new/deep/a.md").read_bytes() == b"a\n"
    assert (folder / "kept.txt").read_bytes() == b"changed\n"
    assert not (folder / "gone.txt").exists()
    assert "fatal" not in git(folder, "fsck")
    assert not list(folder.rglob(".khms-tmp-*"))


def test_the_commit_holds_the_files_and_the_work_tree_shows_them(top: Path, git: Git) -> None:
    commit = make(top)
    assert git(top, "rev-parse", "HEAD") == commit
    assert git(top, "status", "--porcelain") == ""
    assert_made(top, git)
    assert git(top, "log", "-1", "--format=%B") == "A commit\n\nwhy"


def test_what_the_user_staged_and_changed_stays_as_it_was(top: Path, git: Git) -> None:
    (top / "staged.txt").write_text("staged\n", encoding="utf-8")
    git(top, "add", "staged.txt")
    (top / "staged.txt").write_text("changed since\n", encoding="utf-8")
    make(top)
    assert git(top, "status", "--porcelain") == "AM staged.txt"
    assert git(top, "show", ":staged.txt") == "staged"
    assert "staged.txt" not in git(top, "ls-tree", "-r", "--name-only", "HEAD")


def test_an_unborn_branch_gets_its_first_commit(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "--quiet", "fresh")
    make(tmp_path / "fresh", {"a.md": b"a\n"})
    assert git(tmp_path / "fresh", "rev-list", "--count", "HEAD") == "1"
    assert git(tmp_path / "fresh", "status", "--porcelain") == ""


def test_a_detached_head_moves_alone(top: Path, git: Git) -> None:
    git(top, "checkout", "--quiet", "--detach")
    commit = make(top)
    assert git(top, "rev-parse", "HEAD") == commit != git(top, "rev-parse", "main")
    assert git(top, "status", "--porcelain") == ""


def test_a_linked_work_tree_and_a_sub_folder_work(top: Path, git: Git, tmp_path: Path) -> None:
    git(top, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    inner = tmp_path / "side" / "sub folder"
    inner.mkdir()
    make(inner, {"x/a.md": b"a\n"})
    assert git(tmp_path / "side", "show", "side:sub folder/x/a.md") == "a"
    assert git(tmp_path / "side", "status", "--porcelain") == ""
    assert git(top, "status", "--porcelain") == ""


def test_another_git_at_work_is_busy_and_nothing_changes(top: Path, git: Git) -> None:
    (top / ".git" / "index.lock").touch()
    with pytest.raises(Busy, match="git is at work"):
        make(top)
    assert (top / ".git" / "index.lock").exists()
    (top / ".git" / "index.lock").unlink()
    assert git(top, "status", "--porcelain") == ""
    assert pending(Repo(top)) is None


def test_paths_never_lead_out(top: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (top / "link").symlink_to(tmp_path / "outside")
    for path in ("../outside/x", "link/x"):
        with pytest.raises(Refused, match="out of the base"):
            make(top, {path: b"x"})
    assert not list((tmp_path / "outside").iterdir())


def test_without_an_identity_nothing_begins(top: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(os.environ["HOME"]) / ".gitconfig").unlink()
    with pytest.raises(Unavailable, match="who you are") as caught:
        make(top)
    assert "git config --global user.name" in caught.value.hint
    assert not (top / "new").exists()


def hook(top: Path, name: str, script: str) -> None:
    path = top / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_the_users_hook_sees_the_commit_and_its_refusal_undoes_it(top: Path, git: Git) -> None:
    hook(top, "pre-commit", "git diff --cached --name-only > .git/seen; echo no numbers please >&2; exit 1")
    before = git(top, "rev-parse", "HEAD")
    with pytest.raises(Refused, match="pre-commit hook refused") as caught:
        make(top, hooks=True)
    assert "no numbers please" in caught.value.where
    assert "new/b.md" in (top / ".git/seen").read_text(encoding="utf-8")
    assert git(top, "rev-parse", "HEAD") == before
    assert git(top, "status", "--porcelain") == ""
    make(top, hooks=False)
    assert_made(top, git)


def test_a_commit_msg_hook_may_word_the_message(top: Path, git: Git) -> None:
    hook(top, "commit-msg", 'echo "Ticket: 7" >> "$1"')
    make(top, hooks=True)
    assert git(top, "log", "-1", "--format=%B").endswith("Ticket: 7")


def test_a_repositorys_own_programs_never_run(top: Path, git: Git, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.editor", "core.pager", "gpg.program"):
        git(top, "config", name, str(trap))
    git(top, "config", "commit.gpgsign", "true")
    hook(top, "post-commit", str(trap))
    hook(top, "reference-transaction", str(trap))
    make(top)
    assert not (tmp_path / "sprung").exists()


def test_a_hooks_own_git_variables_lead_nowhere_else(top: Path, git: Git, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    git(tmp_path, "init", "--quiet", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / "index"))
    commit = make(top)
    monkeypatch.delenv("GIT_DIR", raising=False)
    monkeypatch.delenv("GIT_INDEX_FILE", raising=False)
    assert git(top, "rev-parse", "HEAD") == commit


SCRIPT = """
import sys
from pathlib import Path
from khms.store.commit import exclusive
from khms.store.repo import Repo
changes = {"new/deep/a.md": b"a\\n", "new/b.md": b"b\\n", "kept.txt": b"changed\\n", "gone.txt": None}
with exclusive(Repo(Path(sys.argv[1])), "test") as tx:
    tx.commit(changes, "A commit", what="test")
"""


def killed_at(top: Path, n: int) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(top)], env={**os.environ, "KHMS_KILL_AT": str(n)}, check=False
    )
    return done.returncode != 0


_KILLED: list[Path] = []


@pytest.fixture
def killed(top: Path, git: Git, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A repository for each point where the commit was killed, with one file staged by the user."""
    if not _KILLED:
        (top / "staged.txt").write_text("staged\n", encoding="utf-8")
        git(top, "add", "staged.txt")
        kept = tmp_path_factory.mktemp("killed")
        for n in range(1, 200):
            folder = kept / str(n)
            shutil.copytree(top, folder, symlinks=True)
            if not killed_at(folder, n):
                break
            _KILLED.append(folder)
    # Linked, not copied: a lock is known by its inode. All that is written afterwards goes through a rename.
    copies = ((folder, tmp_path / "kills" / folder.name) for folder in _KILLED)
    return [Path(shutil.copytree(old, new, symlinks=True, copy_function=os.link)) for old, new in copies]


def test_after_a_kill_at_any_moment_it_is_all_or_nothing(
    killed: list[Path], git: Git, told: Callable[[str], None]
) -> None:
    start = git(killed[0], "rev-parse", "HEAD")
    ended = {"undone": 0, "finished": 0}
    for folder in killed:
        foreign = subprocess.run(
            ["git", "commit", "--quiet", "-m", "foreign"], cwd=folder, capture_output=True, check=False
        )
        with exclusive(Repo(folder), "test") as tx:
            if tx.recovered:
                assert tx.recovered.kept == ()
                ended[tx.recovered.done] += 1
        assert pending(Repo(folder)) is None
        assert not (folder / ".git/index.lock").exists()
        subjects = git(folder, "log", "--format=%s").splitlines()
        made = "A commit" in subjects
        assert ("foreign" in subjects) == (foreign.returncode == 0)
        assert git(folder, "status", "--porcelain") == ("" if foreign.returncode == 0 else "A  staged.txt")
        if made:
            assert_made(folder, git)
        else:
            assert not (folder / "new").exists()
            assert (folder / "gone.txt").exists()
            assert git(folder, "merge-base", start, "HEAD") == start
    assert ended["undone"] and ended["finished"]
    told(f"one commit: {len(killed)} kill points, {ended}")


def test_a_third_content_is_kept_and_named(killed: list[Path], git: Git) -> None:
    kept = 0
    for folder in killed:
        intent = pending(Repo(folder))
        if intent is None or not intent.new or git(folder, "rev-parse", "HEAD") != intent.new:
            continue
        if (folder / "kept.txt").read_bytes() != b"kept\n":
            continue
        (folder / "kept.txt").unlink()
        (folder / "kept.txt").write_bytes(b"mine\n")
        with exclusive(Repo(folder), "test") as tx:
            assert tx.recovered is not None and tx.recovered.kept == ("kept.txt",)
        assert (folder / "kept.txt").read_bytes() == b"mine\n"
        assert git(folder, "show", "HEAD:kept.txt") == "changed"
        kept += 1
    assert kept


def test_a_lock_that_the_user_removed_is_made_good(killed: list[Path], git: Git) -> None:
    tried = 0
    for folder in killed:
        lock = folder / ".git" / "index.lock"
        if not lock.exists():
            continue
        lock.unlink()
        tried += 1
        with exclusive(Repo(folder), "test") as tx:
            assert tx.recovered is not None
        assert git(folder, "status", "--porcelain") == "A  staged.txt"
    assert tried


def test_a_commit_made_meanwhile_is_not_overwritten(killed: list[Path], git: Git) -> None:
    """The user removed the lock of a run whose branch had not moved, and committed."""
    for folder in killed:
        intent = pending(Repo(folder))
        if intent is None or not intent.new or git(folder, "rev-parse", "HEAD") == intent.new:
            continue
        (folder / ".git" / "index.lock").unlink()
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "mine")
        with exclusive(Repo(folder), "test") as tx:
            assert tx.recovered is not None and tx.recovered.done == "unknown"
        assert git(folder, "log", "-1", "--format=%s") == "mine"
        assert git(folder, "status", "--porcelain") == ""
        return
    raise AssertionError("no kill left a full intent before the branch moved")


def test_two_at_once_wait_for_each_other(top: Path, git: Git) -> None:
    script = SCRIPT.replace('"new/b.md"', "sys.argv[2]").replace('"gone.txt": None', '"kept.txt": b"x"')
    runs = [subprocess.Popen([sys.executable, "-c", script, str(top), f"new/{i}.md"]) for i in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert git(top, "rev-list", "--count", "HEAD") == "5"
    assert sorted(path.name for path in (top / "new").glob("*.md")) == ["0.md", "1.md", "2.md", "3.md"]
    assert git(top, "status", "--porcelain") == ""
