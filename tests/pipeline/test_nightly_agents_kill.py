"""Nightly by an agent under SIGKILL: each MARK decided once, each call made once but for the one under way, the same
unit in the end."""

import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.store import inbox, journal
from khms.store.layout import Base
from khms.store.receipts import ledger
from tests.pipeline.scripted import AGENT

Git = Callable[..., str]
SESSION = "0b7f6a52-6c0e-4c3e-9a60-5a8f4d2f7a11"
SAID = ("Why do prices lag?", "LEARNT we keep the price list for one hour, because the vendor throttles")
COMMAND = ["--root", ".", "nightly"]


@pytest.fixture
def prepare(git: Git, write: Callable[..., Path]) -> Callable[[Path, int], None]:
    def fill(folder: Path, marks: int = 2) -> None:
        base = Base(folder)
        plan = folder / ".khms" / "plan.json"
        command = f"{sys.executable} -I -S {AGENT} {plan} {plan.with_name('calls')}"
        settings = [
            "[nightly]",
            'proposer = "command"',
            f"command = {json.dumps(command)}",
            'transcripts = "claude-code"',
            f"max_cards = {marks + 10}",
        ]
        write(base, "khms.toml", "\n".join(settings) + "\n")
        write(base, ".gitignore", ".khms/\n")
        write(base, ".khms/plan.json", json.dumps([{"when": "# The digest of", "answer": "marks"}, {"answer": "card"}]))
        git(folder, "init", "--quiet")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", "start")
        lines = "".join(f"MARK[fact] pump number {n} needs {n + 40} seconds to start\n\n" for n in range(marks))
        write(base, "journal/2026-03-04.md", f"# 2026-03-04\n\n{lines}")
        path = folder.parent / "home" / ".claude" / "projects" / "-some-folder" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        common = {
            "cwd": str(folder),
            "sessionId": SESSION,
            "isSidechain": False,
            "type": "user",
            "promptSource": "user",
        }
        records = [
            {**common, "uuid": str(n), "message": {"role": "user", "content": said}} for n, said in enumerate(SAID)
        ]
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

    return fill


def asked(folder: Path) -> Counter[str]:
    """How often each question was asked."""
    path = folder / ".khms" / "calls"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return Counter(str(json.loads(line)["about"]) for line in lines if line.endswith("}"))


def judge(folder: Path, marks: int, kills: int) -> None:
    base = Base(folder)
    receipts = [receipt for receipt in ledger(base).receipts if receipt.stage == "propose"]
    written = {mark.id for day in journal.days(base) for mark in day.marks}
    decided = Counter(receipt.mark for receipt in receipts)
    assert set(decided.values()) == {1}
    assert written < set(decided)
    assert len(decided) == marks + 1
    (unit,) = inbox.units(base)
    assert {candidate.mark for candidate in unit.candidates} == set(decided)
    assert [candidate.label for candidate in unit.candidates] == [f"C{n}" for n in range(1, marks + 2)]
    calls = asked(folder)
    assert len(calls) == marks + 2
    assert sum(calls.values()) - len(calls) <= kills
    assert unit.meta["calls"] == marks + 2
    assert sorted(path.name for path in (folder / ".khms" / "carry").iterdir() if path.name != "found") == []
    cursors = json.loads((folder / ".khms" / "state" / "cursors.json").read_text(encoding="utf-8"))
    assert len(cursors["sources"]) == 1


def test_killed_at_every_point_and_run_again(
    kill: ModuleType, prepare: Callable[..., None], git: Git, told: Callable[[str], None]
) -> None:
    def check(folder: Path) -> None:
        judge(folder, 2, 1)
        assert "missing" not in git(folder, "fsck", "--no-dangling")

    points = kill.kill_points(prepare, COMMAND, check, kill.foreign_commit, step=4)
    told(f"nightly by an agent: {points} kill points, every fourth one")
    assert points > 10


def test_two_hundred_marks_killed_at_fifty_random_moments_come_to_the_same_unit(
    kill: ModuleType, prepare: Callable[..., None], tmp_path: Path, told: Callable[[str], None]
) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    dice = random.Random(seed)
    place = tmp_path / "place"
    folder = place / "base"
    folder.mkdir(parents=True)
    with kill.runner(place / "home") as khms:
        prepare(folder, 200)
        shutil.copytree(folder, place / "kept", symlinks=True)
        kills = 0
        while kills < 50:
            done = khms.run(COMMAND, folder, {"KHMS_KILL_AT": str(dice.randrange(1, 24))})
            assert done.status in (0, kill.KILLED), done
            kills += done.status == kill.KILLED
            if done.status == 0:
                break
        done = khms.run(COMMAND, folder)
        assert done.status == 0, done
        judge(folder, 200, kills)
        assert kills == 50, "it was done before it was killed fifty times"
        interrupted = published(folder)
        shutil.rmtree(folder)
        shutil.copytree(place / "kept", folder, symlinks=True)
        assert khms.run(COMMAND, folder).status == 0
        judge(folder, 200, 0)
        assert published(folder) == interrupted
    told("nightly of 200 MARKs by an agent: 50 random kills, the same unit")


def published(folder: Path) -> dict[str, str]:
    """The candidates by their file, without what tells one run from another."""
    (unit,) = inbox.units(Base(folder))
    return {candidate.label: candidate.text for candidate in unit.candidates}
