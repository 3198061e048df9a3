import os
from pathlib import Path

import pytest

from khms.store import tracked
from khms.store.layout import Base
from khms.store.repo import Repo


def test_the_listing_is_what_git_tracks_or_would_add(base, write) -> None:
    write(base, ".gitignore", ".khms/\n*.log\n")
    write(base, "new.md", "x")
    write(base, "noise.log", "x")
    write(base, ".khms/state/y.md", "x")
    write(base, "memory/know/.khms-tmp-1-K-00001.md", "half")
    base.path("khms.toml").unlink()
    listed = tracked.listing(base, Repo(base.root))
    assert listed == [".gitignore", "journal/2026-03-04.md", "khms.toml", "new.md"]
    assert tracked.entry(base, "khms.toml") is None
    without_git = tracked.listing(base, None)
    assert without_git == [".gitignore", "journal/2026-03-04.md", "new.md", "noise.log"]


def test_a_listing_stays_below_the_base(tmp_path, write, git) -> None:
    git(tmp_path, "init", "--quiet")
    write(tmp_path, "outer.md", "x")
    write(tmp_path, ".memory/journal/ünd \n.md", "x")
    inner = Base(tmp_path / ".memory")
    assert tracked.listing(inner, Repo(inner.root)) == ["journal/ünd \n.md"]


def test_an_entry_is_the_bytes_and_never_what_a_link_points_at(base, write) -> None:
    write(base, "a.md", b"\xef\xbb\xbfx\r\n")
    (base.root / "link.md").symlink_to("a.md")
    (base.root / "folder").mkdir()
    os.mkfifo(base.root / "pipe")
    assert tracked.entry(base, "a.md") == tracked.Entry("a.md", b"\xef\xbb\xbfx\r\n", 6)
    assert tracked.entry(base, "link.md") == tracked.Entry("link.md", link="a.md")
    for absent in ("none.md", "a.md/below.md", "folder", "pipe"):
        assert tracked.entry(base, absent) is None


def test_a_huge_file_is_not_read(base, write, monkeypatch) -> None:
    monkeypatch.setattr(tracked, "LARGEST", 3)
    write(base, "big.bin", "1234")
    entry = tracked.entry(base, "big.bin")
    assert entry is not None and entry.data == b"" and entry.size == 4 and entry.problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_says_so(base, write) -> None:
    write(base, "a.md", "x").chmod(0)
    entry = tracked.entry(base, "a.md")
    assert entry is not None and entry.problem


def test_what_is_staged(base, write, git) -> None:
    write(base, "khms.toml", "[lint]\n")
    write(base, "new ü\n.md", b"one\0two\n")
    write(base, "empty.md", "")
    (base.root / "link.md").symlink_to("../x")
    base.path("journal/2026-03-04.md").unlink()
    git(base, "add", "--all")
    write(base, "khms.toml", "later")
    write(base, "unstaged.md", "x")
    staged = {entry.path: entry for entry in tracked.staged(Repo(base.root))}
    assert staged == {
        "empty.md": tracked.Entry("empty.md"),
        "khms.toml": tracked.Entry("khms.toml", b"[lint]\n", 7),
        "link.md": tracked.Entry("link.md", link="../x"),
        "new ü\n.md": tracked.Entry("new ü\n.md", b"one\0two\n", 8),
    }
    names = tracked.staged_names(Repo(base.root), "journal")
    assert names == []


def test_the_staging_area_of_a_hook(base, write, git, tmp_path) -> None:
    """`git commit FILE` gives its hook an index of its own."""
    own = tmp_path / "own-index"
    write(base, "a.md", "x")
    write(base, "b.md", "x")
    git(base, "add", "a.md")
    own.write_bytes((base.root / ".git" / "index").read_bytes())
    git(base, "add", "b.md")
    assert [entry.path for entry in tracked.staged(Repo(base.root), str(own))] == ["a.md"]
    assert [entry.path for entry in tracked.staged(Repo(base.root))] == ["a.md", "b.md"]


def test_names_of_folders_that_are_not_there(base: Base, write) -> None:
    write(base, "memory/know/sub/K-00001.md", "x")
    assert tracked.names(base, ("memory/know", "memory/none")) == ["memory/know/sub/K-00001.md"]
    assert Path(base.root / "memory/know/sub/K-00001.md").is_file()
