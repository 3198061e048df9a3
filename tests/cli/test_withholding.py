"""`khms reject`, `khms defer`, `khms unreject` as commands: exit codes, what they say, their JSON."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store import markdown
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
UNIT = "2026-03-05-nightly"


@pytest.fixture
def unit(base: Base, commit: Callable[..., str]) -> Path:
    folder = base.inbox / UNIT
    folder.mkdir(parents=True)
    for label in ("C1", "C2"):
        meta = {
            "id": label,
            "type": "fact",
            "title": f"What {label} says",
            "status": "active",
            "relation": {"kind": "new"},
        }
        text = markdown.render(meta, f"A claim that {label} alone makes.\n")
        (folder / f"{label}.md").write_text(text, encoding="utf-8")
    commit(base)
    return folder


def test_a_refusal_and_its_taking_back(unit: Path, run_khms: Run) -> None:
    assert run_khms("reject", UNIT, "C1").returncode == 2  # a reason is asked for
    done = run_khms("reject", UNIT, "C1", "--why", "never measured")
    assert (done.returncode, done.stdout) == (0, f"C1 rejected: memory/inbox/{UNIT}/dropped/C1.md\n")
    which = run_khms("unreject", UNIT)
    assert which.returncode == 2 and "refused: C1" in which.stderr
    assert run_khms("unreject", UNIT, "C2").returncode == 3
    back = run_khms("unreject", UNIT, "C1", "--why", "it was")
    assert (back.returncode, back.stdout) == (0, f"C1 is pending again: memory/inbox/{UNIT}/C1.md\n")
    again = json.loads(run_khms("unreject", UNIT, "C1", "--json").stdout)
    assert again == {
        "schema": "khms.unreject/1",
        "unit": UNIT,
        "commit": None,
        "candidates": [],
        "gone": [],
        "already": ["C1"],
    }


@pytest.mark.parametrize("command", [["reject", "--why", "x"], ["defer"]])
def test_another_branch_is_named_and_here_means_it(
    unit: Path, run_khms: Run, git: Callable[..., str], base: Base, write: Callable[..., Path], command: list[str]
) -> None:
    write(base, "khms.toml", '[git]\nbranch = "main"\n')
    git(base, "checkout", "-q", "-b", "topic")
    done = run_khms(command[0], UNIT, "C1", *command[1:])
    assert done.returncode == 3 and "--here" in done.stderr and (unit / "C1.md").exists()
    assert run_khms(command[0], UNIT, "C1", *command[1:], "--here").returncode == 0
    assert not (unit / "C1.md").exists()


def test_an_agent_takes_nothing_back(unit: Path, run_khms: Run) -> None:
    run_khms("reject", UNIT, "C1", "--why", "x")
    assert run_khms("unreject", UNIT, "C1", env={"CLAUDECODE": "1"}).returncode == 3


@pytest.mark.parametrize(("command", "deed"), [("reject", "refusal"), ("defer", "deferral")])
def test_a_call_that_was_cut_off_is_named_by_what_it_was(unit: Path, run_khms: Run, command: str, deed: str) -> None:
    why = ["--why", "x"]
    n = 1
    while True:
        done = run_khms(command, UNIT, "C1", *why, env={"KHMS_KILL_AT": str(n)})
        assert done.returncode == -9, "no place was found at which something is left to be undone"
        said = run_khms("doctor").stdout
        if "the interrupted" in said:
            break
        n += 1
    assert f"undid the interrupted {deed} of {UNIT}; nothing of it was published" in said
