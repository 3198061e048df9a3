"""Quotes against their sources: the four grades, what is too little to be a quote, and where a source may lie."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.model.candidate import Candidate
from khms.model.mark import parse_marks
from khms.model.outcome import FAIL, NOT_RUN, PASS
from khms.pipeline import quotes
from khms.pipeline.quotes import Reader, Source
from khms.store.layout import Base

SOURCE = """# 2026-03-04

MARK[solved] humidity gaps were log rotation, not the
sensor: the writer kept the “old handle” (sess 8f21)

214 of 600 frames failed, after 1.5 seconds; see `poll_interval`.
重启之后所有的缓存都会被清空并且需要重新加载
"""


def grade(words: str, text: str = SOURCE) -> str:
    return Source("journal/2026-03-04.md", text, "").look_up(words)[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("humidity gaps were log rotation", "EXACT"),
        ("log rotation, not the\nsensor", "EXACT"),
        ("log rotation, not the sensor", "WRAPPED"),
        ('the writer kept the "old handle"', "WRAPPED"),
        ("humidity   gaps were log\trotation", "WRAPPED"),
        ("humidity gaps … the writer kept", "ELIDED"),
        ("humidity gaps ... kept the", "ELIDED"),
        ("humidity gaps [...] old handle", "ELIDED"),
        ("humidity gaps [… ] old handle", "ABSENT"),
        ("the writer kept … humidity gaps", "ABSENT"),
        ("humidity gaps … of the moon", "ABSENT"),
        ("Humidity gaps were log rotation", "ABSENT"),
        ("the pump ran for nine hours", "ABSENT"),
        ("14 of 600 frames failed", "ABSENT"),
        ("214 of 60", "ABSENT"),
        ("5 seconds; see", "ABSENT"),
        ("after 1.5 seconds", "EXACT"),
        ("poll_inter", "ABSENT"),
        ("所有的缓存都会被清空", "EXACT"),
        ("", "ABSENT"),
        ("…", "ABSENT"),
    ],
)
def test_grades(words: str, expected: str) -> None:
    assert grade(words) == expected


def test_a_match_knows_its_lines() -> None:
    source = Source("x", SOURCE, "")
    assert source.look_up("214 of 600 frames") == ("EXACT", 6, 6)
    assert source.look_up("not the sensor: the writer") == ("WRAPPED", 3, 4)
    assert source.look_up("humidity gaps … frames failed") == ("ELIDED", 3, 6)
    assert source.context(6, 6).split("\n")[0] == "214 of 600 frames failed, after 1.5 seconds; see `poll_interval`."


def test_the_lines_kept_around_a_quote_hold_no_secret_and_no_control_character() -> None:
    text = "before\x1b[31m sk-abcdefghijklmnopqrstuvwxyz123456\nthe words that are quoted\nafter"
    kept = Source("x", text, "").context(2, 2)
    assert "sk-abc" not in kept
    assert "\x1b" not in kept
    assert "the words that are quoted" in kept


@pytest.fixture
def held(base: Base, write: Callable[..., Path], add_card: Callable[..., Path]) -> Base:
    write(base, "journal/2026-03-05.md", SOURCE)
    write(base, "docs/notes.md", "﻿a note with\r\nwords of its own\r\n")
    write(base, "memory/inbox/2026-03-05-nightly/C1.md", "---\nid: C1\n---\nwords that prove themselves\n")
    add_card(base, "K-00001", body="the station reports in tenths of a degree\n")
    return base


def candidate(text: str, source: str = "journal", *, mark: str = "", **meta: Any) -> Candidate:
    quote = {"source": source, "text": text, **{k: meta.pop(k) for k in ("sha256", "context") if k in meta}}
    return Candidate("C1", {"mark": mark, "quotes": [quote], **meta}, "body\n")


def judged(base: Base, made: Candidate) -> tuple[str, str]:
    (outcome,) = quotes.check(Reader(base), made)
    return outcome.state, outcome.message


MARK = parse_marks(SOURCE, "journal/2026-03-05.md")[0].id


@pytest.mark.parametrize(
    ("text", "source", "state"),
    [
        ("humidity gaps were log rotation", "journal", PASS),
        ("frames failed because a ground", "journal", FAIL),  # stands in the other day's file
        ("frames failed because a ground", "journal/2026-03-04.md", PASS),
        ("frames failed because a ground", "journal/2026-03-04.md line 3", PASS),
        ("a note with words of its own", "docs/notes.md", PASS),
        ("in tenths of a degree", "K-00001", PASS),
        ("in tenths of a metre", "K-00001", FAIL),
        ("in tenths of a degree", "K-00099", NOT_RUN),
        ("a page that nobody fetched", "https://example.org/page", NOT_RUN),
        ("what was said in a session", "session:claude-code/abc", NOT_RUN),
        ("a file that is not there", "docs/gone.md", NOT_RUN),
        ("root:x:0:0:root:/root", "/etc/passwd", FAIL),
        ("root:x:0:0:root:/root", "../../../../etc/passwd", FAIL),
        ("words that prove themselves", "memory/inbox/2026-03-05-nightly/C1.md", FAIL),
        ("repositoryformatversion = 0", ".git/config", FAIL),
        ("repositoryformatversion = 0", "docs/../.git/config", FAIL),
        ("the password of everything", "docs/.env", FAIL),
        ("log rotation", "journal", PASS),
        ("the sensor", "journal", FAIL),  # ten characters
        ("it was not that which", "journal", FAIL),
    ],
)
def test_sources(held: Base, write: Callable[..., Path], text: str, source: str, state: str) -> None:
    write(held, "docs/.env", "the password of everything\n")
    assert judged(held, candidate(text, source, mark=MARK))[0] == state


def test_a_source_that_is_gone_is_replaced_by_the_lines_kept_with_the_quote(held: Base) -> None:
    sha256 = "0" * 64
    kept = "asked: why\nthe pool was exhausted by a leaked cursor\nthen: fixed"
    words = "exhausted by a leaked cursor"
    state, message = judged(held, candidate(words, "session:codex/7", sha256=sha256, context=kept))
    assert (state, "lines kept with it" in message) == (PASS, True)
    assert (
        judged(held, candidate("exhausted by a lost socket", "session:codex/7", sha256=sha256, context=kept))[0]
        == NOT_RUN
    )
    # Where the source is there, it decides, and nothing that came along.
    assert judged(held, candidate(words, "docs/notes.md", sha256=sha256, context=kept))[0] == FAIL


def test_a_journal_that_has_not_come_here_yet_is_replaced_by_the_lines_kept_with_the_quote(held: Base) -> None:
    """The day's file is here, and the MARK is not in it: the unit came first, on a branch of its own."""
    words = "the pool was exhausted by a leaked cursor"
    meta = {"mark": "M-0123456789ab", "source": "journal/2026-03-05.md line 99", "sha256": "0" * 64}
    state, message = judged(held, candidate(words, context=f"before\n{words}\nafter", **meta))
    assert (state, "no journal file here holds M-0123456789ab" in message) == (PASS, True)
    assert judged(held, candidate(words, context="other lines", **meta))[0] == FAIL
    here = {**meta, "mark": MARK}
    assert judged(held, candidate(words, context=words, **here))[0] == FAIL  # the MARK is here, so the file decides


def test_without_a_mark_the_journal_is_the_file_that_the_source_names_or_else_all_of_it(held: Base) -> None:
    words = "frames failed because a ground was loose"
    assert judged(held, candidate(words))[0] == PASS
    assert judged(held, candidate(words, source="journal", mark=""))[0] == PASS
    named = Candidate(
        "C1", {"source": "journal/2026-03-05.md lines 3-4", "quotes": [{"source": "journal", "text": words}]}, ""
    )
    assert judged(held, named)[0] == FAIL


def test_the_older_tools_write_quotes_below_the_body_or_as_a_key(held: Base) -> None:
    listed = "- src=journal :: humidity gaps were log rotation, not the\n- src=K-00001 :: of a mile\n"
    body = f"FIX: reopen by name\n\n**QUOTES:**\n{listed}"
    found = quotes.check(Reader(held), Candidate("C1", {}, body))
    assert [outcome.state for outcome in found] == [PASS, FAIL]
    lone = Candidate("C1", {"source": "journal/2026-03-04.md", "quote": "the pump ran for nine hours"}, "body")
    assert judged(held, lone) == (FAIL, "“the pump ran for nine hours” is not in journal/2026-03-04.md")


def test_a_candidate_without_quotes_was_not_checked(held: Base) -> None:
    (outcome,) = quotes.check(Reader(held), Candidate("C1", {}, "body"))
    assert outcome.state == NOT_RUN


def test_what_was_read_counts_and_not_what_the_file_says_now(held: Base, write: Callable[..., Path]) -> None:
    reader = Reader(held, {"journal/2026-03-05.md": SOURCE.encode()})
    write(held, "journal/2026-03-05.md", "# 2026-03-05\n")
    (outcome,) = quotes.check(reader, candidate("humidity gaps were log rotation", mark=MARK))
    assert outcome.state == PASS
    graded = quotes.graded(
        reader, candidate("x"), quotes.Quote("journal/2026-03-05.md", "humidity gaps were log rotation")
    )
    assert graded.grade == "EXACT"
    assert len(graded.sha256) == 64


def test_the_case_of_a_quote_that_stands_in_no_source(base: Base, shared: Callable[[str], Path], write: Any) -> None:
    shared("cases/41-quote-not-in-source.md")
    write(base, "journal/2026-03-04.md", "# 2026-03-04\n\nMARK[note] the pump ran overnight\n")
    meta = {"source": "journal/2026-03-04.md", "quote": "the pump ran for nine hours at 41 degrees"}
    assert judged(base, Candidate("C1", meta, "Body text.\n"))[0] == FAIL
