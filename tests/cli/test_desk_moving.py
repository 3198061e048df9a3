"""`khms review` while the ground moves: others change, drop, approve and break what a reviewer is looking at."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from khms.store.layout import Base

pexpect = pytest.importorskip("pexpect")
UNIT = "2026-03-05-nightly"
KHMS = str(Path(sys.executable).parent / "khms")
Put = Callable[..., Path]
Git = Callable[..., str]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Sit = Callable[..., Any]
Happen = Callable[[Base, Path, Run], object]


@pytest.fixture
def sit(base: Base) -> Iterator[Sit]:
    open_ones = []

    def start(*args: str, **env: str) -> Any:
        child = pexpect.spawn(
            KHMS,
            ["review", "--plain", *args],
            cwd=str(base.root),
            dimensions=(24, 80),
            encoding="utf-8",
            timeout=30,
            env={**os.environ, "TERM": "dumb", **env},
        )
        child.setecho(False)
        open_ones.append(child)
        return child

    yield start
    for child in open_ones:
        child.close(force=True)


def ended(child: Any) -> tuple[str, int]:
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert "this is a bug" not in child.before and child.exitstatus != 70, child.before
    return " ".join(str(child.before).split()), int(child.exitstatus)


def changed(base: Base, path: Path, run: Run) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "VERIFIED: never\n", encoding="utf-8")


def broken(base: Base, path: Path, run: Run) -> None:
    path.write_text("---\nid: [\n", encoding="utf-8")


def gone(base: Base, path: Path, run: Run) -> None:
    path.unlink()


def dropped(base: Base, path: Path, run: Run) -> None:
    assert run("reject", UNIT, path.stem, "--why", "somebody else was faster").returncode == 0


def approved(base: Base, path: Path, run: Run) -> None:
    assert run("approve", UNIT, path.stem).returncode == 0


def unit_gone(base: Base, path: Path, run: Run) -> None:
    shutil.rmtree(path.parent)


def journal_edited(base: Base, path: Path, run: Run) -> None:
    (base.journal / "2026-03-04.md").write_text("# 2026-03-04\n\nnothing of it\n", encoding="utf-8")


def proof_broken(base: Base, path: Path, run: Run) -> None:
    (base.approvals / "01M8Q3YSW4JTJ34DNC3F8QHTVA.json").write_text("{", encoding="utf-8")


EVENTS: dict[Happen, tuple[str, int]] = {
    changed: ("it changed after you decided on it", 3),
    broken: ("C1 cannot be read any more", 3),
    gone: ("C1 is gone from the unit", 3),
    dropped: ("C1 was rejected: somebody else was faster", 3),
    approved: ("nothing is pending in 2026-03-05-nightly; approved before: C1 = K-00001", 0),
    unit_gone: ("there is no inbox unit", 3),
    journal_edited: ("failed: quotes", 3),
    proof_broken: ("this approval record cannot be read", 3),
}


@pytest.mark.parametrize("happen", EVENTS, ids=lambda happen: happen.__name__)
def test_while_the_last_question_stands(
    base: Base, put_candidate: Put, commit: Git, run_khms: Run, sit: Sit, happen: Happen
) -> None:
    path = put_candidate(base, "C1")
    commit(base)
    child = sit()
    child.expect_exact("[?]\r\n")
    child.sendline("a")
    child.expect_exact("[y]es [b]ack [q]uit\r\n")
    happen(base, path, run_khms)
    child.sendline("y")
    said, status = ended(child)
    wanted, code = EVENTS[happen]
    assert wanted in said and status == code, said
    assert len(list(base.approvals.glob("*.json"))) == (1 if happen in (approved, proof_broken) else 0)


@pytest.mark.parametrize("happen", EVENTS, ids=lambda happen: happen.__name__)
@pytest.mark.parametrize("answer", ["a", "relation supersedes K-00001 I saw a loose one", "x no good", "v", "e"])
def test_while_a_candidate_is_looked_at(
    base: Base, put_candidate: Put, add_card: Put, commit: Git, run_khms: Run, sit: Sit, happen: Happen, answer: str
) -> None:
    add_card(base, "K-00001", title="A ground needs no tightening")
    path = put_candidate(base, "C1")
    commit(base)
    child = sit(VISUAL="true")
    child.expect_exact("[?]\r\n")
    happen(base, path, run_khms)
    child.sendline(answer)
    for more in ("u", "a", "y"):
        child.sendline(more)
    ended(child)


def test_a_card_that_moved_meanwhile_is_looked_up_anew(
    base: Base, put_candidate: Put, add_card: Put, commit: Git, run_khms: Run, sit: Sit
) -> None:
    add_card(base, "K-00001", title="A ground needs no tightening")
    add_card(base, "K-00002", title="A ground is green")
    put_candidate(base, "C1")
    commit(base)
    child = sit()
    child.expect_exact("[?]\r\n")
    assert run_khms("card", "status", "K-00001", "refuted", "--by", "K-00002", "--why", "so").returncode == 0
    child.sendline("relation supersedes K-00001 I saw a loose one")
    said, status = ended(child)
    assert "it supersedes K-00001, which is refuted" in said and status == 0


def test_a_very_long_line_is_cut_and_shown_whole_on_a_key(
    base: Base, put_candidate: Put, commit: Git, run_khms: Run, write: Put
) -> None:
    words = "the ground was loose " + " ".join(f"word{n}" for n in range(4000)) + " and so on to the end"
    write(base, "journal/2026-03-05.md", f"# 2026-03-05\n\n{words}\n")
    quote = {"source": "journal/2026-03-05.md", "text": words, "grade": "EXACT"}
    put_candidate(base, "C1", body=f"FIX: {words}\n", quotes=[quote])
    commit(base)
    cut = run_khms("review", "--plain", input="q\n").stdout
    assert "word1999" not in cut and "to the end" in cut and len(cut) < 6000
    left = len(f"FIX: {words}") - 640
    assert f"[{left:,} characters left out; v shows them]" in cut
    whole = run_khms("review", "--plain", input="v\nq\n").stdout
    assert whole.count("word1999") >= 2
    again = run_khms("review", "--plain", input="v\nb\nv\nq\n").stdout
    assert again.count("left out; v shows") == cut.count("left out; v shows")


def test_what_was_put_aside_is_named_with_the_way_back(
    base: Base, put_candidate: Put, commit: Git, git: Git, run_khms: Run
) -> None:
    put_candidate(base, "C1")
    put_candidate(base, "C2", body="FIX: another way\n")
    commit(base)
    run_khms("defer", UNIT, "C1")
    run_khms("reject", UNIT, "C2", "--why", "no")
    move = f"git mv memory/inbox/{UNIT}/deferred/C1.md memory/inbox/{UNIT}/C1.md"
    for command in (["reject", UNIT, "C1", "--why", "x"], ["approve", UNIT, "C1"]):
        done = run_khms(*command)
        assert done.returncode == 3 and f"C1 was put off; to bring it back: {move}" in done.stderr
    back = f"C2 was refused; khms unreject {UNIT} C2 brings it back"
    assert back in run_khms("approve", UNIT, "C2").stderr and back in run_khms("defer", UNIT, "C2").stderr
    shown = run_khms("review", UNIT).stdout
    assert f"nothing is pending in {UNIT}" in shown and move in shown and back in shown
    git(base, *move.split()[1:])
    assert "C1 -> K-00001" in run_khms("approve", UNIT, "C1").stdout
    run_khms("unreject", UNIT, "C2")
    assert "C2 -> K-00002" in run_khms("approve", UNIT, "C2").stdout
