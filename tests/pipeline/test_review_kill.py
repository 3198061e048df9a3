"""SIGKILL after every writing primitive of approve, reject, defer and card status; then the same command again."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.store.layout import Base

UNIT = "2026-03-05-nightly"


@pytest.fixture
def prepared(
    base: Base, add_card: Callable[..., Path], add_candidate: Callable[..., Path], commit: Callable[..., str]
) -> Base:
    for number in (1, 2, 3):
        add_card(base, f"K-0000{number}")
    add_candidate(base, "C1")
    add_candidate(
        base,
        "C2",
        relation={"kind": "supersedes", "target": "K-00002", "because": "measured again"},
        mark="M-0000000000c2",
    )
    add_candidate(base, "C3", relation={"kind": "contradicts", "target": "K-00003", "because": "the other way"})
    commit(base)
    return base


def cards(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for place in ("memory/know", "memory/archive/know"):
        for path in (folder / place).glob("*.md"):
            assert path.stem not in found, f"{path.stem} lies in two places"
            found[path.stem] = f"{place}: {path.read_text(encoding='utf-8')}"
    return found


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "memory/approvals").glob("*.json")]


def test_approve(prepared: Base, kill: ModuleType, told: Callable[[str], None]) -> None:
    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        held = cards(folder)
        assert sorted(held) == [f"K-0000{n}" for n in range(1, 7)]
        assert held["K-00002"].startswith("memory/archive/know") and "status: superseded" in held["K-00002"]
        assert "K-00006" in held["K-00003"] and "challenged" in held["K-00003"]
        (record,) = records(folder)
        assert [card["label"] for card in record["cards"]] == ["C1", "C2", "C3"]  # type: ignore[attr-defined, index]
        assert sum("Khms-Approved" in body for body in kill.git(folder, "log", "--format=%B%x00").split("\0")) == 1

    count = kill.kill_points(kill.copy_of(prepared.root), ["approve", UNIT, "--all"], check, kill.foreign_commit)
    told(f"approve: {count} kill points")


@pytest.mark.parametrize("verb", ["reject", "defer"])
def test_reject_and_defer(prepared: Base, kill: ModuleType, verb: str, told: Callable[[str], None]) -> None:
    place = {"reject": "dropped", "defer": "deferred"}[verb]

    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        unit = folder / "memory/inbox" / UNIT
        assert sorted(path.name for path in unit.glob("C*.md")) == ["C3.md"]
        assert sorted(path.name for path in (unit / place).glob("C*.md")) == ["C1.md", "C2.md"]
        lines = [
            line
            for path in (folder / "memory/receipts").glob("*.jsonl")
            for line in path.read_text("utf-8").splitlines()
        ]
        assert sorted(json.loads(line)["label"] for line in lines) == ["C1", "C2"]

    command = [verb, UNIT, "C1", "C2", "--why", "not measured"]
    count = kill.kill_points(kill.copy_of(prepared.root), command, check, kill.foreign_commit)
    told(f"{verb}: {count} kill points")


def test_card_status(prepared: Base, kill: ModuleType, told: Callable[[str], None]) -> None:
    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        held = cards(folder)
        assert "status: refuted" in held["K-00001"] and "K-00002" in held["K-00001"]
        (record,) = records(folder)
        assert [t["field"] for t in record["transitions"]] == ["links.refuted_by", "status"]  # type: ignore[attr-defined, index]

    command = ["card", "status", "K-00001", "refuted", "--by", "K-00002", "--why", "measured again"]
    count = kill.kill_points(kill.copy_of(prepared.root), command, check, kill.foreign_commit)
    told(f"card status: {count} kill points")
