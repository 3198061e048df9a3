"""Only what is meant as a phrase or a filter is one; all else is text, and nothing raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.errors import Usage
from khms.model.document import Query
from khms.recall import query
from khms.recall.query import parse, plain


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("how often", Query("how often")),
        ('"loose ground" wire', Query("wire", ("loose ground",))),
        ('wire "loose ground", please', Query("wire  , please", ("loose ground",))),
        ("wire tag:sensors", Query("wire", (), (("tag", "sensors"),))),
        ("type:problem→solution", Query("", (), (("type", "problem-solution"),))),
        ("scope:project:vane x", Query("x", (), (("scope", "project:vane"),))),
        ("after:2026-01-01 before:2026-02", Query("", (), (("after", "2026-01-01"), ("before", "2026-02")))),
        ('kind:note "a b" status:active c', Query("c", ("a b",), (("kind", "note"), ("status", "active")))),
    ],
)
def test_phrases_and_filters(text: str, query: Query) -> None:
    assert parse(text) == query


@pytest.mark.parametrize(
    "text",
    [
        '"never closed',
        'ask "who',
        'a "b"~',
        'x="a b"',
        '""""',
        '" "',
        "body:*",
        "memory:safe",
        "tag:",
        "tag: x",
        "mytag:x",
        "after:yesterday",
        "before:2026-13-40",
        "kind: Deployment",
        'tag:"x y"',
        "https://h.invalid/?tag:x",
        "TAG:x",
    ],
)
def test_everything_else_is_text(text: str) -> None:
    assert parse(text) == Query(text.strip())


def test_a_phrase_ends_on_its_line() -> None:
    assert parse('say "one\ntwo" now').phrases == ()


def test_a_pasted_text_means_nothing() -> None:
    text = 'fix tag:x in "the file" type:y'
    assert plain(text) == Query(text)


def test_a_long_text_is_cut() -> None:
    assert len(parse("word " * 5000).text) <= 4096
    assert plain("abcdef", limit=6) == Query("abcdef")
    assert plain("abcdefgh", limit=4) == Query("ab gh")
    assert parse("x " * 4000 + "the failing line").text.endswith("the failing line")


@given(st.text())
def test_no_text_raises(text: str) -> None:
    parse(text)
    plain(text)


def test_a_person_is_told_of_a_filter_that_nothing_can_pass() -> None:
    def demanded(text: str, *held: tuple[str, str]) -> None:
        query.demand(parse(text, strict=True), lambda name, value: (name, value) in held, ["fact"])

    demanded("x kind:card kind:Note status:waiting type:fact tag:any scope:any after:2026-01 before:2027")
    demanded("x status:draft type:odd", ("status", "draft"), ("type", "odd"))
    demanded('"status:500" and kind: x')
    for text, valid in (
        ("kind:bogus", "journal"),
        ("status:x", "superseded"),
        ("type:odd", "fact"),
        ("after:yesterday", "2026-03-04"),
        ("before:2026-13-01", "2026-03-04"),
    ):
        with pytest.raises(Usage) as refused:
            demanded(f"x {text}")
        assert text in refused.value.message and valid in refused.value.hint
