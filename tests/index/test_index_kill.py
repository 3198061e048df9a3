"""SIGKILL after every writing primitive of `khms index`; then it is run again, and is whole."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from khms.index import current, sync
from khms.store.layout import Base


def _prepare(text: Callable[..., Path], commit: Callable[..., str], folder: Path, *, index: bool) -> None:
    base = Base(folder)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    (folder / "khms.toml").write_text("", encoding="utf-8")
    (folder / ".gitignore").write_text(".khms/\n", encoding="utf-8")
    for number in (1, 2, 3):
        text(base, f"K-{number:05d}")
    commit(base)
    if index:
        sync.refresh(base)
        text(base, "K-00001", body="edited\n")
        text(base, "K-00004")
        (base.know / "K-00002.md").unlink()


def _held(folder: Path) -> list[str]:
    reader, _ = current.opened(Base(folder))
    return sorted(document.id for document in reader.everything())


def test_a_first_build(kill: ModuleType, add_card: Callable[..., Path], commit: Callable[..., str]) -> None:
    def check(folder: Path) -> None:
        assert _held(folder) == ["K-00001", "K-00002", "K-00003"]
        assert sync.verify(Base(folder)) == ""

    def prepare(folder: Path) -> None:
        _prepare(add_card, commit, folder, index=False)

    kill.kill_points(prepare, ["index"], check, twice=True)


def test_a_refresh(kill: ModuleType, add_card: Callable[..., Path], commit: Callable[..., str]) -> None:
    def check(folder: Path) -> None:
        assert _held(folder) == ["K-00001", "K-00003", "K-00004"]
        assert sync.verify(Base(folder)) == ""

    def between(folder: Path) -> None:
        assert {"K-00001", "K-00003"} <= set(_held(folder)), "readers have an index even then"

    def prepare(folder: Path) -> None:
        _prepare(add_card, commit, folder, index=True)

    kill.kill_points(prepare, ["index"], check, between, twice=True)
