"""The folder `.khms` is made so that git never sees it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Unavailable
from khms.store import local
from khms.store.layout import Base


def test_it_is_made_once_and_git_does_not_see_it(base: Base, git: Callable[..., str]) -> None:
    (base.root / ".gitignore").unlink()
    git(base, "commit", "--quiet", "-am", "no ignore file")
    local.make(base)
    assert (base.local / ".gitignore").read_bytes() == b"*\n"
    (base.local / "state").mkdir()
    (base.local / "state" / "x").write_bytes(b"")
    assert git(base, "status", "--porcelain", "--untracked-files=all") == ""
    (base.local / ".gitignore").write_bytes(b"the owner's")
    local.make(base)
    assert (base.local / ".gitignore").read_bytes() == b"the owner's"


def test_a_file_in_its_place_is_an_error(base: Base, write: Callable[..., Path]) -> None:
    write(base, ".khms", "a file")
    with pytest.raises(Unavailable):
        local.make(base)
