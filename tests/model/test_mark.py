"""MARK lines: what counts as one, where it ends, and ids that survive edits elsewhere in the file."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.model.mark import mark_id, opening, parse_marks

PATH = "journal/2026-03-04.md"


def texts(journal: str) -> list[str]:
    return [mark.text for mark in parse_marks(journal, PATH)]


def test_a_mark_runs_on_until_something_ends_it() -> None:
    journal = (
        "# 2026-03-04\n\nMARK[decision] re-read the file\n   after a delay\n\nprose\n"
        "MARK[a] one\nMARK[b] two\n## heading\nMARK[c] three\n---\nMARK[d] four\n```\nx\n```\n"
    )
    assert texts(journal) == ["re-read the file after a delay", "one", "two", "three", "four"]


def test_kind_session_and_lines_are_known() -> None:
    (mark,) = parse_marks("x\n\n- MARK[solved]: the handle\nwas kept (sess 8f21)\n\n", PATH)
    assert (mark.kind, mark.text, mark.session) == ("solved", "the handle was kept", "8f21")
    assert (mark.line, mark.end, mark.date) == (3, 4, "2026-03-04")


def test_the_id_is_the_documented_hash() -> None:
    (mark,) = parse_marks("MARK[req] Must  say\tBattery (sess a1)\n", PATH)
    digest = hashlib.sha256(b"2026-03-04\0req\0Must say Battery\x001").hexdigest()
    assert mark.id == "M-" + digest[:12]


def test_ids_survive_edits_elsewhere_and_equal_marks_are_counted() -> None:
    before = parse_marks("MARK[a] same\nMARK[a] same\nMARK[b] other\n", PATH)
    after = parse_marks("prose\n\nMARK[b] other\n\nMARK[a]  same\n\n\nMARK[a] same\n", PATH)
    assert sorted(m.id for m in before) == sorted(m.id for m in after)
    assert len({m.id for m in before}) == 3


def test_two_clones_and_two_days_never_share_an_id() -> None:
    paths = ("journal/2026-03-04.md", "journal/2026-03-04.ab12.md", "journal/2026-03-05.md")
    assert len({parse_marks("MARK[a] x", path)[0].id for path in paths}) == 3


@pytest.mark.parametrize(
    "journal", ["```\nMARK[a] x\n```\n", "~~~~ text\nMARK[a] x\n~~~\n~~~~\n", "  ```md\n  MARK[a] x\n  ```\n"]
)
def test_a_mark_inside_a_code_fence_is_none(journal: str) -> None:
    assert texts(journal) == []


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert texts("```\nsome log\n\nMARK[failed] it broke\n") == ["it broke"]


@pytest.mark.parametrize("line", ["MARK[] x", "MARK x", "see MARK[a] x", "MARK[a b] x", "mark[a] x", "MARK[a"])
def test_what_only_looks_like_a_mark_is_none(line: str) -> None:
    assert texts(line + "\n") == []


def test_an_empty_mark_is_none_and_hides_no_other() -> None:
    assert texts("MARK[a]\n\nMARK[b] text\n") == ["text"]


def test_bom_and_crlf_read_as_if_absent() -> None:
    plain = parse_marks("MARK[a] x\ny\n", PATH)
    assert parse_marks("\ufeffMARK[a] x\r\ny\r\n", PATH) == plain


def test_composed_and_decomposed_text_have_one_id() -> None:
    assert parse_marks("MARK[a] Caf\u00e9\n", PATH)[0].id == parse_marks("MARK[a] Cafe\u0301\n", PATH)[0].id


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    for mark in parse_marks(text, PATH):
        assert mark.text and mark.id.startswith("M-") and 1 <= mark.line <= mark.end


@given(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text(alphabet=st.characters(codec="utf-8"), min_size=1))
def test_what_is_written_on_one_line_reads_back(kind: str, text: str) -> None:
    from khms.errors import Refused
    from khms.store.journal import mark_line

    try:
        line = mark_line(kind, text)
    except Refused:
        assert not text.split()
        return
    assert "\n" not in line and opening(line) is not None
    (mark,) = parse_marks(line + "\n", PATH)
    assert mark.kind == kind
    assert mark.id == mark_id("2026-03-04", kind, mark.text, 1)
