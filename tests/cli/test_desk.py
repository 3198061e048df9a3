"""`khms review --plain`: answers from a pipe, and every way in which a unit or its world may be odd."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.store.layout import Base

UNIT = "2026-03-05-nightly"
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Put = Callable[..., Path]
Git = Callable[..., str]


@pytest.fixture
def review(run_khms: Run) -> Run:
    """review("a", "s", unit="…") -> the finished process; each word is one line of its input."""

    def call(*lines: str, unit: str = "", **more: Any) -> "subprocess.CompletedProcess[str]":
        text = "".join(line + "\n" for line in lines)
        return run_khms("review", *([unit] if unit else []), "--plain", input=text, **more)

    return call


def record(base: Base) -> dict[str, Any]:
    (path,) = base.approvals.glob("*.json")
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def test_approve_and_skip_by_pipe_wait_for_the_last_word(
    base: Base, put_candidate: Put, commit: Git, git: Git, review: Run
) -> None:
    put_candidate(base, "C1")
    put_candidate(base, "C2")
    before = commit(base)
    done = review("a", "s")
    assert done.returncode == 0 and "1 of 2 is kept" in done.stdout, done.stderr
    assert git(base, "rev-parse", "HEAD") == before
    done = review("s", "yes")
    assert "2 pending, 1 decided before" in done.stdout and "C1 -> K-00001" in done.stdout
    assert [card["label"] for card in record(base)["cards"]] == ["C1"]
    assert "1 left pending" in done.stdout and "\x1b" not in done.stdout


def test_whole_words_carry_their_arguments(
    base: Base, put_candidate: Put, add_card: Put, commit: Git, review: Run
) -> None:
    add_card(base, "K-00001", title="A ground needs no tightening")
    add_card(base, "K-00002", title="A frame has seven bytes")
    put_candidate(base, "C1", relation={"kind": "unjudged"})
    put_candidate(base, "C2", body="FIX: turn it by 17 degrees\n")
    put_candidate(base, "C3", body="FIX: turn it by 19 degrees\n", title="It has eight bytes")
    put_candidate(base, "C4")
    put_candidate(base, "C5")
    commit(base)
    done = review(
        *("relation supersedes K-00001 I saw a loose one", "approve"),
        *("waive specifics I read the degrees off the scale", "approve"),
        *("waive specifics the drawing says nineteen", "relation contradicts:K-00002 I counted them", "approve"),
        *("drop was never measured", "defer when the sensor is back", "yes"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = record(base)
    assert {(w["check"], w["label"]): w["why"] for w in made["waivers"]} == {
        ("specifics", "C2"): "I read the degrees off the scale",
        ("specifics", "C3"): "the drawing says nineteen",
    }
    assert "SUPERSEDES K-00001 BECAUSE: I saw a loose one" in (base.know / "K-00003.md").read_text(encoding="utf-8")
    assert "BECAUSE: the drawing" not in (base.know / "K-00005.md").read_text(encoding="utf-8")
    assert {t["id"]: t["new"] for t in made["transitions"] if t["field"] == "status"} == {
        "K-00001": "superseded",
        "K-00002": "challenged",
    }
    assert (base.inbox / UNIT / "dropped" / "C4.md").exists() and (base.inbox / UNIT / "deferred" / "C5.md").exists()
    assert "K-00001 status: active -> superseded" in done.stdout and "C4 dropped: was never measured" in done.stdout


def test_a_failed_check_is_shown_and_keeps_the_candidate_out(
    base: Base, put_candidate: Put, commit: Git, review: Run
) -> None:
    put_candidate(base, "C1", body="FIX: turn it by 17 degrees\n")
    put_candidate(base, "C2", body="FIX: export TOKEN=ghp_" + "a1B2" * 9 + "\n")
    put_candidate(base, "C3", title="absent", scope="absent")
    commit(base)
    done = review("a", "s", "waive screening it is a dead key", "a", "s", "a", "s")
    assert "failed: specifics: " in done.stdout and "it cannot come in as it stands" in done.stdout
    assert "(cannot be waived)" in done.stdout and "screening cannot be waived" in done.stdout
    assert "failed: title: " in done.stdout
    assert "[a]pprove" not in done.stdout.replace("[a]pprove as new", "")
    assert "nothing was decided" in done.stdout
    assert not list(base.approvals.glob("*.json"))


def test_a_check_that_was_not_run_is_accepted_for_one_candidate(
    base: Base, put_candidate: Put, commit: Git, review: Run
) -> None:
    for label in ("C1", "C2"):
        put_candidate(base, label, quotes=[], body=f"FIX: {label} is tight\n")
    commit(base)
    done = review("waive quotes", "a", "a", "s", "y")
    assert "not run: quotes: it quotes nothing" in done.stdout and "accepted, not run: quotes" in done.stdout
    assert "it cannot come in as it stands: not checked" in done.stdout  # C2: the word was about C1
    assert [card["label"] for card in record(base)["cards"]] == ["C1"]


def test_candidates_that_name_each_other_come_in_together(
    base: Base, put_candidate: Put, commit: Git, review: Run
) -> None:
    put_candidate(base, "C1", body="FIX: tighten it, see [[C2]]\n")
    put_candidate(base, "C2")
    commit(base)
    done = review("a", "s", "s")
    assert "C1 names C2, which is not approved with it" in done.stdout
    assert "they cannot come in together as they stand" in done.stdout
    done = review("a", "a", "y")
    assert "[[K-00002]]" in (base.know / "K-00001.md").read_text(encoding="utf-8"), done.stdout


def test_an_approval_that_is_refused_loses_nothing(
    base: Base, put_candidate: Put, commit: Git, git: Git, review: Run, write: Put
) -> None:
    put_candidate(base, "C1")
    commit(base)
    hook = write(base, ".git/hooks/pre-commit", "#!/bin/sh\necho not on a Friday\nexit 1\n")
    hook.chmod(0o755)
    done = review("a", "y")
    assert done.returncode == 3 and "not on a Friday" in done.stdout and "1 of 1 is kept" in done.stdout
    assert not list(base.know.glob("*.md"))
    hook.unlink()
    assert "C1 -> K-00001" in review("y").stdout


def test_an_edit_on_disk_is_asked_again(base: Base, put_candidate: Put, commit: Git, review: Run) -> None:
    put_candidate(base, "C1")
    put_candidate(base, "C2")
    commit(base)
    review("a", "drop not so")
    put_candidate(base, "C1", body="FIX: something else\n")
    done = review()
    assert "2 pending, 1 decided before" in done.stdout and "something else" in done.stdout


def interactive(base: Base) -> "subprocess.Popen[str]":
    program = Path(sys.executable).parent / "khms"
    return subprocess.Popen(
        [str(program), "review", "--plain"],
        cwd=base.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=dict(os.environ),
    )


def read_until(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stdout
    for line in process.stdout:
        if words in line:
            return
    raise AssertionError(f"{words!r} did not come")


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


def test_what_another_reviewer_did_meanwhile_is_told(
    base: Base, put_candidate: Put, commit: Git, run_khms: Run
) -> None:
    for label in ("C1", "C2", "C3", "C4"):
        put_candidate(base, label)
    commit(base)
    with interactive(base) as mine:
        read_until(mine, "[?]")
        tell(mine, "a")
        read_until(mine, "C2, 2 of 4")
        read_until(mine, "[?]")
        assert run_khms("approve", UNIT, "C1", "C3").returncode == 0
        assert run_khms("reject", UNIT, "C4", "--why", "not so").returncode == 0
        put_candidate(base, "C2", body="FIX: turned meanwhile\n")
        tell(mine, "a")
        out, _ = mine.communicate("a\ny\n")
    assert "C1 was approved as K-00001 by Ada Tester" in out and "C3 was approved as K-00002" in out
    assert "C4 was rejected: not so" in out
    assert "C2 was changed on disk" in out and "turned meanwhile" in out
    assert "C2 -> K-00003" in out and mine.returncode == 0


def test_bytes_that_changed_after_the_last_look_do_not_come_in(
    base: Base, put_candidate: Put, commit: Git, review: Run, write: Put
) -> None:
    """Between the confirmation and the lock nobody looks: the approval itself compares."""
    from khms.config import load
    from khms.pipeline.approve import Faulty, approve
    from khms.pipeline.ruling import Wish
    from khms.render import views
    from khms.store.repo import Repo

    put_candidate(base, "C1")
    commit(base)
    wish = Wish(labels=("C1",), seen={"C1": "0" * 64})
    with pytest.raises(Faulty, match="nothing was approved") as refusal:
        approve(base, Repo(base.root), load(base.root), UNIT, wish, views.for_base)
    assert "it changed after you decided on it" in refusal.value.where


@pytest.mark.parametrize(
    ("env", "words", "status"),
    [
        ({"CLAUDECODE": "1"}, "this is the environment of claude-code", 3),
        ({"KHMS_BACKGROUND": "1"}, "a background run may only propose", 3),
        ({"GIT_CONFIG_GLOBAL": "/dev/null"}, "user.name", 4),
    ],
)
def test_whoever_may_not_approve_is_told_at_the_start(
    base: Base, put_candidate: Put, commit: Git, review: Run, env: dict[str, str], words: str, status: int
) -> None:
    put_candidate(base, "C1")
    commit(base)
    done = review("a", "y", env=env)
    assert done.returncode == status and words in done.stderr and done.stdout == ""


def test_another_branch_needs_a_word(base: Base, put_candidate: Put, commit: Git, git: Git, run_khms: Run) -> None:
    put_candidate(base, "C1")
    commit(base)
    git(base, "config", "--local", "user.name", "Ada Tester")
    (base.root / "khms.toml").write_text('[git]\nbranch = "main"\n', encoding="utf-8")
    commit(base)
    git(base, "switch", "--quiet", "-c", "side")
    done = run_khms("review", "--plain", input="a\ny\n")
    assert done.returncode == 3 and "--here" in done.stderr and done.stdout == ""
    assert "C1 -> K-00001" in run_khms("review", "--plain", "--here", input="a\ny\n").stdout


def test_units_come_one_after_the_other(base: Base, put_candidate: Put, commit: Git, review: Run) -> None:
    put_candidate(base, "C1", unit="2026-03-07-nightly")
    put_candidate(base, "C1", unit="2026-03-06-nightly", title="The older one", body="FIX: older\n")
    commit(base)
    done = review("a", "y", "s")
    assert done.stdout.index("The older one") < done.stdout.index("2026-03-07-nightly: 1 pending")
    assert "nothing was decided in 2026-03-07-nightly; 1 still pending" in done.stdout and done.returncode == 0
    done = review("q")
    assert done.returncode == 0 and "2026-03-06-nightly" not in done.stdout
    assert review("x no", "y", unit="2026-03-07-nightly").returncode == 0
    assert review().stdout == "nothing awaits review\n"


def test_a_unit_without_anything_pending_names_its_cards(
    base: Base, put_candidate: Put, commit: Git, review: Run, run_khms: Run
) -> None:
    put_candidate(base, "C1")
    commit(base)
    run_khms("approve", UNIT, "C1")
    done = review(unit=UNIT)
    assert done.returncode == 0 and done.stdout == f"nothing is pending in {UNIT}; approved before: C1 = K-00001\n"
    assert review(unit="2026-01-01-none").returncode == 3


def test_a_broken_file_is_named_and_hides_no_other(
    base: Base, put_candidate: Put, commit: Git, review: Run, write: Put
) -> None:
    put_candidate(base, "C1")
    write(base, f"memory/inbox/{UNIT}/C2.md", "---\na: b: c\n---\n")
    commit(base)
    done = review("a", "y")
    assert f"cannot be read: memory/inbox/{UNIT}/C2.md:2" in done.stdout and "C1 -> K-00001" in done.stdout
    again = review()
    assert f"nothing is pending in {UNIT}" in again.stdout and "C2.md:2" in again.stdout and again.returncode == 0


def test_a_single_file_of_the_older_tools(base: Base, commit: Git, review: Run, write: Put) -> None:
    def block(label: str, text: str) -> str:
        keys = "type: fact\nlevel: observation\nstatus: active\ntags: []\nscope: universal\nevidence: reported\n"
        keys += "source: journal/2026-03-04.md\ndate: 2026-03-04\nlinks: {}\n"
        quote = "- src=journal/2026-03-04.md :: frames failed because a ground was loose"
        return f"### {label}: {text}\n\n```yaml\n---\nid: {label}\n{keys}---\n{text}.\n\n**QUOTES:**\n{quote}\n```\n\n"

    path = write(base, "memory/inbox/2026-03-01.md", "# A night\n\n" + block("C1", "It was loose") + block("C2", "So"))
    commit(base)
    done = review("a", "x says nothing", "y")
    assert "quote EXACT, journal/2026-03-04.md:3" in done.stdout and "C1 -> K-00001" in done.stdout, done.stdout
    assert "relation:" not in done.stdout and path.exists()
    assert "nothing awaits review" in review().stdout


def test_what_a_terminal_would_obey_is_not_printed(base: Base, put_candidate: Put, commit: Git, review: Run) -> None:
    evil = "a\u202eb\x1b[2Jc\u200be\x07"
    put_candidate(
        base,
        "C1",
        title=evil,
        body=f"FIX: {evil}\n",
        flags=[evil],
        scope=evil,
        tags=[evil],
        source=evil,
        relation={"kind": "supersedes", "target": evil, "because": evil},
        quotes=[{"source": evil, "text": evil, "context": evil}],
    )
    commit(base)
    done = review(evil, f"x {evil}", "?", "q")
    assert "C1, 1 of 1" in done.stdout
    assert not {"\u202e", "\x1b", "\u200b", "\x07"} & set(done.stdout + done.stderr)


def test_a_decision_file_that_is_damaged_asks_again(base: Base, put_candidate: Put, commit: Git, review: Run) -> None:
    put_candidate(base, "C1")
    put_candidate(base, "C2")
    commit(base)
    review("a")
    (kept,) = (base.state / "review" / UNIT).glob("*.json")
    for damage in ("{", "[]", '{"verdict": "crown"}', '{"verdict": "approve", "waived": 3}'):
        kept.write_text(damage, encoding="utf-8")
        assert f"{UNIT}: 2 pending\n" in review().stdout


def test_words_that_are_no_answer_decide_nothing(base: Base, put_candidate: Put, commit: Git, review: Run) -> None:
    put_candidate(base, "C1")
    commit(base)
    done = review("", "aye", "b", "r supersedes K-1", "r new:K-00001", "x ", "", "w quotes", "?")
    assert (
        "there is no 'aye' here" in done.stdout
        and "this is the first candidate" in done.stdout
        and "'K-1' is no card's id" in done.stdout
    )
    assert "nothing is decided about it yet" in done.stdout and "quotes did not fail" in done.stdout
    assert "a drop needs its reason" in done.stdout and "nothing was decided" in done.stdout
    assert "relation: say how it stands to a card" in done.stdout


def test_a_kill_anywhere_on_the_way_is_gone_on_from(
    base: Base, put_candidate: Put, commit: Git, git: Git, review: Run, tmp_path: Path
) -> None:
    put_candidate(base, "C1")
    put_candidate(base, "C2", body="FIX: another way to tighten the ground\n")
    commit(base)
    kept = tmp_path / "kept"
    shutil.copytree(base.root, kept, symlinks=True)
    n, killed = 3, 0
    while True:
        done = review("a", "a", "y", env={"KHMS_KILL_AT": str(n)})
        if done.returncode != -9:
            break
        killed += 1
        done = review("a", "a", "y")  # an answer that is no longer asked for decides nothing
        assert done.returncode == 0, done.stdout + done.stderr
        assert [card["label"] for card in record(base)["cards"]] == ["C1", "C2"], n
        assert git(base, "status", "--porcelain") == "" and git(base, "rev-list", "--count", "HEAD") == "3"
        assert "nothing awaits review" in review().stdout
        shutil.rmtree(base.root)
        shutil.copytree(kept, base.root, symlinks=True)
        n += 9
    assert killed > 3 and "C2 -> K-00002" in done.stdout


def test_a_reviewers_new_needs_no_reason(
    base: Base, put_candidate: Put, add_card: Put, commit: Git, review: Run
) -> None:
    """A proposer that says `new` must say why the nearest card is another matter; a reviewer has seen it."""
    add_card(base, "K-00001")
    put_candidate(base, "C1", nearest=["K-00001"], relation={"kind": "new"})
    commit(base)
    done = review("a", "r new", "a", "y")
    assert "failed: relations: it is new without naming the nearest card" in done.stdout
    assert "C1 -> K-00002" in done.stdout


def test_bytes_of_another_encoding_do_no_harm(base: Base, put_candidate: Put, commit: Git) -> None:
    put_candidate(base, "C1")
    commit(base)
    program = Path(sys.executable).parent / "khms"
    done = subprocess.run(
        [str(program), "review", "--plain"],
        cwd=base.root,
        input=b"x gr\xfcn \x1b[2J\x00 so\ny\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    (path,) = base.receipts.glob("*.jsonl")
    assert json.loads(path.read_text(encoding="utf-8"))["reason"] == "gr\ufffdn \ufffd[2J\ufffd so"
