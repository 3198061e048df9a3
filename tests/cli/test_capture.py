"""`khms mark` with its options, and the journal as it is shown."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_words_without_quotes_are_one_text(run_khms: Run, base: Base) -> None:
    done = run_khms("mark", "solved", "the", "ground", "was", "loose")
    assert done.returncode == 0
    assert run_khms("journal", "show").stdout.endswith("MARK[solved] the ground was loose\n")


def test_text_from_standard_input_and_json(run_khms: Run, base: Base) -> None:
    done = run_khms("mark", "solved", "-", "--json", "--session", "abcdefghijkl", input="one\ntwo\n")
    value = json.loads(done.stdout)
    assert value == {
        "schema": "khms.mark/1",
        "id": value["id"],
        "kind": "solved",
        "text": "one two",
        "session": "abcdefgh",
        "line": 3,
        "path": f"journal/{time.strftime('%Y-%m-%d')}.md",
        "redacted": False,
    }


def test_an_empty_session_is_none_even_in_a_host(run_khms: Run, base: Base) -> None:
    env = {"CLAUDE_CODE_SESSION_ID": "abc"}
    done = run_khms("mark", "a", "b", "--session", "", "--json", env=env)
    assert json.loads(done.stdout)["session"] == ""


@pytest.mark.parametrize(
    ("words", "given", "code", "said"),
    [
        (["mark", "solved", "-"], "", 2, "no text on standard input"),
        (["mark", "solved", "-"], " \n", 2, "no text on standard input"),
        (["mark", "solved", "-"], "x" * 100_000, 3, "characters"),
        (["mark", "solved"], "", 2, "TEXT"),
        (["mark", "so lved", "a", "b"], "", 3, "no kind of MARK"),
        (["mark", "solved", "--offline", "fails"], "", 2, "--offline"),
        (["journal", "show", "yesterday"], "", 2, "no date"),
        (["journal", "show", "2026-3-4"], "", 2, "no date"),
        (["journal", "show", "2026-02-30"], "", 2, "no date"),
        (["journal", "show", "2020-01-01"], "", 1, "no journal of 2020-01-01"),
    ],
)
def test_what_cannot_be_done_says_why(
    run_khms: Run, base: Base, words: list[str], given: str, code: int, said: str
) -> None:
    done = run_khms(*words, input=given)
    assert done.returncode == code and said in done.stderr and done.stdout == ""


def test_a_text_that_looks_like_an_option(run_khms: Run, base: Base) -> None:
    assert run_khms("mark", "failed", "--", "--offline does not work").returncode == 0
    assert "MARK[failed] --offline does not work\n" in run_khms("journal", "show").stdout


def test_the_journal_of_a_day_and_of_the_newest(run_khms: Run, base: Base, write: Callable[..., Path]) -> None:
    write(base, "journal/2026-03-05.ab12.md", "# 2026-03-05\n\nMARK[req] from \x1b[31manother clone\n")
    write(base, "journal/notes.md", "no day\n")
    assert run_khms("journal", "show", "2026-03-04").stdout.startswith("# 2026-03-04\n\nMARK[solved] frames failed")
    shown = run_khms("journal", "show")
    assert "another clone" in shown.stdout and "\x1b" not in shown.stdout and "2026-03-05.ab12.md" in shown.stderr
    value = json.loads(run_khms("journal", "show", "--json", "2026-03-04").stdout)
    ((day),) = value["days"]
    assert (value["schema"], value["date"], day["path"]) == ("khms.journal/1", "2026-03-04", "journal/2026-03-04.md")
    assert day["marks"][0]["kind"] == "solved" and day["marks"][0]["line"] == 3


def test_an_empty_journal(run_khms: Run, base: Base) -> None:
    (base.journal / "2026-03-04.md").unlink()
    done = run_khms("journal", "show")
    assert done.returncode == 1 and "khms mark" in done.stderr
    assert json.loads(run_khms("journal", "show", "--json").stdout)["days"] == []
