"""`khms weekly` as a person types it: what it prints, what it answers programs, and its exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from khms.config import Config
from khms.pipeline.adopt import adopt
from khms.store.layout import Base
from khms.store.lock import hold
from khms.store.repo import Repo

Run = Callable[..., "CompletedProcess[str]"]
Make = Callable[..., Path]


@pytest.fixture
def clashing(base: Base, add_card: Make, commit: Callable[..., str]) -> Base:
    add_card(base, "K-00001", title="The upload limit of the gateway is 3 MB", body="So it is.\n", date="2026-04-01")
    add_card(base, "K-00002", title="The upload limit of the gateway is 5 MB", body="So it is.\n", date="2026-05-01")
    add_card(base, "K-00003", title="The idle timeout of the broker is 30 s", body="So it is.\n", evidence="measured")
    add_card(base, "K-00004", title="The idle timeout of the broker is 90 s", body="So it is.\n")
    commit(base)
    adopt(base, Repo(base.root), Config([]))
    return base


def test_a_person_gets_the_counts_the_unit_and_the_next_command(clashing: Base, run_khms: Run) -> None:
    done = run_khms("weekly")
    unit = next(clashing.inbox.iterdir()).name
    assert (done.returncode, done.stderr) == (0, "")
    assert f"memory/inbox/{unit}: 2 to decide\nnext: khms inbox show {unit}\n" in done.stdout
    assert [row.split() for row in done.stdout.splitlines()[1:3]] == [
        ["cards", "that", "replace", "others", "1", "0"],
        ["cards", "against", "each", "other", "1", "1"],
    ]
    again = run_khms("weekly")
    assert (again.returncode, again.stdout) == (0, "nothing new to propose\n")
    shown = run_khms("inbox", "show", unit)
    assert "K-00004 is challenged by K-00003: they cannot both hold" in shown.stdout
    approved = run_khms("approve", unit, "C2", "--json")
    value = json.loads(approved.stdout)
    path = "memory/know/K-00004.md"
    assert (value["cards"], value["changed"]) == ([], [{"label": "C2", "id": "K-00004", "path": path}])
    assert run_khms("approve", unit, "C1").stdout.startswith("C1 -> K-00005  memory/know/K-00005.md")
    assert run_khms("inbox", "list").stdout == "nothing awaits review\n"
    assert run_khms("lint").returncode == run_khms("audit").returncode == 0
    status = json.loads(run_khms("status", "--json").stdout)
    assert status["last_weekly"] and status["units"] == []


def test_a_program_gets_one_document(clashing: Base, run_khms: Run) -> None:
    value = json.loads(run_khms("weekly", "--json", "--max-cards", "1").stdout)
    assert value["schema"] == "khms.weekly/1"
    assert value["unit"].endswith("-weekly") and value["commit"] and value["branch"] is None
    assert (value["candidates"], value["waiting"]) == ({"published": 1, "dropped": 0}, 1)
    assert (value["calls"], value["cost_usd"], value["stopped_by"]) == (0, 0.0, None)
    dry = json.loads(run_khms("weekly", "--json", "--dry-run").stdout)
    assert dry["stages"][0]["stage"].endswith("-weekly-2/C1.md")


def test_busy_is_no_success_and_odd_bounds_are_named(clashing: Base, run_khms: Run) -> None:
    clashing.locks.mkdir(parents=True)
    with hold(clashing.locks / "weekly.lock", "weekly"):
        done = run_khms("weekly")
    assert done.returncode == 75
    assert "weekly" in done.stderr
    for words in (["--deadline", "soon"], ["--max-cards", "-1"], ["--budget-usd", "-1"]):
        done = run_khms("weekly", *words)
        assert done.returncode == 2 and "Traceback" not in done.stderr
    assert list(clashing.inbox.iterdir()) == []
