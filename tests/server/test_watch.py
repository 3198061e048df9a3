"""What a watch tells of, and that a look counts no longer than nothing was written."""

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from khms.config import load
from khms.index import current, manifest
from khms.recall.search import recall
from khms.server import watch
from khms.server.look import Look
from khms.server.watch import Watch
from khms.store.layout import Base

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of writes in this way")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("know/deep/a.md", "know/b.md", ".git/HEAD", "journal/day.md"):
        path = tmp_path / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words\n", encoding="utf-8")
    return tmp_path / "base"


@pytest.fixture
def own() -> Iterator[Watch]:
    made = Watch()
    yield made
    made.close()


def in_place(root: Path) -> None:
    """An edit that leaves the size, the times and the folder as they were."""
    path = root / "know/b.md"
    seen = path.stat()
    with path.open("r+b") as file:
        file.write(b"WORDS")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edit in place": in_place,
    "a new file deep down": lambda root: (root / "know/deep/c.md").write_text("new", encoding="utf-8"),
    "a file by rename": lambda root: (root / "journal/day.md").replace(root / "know/day.md"),
    "a file removed": lambda root: (root / "know/deep/a.md").unlink(),
    "a new folder": lambda root: (root / "know/wide").mkdir(),
    "a folder that was missing": lambda root: (root / "inbox").mkdir(),
    "the settings": lambda root: (root / "khms.toml").write_text("", encoding="utf-8"),
    "a mode": lambda root: (root / "know/b.md").chmod(0o600),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_write_is_told_once(tree: Path, own: Watch, change: str) -> None:
    assert own.over(tree, ("know", "journal", "inbox"))
    assert own.still()
    CHANGES[change](tree)
    assert not own.still()
    assert own.still()


def test_reading_and_what_lies_elsewhere_are_no_writes(tree: Path, own: Watch) -> None:
    assert own.over(tree, ("know", "journal"), never=(".git",))
    (tree / "know/b.md").read_text(encoding="utf-8")
    (tree / ".git/HEAD").write_text("ref: refs/heads/other\n", encoding="utf-8")
    assert list((tree / "know").iterdir()) and own.still()


def test_nothing_is_promised_of_links_nor_of_what_is_not_there(tree: Path, own: Watch, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert own.over(tree, ("know", "../notes"))
    assert not own.over(tree, ("know", "../missing"))
    (tree / "know/linked.md").symlink_to(tmp_path / "notes")
    assert not own.over(tree, ("know",))


def test_nothing_is_promised_of_very_many_folders(tree: Path, own: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST", 2)
    assert not own.over(tree, ("know",))


def test_nothing_is_promised_where_others_may_write(tree: Path, own: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "TOLD_OF", ("nfs",))
    assert not own.over(tree, ("know",))


@pytest.fixture
def looking(stocked: Base, monkeypatch: pytest.MonkeyPatch) -> Iterator[Look]:
    made = Look(stocked)
    monkeypatch.setattr(current, "_kept", None)
    monkeypatch.setattr(current, "_vouch", None)
    current.keep(made.vouch)
    made._refresh()
    yield made
    made.end()


def test_a_look_counts_until_something_is_written(looking: Look, stocked: Base) -> None:
    config = load(stocked.root)
    assert looking.vouch(stocked, config) is not None
    assert looking.vouch(Base(stocked.root / "elsewhere"), config) is None
    assert looking.vouch(stocked, {**config, "index.notes": True}) is None
    path = stocked.know / "K-00001.md"
    seen = path.stat()
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"binary", b"BINARY"))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert looking.vouch(stocked, config) is None
    assert looking._refresh() and looking.vouch(stocked, config) is not None


def test_git_moving_ends_it_too(looking: Look, stocked: Base, git: Callable[..., str]) -> None:
    config = load(stocked.root)
    git(stocked, "commit", "--quiet", "--allow-empty", "-m", "another")
    assert looking.vouch(stocked, config) is None


def test_an_edit_in_place_is_in_the_next_answer(looking: Look, stocked: Base) -> None:
    assert not recall(stocked, "quibblewick", refresh=True).hits
    path = stocked.know / "K-00001.md"
    with path.open("ab") as file:
        file.write(b"quibblewick\n")
    assert [hit.id for hit in recall(stocked, "quibblewick", refresh=True)] == ["K-00001"]


def test_no_git_is_asked_while_a_look_counts(looking: Look, stocked: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    from khms.index import sync

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the base was looked at")

    assert looking.vouch(stocked, load(stocked.root)) is not None
    monkeypatch.setattr(sync, "refresh", fail)
    assert next(hit.id for hit in recall(stocked, "checksum deploy", refresh=True)) == "K-00001"


def test_a_graph_over_many_vectors_is_built_beside_it_and_once(looking: Look, stocked: Base) -> None:
    if find_spec("usearch") is None:  # importing it here would be before onnxruntime
        pytest.skip("the extra khms[graph] is not installed")
    assert looking._builder is None
    with stocked.config.open("a", encoding="utf-8") as file:
        file.write("\n[recall]\nhnsw_from = 1\n")
    assert looking._refresh()
    builder = looking._builder
    assert builder is not None and builder.wait() == 0
    known = manifest.load(stocked.index)
    assert known and known.graph and known.vectors and known.graph.rows == known.vectors.rows
    assert looking._refresh() and looking._builder is builder
