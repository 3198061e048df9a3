"""Weekly under SIGKILL at every writing primitive, and the approval of its unit: nothing lost, nothing twice."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.check import audit
from khms.store import inbox
from khms.store.layout import Base
from khms.store.repo import Repo

Make = Callable[..., Path]
Git = Callable[..., str]


@pytest.fixture
def small(base: Base, add_card: Make, commit: Git) -> Base:
    """One clash, one condensation: the ways by which a unit changes cards and makes them."""
    from khms.config import Config
    from khms.pipeline.adopt import adopt

    add_card(base, "K-00001", title="The upload limit of the gateway is 3 MB", body="So it is.\n", date="2026-04-01")
    add_card(base, "K-00002", title="The upload limit of the gateway is 5 MB", body="So it is.\n", date="2026-05-01")
    add_card(
        base, "K-00003", type="action-outcome", title="Paint at 4 °C peels", body="On boards.\n", date="2026-01-05"
    )
    add_card(base, "K-00004", type="principle", level="derived", evidence=None, source=None, title="Paint needs warmth",
             body="HOLDS: at 4 °C it fails.\n", date="2026-05-31", links={"derived_from": ["K-00003"]})  # fmt: skip
    commit(base, "cards")
    adopt(base, Repo(base.root), Config([]))
    return base


def judge(kill: ModuleType, folder: Path) -> None:
    kill.assert_whole(folder)
    base = Base(folder)
    (unit,) = inbox.units(base)
    assert sorted(unit.meta["offers"].values()) == [
        "K-00001 superseded as K-00002 says",
        "K-00003 condensed by K-00004",
    ]
    there = {f.relative_to(base.path(unit.path)).as_posix(): f for f in base.path(unit.path).rglob("*") if f.is_file()}
    assert set(unit.meta["files"]) == set(there) - {"unit.json"}
    for name, digest in unit.meta["files"].items():
        assert hashlib.sha256(there[name].read_bytes()).hexdigest() == digest
    history = "".join(path.read_text(encoding="utf-8") for path in base.path("memory/history").glob("*.md"))
    assert history.count("weekly looked at") == 1
    assert not list((base.carry / "weekly").glob("*"))
    assert json.loads((base.state / "weekly.json").read_text(encoding="utf-8"))["ok"] is True


def test_weekly(small: Base, kill: ModuleType, told: Callable[[str], None]) -> None:
    count = kill.kill_points(
        kill.copy_of(small.root), ["weekly"], lambda folder: judge(kill, folder), kill.foreign_commit, step=3
    )
    told(f"weekly: {count} kill points")
    assert count > 15


def test_weekly_killed_twice_at_the_same_point(small: Base, kill: ModuleType) -> None:
    kill.kill_points(kill.copy_of(small.root), ["weekly"], lambda folder: judge(kill, folder), step=13, twice=True)


def test_weekly_on_a_branch(small: Base, kill: ModuleType, write: Make, commit: Git) -> None:
    write(small, "khms.toml", '[nightly]\ndeliver = "branch"\n')
    commit(small, "deliver on branches")
    name = "khms/inbox/"

    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        (branch,) = kill.git(folder, "for-each-ref", "--format=%(refname:short)", f"refs/heads/{name}").split()
        assert kill.git(folder, "rev-list", "--count", f"main..{branch}") == "1"
        history = kill.git(folder, "log", "--format=%s", "main")
        assert history.count("Note what weekly proposed") == 1

    kill.kill_points(kill.copy_of(small.root), ["--root", ".", "weekly"], check, step=9)


def test_the_approval_of_cards_and_changes_together(small: Base, kill: ModuleType, told: Callable[[str], None]) -> None:
    from khms.config import Config
    from khms.pipeline.weekly.run import weekly

    unit = weekly(small, Repo(small.root), Config([])).unit

    def check(folder: Path) -> None:
        kill.assert_whole(folder)
        base = Base(folder)
        assert sorted(p.stem for p in base.archive.glob("*.md")) == ["K-00001", "K-00002", "K-00003"]
        assert sorted(p.stem for p in base.know.glob("*.md")) == ["K-00004", "K-00005"]
        records = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(base.approvals.glob("*.json"))][1:]
        assert [(bool(record["unit"]), len(record["cards"])) for record in records] == [(True, 1), (False, 0)]
        assert [t.finding for t in audit.whole(base, Repo(folder)).troubles] == []

    count = kill.kill_points(kill.copy_of(small.root), ["approve", unit, "--all"], check, kill.foreign_commit, step=7)
    told(f"approve of cards and changes: {count} kill points")
