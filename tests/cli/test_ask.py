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
    assert (found["schema"], found["query"], found["channel"]) == ("khms.recall/1", "checksum errors", "lexical")
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
