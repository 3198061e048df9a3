"""A base's own ground: no links, no other repositories, no files that are cards to others only, no second base."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.check import ground
from khms.index import sources
from khms.store import cards
from khms.store.cards import card_paths
from khms.store.layout import Base, is_card_file, seems_card

Git = Callable[..., str]


def link(root: Path, path: str, git: Git) -> None:
    """A link into another folder of the repository, where what stood there is moved to."""
    place = root / path
    aside = root / "stuff"
    if os.path.lexists(place):
        place.rename(aside)
    else:
        aside.mkdir(exist_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(os.path.relpath(aside, place.parent))


def submodule(root: Path, path: str, git: Git) -> None:
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{git(root, 'rev-parse', 'HEAD')},{path}")


def nested(root: Path, path: str, git: Git) -> None:
    (root / path).mkdir(parents=True)
    git(root / path, "init", "--quiet")
    (root / path / "K-00009.md").write_text("x", encoding="utf-8")
    git(root / path, "add", "--all")
    git(root / path, "commit", "--quiet", "-m", "x")


LINKS = (
    "memory/archive/know",
    "memory/archive",
    "memory/archive/other",
    "memory/know/sub",
    "memory/know/K-00009.md",
    "memory/approvals/01JDXKQZ8V7M3N5P9R2T4W6Y99.json",
    "memory/inbox/2026-03-09-x",
    "memory/know",
    "khms.toml",
)
ODD = [(link, path) for path in LINKS] + [
    (submodule, "memory/know/sub"),
    (submodule, "memory/views/sub"),
    (nested, "memory/know/sub"),
    (nested, "memory/inbox/sub"),
]


@pytest.mark.parametrize(("make", "path"), ODD, ids=[f"{make.__name__} {path}" for make, path in ODD])
def test_only_plain_files_and_real_folders(
    reviewed: Any, git: Git, report: Callable[..., Any], make: Callable[[Path, str, Git], None], path: str
) -> None:
    old = reviewed.head()
    make(reviewed.base.root, path, git)
    if make is not submodule:
        told = [one for one in reviewed.whole().troubles if one.finding.code == "KA010"]
        assert [one.finding.path for one in told] == [path] and told[0].uncommitted
        assert path in {f.path for f in report().findings if f.severity == "error"}
        git(reviewed.base, "add", "--all")
    assert path in {f.path for f in report(staged=True).findings if f.severity == "error"}
    from khms.check import audit_change

    staged = audit_change.staged(reviewed.base, reviewed.repo)
    git(reviewed.base, "commit", "--quiet", "-m", "x")
    for told in (staged, reviewed.between(old), reviewed.whole()):
        assert ("KA010", path) in [(one.finding.code, one.finding.path) for one in told.troubles]


def test_a_card_whose_mode_is_that_of_a_link(reviewed: Any, git: Git) -> None:
    path = "memory/know/K-00001.md"
    blob = git(reviewed.base, "rev-parse", f"HEAD:{path}")
    git(reviewed.base, "update-index", "--cacheinfo", f"120000,{blob},{path}")
    git(reviewed.base, "commit", "--quiet", "-m", "x")
    for told in (reviewed.between("HEAD~1"), reviewed.whole()):
        assert ("KA010", path) in [(one.finding.code, one.finding.path) for one in told.troubles]


def test_plain_files_pass(reviewed: Any, git: Git) -> None:
    (reviewed.base.know / "K-00001.md").chmod(0o755)
    reviewed.commit()
    git(reviewed.base, "update-index", "--add", "--cacheinfo", f"160000,{reviewed.head()},vendor/other")
    git(reviewed.base, "commit", "--quiet", "-m", "a submodule of the project's")
    assert not reviewed.whole().troubles and not reviewed.between("HEAD~2").troubles


@pytest.mark.parametrize(
    "path", ["memory/know/K-00009.MD", "memory/know/sub/K-00009.Md", "memory/know/a.markdown", "Memory/Know/K-00009.md"]
)
def test_one_rule_for_what_a_card_is(
    reviewed: Any, report: Callable[..., Any], path: str, add_card: Callable[..., Path]
) -> None:
    place = reviewed.base.path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    add_card(reviewed.base, "K-00009").rename(place)
    old = reviewed.head()
    assert seems_card(path) and not is_card_file(path)
    assert sources.place(sources.Rules(notes=False), path) is None
    assert path not in list(card_paths(reviewed.base))
    assert path in {f.path for f in report().findings if f.code == "KH002" and f.severity == "error"}
    if path.startswith("memory/"):
        assert ("KA001", path) in [(one.finding.code, one.finding.path) for one in reviewed.whole().troubles]
    staged = reviewed.staged()
    reviewed.commit()
    for told in (staged, reviewed.between(old)):
        assert ("KA001", path) in [(one.finding.code, one.finding.path) for one in told.troubles]


def test_the_shelf_follows_no_link_and_enters_no_other_repository(
    base: Base, git: Git, add_card: Callable[..., Path]
) -> None:
    add_card(base, "K-00001")
    nested(base.root, "memory/know/sub", git)
    (base.know / "K-00002.md").symlink_to("K-00001.md")
    held = cards.shelf(base)
    assert list(held.cards) == ["K-00001"] and [one.path for one in held.unreadable] == ["memory/know/K-00002.md"]
    assert cards.find(base, "K-00002") is None


@pytest.mark.parametrize("path", ["memory/know", "memory/archive", "memory/archive/know", "memory"])
def test_a_folder_of_cards_that_is_not_the_bases_own_is_refused(base: Base, git: Git, path: str) -> None:
    from khms.errors import Refused

    link(base.root, path, git)
    with pytest.raises(Refused, match="symbolic link"):
        list(card_paths(base))
    base.path(path).unlink()
    (base.root / "stuff").rename(base.path(path))
    git(base.path(path), "init", "--quiet")
    with pytest.raises(Refused, match="another git repository"):
        list(card_paths(base))
    assert [p for p, _ in ground.on_disk(base)] == [path]


@pytest.mark.parametrize("place", ["", "src/", "a/b/"])
@pytest.mark.parametrize("name", ["khms.toml", "KHMS.toml", "memory/know/K-00001.md"])
def test_a_second_base_beside_a_guarded_one(
    tmp_path: Path, git: Git, write: Callable[..., Path], reviewed_class: Any, place: str, name: str
) -> None:
    inner = tmp_path / "project/.memory"
    write(inner, "khms.toml", "")
    git(tmp_path / "project", "init", "--quiet")
    write(inner, "journal/2026-03-04.md", "# 2026-03-04\n\nMARK[solved] frames failed because a ground was loose\n")
    held = reviewed_class(Base(inner), git)
    held.commit()
    write(tmp_path / "project", "before/khms.toml", "")
    held.git(tmp_path / "project", "add", "--all")
    assert not held.staged().troubles, "nothing is guarded yet"
    held.propose("2026-03-05-nightly", "C1")
    held.approve("2026-03-05-nightly")
    old = held.head()
    write(tmp_path / "project", place + name, "")
    write(tmp_path / "project", "before/memory/know/notes.txt", "")
    git(tmp_path / "project", "add", "--all")
    staged = held.staged()
    git(tmp_path / "project", "commit", "--quiet", "-m", "x")
    for told in (staged, held.between(old)):
        assert [(one.finding.code, one.finding.path) for one in told.troubles] == [("KA008", f"../{place}{name}")]
    assert not held.between("HEAD", "HEAD").troubles
    if name == "khms.toml":  # a job that takes the nearest base would ask the second one about itself
        from khms.check import audit_change

        (told,) = audit_change.between(held.repo, place, old, held.head()).troubles
        assert (told.finding.code, told.finding.path) == ("KA008", "khms.toml")
