"""A hook answers from the base that its user meant, and from no stranger's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import user_folder
from khms.errors import Refused, Unavailable
from khms.hooks import places
from khms.store import trust
from khms.store.layout import Base
from khms.store.repo import Repo

Write = Callable[..., Path]


@pytest.fixture
def own(tmp_path: Path, write: Write) -> Base:
    """The user's own base, by their configuration."""
    root = tmp_path / "own"
    write(root, "khms.toml", "[hooks]\ncards = 1\n")
    write(user_folder(), "config.toml", f'[base]\ndefault = "{root}"\n')
    return Base(root)


def test_the_one_that_is_named_comes_first(base: Base, own: Base) -> None:
    place = places.choose(str(own.root), {"KHMS_ROOT": str(base.root)})
    assert (place.base, place.passed_over) == (base, None)


def test_a_name_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        places.choose("/", {"KHMS_ROOT": str(tmp_path / "none")})


def test_a_base_that_was_found_needs_trust(base: Base, write: Write) -> None:
    inside = base.root / "memory" / "know"
    place = places.choose(str(inside), {"KHMS_ROOT": ""})
    assert place.base is None and place.passed_over is not None and place.why == trust.UNKNOWN
    trust.record(base, Repo(base.root))
    assert places.choose(str(inside), {}).base == Base(base.root)
    write(base, "khms.toml", "[hooks]\ncards = 1\n")
    assert places.choose(str(inside), {}).config["hooks.cards"] == 1, "a figure needs no trust"
    write(base, "khms.toml", '[nightly]\nproposer = "evil"\n')
    assert places.choose(str(inside), {}).why == trust.CHANGED


def test_without_trust_the_users_own_base_answers(base: Base, own: Base) -> None:
    place = places.choose(str(base.root), {})
    assert place.base is not None and place.base.root == own.root
    assert place.passed_over is not None and place.passed_over.root == base.root
    assert place.config["hooks.cards"] == 1


def test_the_users_own_base_is_trusted_where_it_is_found_too(own: Base) -> None:
    place = places.choose(str(own.root), {})
    assert place.base is not None and place.base.root == own.root and place.passed_over is None


@pytest.mark.parametrize("cwd", ["", "relative", "/no/such/folder", "a\0b", "/a\0b", "/" + "x" * 100_000, "\ud800"])
def test_a_folder_that_is_none_leads_to_the_users_own_base(own: Base, cwd: str) -> None:
    place = places.choose(cwd, {})
    assert place.base is not None and place.base.root == own.root


def test_no_base_at_all(tmp_path: Path) -> None:
    place = places.choose(str(tmp_path), {})
    assert (place.base, place.passed_over, place.why) == (None, None, "")
    assert place.config["hooks.cards"] == 2


def test_a_configuration_that_cannot_be_read_is_an_error(base: Base, write: Write) -> None:
    trust.record(base, Repo(base.root))
    write(base, "khms.toml", "[hooks\n")
    with pytest.raises(Refused):
        places.choose(str(base.root), {})


def test_the_folder_memory_of_a_project_is_its_base(tmp_path: Path, write: Write) -> None:
    write(tmp_path, "project/.memory/khms.toml", "")
    (tmp_path / "project" / "src").mkdir()
    place = places.choose(str(tmp_path / "project" / "src"), {})
    assert place.passed_over is not None and place.passed_over.root == tmp_path / "project" / ".memory"
