"""Which commit stands for a moment, and the base as it stood there."""

import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from khms.config import load
from khms.errors import No, Unavailable, Usage
from khms.index import past, sync
from khms.index.past import Past
from khms.recall.search import recall
from khms.store import gitdir
from khms.store.layout import Base
from khms.store.repo import Repo

Add = Callable[..., Path]
Git = Callable[..., str]
At = Callable[[str], str]


@pytest.fixture
def commit_at(git: Git, monkeypatch: pytest.MonkeyPatch) -> Callable[[Base, str], str]:
    """commit_at(base, "2026-03-04T10:00:00+00:00"): commits everything with that date."""

    def commit(base: Base, when: str) -> str:
        monkeypatch.setenv("GIT_COMMITTER_DATE", when)
        git(base, "add", "--all")
        git(base, "commit", "--quiet", "--allow-empty", "-m", when)
        monkeypatch.delenv("GIT_COMMITTER_DATE")
        return git(base, "rev-parse", "HEAD")

    return commit


@pytest.fixture
def grown(base: Base, add_card: Add, git: Git, commit_at: Callable[..., str]) -> tuple[Base, list[str]]:
    """A base whose only commits are of three days; the card K-00001 changes with each, and has a successor at last."""
    git(base, "checkout", "--quiet", "--orphan", "anew")
    git(base, "branch", "--quiet", "-D", "main")
    git(base, "branch", "--quiet", "-m", "main")
    add_card(base, "K-00001", title="Ask the gauge each second", body="lampdrift first\n")
    commits = [commit_at(base, "2026-03-01T10:00:00+00:00")]
    add_card(base, "K-00001", title="Ask the gauge each minute", body="lampdrift second\n", status="challenged")
    commits.append(commit_at(base, "2026-03-02T10:00:00+00:00"))
    (base.know / "K-00001.md").unlink()
    add_card(base, "K-00001", title="Ask the gauge each minute", body="lampdrift second\n", status="superseded")
    add_card(base, "K-00002", title="Let the gauge call", body="lampdrift third\n", links={"supersedes": "K-00001"})
    commits.append(commit_at(base, "2026-03-03T10:00:00+00:00"))
    return base, commits


def at(base: Base, text: str) -> Past:
    repo, config = Repo(base.root), load(base.root)
    return past.unfolded(base, repo, config, past.moment(repo, "main", text))


def found(then: Past, text: str = "lampdrift") -> list[tuple[str, str, str]]:
    answer = recall(then.base, text, config=then.config, refresh=True)
    return [(hit.id, hit.status, hit.snippet) for hit in answer]


@pytest.mark.parametrize(
    ("zone", "text", "number"),
    [
        ("UTC", "2026-03-01", 0),
        ("UTC", "2026-03-02", 1),
        ("UTC", "2026-03-02T09:59:59", 0),
        ("UTC", "2026-03-02T10:00:00", 1),
        ("UTC", "2026-03-02T10:00", 1),
        ("UTC", "2026-03-02 10:00", 1),
        ("UTC", "2026-03-02T11:00:00+01:00", 1),
        ("UTC", "2026-03-02T10:30:00+01:00", 0),
        ("UTC", "2026-03-02T10:00:00Z", 1),
        ("Asia/Tokyo", "2026-03-02T18:59", 0),
        ("Asia/Tokyo", "2026-03-02T19:00", 1),
        ("Pacific/Kiritimati", "2026-03-02", 0),  # its day ended at ten o'clock UTC, a second before
        ("Pacific/Kiritimati", "2026-03-03", 1),
        ("America/New_York", "2026-03-03", 2),
        ("UTC", "9999-12-31", 2),
    ],
)
def test_the_commit_of_a_date(
    grown: tuple[Base, list[str]], monkeypatch: pytest.MonkeyPatch, zone: str, text: str, number: int
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        when = past.moment(Repo(grown[0].root), "main", text)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert when.commit == grown[1][number]
    assert datetime.fromisoformat(when.date) == datetime.fromisoformat(f"2026-03-0{number + 1}T10:00:00+00:00")


def test_the_commit_by_name(grown: tuple[Base, list[str]], git: Git) -> None:
    base, commits = grown
    git(base, "tag", "-a", "-m", "a tag", "v1", commits[1])
    for text, number in ((commits[0], 0), (commits[1][:7], 1), ("HEAD~2", 0), ("v1", 1), ("main", 2)):
        assert past.moment(Repo(base.root), "main", text).commit == commits[number]


@pytest.mark.parametrize("text", ["", "soon", "2026-02-30", "2026-03-02T25:00", "--all", "-1", "HEAD~9", "20260302"])
def test_what_is_neither_date_nor_commit(grown: tuple[Base, list[str]], text: str) -> None:
    with pytest.raises(Usage):
        past.moment(Repo(grown[0].root), "main", text)


@pytest.mark.parametrize("text", ["2026-02-28", "1969-12-31", "0001-01-01"])
def test_before_the_first_commit(grown: tuple[Base, list[str]], text: str) -> None:
    with pytest.raises((No, Usage)) as caught:
        past.moment(Repo(grown[0].root), "main", text)
    assert text == "0001-01-01" or "2026-03-01T10:00:00+00:00" in caught.value.hint


def test_only_the_branchs_own_line_counts(
    grown: tuple[Base, list[str]], commit_at: Callable[..., str], git: Git
) -> None:
    """What a branch held before its merge was not in the base then, whatever date its commits carry."""
    base, commits = grown
    git(base, "switch", "--quiet", "-c", "side", commits[0])
    side = commit_at(base, "2026-03-02T20:00:00+00:00")
    git(base, "switch", "--quiet", "main")
    git(base, "merge", "--quiet", "--no-ff", "-m", "merge", "side")
    assert past.moment(Repo(base.root), "main", "2026-03-02").commit == commits[1] != side
    git(base, "switch", "--quiet", "side")
    assert past.moment(Repo(base.root), "main", "2026-03-02").commit == commits[1]  # the receiving branch, not this one


def test_the_base_as_it_was(grown: tuple[Base, list[str]]) -> None:
    base, commits = grown
    sync.refresh(base)
    before = {path: path.stat().st_mtime_ns for path in base.index.rglob("*") if path.is_file()}
    first = at(base, "2026-03-01")
    assert found(first) == [("K-00001", "active", "lampdrift first")]
    assert found(at(base, "2026-03-02")) == [("K-00001", "challenged", "lampdrift second")]
    last = at(base, "2026-03-03")
    assert found(last) == [("K-00002", "active", "lampdrift third")]
    archived = recall(last.base, "lampdrift second", config=last.config, include_fog=True, refresh=True)
    assert {hit.id: hit.path for hit in archived}["K-00001"] == "memory/archive/know/K-00001.md"
    assert first.moment.commit == commits[0]
    assert {path: path.stat().st_mtime_ns for path in base.index.rglob("*") if path.is_file()} == before


def test_words_and_vectors_are_those_of_the_ordinary_index(grown: tuple[Base, list[str]], git: Git) -> None:
    base, commits = grown
    then = at(base, commits[1])
    by_then = recall(then.base, "how often is the sensor read", config=then.config, refresh=True)
    git(base, "checkout", "--quiet", commits[1])
    now = recall(base, "how often is the sensor read", refresh=True)
    assert by_then.channel == now.channel == "hybrid"
    assert [hit.as_json() for hit in by_then] == [hit.as_json() for hit in now]


def test_a_file_that_nobody_committed_is_not_there(grown: tuple[Base, list[str]], add_card: Add) -> None:
    base, _ = grown
    add_card(base, "K-00009", body="lampdrift fourth\n")
    assert [hit[0] for hit in found(at(base, "HEAD"))] == ["K-00002"]


def test_a_base_below_the_top_and_its_included_folders(
    tmp_path: Path, write: Callable[..., Path], add_card: Add, commit: Callable[..., str], git: Git
) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    base = Base(project / ".memory", named=True)
    write(outside, "far.md", "lampdrift far away\n")
    write(project, "docs/near.md", "lampdrift in the docs\n")
    write(base, "khms.toml", f'[index.include]\ndocs = "../docs"\nfar = "{outside}"\n')
    add_card(base, "K-00001", body="lampdrift in a card\n")
    git(project, "init", "--quiet")
    commit(project)
    write(project, "docs/near.md", "something else\n")
    write(project, "docs/later.md", "lampdrift later\n")
    then = at(base, commit(project) + "~1")
    assert {hit[0] for hit in found(then)} == {"docs/near", "K-00001"}
    assert then.without == "without far, which this history does not hold"
    assert {hit[0] for hit in found(at(base, "HEAD"))} == {"docs/later", "K-00001"}


def test_notes_of_an_adopted_base(base: Base, write: Callable[..., Path], commit: Callable[..., str]) -> None:
    write(base, "khms.toml", "[index]\nnotes = true\n")
    write(base, "ideas/one.md", "lampdrift as a note\n")
    write(base, "README.md", "lampdrift above\n")
    old = commit(base)
    write(base, "ideas/one.md", "changed\n")
    commit(base)
    assert {hit[0] for hit in found(at(base, old))} == {"ideas/one", "README"}


def test_a_commit_from_before_the_base(
    tmp_path: Path, write: Callable[..., Path], commit: Callable[..., str], git: Git
) -> None:
    project = tmp_path / "project"
    write(project, "main.py", "pass\n")
    git(project, "init", "--quiet")
    old = commit(project)
    base = Base(project / ".memory", named=True)
    write(base, "khms.toml", "")
    commit(project)
    with pytest.raises(No, match="no base here yet"):
        at(base, old)


def test_a_shallow_clone_answers_what_it_can(grown: tuple[Base, list[str]], tmp_path: Path, git: Git) -> None:
    base, commits = grown
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{base.root}", "clone")
    clone = Base(tmp_path / "clone", named=True)
    for text in ("2026-03-02", commits[1]):
        with pytest.raises(Unavailable, match="shallow") as caught:
            at(clone, text)
        assert caught.value.exit_code == 4 and "unshallow" in caught.value.hint
    assert [hit[0] for hit in found(at(clone, "2026-03-03"))] == ["K-00002"]


def test_a_clone_without_the_old_files_says_so(grown: tuple[Base, list[str]], git: Git) -> None:
    base, commits = grown
    blob = git(base, "rev-parse", f"{commits[0]}:memory/know/K-00001.md")
    (base.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(Unavailable, match="does not hold the files"):
        at(base, commits[0])
    assert not list((base.local / "past").iterdir())


def test_links_of_an_old_commit_lead_nowhere(
    base: Base, tmp_path: Path, write: Callable[..., Path], commit: Callable[..., str]
) -> None:
    secret = write(tmp_path, "secret.md", "lampdrift secret\n")
    (base.know / "K-00001.md").symlink_to(secret)
    (base.root / "memory" / "lessons").symlink_to(tmp_path)
    then = at(base, commit(base))
    assert found(then, "lampdrift secret") == []
    assert not [path for path in then.base.root.rglob("*") if path.is_symlink()]


def test_it_is_in_no_repository(grown: tuple[Base, list[str]], git: Git) -> None:
    base, _ = grown
    then = at(base, "HEAD")
    assert gitdir.find(then.base.root) is None
    assert git(base, "status", "--porcelain") == ""


def test_few_are_kept_and_none_that_is_in_use(grown: tuple[Base, list[str]], commit_at: Callable[..., str]) -> None:
    base, _ = grown
    for day in range(4, 10):
        commit_at(base, f"2026-03-0{day}T10:00:00+00:00")
        at(base, "HEAD")
    folder = base.local / past.FOLDER
    assert len(list(folder.iterdir())) == 6
    ages = {path: time.time() - 1000 + number for number, path in enumerate(sorted(folder.iterdir()))}
    for path, age in ages.items():
        os.utime(path, (age, age))
    at(base, "2026-03-01")
    assert set(folder.iterdir()) > set(list(ages)[-past.KEPT :])
    assert len(list(folder.iterdir())) == past.KEPT + 1


def test_settings_of_today_decide(grown: tuple[Base, list[str]], write: Callable[..., Path]) -> None:
    base, _ = grown
    write(base, "khms.toml", '[index]\nlanguage = "german"\n')
    then = at(base, "2026-03-01")
    assert found(then)[0][0] == "K-00001" and then.config["index.language"] == "german"
    assert datetime.now() - datetime.fromtimestamp(then.base.root.stat().st_mtime) < timedelta(hours=1)
