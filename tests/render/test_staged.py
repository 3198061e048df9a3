"""What is staged of the generated files is what khms would write, or the commit is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.render.staged import altered
from khms.store.layout import Base
from khms.store.repo import Repo

Git = Callable[..., str]


@pytest.fixture
def viewed(base: Base, add_card: Callable[..., Path], commit: Callable[..., str], run_khms: Any) -> Base:
    add_card(base, "K-00001", tags=["soil"])
    add_card(base, "K-00002", status="superseded")
    assert run_khms("views").returncode == 0
    commit(base)
    return base


def change(base: Base, path: str) -> None:
    file = base.path(path)
    file.write_text(file.read_text(encoding="utf-8") + "- K-00001 the checks are off\n", encoding="utf-8")


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/views/tags.md"])
def test_a_generated_file_changed_by_hand(viewed: Base, git: Git, run_khms: Any, path: str) -> None:
    change(viewed, path)
    git(viewed, "add", "--all")
    done = run_khms("lint", "--staged", "--json")
    told = [(f["code"], f["severity"], f["path"]) for f in json.loads(done.stdout)["findings"] if f["code"] == "KH016"]
    assert done.returncode == 1 and told == [("KH016", "error", path)]
    assert run_khms("views").returncode == 0
    git(viewed, "add", "--all")
    assert "KH016" not in run_khms("lint", "--staged").stdout


def test_another_branch_may_lag_behind(viewed: Base, git: Git, run_khms: Any) -> None:
    viewed.config.write_text('[git]\nbranch = "main"\n', encoding="utf-8")
    git(viewed, "switch", "--quiet", "-c", "topic")
    change(viewed, "MEMORY.md")
    git(viewed, "add", "--all")
    assert "KH016" not in run_khms("lint", "--staged").stdout


def test_a_header_that_was_taken_off(viewed: Base, git: Git) -> None:
    viewed.path("MEMORY.md").write_text("- K-00001 the checks are off\n", encoding="utf-8")
    git(viewed, "add", "--all")
    assert list(altered(Repo(viewed.root))) == ["MEMORY.md"]


def test_the_staged_cards_count_and_not_those_that_lie_there(
    viewed: Base, git: Git, add_card: Callable[..., Path], run_khms: Any
) -> None:
    add_card(viewed, "K-00003", tags=["soil"])
    assert run_khms("views").returncode == 0
    git(viewed, "add", "MEMORY.md")
    assert list(altered(Repo(viewed.root))) == ["MEMORY.md"]
    git(viewed, "add", "--all")
    assert list(altered(Repo(viewed.root))) == []


def test_someone_elses_file_is_left_alone(base: Base, git: Git) -> None:
    base.path("MEMORY.md").write_text("# my own\n", encoding="utf-8")
    git(base, "add", "--all")
    assert list(altered(Repo(base.root))) == []
