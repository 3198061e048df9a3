"""A branch brought to another commit: all or nothing, nothing of the user's lost, at every moment of a kill."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused
from khms.store.commit import exclusive, pending
from khms.store.repo import Repo

Git = Callable[..., str]
STATE = {
    "kept.txt": "kept\n",
    "gone.txt": "gone\n",
    "file": "a folder comes here\n",
    "folder/inner.txt": "a file comes here\n",
    "plain.sh": "#!/bin/sh\n",
    "mine.txt": "as it was\n",
}


def lay(folder: Path, state: dict[str, str]) -> None:
    for name, text in state.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def top(tmp_path: Path, git: Git) -> Path:
    """A repository whose branch `next` is one commit ahead of HEAD, in every way a file can differ."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "--quiet")
    lay(folder, STATE)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "start")
    git(folder, "switch", "--quiet", "-c", "next")
    for name in ("gone.txt", "file"):
        (folder / name).unlink()
    shutil.rmtree(folder / "folder")
    lay(folder, {"kept.txt": "changed\n", "file/inner.txt": "in\n", "folder": "a file\n", "new/deep/a.md": "a\n"})
    (folder / "plain.sh").chmod(0o755)
    (folder / "link").symlink_to("kept.txt")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "next")
    git(folder, "switch", "--quiet", "main")
    return folder


def move(folder: Path, where: str = "next") -> tuple[str, ...]:
    repo = Repo(folder)
    with exclusive(repo, "test") as tx:
        return tx.move(repo.text("rev-parse", where), what="test")


def assert_moved(folder: Path, git: Git) -> None:
    assert git(folder, "rev-parse", "HEAD") == git(folder, "rev-parse", "next")
    assert git(folder, "symbolic-ref", "--short", "HEAD") == "main"
    assert (folder / "kept.txt").read_text() == "changed\n" and not (folder / "gone.txt").exists()
    assert (folder / "file/inner.txt").read_text() == "in\n" and (folder / "folder").read_text() == "a file\n"
    assert (folder / "plain.sh").stat().st_mode & 0o100 and (folder / "link").readlink() == Path("kept.txt")
    assert not list(folder.rglob(".khms-tmp-*"))


def test_every_kind_of_change_and_back_again(top: Path, git: Git) -> None:
    start = git(top, "rev-parse", "HEAD")
    assert move(top) == ()
    assert_moved(top, git)
    assert git(top, "status", "--porcelain") == ""
    move(top, start)
    assert {name: (top / name).read_text() for name in STATE} == STATE
    assert not (top / "link").is_symlink() and not (top / "plain.sh").stat().st_mode & 0o100
    assert git(top, "status", "--porcelain") == "" and not (top / "new").exists()


def test_what_the_user_staged_and_changed_elsewhere_stays(top: Path, git: Git) -> None:
    lay(top, {"staged.txt": "staged\n", "mine.txt": "changed by me\n"})
    git(top, "add", "staged.txt")
    move(top)
    assert git(top, "status", "--porcelain") == "M mine.txt\nA  staged.txt"
    assert_moved(top, git)


@pytest.mark.parametrize(
    ("name", "text", "staged"),
    [
        ("kept.txt", "mine\n", False),
        ("kept.txt", "mine\n", True),
        ("gone.txt", "mine\n", False),
        ("new/deep/a.md", "mine\n", False),
        ("new/deep", "a file where a folder comes\n", False),
        ("folder/more.txt", "in a folder where a file comes\n", False),
        ("link", "no link\n", False),
    ],
)
def test_what_would_be_lost_refuses_before_anything_changes(
    top: Path, git: Git, name: str, text: str, staged: bool
) -> None:
    lay(top, {name: text})
    if staged:
        git(top, "add", name)
    before = git(top, "rev-parse", "HEAD"), git(top, "status", "--porcelain")
    with pytest.raises(Refused, match="stand in the way") as caught:
        move(top)
    assert name in caught.value.where
    assert (git(top, "rev-parse", "HEAD"), git(top, "status", "--porcelain")) == before
    assert (top / name).read_text() == text and pending(Repo(top)) is None
    with pytest.raises(Refused, match="stand in the way"), exclusive(Repo(top), "test") as tx:
        tx.demand_movable(git(top, "rev-parse", "next"))


def test_a_deleted_file_that_would_come_back_is_a_change_of_the_users(top: Path, git: Git) -> None:
    (top / "kept.txt").unlink()
    with pytest.raises(Refused, match="stand in the way"):
        move(top)


def test_the_very_bytes_that_come_are_no_hindrance(top: Path, git: Git) -> None:
    lay(top, {"kept.txt": "changed\n", "new/deep/a.md": "a\n"})
    move(top)
    assert_moved(top, git)
    assert git(top, "status", "--porcelain") == ""


def test_line_ends_alone_are_no_change(top: Path, git: Git) -> None:
    git(top, "config", "core.autocrlf", "true")
    (top / "kept.txt").write_bytes(b"kept\r\n")
    git(top, "add", "kept.txt")
    assert git(top, "status", "--porcelain") == ""
    move(top)
    assert git(top, "status", "--porcelain") == ""


def test_a_commit_that_names_the_git_folder_is_refused(top: Path, git: Git) -> None:
    """git itself makes no such tree; one can be written object by object."""
    blob = git(top, "hash-object", "-w", "kept.txt")
    tree = f"100644 blob {blob}\tconfig\n"
    made = subprocess.run(["git", "mktree"], cwd=top, input=tree, capture_output=True, encoding="utf-8", check=True)
    inner = f"040000 tree {made.stdout.strip()}\t.GIT\n"
    made = subprocess.run(["git", "mktree"], cwd=top, input=inner, capture_output=True, encoding="utf-8", check=True)
    commit = git(top, "commit-tree", made.stdout.strip(), "-p", "HEAD", "-m", "evil")
    with pytest.raises(Refused, match="would not check out"):
        move(top, commit)
    assert not (top / ".GIT").exists() or (top / ".GIT").samefile(top / ".git")


def test_an_unborn_branch_takes_the_first_commit(top: Path, git: Git, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "fresh")
    git(tmp_path / "fresh", "fetch", "--quiet", str(top), "next")
    move(tmp_path / "fresh", "FETCH_HEAD")
    assert git(tmp_path / "fresh", "status", "--porcelain") == ""
    assert (tmp_path / "fresh/kept.txt").read_text() == "changed\n"


def test_from_a_sub_folder_the_whole_repository_moves(top: Path, git: Git) -> None:
    inner = top / "base"
    inner.mkdir()
    move(inner)
    assert_moved(top, git)


SCRIPT = """
import sys
from pathlib import Path
from khms.store.commit import exclusive
from khms.store.repo import Repo
repo = Repo(Path(sys.argv[1]))
with exclusive(repo, "test") as tx:
    tx.move(repo.text("rev-parse", "next"), what="test")
"""


def test_after_a_kill_at_any_moment_it_is_all_or_nothing(
    top: Path, git: Git, tmp_path: Path, told: Callable[[str], None]
) -> None:
    lay(top, {"staged.txt": "staged\n", "mine.txt": "changed by me\n"})
    git(top, "add", "staged.txt")
    ended = {"undone": 0, "finished": 0, "nothing": 0}
    for n in range(1, 200):
        folder = tmp_path / f"kill{n}"
        shutil.copytree(top, folder, symlinks=True)
        env = {**os.environ, "KHMS_KILL_AT": str(n)}
        if subprocess.run([sys.executable, "-c", SCRIPT, str(folder)], env=env, check=False).returncode == 0:
            break
        foreign = subprocess.run(
            ["git", "commit", "--quiet", "-m", "foreign", "--allow-empty", "--only"],
            cwd=folder, capture_output=True, check=False,
        )  # fmt: skip
        with exclusive(Repo(folder), "test") as tx:
            ended[tx.recovered.done if tx.recovered else "nothing"] += 1
            assert tx.recovered is None or tx.recovered.kept == ()
        assert pending(Repo(folder)) is None and not (folder / ".git/index.lock").exists()
        assert git(folder, "status", "--porcelain") == "M mine.txt\nA  staged.txt"
        moved = git(folder, "merge-base", "next", "HEAD") == git(folder, "rev-parse", "next")
        if moved and foreign.returncode:
            assert_moved(folder, git)
        elif not moved:
            assert (folder / "gone.txt").exists() and not (folder / "new").exists()
            assert {name: (folder / name).read_text() for name in STATE if name != "mine.txt"} == {
                name: text for name, text in STATE.items() if name != "mine.txt"
            }
        shutil.rmtree(folder)
    assert ended["undone"] and ended["finished"]
    told(f"one move: {n - 1} kill points, {ended}")
