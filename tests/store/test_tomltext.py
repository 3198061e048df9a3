"""One setting changes, everything else stays: comments, order, line ends."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.errors import Refused
from khms.store.tomltext import literal, set_value

TEXT = """# mine
[recall]  # how much
limit = 5    # five # is enough
"depth" = 50

[hooks]

cards = 2
text = "a # b"   # with a sign

[index.include]
notes = "x"
"""


def test_a_value_changes_and_its_comment_stays() -> None:
    assert set_value(TEXT, "recall.limit", 7, "") == TEXT.replace("limit = 5 ", "limit = 7 ")
    assert set_value(TEXT, "hooks.text", "c", "") == TEXT.replace('"a # b"', '"c"')


def test_a_quoted_key_is_the_same_key() -> None:
    assert tomllib.loads(set_value(TEXT, "recall.depth", 9, ""))["recall"]["depth"] == 9


def test_a_new_key_comes_behind_the_last_of_its_section() -> None:
    changed = set_value(TEXT, "recall.query_chars", 10, "")
    assert changed == TEXT.replace('"depth" = 50\n', '"depth" = 50\nquery_chars = 10\n')


def test_a_new_section_comes_last() -> None:
    assert set_value(TEXT, "git.branch", "trunk", "") == TEXT + '\n[git]\nbranch = "trunk"\n'
    assert set_value("", "git.branch", "trunk", "") == '[git]\nbranch = "trunk"\n'


def test_line_ends_and_a_mark_at_the_start_stay() -> None:
    assert set_value("\ufeff[recall]\r\nlimit = 5\r\n", "recall.limit", 6, "") == "\ufeff[recall]\r\nlimit = 6\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "recall = {limit = 5}\n",
        "recall.limit = 5\n",
        "[recall]\nlimit = [\n  1,\n]\n",
        '[recall]\nlimit = """\n[x]\n"""\n',
    ],
)
def test_other_forms_are_refused_and_named(text: str) -> None:
    with pytest.raises(Refused, match=r"recall\.limit") as caught:
        set_value(text, "recall.limit", 7, "khms.toml")
    assert caught.value.where == "khms.toml" and "limit = 7" in caught.value.hint


def test_a_broken_file_is_never_written() -> None:
    with pytest.raises(Refused, match="line 1"):
        set_value("[recall\n", "recall.limit", 7, "khms.toml")


values = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(values)
def test_every_value_reads_back(value: object) -> None:
    assert tomllib.loads(f"x = {literal(value)}")["x"] == value


@given(st.text(), st.text())
def test_setting_twice_is_setting_once(first: str, second: str) -> None:
    once = set_value(set_value(TEXT, "git.branch", first, ""), "git.branch", second, "")
    assert once == set_value(TEXT, "git.branch", second, "")
