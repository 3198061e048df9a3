"""Writing: the same text comes back, here and from an ordinary YAML reader, and the form is the one cards have."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from khms.store.markdown import Unreadable, parse, render, scalar

# Near what YAML takes for something else, and the whole of Unicode.
TRICKY = st.text("0123456789-:.+_eExoTZ yYnN~#'\"\\[]{},&*!|>%@`?=<\t\n\r\x85\u2028\u202e\ufeff😀é\x00", max_size=8)
TEXTS = TRICKY | st.text(max_size=30)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS.filter(bool), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Checksum errors were a loose ground, not timing", None),
        ("device:weather-station", None),
        ("problem→solution", None),
        ("2026-03-04", None),
        ("K-00042", None),
        ("缓存失效策略", None),
        ("it's", None),
        ("2026-02-30", '"2026-02-30"'),
        ("0000-01-01", '"0000-01-01"'),
        ("2026-07-30T09:05:28-06:00", '"2026-07-30T09:05:28-06:00"'),
        ("", '""'),
        ("Cache: why", '"Cache: why"'),
        ("Fix #12", '"Fix #12"'),
        ("yes", '"yes"'),
        ("Off", '"Off"'),
        ("NULL", '"NULL"'),
        ("~", '"~"'),
        ("y", '"y"'),
        ("42", '"42"'),
        ("0123456", '"0123456"'),
        ("12:30", '"12:30"'),
        ("1.10", '"1.10"'),
        ("1e5", '"1e5"'),
        ("0x1F", '"0x1F"'),
        ("-1", '"-1"'),
        (".inf", '".inf"'),
        ("ends with:", '"ends with:"'),
        (" led", '" led"'),
        ("trailed ", '"trailed "'),
        ("*italic*", '"*italic*"'),
        ("<<", '"<<"'),
        ("=", '"="'),
        ("---", '"---"'),
        ("rocket 🚀", '"rocket 🚀"'),
        (r"`C:\agent`", r"'`C:\agent`'"),
        ('[it\'s] "so"', "'[it''s] \"so\"'"),
        ('two\nlines\t"q"', r'"two\nlines\t\"q\""'),
        ("a\x85b\u2028c\u2029d\ufeffe\x00f", r'"a\u0085b\u2028c\u2029d\ufeffe\u0000f"'),
        ("over\u202eride", r'"over\u202eride"'),
    ],
)
def test_scalars_are_plain_only_where_that_is_safe(text: str, written: str | None) -> None:
    assert scalar(text) == (text if written is None else written)


@settings(max_examples=1500, deadline=None)
@given(TEXTS)
def test_a_scalar_comes_back_as_the_same_text(text: str) -> None:
    written = scalar(text)
    assert "\n" not in written and parse(f"---\nk: {written}\n---\n").meta == {"k": text}
    if written != text or not text[:4].isdigit():  # a plain date is a date elsewhere, and meant to be
        for loader in (yaml.SafeLoader, yaml.CSafeLoader):
            assert yaml.load(f"k: {written}\n", Loader=loader) == {"k": text}


@settings(max_examples=600, deadline=None)
@given(
    st.dictionaries(TEXTS.filter(bool), VALUES, max_size=5),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=40),
)
def test_a_page_comes_back_as_the_same_values_in_the_same_order(meta: dict[str, Any], body: str) -> None:
    try:
        text = render(meta, body)
    except Unreadable as error:
        assert "two frontmatter blocks" in error.message
        return
    page = parse(text.encode())
    assert json.dumps(page.meta) == json.dumps(meta)
    assert page.body == (body if not body or body.endswith("\n") else body + "\n")


def test_the_form_of_a_candidate() -> None:
    meta = {
        "id": "C1",
        "title": "Cache: why",
        "tags": ["sensors", "a, b", None],
        "date": "2026-03-04",
        "links": {"derived_from": [], "supersedes": None, "supports": ["K-00001", "K-00002"]},
        "quotes": [
            {"source": "journal", "text": "line one\nline two", "context": ["a", "b"]},
            {"source": "K-00001", "lines": {"from": "3"}},
        ],
        "long": ["word " * 9 + "end"] * 3,
        "nested": [["a", "b"], [["c"], []]],
        "none": {},
        "yes": "no",
        "odd key": "x",
    }
    assert render(meta, "Body.") == (
        "---\n"
        "id: C1\n"
        'title: "Cache: why"\n'
        'tags: [sensors, "a, b", null]\n'
        "date: 2026-03-04\n"
        "links:\n"
        "  derived_from: []\n"
        "  supersedes: null\n"
        "  supports: [K-00001, K-00002]\n"
        "quotes:\n"
        "  - source: journal\n"
        '    text: "line one\\nline two"\n'
        "    context: [a, b]\n"
        "  - source: K-00001\n"
        "    lines:\n"
        '      from: "3"\n'
        "long:\n"
        "  - word word word word word word word word word end\n"
        "  - word word word word word word word word word end\n"
        "  - word word word word word word word word word end\n"
        "nested:\n"
        "  - [a, b]\n"
        "  - - [c]\n"
        "    - []\n"
        "none: {}\n"
        '"yes": "no"\n'
        '"odd key": x\n'
        "---\n"
        "Body.\n"
    )


def test_what_would_not_read_back_is_not_written() -> None:
    with pytest.raises(Unreadable, match="two frontmatter blocks"):
        render({"id": "C1"}, "---\nid: C2\n---\n")
    with pytest.raises(Unreadable, match="surrogate"):
        scalar("half \ud83d")
    with pytest.raises(TypeError, match="float"):
        render({"confidence": 0.8}, "")
    with pytest.raises(TypeError, match="int"):
        render({"numbers": [1]}, "")
    deep: dict[str, Any] = {}
    for _ in range(25):
        deep = {"k": deep}
    with pytest.raises(Unreadable, match="20 levels"):
        render(deep, "")
    with pytest.raises(Unreadable):
        render({"k" * 2000: "v"}, "")
