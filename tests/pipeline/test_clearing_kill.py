"""SIGKILL after every writing primitive of unreject, redact and gc; then the same command again."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.config import Config
from khms.model.approval import card_sha256
from khms.pipeline import nightly as pipeline
from khms.pipeline.withhold import withhold
from khms.store.layout import Base
from khms.store.repo import Repo

UNIT = "2026-03-05-nightly"
WORDS = "Mill Lane"
Make = Callable[..., Path]


def verdicts(folder: Path) -> list[str]:
    paths = sorted((folder / "memory/receipts").glob("*.jsonl"))
    return [json.loads(row)["verdict"] for path in paths for row in path.read_text("utf-8").splitlines()]


@pytest.fixture
def refused(base: Base, add_candidate: Make, commit: Callable[..., str]) -> Base:
    add_candidate(base, "C1")
    add_candidate(base, "C2", mark="M-0000000000c2", body="FIX: another thing altogether\n")
    commit(base)
    withhold(base, Repo(base.root), Config([]), UNIT, [], "rejected", "not measured")
    return base


def test_unreject(refused: Base, kill: ModuleType, told: Callable[[str], None]) -> None:
    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        unit = folder / "memory/inbox" / UNIT
        assert sorted(path.name for path in unit.glob("C*.md")) == ["C1.md"]
        assert [path.name for path in (unit / "dropped").iterdir()] == ["C2.md"]
        assert verdicts(folder) == ["rejected", "rejected", "unrejected"]

    count = kill.kill_points(kill.copy_of(refused.root), ["unreject", UNIT, "C1"], check, kill.foreign_commit)
    told(f"unreject: {count} kill points")


def test_redact(
    base: Base, write: Make, add_card: Make, commit: Callable[..., str], kill: ModuleType, told: Make
) -> None:
    write(base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[solved] {WORDS} lost frames: a loose ground\n")
    add_card(base, "K-00001", body=f"It stands in {WORDS}.\n")
    commit(base)
    pipeline.nightly(base, Repo(base.root), Config([]))

    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        tracked = kill.git(folder, "ls-files").split("\n")
        assert [path for path in tracked if WORDS.encode() in (folder / path).read_bytes()] == []
        (record,) = [json.loads(path.read_text("utf-8")) for path in (folder / "memory/approvals").glob("*.json")]
        (change,) = record["transitions"]
        assert change["new"] == card_sha256((folder / "memory/know/K-00001.md").read_bytes())
        assert verdicts(folder) == ["new", "new"]

    # The second run finds nothing where the first came through, and says so with exit code 3: that is its answer then.
    command = ["redact", "K-00001", "--match", WORDS, "--everywhere", "--why", "an address"]
    count = kill.kill_points(kill.copy_of(base.root), command, check, kill.foreign_commit, accept=(0, 3))
    told(f"redact: {count} kill points")


def test_gc_of_units(refused: Base, commit: Callable[..., str], kill: ModuleType, told: Callable[[str], None]) -> None:
    (refused.root / "khms.toml").write_text("[gc]\nunit_days = 0\n", encoding="utf-8")
    commit(refused)

    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        assert not (folder / "memory/inbox" / UNIT).exists()
        assert verdicts(folder) == ["rejected", "rejected"]
        assert kill.git(folder, "log", "--all", "--format=%s").count("Clear 1 finished unit away") == 1

    count = kill.kill_points(kill.copy_of(refused.root), ["gc", "--units"], check, kill.foreign_commit)
    told(f"gc --units: {count} kill points")
