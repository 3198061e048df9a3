"""Nightly under SIGKILL at every writing primitive: each MARK is decided once, the unit whole, nothing doubled."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.model.candidate import Candidate
from khms.store import inbox, journal
from khms.store.layout import Base
from khms.store.receipts import ledger

Git = Callable[..., str]
JOURNAL = """# 2026-03-04

MARK[decision] cache the price list for one hour, because the vendor throttles
MARK[solved] FIX: reopen the log by name VERIFIED: four rotations by hand, no gap
MARK[note] it is so
MARK[decision] cache the price list for one hour, because the vendor throttles
MARK[failed] the token sk-abcdefghijklmnopqrstuvwxyz123456 was refused by the vendor
"""


@pytest.fixture
def prepare(git: Git, add_card: Callable[..., Path], write: Callable[..., Path]) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        base = Base(folder)
        write(base, "khms.toml", "")
        write(base, ".gitignore", ".khms/\n")
        write(base, "journal/2026-03-03.md", "# 2026-03-03\n\nprose only\n")
        add_card(base, "K-00001", title="Prices", body="the price list is fetched once a day\n")
        git(folder, "init", "--quiet")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", "start")
        write(base, "journal/2026-03-04.md", JOURNAL)

    return fill


def judge(folder: Path, git: Git, marks: int = 5) -> None:
    """What must hold when a run has ended well, however often it was killed before."""
    base = Base(folder)
    receipts = [receipt for receipt in ledger(base).receipts if receipt.stage == "propose"]
    expected = {mark.id for day in journal.days(base) for mark in day.marks}
    assert len(expected) == marks
    assert Counter(receipt.mark for receipt in receipts) == Counter(expected)
    assert len({receipt.run for receipt in receipts}) == 1

    (unit,) = inbox.units(base)
    made = {(unit.path, c.label) for c in unit.candidates}
    assert {(r.unit, r.label) for r in receipts if r.verdict in ("new", "correct")} == made
    assert {(r.unit, r.label) for r in receipts if r.verdict == "attach"} <= made
    assert not unit.broken
    assert_whole(unit.path, unit.candidates, unit.meta, base)

    assert git(folder, "status", "--porcelain", "--", "memory") == ""
    assert git(folder, "log", "--oneline").count("Propose") == 1
    assert "missing" not in git(folder, "fsck", "--no-dangling")
    assert not list((folder / ".khms" / "carry").iterdir())
    state = json.loads((folder / ".khms" / "state" / "nightly.json").read_text(encoding="utf-8"))
    assert state["ok"] is True
    leftovers = [path.relative_to(folder).as_posix() for path in folder.rglob(".khms-tmp-*")]
    assert [path for path in leftovers if not path.startswith(".khms/.khms-tmp-")] == []
    assert not (folder / ".git" / "index.lock").exists()
    history = (base.path("memory/history")).glob("*.md")
    assert sum(path.read_text(encoding="utf-8").count("nightly decided") for path in history) == 1
    assert b"sk-abcdef" not in b"".join(p.read_bytes() for p in folder.glob("memory/**/*") if p.is_file())


def assert_whole(path: str, candidates: tuple[Candidate, ...], meta: dict[str, object], base: Base) -> None:
    import hashlib

    files = meta["files"]
    assert isinstance(files, dict)
    there = {f.relative_to(base.path(path)).as_posix(): f for f in base.path(path).rglob("*") if f.is_file()}
    assert set(files) == set(there) - {"unit.json"}
    assert all(hashlib.sha256(there[name].read_bytes()).hexdigest() == digest for name, digest in files.items())
    assert {f"{candidate.label}.md" for candidate in candidates} <= set(files)


def test_killed_at_every_point_and_run_again(
    kill: ModuleType, prepare: Callable[[Path], None], git: Git, told: Callable[[str], None]
) -> None:
    points = kill.kill_points(prepare, ["nightly"], lambda folder: judge(folder, git), kill.foreign_commit)
    told(f"nightly: {points} kill points")
    assert points > 40


def test_a_mark_that_is_added_after_the_kill_is_decided_too_and_never_lost(
    kill: ModuleType, prepare: Callable[[Path], None], git: Git
) -> None:
    def add(folder: Path) -> None:
        with (folder / "journal" / "2026-03-04.md").open("a", encoding="utf-8") as file:
            file.write("MARK[req] the operator wants the battery shown in the summary\n")

    def check(folder: Path) -> None:
        text = (folder / "journal" / "2026-03-04.md").read_text(encoding="utf-8")
        open_marks = {mark.id for day in journal.days(Base(folder)) for mark in day.marks}
        known = Counter(r.mark for r in ledger(Base(folder)).receipts)
        assert set(known.values()) == {1}
        assert set(known) <= open_marks
        assert text.startswith(JOURNAL)

    def last(folder: Path) -> None:
        check(folder)
        assert not list((folder / ".khms" / "carry").iterdir())

    kill.kill_points(prepare, ["nightly"], last, add, step=11, accept=(0, 1))


def test_killed_twice_at_the_same_point(kill: ModuleType, prepare: Callable[[Path], None], git: Git) -> None:
    kill.kill_points(prepare, ["nightly"], lambda folder: judge(folder, git), step=13, first=3, twice=True)


def test_a_resumed_run_publishes_the_bytes_of_the_run_that_was_not_killed(
    kill: ModuleType, prepare: Callable[[Path], None], tmp_path: Path
) -> None:
    """The two runs have the same id and start, which is all that may differ."""
    with kill.runner(tmp_path / "killhome") as khms:
        first, second = tmp_path / "first", tmp_path / "second"
        first.mkdir()
        prepare(first)
        assert khms.run(["nightly"], first, {"KHMS_KILL_AT": "30"}).status == kill.KILLED
        shutil.copytree(first, second, symlinks=True)
        assert khms.run(["nightly"], first).status == 0
        for carried in (second / ".khms" / "carry").glob("*/M-*.json"):
            carried.unlink()
        assert khms.run(["nightly"], second).status == 0
    assert _published(first) == _published(second)


def _published(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.glob("memory/**/*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
