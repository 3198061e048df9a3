"""`khms recall` and `khms index` as a person and a program see them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]


@pytest.fixture
def asked(base: Base, add_card: Write, commit: Callable[..., str]) -> Base:
    add_card(base, "K-00001", title="Checksum errors come from timing", status="superseded")
    add_card(
        base,
        "K-00002",
        title="Checksum errors come from a loose ground",
        tags=["gotcha"],
        links={"supersedes": "K-00001", "contradicts": ["K-00003"]},
        body="FIX: tighten the ground\nSUPERSEDES K-00001 BECAUSE: measured\n",
    )
    add_card(base, "K-00003", title="Checksum tables are slow", status="challenged", links={"contradicts": ["K-00002"]})
    commit(base)
    return base


def test_what_a_person_sees(asked: Base, run_khms: Run) -> None:
    done = run_khms("recall", "checksum", "errors")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == " 1  K-00002  Checksum errors come from a loose ground  [gotcha]"
    assert lines[1].startswith("    ! K-00003 contradicts it: ")
    assert "    memory/know/K-00002.md:" in done.stdout and "    | " in done.stdout
    assert "[CHALLENGED]" in done.stdout and "K-00001  " not in done.stdout
    assert "[SUPERSEDED, fog]" in run_khms("recall", "checksum", "errors", "--all").stdout


def test_what_a_program_sees(asked: Base, run_khms: Run) -> None:
    found = json.loads(run_khms("recall", "checksum errors", "--limit", "1", "--json").stdout)
    assert (found["schema"], found["query"], found["channel"]) == ("khms.recall/1", "checksum errors", "hybrid")
    (hit,) = found["hits"]
    assert hit["id"] == "K-00002" and hit["correctors"][0]["id"] == "K-00003" and 0 < hit["score"] <= 1
    keys = {"id", "kind", "type", "title", "path", "line", "score", "lexical_rank", "dense_rank", "status", "flags"}
    assert keys | {"snippet", "tags", "date", "links", "correctors"} <= hit.keys()


def test_nothing_on_record_says_where_else(asked: Base, run_khms: Run) -> None:
    done = run_khms("recall", "ground was loose", "--kind", "journal")
    assert done.returncode == 1 and "nothing on record" in done.stdout
    command = next(line for line in done.stdout.splitlines() if "khms recall" in line).partition("khms ")[2]
    assert command == "recall --unreviewed --kind journal 'ground was loose'"
    again = run_khms("recall", "--unreviewed", "--kind", "journal", "ground was loose")
    assert again.returncode == 0 and "UNREVIEWED" in again.stdout and "(journal)" in again.stdout
    blank = run_khms("recall", "zyzzyva", "--json")
    assert blank.returncode == 1 and json.loads(blank.stdout)["hits"] == []


@pytest.mark.parametrize(
    "query", ["-foo", "--fatal-on-warnings", "*", "C:\\temp", "[x]", 'say "hi', "(" * 3000, "memory:safe"]
)
def test_any_text_is_only_text(asked: Base, run_khms: Run, query: str) -> None:
    done = run_khms("recall", "--json", "--", query)
    assert done.returncode == 1 and json.loads(done.stdout)["hits"] == [], done


def test_an_empty_question_is_a_wrong_call(asked: Base, run_khms: Run) -> None:
    assert run_khms("recall", " ").returncode == 2
    assert run_khms("recall").returncode == 2


def test_index_tells_what_it_did_and_what_it_left_out(asked: Base, run_khms: Run, write: Write) -> None:
    found = json.loads(run_khms("index", "--json").stdout)
    assert found["docs"] > 0 and found["added"] > 0 and found["skipped"] == []
    assert json.loads(run_khms("index", "--json").stdout)["added"] == 0
    assert "built anew: asked for" in run_khms("index", "--rebuild").stdout
    write(asked, "memory/know/K-00009.md", "---\nid: [\n---\n")
    done = run_khms("index")
    assert done.returncode == 1 and "memory/know/K-00009.md" in done.stderr
    assert run_khms("recall", "checksum").returncode == 0


def test_nothing_that_a_terminal_obeys(base: Base, run_khms: Run, add_card: Write) -> None:
    add_card(base, title="marmalade \x1b]0;owned\x07", body="marmalade \x1b[2J\n")
    assert "\x1b" not in run_khms("recall", "marmalade").stdout


def test_a_file_name_with_a_line_break(base: Base, run_khms: Run, add_card: Write) -> None:
    name = "K-00001\n 2  K-00002  forged\n.md"
    add_card(base, title="marmalade").rename(base.know / name)
    for command in (("recall", "marmalade"), ("card", "list")):
        lines = run_khms(*command).stdout.splitlines()
        assert not [line for line in lines if line.startswith(" 2  ")], lines
    assert run_khms("recall", "marmalade").stdout.splitlines()[1].startswith("    memory/know/K-00001 2  K-00002")


def test_files_that_were_left_out_are_never_passed_over(
    asked: Base, run_khms: Run, write: Write, tmp_path: Path
) -> None:
    write(asked, "memory/know/K-00009.md", "---\nid: [\n---\nzyzzyva\n")
    done = run_khms("recall", "zyzzyva")
    assert done.returncode == 1 and "1 file is not in the index" in done.stderr and "khms index" in done.stderr
    assert json.loads(run_khms("recall", "checksum", "--json").stdout)["skipped"] == 1
    (asked.know / "K-00009.md").unlink()
    write(asked, "khms.toml", "[lint]\nmax_bytes = 1\n")
    assert "files are not in the index" in run_khms("recall", "checksum").stderr
    write(asked, "khms.toml", "")
    asked.know.rename(tmp_path / "elsewhere")
    asked.know.symlink_to(tmp_path / "elsewhere")
    assert "1 file is not in the index" in run_khms("recall", "checksum").stderr
    done = run_khms("status", "--check")
    assert done.returncode == 1 and "left out of the index" in done.stdout and "khms index" in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("checksum", "after:yesterday"), "2026-03-04"),
        (("checksum", "before:2026-13-01"), "2026-03-04"),
        (("checksum", "kind:bogus"), "card, lesson, journal, inbox, note"),
        (("checksum", "--kind", "bogus"), "card, lesson, journal, inbox, note"),
        (("checksum", "status:x"), "active, challenged"),
        (("checksum", "type:fct"), "problem-solution"),
    ],
)
def test_a_filter_that_nothing_can_pass(asked: Base, run_khms: Run, args: tuple[str, ...], said: str) -> None:
    done = run_khms("recall", *args)
    assert done.returncode == 2 and said in done.stderr, done
    assert run_khms("recall", "checksum", "kind:Card", "status:active", "type:fact").returncode == 0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("tag:gotchas", "no document has tag:gotchas; did you mean tag:gotcha?"),
        ("tag:got checksum", "no document has tag:got; did you mean tag:gotcha?"),
        ("scope:univrsal", "no document has scope:univrsal; did you mean scope:universal?"),
        ("tag:xylophone", "no document has tag:xylophone"),
        ("type:policy", "no document has type:policy"),
        ("kind:lesson", "no document has kind:lesson"),
        ("type:facts", "did you mean type:fact?"),
        ("kind:cards", "did you mean kind:card?"),
        ("status:activ", "did you mean status:active?"),
    ],
)
def test_a_filter_that_no_document_passes_names_what_is_near(asked: Base, run_khms: Run, query: str, said: str) -> None:
    done = run_khms("recall", query)
    assert done.returncode in (1, 2) and said in done.stderr
    assert ("did you mean" in done.stderr) is ("did you mean" in said)


def test_a_filter_that_has_documents_is_not_to_blame(asked: Base, run_khms: Run) -> None:
    done = run_khms("recall", "tag:gotcha zyzzyva")
    assert (done.returncode, done.stderr) == (1, "")


def test_an_index_that_was_damaged_says_so_once(asked: Base, run_khms: Run) -> None:
    run_khms("index")
    for path in asked.index.rglob("*.store"):
        path.write_bytes(b"\xff" * path.stat().st_size)
    done = run_khms("recall", "checksum", "errors")
    assert done.returncode == 0 and "K-00002" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("the index was built anew: ") and ".store" in line
    assert run_khms("recall", "checksum", "errors").stderr == ""


def test_a_card_that_is_not_what_was_approved(base: Base, run_khms: Run, write: Write) -> None:
    made = run_khms(
        *("card", "new", "fact", "--title", "Frames need a ground", "--body", "-", "--evidence", "measured"),
        *("--source", 'journal/2026-03-04.md line 3: "frames failed because a ground was loose"', "--json"),
        input="A loose ground breaks frames.\n",
    )
    assert run_khms(*json.loads(made.stdout)["approve"][1:]).returncode == 0
    (hit,) = json.loads(run_khms("recall", "frames ground", "--json").stdout)["hits"]
    assert hit["flags"] == []
    found = json.loads(run_khms("show", "K-00001", "--json").stdout)
    assert (found["proof"], found["warning"]) == ("approved", None)
    card = base.know / "K-00001.md"
    card.write_text(card.read_text(encoding="utf-8").replace("breaks", "mends"), encoding="utf-8")
    (hit,) = json.loads(run_khms("recall", "frames ground", "--json").stdout)["hits"]
    assert hit["flags"] == ["CHANGED"] and "[CHANGED]" in run_khms("recall", "frames ground").stdout
    first = run_khms("show", "K-00001").stdout.splitlines()[0]
    assert first.startswith("NOT as approved: its bytes differ from memory/approvals/") and "khms lint" in first
    assert json.loads(run_khms("show", "K-00001", "--json").stdout)["proof"] == "changed"
    write(base, "memory/know/K-00007.md", "---\nid: K-00007\ntype: fact\ntitle: frames by hand\n---\nwords\n")
    assert run_khms("show", "K-00007").stdout.startswith("no approval record names this card\n")
    assert json.loads(run_khms("show", "K-00007", "--json").stdout)["proof"] == "none"
    for record in base.approvals.iterdir():
        record.write_text("{", encoding="utf-8")
    assert "cannot be told" in run_khms("show", "K-00001").stdout.splitlines()[0]
    assert run_khms("recall", "nothing like it zyzzyva").returncode == 1


def test_a_base_older_than_the_records_misses_none(base: Base, run_khms: Run, add_card: Write) -> None:
    add_card(base)
    found = json.loads(run_khms("show", "K-00001", "--json").stdout)
    assert (found["proof"], found["warning"]) == ("none", None)
