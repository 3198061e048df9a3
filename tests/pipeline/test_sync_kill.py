"""Sync, and an approval that shares, under SIGKILL at every writing primitive; then the same command again.

An ordinary run takes some of the moments, each time others; KHMS_SOAK takes all.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.config import load
from khms.pipeline.approve import approve
from khms.pipeline.ruling import Wish
from khms.pipeline.sync import sync
from khms.render import views
from khms.store import cards
from khms.store.layout import Base
from khms.store.repo import Repo

pytestmark = pytest.mark.slow
SOAK = bool(os.environ.get("KHMS_SOAK"))
Make = Callable[..., Path]
Git = Callable[..., str]


@pytest.fixture
def remote(base: Base, tmp_path: Path, add_card: Make, commit: Git, cloned: Callable[..., list[Base]]) -> Path:
    add_card(base, "K-00001")
    commit(base)
    cloned(base)
    return tmp_path / "remote.git"


@pytest.fixture
def bob(base: Base, remote: Path, cloned: Callable[..., list[Base]], propose: Callable[..., None]) -> Base:
    """A clone that does not know yet what another has published: K-00002."""
    ada, bob = cloned(base, "ada", "bob")
    propose(ada, "u.ada", "needle-ada")
    let_in(ada, "u.ada")
    sync(ada, Repo(ada.root), load(ada.root), views.for_tree)
    return bob


@pytest.fixture
def propose(add_candidate: Make, commit: Git) -> Callable[..., None]:
    def make(base: Base, unit: str, words: str) -> None:
        path = add_candidate(base, "C1", unit=unit, body=f"FIX: {words}\n")
        commit(base)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("Loose ground", "A loose ground"), encoding="utf-8")  # a reviewer's edit

    return make


def let_in(base: Base, unit: str) -> None:
    approve(base, Repo(base.root), load(base.root), unit, Wish(everything=True), views.for_base)


def copy_of(base: Base, remote: Path) -> Callable[[Path], None]:
    """Lays a clone into a folder, and its remote into that, so that each round meets both as they were."""

    def prepare(folder: Path) -> None:
        shutil.copytree(base.root, folder, symlinks=True, dirs_exist_ok=True)
        shutil.copytree(remote, folder / ".git/remote.git")
        config = folder / ".git/config"
        config.write_text(config.read_text().replace(str(remote), str(folder / ".git/remote.git")), encoding="utf-8")

    return prepare


def some(step: int) -> dict[str, int]:
    return {} if SOAK else {"step": step, "first": os.getpid() % step + 1}


def git_in(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr}"


def assert_shared(folder: Path, needles: dict[str, str]) -> dict[str, str]:
    """The remote has it, nothing is left half, and each needle stands in the one card that it belongs to."""
    assert git_in(folder, "rev-parse", "HEAD") == git_in(folder / ".git/remote.git", "rev-parse", "main")
    assert git_in(folder, "status", "--porcelain") == "" and "failed" not in git_in(folder, "fsck", "--strict")
    assert not (folder / ".git/index.lock").exists() and not (folder / ".git/khms/intent.json").exists()
    held = {path.stem: path.read_text(encoding="utf-8") for path in (folder / "memory/know").glob("*.md")}
    for words, card_id in needles.items():
        assert [name for name, text in held.items() if words in text] == [card_id], words
    approved = [card.id for record in cards.approvals(Base(folder)) for card in record.cards]
    assert sorted(approved) == sorted(needles.values())
    return held


def test_sync(
    bob: Base, remote: Path, propose: Callable[..., None], kill: ModuleType, told: Callable[[str], None]
) -> None:
    propose(bob, "u.bob", "needle-bob")
    let_in(bob, "u.bob")
    propose(bob, "u2.bob", "needle-more, see [[K-00002]]")
    let_in(bob, "u2.bob")

    def check(folder: Path) -> None:
        needles = {"needle-ada": "K-00002", "needle-bob": "K-00003", "needle-more": "K-00004"}
        assert "[[K-00003]]" in assert_shared(folder, needles)["K-00004"]

    count = kill.kill_points(copy_of(bob, remote), ["sync"], check, **some(6))
    told(f"sync: {count} kill points")


def test_approve(
    bob: Base, remote: Path, propose: Callable[..., None], kill: ModuleType, told: Callable[[str], None]
) -> None:
    propose(bob, "u.bob", "needle-bob")

    def check(folder: Path) -> None:
        assert_shared(folder, {"needle-ada": "K-00002", "needle-bob": "K-00003"})

    count = kill.kill_points(copy_of(bob, remote), ["approve", "u.bob", "--all"], check, **some(8))
    told(f"approve with a remote: {count} kill points")
