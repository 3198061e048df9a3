"""One key changes and every other byte stays, or nothing happens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from khms.model.approval import card_sha256
from khms.store.markdown import Unreadable, Value, parse, remove_keys, render, set_key

CARD = """\
---
# about this card
id:   K-00042
x_custom: 'keep   me'   # and me
status: active              # active | challenged
tags:   # see tags.yaml
  - one
  # between
  - two   # second

note: |
  # not a comment
  text

long: one
  two  # tail
flow: [a,
  b]  # after
links:
  contradicts: []   # none yet
  supersedes: null
  refuted_by:
# before the date
date: 2026-03-04
---
status: a body line
---
"""

REPLACED: list[tuple[str, Value, str, str]] = [
    ("status", "challenged", "status: active   ", "status: challenged   "),
    ("id", "K-00043", "id:   K-00042", "id:   K-00043"),
    ("x_custom", "a: b", "'keep   me'   #", '"a: b"   #'),
    (
        "tags",
        ["x"],
        "tags:   # see tags.yaml\n  - one\n  # between\n  - two   # second\n",
        "tags: [x]   # see tags.yaml\n",
    ),
    ("note", "short", "note: |\n  # not a comment\n  text\n", "note: short\n"),
    ("note", "two\nlines", "note: |\n  # not a comment\n  text\n", 'note: "two\\nlines"\n'),
    ("long", "x", "long: one\n  two  # tail", "long: x  # tail"),
    ("flow", None, "flow: [a,\n  b]  # after", "flow: null  # after"),
    ("flow", {"a": "b"}, "flow: [a,\n  b]  # after", "flow:  # after\n  a: b"),
    ("links.contradicts", ["K-1", "K-2"], "contradicts: []   # none", "contradicts: [K-1, K-2]   # none"),
    ("links.refuted_by", ["K-1"], "  refuted_by:\n", "  refuted_by: [K-1]\n"),
    ("links.supersedes", "K-00007", "supersedes: null", "supersedes: K-00007"),
    ("links.new", "x", "# before the date\n", "# before the date\n  new: x\n"),
    ("new", "x", "date: 2026-03-04\n", "date: 2026-03-04\nnew: x\n"),
    ("links.refuted_by.deep", "x", "  refuted_by:\n", "  refuted_by:\n    deep: x\n"),
    ("fresh.deep.er", ["x"], "date: 2026-03-04\n", "date: 2026-03-04\nfresh:\n  deep:\n    er: [x]\n"),
]  # fmt: skip


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(("key", "value", "old", "new"), REPLACED)
def test_only_the_key_changes(key: str, value: Value, old: str, new: str, ends: str) -> None:
    assert CARD.count(old) == 1
    text, expected = (t.replace("\n", ends) for t in (CARD, CARD.replace(old, new)))
    assert set_key(text, key, value) == expected
    assert set_key("\ufeff" + text, key, value) == "\ufeff" + expected
    assert set_key(expected, key, value) == expected


def test_a_block_of_values_goes_below_the_comment_of_its_line() -> None:
    assert (
        set_key("---\na: b  # c\nd: e\n---\n", "a", [{"x": "v"}, "z"]) == "---\na:  # c\n  - x: v\n  - z\nd: e\n---\n"
    )


def test_a_key_with_a_dot_in_it_is_one_key() -> None:
    assert set_key('---\n"a.b": c\n---\n', "a.b", "x") == '---\n"a.b": x\n---\n'
    assert remove_keys("---\na.b: c\nd: e\n---\n", ["a.b"]) == "---\nd: e\n---\n"
    with pytest.raises(Unreadable):
        remove_keys("---\nl:\n  a.b: c\n  d: e\n---\n", ["l.a.b"])


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("---\n---\nB", "a", "---\na: x\n---\nB"),
        ("---\nlinks:\n---\n", "links.a", "---\nlinks:\n  a: x\n---\n"),
        ("---\nlinks: null  # c\n---\n", "links.a", "---\nlinks:  # c\n  a: x\n---\n"),
        ("---\nlinks:\n    b: c\n---\n", "links.a", "---\nlinks:\n    b: c\n    a: x\n---\n"),
        ("---\n  b: c\n...\n", "a", "---\n  b: c\n  a: x\n...\n"),
        ("---\ntags:\n- a\n- b\nc: d\n---\n", "tags", "---\ntags: x\nc: d\n---\n"),
        ("---\na:\n  folded\n  text\nc: d\n---\n", "a", "---\na: x\nc: d\n---\n"),
        ('---\n"a": "b"\n---\n', "a", '---\n"a": x\n---\n'),
        ("---\na: |+\n  b\n\n\nc: d\n---\n", "a", "---\na: x\nc: d\n---\n"),
    ],
)
def test_shapes(text: str, key: str, expected: str) -> None:
    assert set_key(text, key, "x") == expected


@pytest.mark.parametrize(
    ("text", "key", "line", "said"),
    [
        ("---\na: b: c\n---\n", "x", 2, "another key"),
        ("---\na: b\n---\n\n---\nx_custom: keep\n---\n", "x", 5, "two frontmatter blocks"),
        ("Just text.\n", "x", 1, "no frontmatter"),
        ("---\nA rule.\n", "x", 1, "no frontmatter"),
        ("---\nid: x\nlinks: {a: b}\n---\n", "links.a", 3, "in brackets"),
        ("---\nid: x\nlinks: {}\n---\n", "links.new", 3, "in brackets"),
        ("---\nid: x\nlinks: {a: {b: c}}\n---\n", "links.a.b", 3, "in brackets"),
        ("---\nid: x\nlinks: text\n---\n", "links.a", 3, "holds a value"),
        ("---\nid: x\nlinks:\n  - a\n---\n", "links.a", 3, "holds a value"),
        ("---\n? a\n: b\n---\n", "a", 2, "where it stands"),
        ("---\n{a: b}\n---\n", "a", 2, "where it stands"),
        ("---\n{a: b}\n---\n", "c", 2, ""),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str, key: str, line: int, said: str) -> None:
    with pytest.raises(Unreadable) as caught:
        set_key(text, key, "x")
    assert (caught.value.line, said in caught.value.message, bool(caught.value.mend)) == (line, True, True)


@pytest.mark.parametrize("gone", [[], ["links.contradicts"], ["links.refuted_by", "links.contradicts"], ["links"]])
def test_the_approved_hash_outlives_what_may_change(gone: list[str]) -> None:
    text = remove_keys(CARD, gone)
    changed = set_key(
        set_key(set_key(text, "status", "challenged"), "links.contradicts", ["K-1"]), "links.refuted_by", ["K-2"]
    )
    assert card_sha256(changed.encode()) == card_sha256(text.encode())
    assert card_sha256(set_key(changed, "note", "x").encode()) != card_sha256(text.encode())


def test_remove_keys() -> None:
    text = remove_keys(CARD, ["tags", "note", "missing", "links.missing", "links.refuted_by", "x_custom"])
    cut = [
        "x_custom: 'keep   me'   # and me\n",
        "tags:   # see tags.yaml\n  - one\n  # between\n  - two   # second\n",
        "note: |\n  # not a comment\n  text\n",
        "  refuted_by:\n",
    ]
    expected = CARD
    for part in cut:
        expected = expected.replace(part, "")
    assert text == expected
    assert remove_keys(CARD.replace("\n", "\r\n"), ["tags"]).count("\r\n") == CARD.count("\n") - 4


def test_a_mapping_without_keys_goes_too() -> None:
    text = "---\nid: x\nlinks:\n  a:\n    b: c\n---\nB"
    assert remove_keys(text, ["links.a.b"]) == "---\nid: x\n---\nB"
    assert remove_keys(text, ["links", "id"]) == "---\n---\nB"
    with pytest.raises(Unreadable, match="in brackets"):
        remove_keys("---\nlinks: {a: b}\n---\n", ["links.a"])
    with pytest.raises(Unreadable, match="no frontmatter"):
        remove_keys("text", ["a"])


INNER = st.recursive(
    st.none() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("fgh"), inner, min_size=1, max_size=3),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcde"), INNER, min_size=1),
    st.sampled_from("abcde"),
    st.none() | st.text(max_size=12) | st.lists(st.text(max_size=4), max_size=3),
)
def test_on_whatever_was_rendered_setting_and_removing_do_just_that(
    meta: dict[str, Any], key: str, value: Value
) -> None:
    text = render(meta, "Body.")
    assert parse(set_key(text, key, value)).meta == {**meta, key: value}
    if key in meta:
        assert set_key(set_key(text, key, value), key, meta[key]) == text
        assert remove_keys(text, [key]) == render({k: v for k, v in meta.items() if k != key}, "Body.")


def test_a_second_block_is_left_alone(shared: Callable[[str], Path]) -> None:
    text = shared("cases/03-two-frontmatter-blocks.md").read_text(encoding="utf-8")
    with pytest.raises(Unreadable, match="two frontmatter blocks"):
        set_key(text, "status", "active")
    with pytest.raises(Unreadable, match="two frontmatter blocks"):
        remove_keys(text, ["permalink"])
