"""Reading base files: only regular ones, never a wait, never out of the base."""

import os
from pathlib import Path

import pytest

from khms.errors import Refused
from khms.store import files


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", "folder", "loop", "missing"):
        with pytest.raises(OSError):
            files.read(tmp_path / name)


def test_a_link_is_followed_inside_the_base_only(tmp_path: Path) -> None:
    root = tmp_path / "base"
    root.mkdir()
    (root / "a.md").write_bytes(b"a")
    (tmp_path / "outside.md").write_bytes(b"secret")
    (root / "in.md").symlink_to("a.md")
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (root / "loop.md").symlink_to("loop.md")
    assert files.read_inside(root, "a.md") == files.read_inside(root, "in.md") == b"a"
    for name in ("out.md", "loop.md"):
        with pytest.raises(OSError, match="out of the base"):
            files.read_inside(root, name)
    with pytest.raises(Refused):
        files.inside(root, root / "loop.md")


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "", "nul", b"\xff"])
def test_json_that_cannot_be_read_is_one_kind_of_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        files.parse_json(text)
