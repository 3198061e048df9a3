"""`khms recall --at` and `khms show --at` as a person and a program see them."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.cli.redact import _forget
from khms.cli.session import Session
from khms.config import load
from khms.pipeline import gc
from khms.store.layout import Base
from khms.store.repo import Repo

Run = Callable[..., "subprocess.CompletedProcess[str]"]
DATE = "2030-05-05T12:00:00+02:00"


@pytest.fixture
def commits(
    base: Base, add_card: Callable[..., Path], commit: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Two commits of the base: K-00001 as it came in, and refuted by K-00002."""
    monkeypatch.setenv("GIT_COMMITTER_DATE", DATE)
    add_card(base, "K-00001", title="The valve needs 4 bar", body="lampdrift: four bar\n")
    first = commit(base)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2030-05-07T12:00:00+02:00")
    add_card(base, "K-00001", title="The valve needs 4 bar", body="lampdrift: four bar\n", status="refuted")
    add_card(base, "K-00002", title="It was the gauge", body="lampdrift gauge\n", links={"contradicts": ["K-00001"]})
    second = commit(base)
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    return [first, second]


def test_what_a_person_sees(base: Base, commits: list[str], run_khms: Run) -> None:
    done = run_khms("recall", "--at", "2030-05-06", "lampdrift")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"as of {DATE}, commit {commits[0][:12]}",
        " 1  K-00001  The valve needs 4 bar",
        "    memory/know/K-00001.md:19",
        "    | lampdrift: four bar",
    ]
    now = run_khms("recall", "--at", "HEAD", "lampdrift")
    assert "[REFUTED]" in now.stdout and "K-00002" in now.stdout
    shown = run_khms("show", "K-00001", "--at", "2030-05-06")
    assert shown.stdout.splitlines()[0] == f"as of {DATE}, commit {commits[0][:12]}"
    assert "active" in shown.stdout and "K-00002" not in shown.stdout
    assert "refuted" in run_khms("show", "K-00001").stdout


def test_what_a_program_sees(base: Base, commits: list[str], run_khms: Run) -> None:
    at = {"commit": commits[0], "date": DATE}
    found = json.loads(run_khms("recall", "--at", commits[0], "lampdrift", "--json").stdout)
    assert found["at"] == at and [hit["status"] for hit in found["hits"]] == ["active"]
    shown = json.loads(run_khms("show", "K-00001", "--at", "2030-05-06", "--json").stdout)
    assert shown["at"] == at and shown["meta"]["status"] == "active" and shown["named_by"] == []
    assert "at" not in json.loads(run_khms("recall", "lampdrift", "--json").stdout)
    missing = run_khms("show", "K-00002", "--at", commits[0], "--json")
    assert missing.returncode == 1 and json.loads(missing.stdout) == {
        "schema": "khms.show/1",
        "id": "K-00002",
        "found": False,
        "at": at,
    }


def test_before_the_first_commit_a_program_gets_its_document(base: Base, commits: list[str], run_khms: Run) -> None:
    done = run_khms("recall", "--at", "2020-01-01", "lampdrift", "--json")
    found = json.loads(done.stdout)
    whole = json.loads(run_khms("recall", "--at", "2030-05-06", "lampdrift", "--json").stdout)
    assert done.returncode == 1 and found.keys() == whole.keys()
    assert (found["query"], found["hits"], found["at"]) == ("lampdrift", [], None)
    assert found["note"] == "the base is younger than 2020-01-01" and found["note"] in done.stderr
    done = run_khms("show", "--at", "2020-01-01", "K-00001", "--json")
    answer = {"schema": "khms.show/1", "id": "K-00001", "found": False, "at": None}
    assert (done.returncode, json.loads(done.stdout)) == (1, answer)


def test_a_base_that_cannot_be_written_is_answered_for(base: Base, commits: list[str], tmp_path: Path) -> None:
    """From a folder of the process's own, which goes with it."""
    bare = [] if os.geteuid() else ["setpriv", "--bounding-set", "-dac_override"]  # root may write anywhere
    if bare and shutil.which(bare[0]) is None:
        pytest.skip("runs as root, and setpriv is not there to give up its rights")
    (aside := tmp_path / "aside").mkdir()
    subprocess.run(["chmod", "-R", "a-w", str(base.root)], check=True)
    before = sorted(base.root.rglob("*"))
    try:
        for words in (["recall", "--at", commits[0], "lampdrift"], ["show", "--at", "2030-05-06", "K-00001"]):
            done = subprocess.run(
                [*bare, sys.executable, "-m", "khms", *words],
                cwd=base.root,
                env={**os.environ, "TMPDIR": str(aside)},
                capture_output=True,
                encoding="utf-8",
                timeout=120,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, "") and "The valve needs 4 bar" in done.stdout
        assert sorted(base.root.rglob("*")) == before and list(aside.iterdir()) == []
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(base.root)], check=True)


def test_nothing_on_record_then(base: Base, commits: list[str], run_khms: Run) -> None:
    done = run_khms("recall", "--at", "2030-05-06", "who was it, the gauge")
    assert (
        done.returncode == 1 and done.stdout.startswith(f"as of {DATE}, commit") and "nothing on record" in done.stdout
    )
    done = run_khms("recall", "--at", "2030-05-06", "ground was loose", "--kind", "journal")
    command = next(line for line in done.stdout.splitlines() if "khms recall" in line).partition("khms ")[2]
    assert command == "recall --unreviewed --kind journal --at 2030-05-06 'ground was loose'"


@pytest.mark.parametrize(
    ("at", "status", "word"),
    [("2020-01-01", 1, "younger"), ("yesterday", 2, "neither a date nor a commit"), ("2030-13-01", 2, "neither")],
)
def test_what_cannot_be_answered(
    base: Base, commits: list[str], run_khms: Run, at: str, status: int, word: str
) -> None:
    for words in (["recall", "lampdrift"], ["show", "K-00001"]):
        done = run_khms(*words, "--at", at)
        assert done.returncode == status and word in done.stderr and not done.stdout


def test_a_shallow_clone_and_no_git_at_all(base: Base, commits: list[str], tmp_path: Path, run_khms: Run) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{base.root}", str(clone)], check=True)
    done = run_khms("recall", "--at", "2030-05-06", "lampdrift", cwd=clone)
    assert done.returncode == 4 and "shallow" in done.stderr and "git fetch --unshallow" in done.stderr
    (base.root / ".git").rename(tmp_path / "git")
    done = run_khms("recall", "--at", "2030-05-06", "lampdrift")
    assert done.returncode == 4 and "no git repository" in done.stderr


def test_a_rewritten_history_is_told_by_its_own_commits(
    base: Base, commits: list[str], run_khms: Run, git: Callable[..., str]
) -> None:
    """What was cleared away can be asked for again as long as git holds it."""
    git(base, "reset", "--quiet", "--hard", commits[0])
    assert (
        json.loads(run_khms("recall", "--at", "2030-05-08", "lampdrift", "--json").stdout)["at"]["commit"] == commits[0]
    )
    assert json.loads(run_khms("show", "K-00002", "--at", commits[1], "--json").stdout)["id"] == "K-00002"


def test_gc_removes_what_was_written_out(base: Base, commits: list[str], run_khms: Run) -> None:
    assert run_khms("recall", "--at", commits[0], "lampdrift").returncode == 0
    (place,) = (base.local / "past").iterdir()
    sweep = [one.name for one in gc.collect(base, Repo(base.root), load(base.root)).gone]
    assert sweep == [] and place.is_dir()  # somebody may be reading it
    before = time.time() - 3600
    os.utime(place, (before, before))
    sweep = [one.name for one in gc.collect(base, Repo(base.root), load(base.root)).gone]
    assert sweep == [base.relative(place)] and not place.exists()


def test_words_that_were_taken_out_do_not_linger_there(base: Base, commits: list[str], run_khms: Run) -> None:
    assert run_khms("show", "K-00001", "--at", commits[0]).returncode == 0
    assert list((base.local / "past").iterdir())
    _forget(Session(str(base.root), base.root))
    assert not (base.local / "past").exists()
