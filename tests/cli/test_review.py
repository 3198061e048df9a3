"""`khms inbox`, `khms approve`: what a reviewer sees, and which calls are refused as wrong."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Put = Callable[..., Path]
UNIT = "2026-03-05-nightly"
LINE = "frames failed because a ground was loose"


def single(base: Base, quote: str) -> None:
    head = "id: C1\ntype: fact\nlevel: observation\nstatus: active\ntags: []\nscope: universal\nevidence: reported\n"
    head += "source: journal/2026-03-04.md\ndate: 2026-03-04\nlinks: {}\n"
    text = f"# A night\n\n## Cards\n\n### C1: A loose ground\n\n```yaml\n---\n{head}---\nThe ground was loose.\n\n"
    (base.inbox / "2026-03-01.md").write_text(
        f"{text}**QUOTES:**\n- src=journal/2026-03-04.md :: {quote}\n```\n", encoding="utf-8"
    )


def test_a_quote_that_stands_nowhere_is_counted_and_shown_first(
    base: Base, put_candidate: Put, run_khms: Run, commit: Run
) -> None:
    put_candidate(base, "C1")
    put_candidate(base, "C2", quotes=[{"source": "journal", "text": "words of no source at all", "grade": "ABSENT"}])
    put_candidate(base, "C3", flags=["thin"])
    put_candidate(base, "C4", quotes=[{"source": "journal", "text": "nor do these stand there", "grade": "EXACT"}])
    commit(base)
    (row,) = json.loads(run_khms("inbox", "list", "--json").stdout)["units"]
    assert (row["pending"], row["flagged"]) == (4, 2)
    shown = json.loads(run_khms("inbox", "show", UNIT, "--json").stdout)["candidates"]
    assert [c["label"] for c in shown] == ["C2", "C3", "C4", "C1"]
    assert [c["quotes"][0]["grade"] for c in shown] == ["ABSENT", "EXACT", "ABSENT", "EXACT"]


def test_a_finished_unit_names_its_cards_and_no_next_step(
    base: Base, put_candidate: Put, run_khms: Run, commit: Run
) -> None:
    put_candidate(base)
    commit(base)
    assert run_khms("approve", UNIT, "C1").returncode == 0
    done = run_khms("inbox", "show", UNIT)
    assert "0 pending, 1 approved\nC1 = K-00001  memory/know/K-00001.md\n" in done.stdout
    assert "next:" not in done.stdout + run_khms("inbox", "list", "--all").stdout
    put_candidate(base, unit="2026-03-06-nightly")
    assert "next: khms inbox show 2026-03-06-nightly\n" in run_khms("inbox", "list", "--all").stdout


def test_an_older_unit_shows_its_quotes_with_their_standing(base: Base, run_khms: Run) -> None:
    single(base, LINE)
    done = run_khms("inbox", "show", "2026-03-01")
    assert f"quote EXACT, journal/2026-03-04.md: “{LINE}”" in done.stdout and "relation:" not in done.stdout
    single(base, "words of no source at all")
    assert "quote ABSENT, journal/2026-03-04.md: “words" in run_khms("inbox", "show", "2026-03-01").stdout


def test_what_a_terminal_would_obey_is_not_printed(base: Base, put_candidate: Put, run_khms: Run) -> None:
    evil = "a\u202eb\x1b[2Jc\nd\u200be"
    relation = {"kind": "new", "because": evil, "nearest": evil}
    quotes = [{"source": evil, "text": evil, "context": evil}]
    put_candidate(base, title=evil, body=f"FIX: {evil}\n", flags=[evil], relation=relation, quotes=quotes, scope=evil)
    (base.inbox / UNIT / "x\u202ey.md").write_text("---\na: b: c\n---\n", encoding="utf-8")
    for call in (("inbox", "show", UNIT), ("inbox", "list"), ("inbox", "show", UNIT, "C1")):
        done = run_khms(*call)
        assert done.returncode == 0, done.stderr
        assert not {"\u202e", "\x1b", "\u200b"} & set(done.stdout + done.stderr)
    title = next(line for line in done.stdout.splitlines() if line.startswith("C1  "))
    assert title.startswith("C1  ab") and " de" in title and "c d" in title


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--waive", "foo:C1", "--why", "so"), "there is no check foo"),
        (("--waive", "quotes:C9", "--why", "so"), "C9 is not among"),
        (("--relation", "C7=new"), "C7 is not among"),
        (("--accept-unchecked", "bogus"), "there is no check bogus"),
        (("--relation", "C1=new", "--relation", "C1=supports:K-00001"), "C1 has two relations"),
    ],
)
def test_a_slip_of_the_pen_is_a_wrong_call(
    base: Base, put_candidate: Put, run_khms: Run, commit: Run, args: tuple[str, ...], words: str
) -> None:
    put_candidate(base)
    commit(base)
    done = run_khms("approve", UNIT, "C1", *args)
    assert done.returncode == 2 and words in done.stderr, done.stderr
    assert not list(base.know.glob("*.md"))


def test_a_waiver_that_was_not_needed_is_said(base: Base, put_candidate: Put, run_khms: Run, commit: Run) -> None:
    put_candidate(base)
    commit(base)
    done = run_khms("approve", UNIT, "C1", "--waive", "quotes:C1", "--why", "so", "--json")
    assert done.returncode == 0 and "not needed and not recorded: --waive quotes:C1" in done.stderr
    assert json.loads(done.stdout)["unneeded"] == ["quotes:C1"]
    (record,) = base.approvals.glob("*.json")
    assert json.loads(record.read_text(encoding="utf-8"))["waivers"] == []


def test_invented_figures_are_refused_in_the_title_too(
    base: Base, put_candidate: Put, run_khms: Run, commit: Run
) -> None:
    put_candidate(base, "C1", title="The pump ran 9999 rpm")
    put_candidate(base, "C2", body="FIX: it read 99 C\n")
    put_candidate(base, "C3", body="FIX: it read 141 C\n\nerror: connection refused by peer\n")
    commit(base)
    done = run_khms("approve", UNIT, "--all")
    assert done.returncode == 3
    for words in ("9999 rpm", "99 C", "141 C", "error: connection refused by peer"):
        assert words in done.stderr


def test_after_an_approval_lint_has_no_errors(base: Base, put_candidate: Put, run_khms: Run, commit: Run) -> None:
    put_candidate(base, "C1")
    commit(base)
    assert run_khms("approve", UNIT, "--all").returncode == 0
    found = json.loads(run_khms("lint", "--json").stdout)["findings"]
    assert [finding for finding in found if finding["severity"] == "error"] == []


def test_tables_and_texts_fit_a_terminal_of_eighty_columns(base: Base, put_candidate: Put, commit: Run) -> None:
    long = "one turn of the screw was enough, and the frames came in whole again " * 3
    put_candidate(base, title=long, body=f"FIX: {long}\n", relation={"kind": "new", "because": long})
    unit = base.inbox / UNIT / "unit.json"
    unit.write_text('{"created": "2026-03-05T02:00:00+01:00"}', encoding="utf-8")
    commit(base)
    pexpect = pytest.importorskip("pexpect")
    for call in (["inbox", "list"], ["inbox", "show"], ["show", f"{UNIT}/C1"]):
        child = pexpect.spawn(
            str(Path(sys.executable).parent / "khms"),
            call,
            cwd=str(base.root),
            dimensions=(24, 80),
            encoding="utf-8",
            timeout=60,
        )
        child.expect(pexpect.EOF)
        rows = re.sub(r"\x1b\[[0-9;]*m", "", child.before).replace("\r", "").split("\n")
        assert [row for row in rows if len(row) > 80] == []
        if call == ["inbox", "list"]:
            assert rows[0].split() == ["unit", "created", "pending", "flagged", "deferred", "dropped"]
            assert rows[2].split()[:3] == [UNIT, "2026-03-05", "02:00"]
