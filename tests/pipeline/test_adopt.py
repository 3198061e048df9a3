"""Cards that are older than khms come in by one record; what is newer goes through the inbox."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.check import audit
from khms.check.lint import lint
from khms.errors import Refused, Unavailable
from khms.pipeline import adopt as adoption
from khms.pipeline.approve import approve
from khms.pipeline.ruling import Wish
from khms.pipeline.status import change
from khms.store.layout import Base
from khms.store.repo import Repo

Make = Callable[..., Path]
UNIT = "2026-03-05-nightly"


def adopt(base: Base) -> adoption.Adopted:
    return adoption.adopt(base, Repo(base.root), config.load(base.root))


def codes(base: Base) -> list[tuple[str, str]]:
    report = audit.whole(base, Repo(base.root))
    return [(one.finding.code, one.finding.path.rpartition("/")[2]) for one in report.troubles]


def let_in(base: Base) -> None:
    approve(base, Repo(base.root), config.load(base.root), UNIT, Wish(everything=True), lambda base, cards: {})


def test_older_cards_come_in_as_they_stand(base: Base, add_card: Make, commit: Any, git: Any) -> None:
    add_card(base, "K-00001", links={"contradicts": ["K-00002"]}, status="challenged")
    add_card(base, "K-00002", links={"refuted_by": ["K-00001"]}, status="refuted")
    add_card(base, "K-00003", status="superseded")
    before = commit(base)
    assert {code for code, _ in codes(base)} == {"KA001"}
    done = adopt(base)
    assert done.cards == ("K-00001", "K-00002", "K-00003")
    assert git(base, "diff", "--name-only", before, "HEAD") == f"memory/approvals/{done.record}.json"
    assert codes(base) == [] and "Khms-Reviewer: Ada Tester" in git(base, "log", "-1", "--format=%B")
    again = adopt(base)
    assert again.commit is None and again.cards == ()


def test_after_an_approval_the_cards_from_before_it_still_come_in(
    base: Base, add_card: Make, add_candidate: Make, commit: Any
) -> None:
    add_card(base, "K-00001")
    add_candidate(base)
    commit(base)
    let_in(base)
    assert adopt(base).cards == ("K-00001",) and codes(base) == []


def test_newer_and_changed_cards_are_named(base: Base, add_card: Make, add_candidate: Make, commit: Any) -> None:
    path = add_card(base, "K-00001")
    add_card(base, "K-00002")
    add_candidate(base)
    commit(base)
    let_in(base)
    add_card(base, "K-00009")
    path.write_text(path.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    head = commit(base)
    with pytest.raises(Refused, match="2 of 3 cards are newer") as caught:
        adopt(base)
    assert "K-00009.md: it came in after" in caught.value.where
    assert "K-00001.md: it changed after" in caught.value.where and "K-00002" not in caught.value.where
    assert Repo(base.root).head() == head


def test_cards_that_nobody_committed_are_refused(base: Base, add_card: Make) -> None:
    add_card(base, "K-00001")
    with pytest.raises(Refused, match="not committed"):
        adopt(base)


def test_what_is_no_card_is_named(base: Base, add_card: Make, write: Any, commit: Any) -> None:
    write(base, "memory/know/README.md", "# read me\n")
    write(base, "memory/know/K-00005.md", "---\nid: [\n")
    add_card(base, "K-00001")
    commit(base)
    with pytest.raises(Refused) as caught:
        adopt(base)
    assert "README is no card id" in caught.value.where and "K-00005.md: it cannot be read" in caught.value.where


def test_an_agent_adopts_nothing(base: Base, add_card: Make, commit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    add_card(base, "K-00001")
    commit(base)
    monkeypatch.setenv("CLAUDECODE", "1")
    with pytest.raises(Refused, match="a person approves"):
        adopt(base)


def test_a_shallow_clone_adopts_nothing(base: Base, add_card: Make, commit: Any, tmp_path: Path, git: Any) -> None:
    add_card(base, "K-00001")
    commit(base)
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{base.root}", "shallow")
    with pytest.raises(Unavailable, match="shallow"):
        adopt(Base((tmp_path / "shallow").resolve()))


def test_an_adopted_card_changes_like_any_other(base: Base, add_card: Make, commit: Any) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00002")
    commit(base)
    adopt(base)
    how = {"by": "K-00002", "why": "seen", "views": lambda base, cards: {}}
    change(base, Repo(base.root), config.load(base.root), "K-00001", "refuted", **how)  # type: ignore[arg-type]
    assert codes(base) == []
    path = base.know / "K-00002.md"
    path.write_text(path.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert codes(base) == [("KA002", "K-00002.md")]
    report = lint(base, config.load(base.root), Repo(base.root))
    assert [(f.code, f.severity) for f in report.findings if f.code == "KH010"] == [("KH010", "error")]


def test_the_real_older_base(shared: Callable[[str], Path], tmp_path: Path, git: Any) -> None:
    folder = Path(shutil.copytree(shared("real/khms-base"), tmp_path / "older"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "as it was")
    older = Base(folder.resolve(), named=True)
    found = codes(older)
    assert found and {code for code, _ in found} == {"KA001"}
    assert len(adopt(older).cards) == len(found) and codes(older) == []
    report = lint(older, config.load(older.root), Repo(older.root))
    assert {finding.severity for finding in report.findings} <= {"warning"}
