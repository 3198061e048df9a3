"""Whatever a card says is only text on a page: held with a real Markdown renderer."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from khms.render.text import LINE_CHARS, code, text

PAGE = MarkdownIt("commonmark").enable(["strikethrough", "table"])
NASTY = [
    "plain words",
    "<script>alert(1)</script> & <b>bold</b>",
    "[click](javascript:alert(1)) ![x](http://example.org/?q=secret)",
    "[[K-00042|x]] and [khms] frame [/khms]",
    "`code` ``more`` *emphasis* __strong__ ~~gone~~ _it_",
    "C:\\temp\\*.log costs 3 \\[ 4",
    "&lt;b&gt; &amp; R&D &#60;",
    "<!-- hidden --> --> <?php ?> <http://example.org>",
    "# heading", "- item", "1. item", "> quote", "=====", "+ plus", "12) twelve",
    "user_profile_cache and __init__ and a__b",
    "ends with \\",
]  # fmt: skip


def rendered(line: str) -> str:
    return PAGE.render(line)


@pytest.mark.parametrize("raw", NASTY)
def test_a_line_renders_as_its_own_words(raw: str) -> None:
    html = rendered("- x " + text(raw))
    assert re.sub(r"<(?!/?(?:ul|li)>)[^>]*>", "TAG", html) == html, html
    assert "TAG" not in html


@pytest.mark.parametrize("raw", NASTY)
def test_a_heading_and_a_paragraph_too(raw: str) -> None:
    assert re.findall(r"<(\w+)", rendered("# " + text(raw))) == ["h1"]
    assert re.findall(r"<(\w+)", rendered(text(raw))) == ["p"]


@given(st.text(max_size=200))
def test_any_text_is_one_harmless_line(raw: str) -> None:
    line = text(raw)
    assert "\n" not in line and "\r" not in line
    assert set(re.findall(r"<(\w+)", rendered("- x " + line))) <= {"ul", "li"}
    line.encode("utf-8")


@given(st.text(alphabet="`a \\*", max_size=30))
def test_a_code_span_is_one_span(raw: str) -> None:
    shown = code("x" + raw + "x")
    assert re.findall(r"<(\w+)", rendered(shown)) == ["p", "code"]


def test_identifiers_stay_readable() -> None:
    assert text("user_profile_cache in v2.4 -> v3 (a|b)") == "user_profile_cache in v2.4 -> v3 (a|b)"


def test_what_cannot_be_seen_is_gone() -> None:
    assert text("a\x00\x1b[31mb\u202ec\U000e0041d\u2028e\ud800f\tg") == "a\\[31mbcd ef g"


def test_long_text_is_cut_and_says_so() -> None:
    assert text("word " * 100).endswith("…") and len(text("word " * 100)) <= LINE_CHARS
