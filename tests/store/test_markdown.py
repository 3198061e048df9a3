"""Reading: what is text, what is refused and where, and that the quick reader says what the strict one says."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import frontmatter
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from khms.store import quick, strict
from khms.store.markdown import Page, Unreadable, blocks, conflict_line, parse, read, remove_keys, set_key

Shared = Callable[[str], Path]

CARD = """\
---
id: K-00042
status: active              # active | challenged
title: A loose ground, not timing
tags: [sensors, "a, b", 'it''s', null]
at: 12:30
sha: 0123456
source: 'journal/2026-03-04.md line 22: "checksum"'
date: 2026-02-30
links:
  # about them
  supports: []

  supersedes: null
  refuted_by: ~
empty:
---
SYMPTOM: --- no.
"""


@pytest.fixture(params=["libyaml", "python"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(strict, "LOADER", yaml.SafeLoader)


def refused(text: str | bytes) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        parse(text, "a.md")
    error = caught.value
    assert error.path == "a.md" and error.line >= 1 and error.mend
    assert "\n" not in error.message + error.mend and error.exit_code == 3
    return error


def front(block: str) -> str:
    return f"---\n{block}\n---\nBody.\n"


def test_a_card_is_text_lists_and_none() -> None:
    page = parse(CARD)
    assert page.meta == {
        "id": "K-00042",
        "status": "active",
        "title": "A loose ground, not timing",
        "tags": ["sensors", "a, b", "it's", None],
        "at": "12:30",
        "sha": "0123456",
        "source": 'journal/2026-03-04.md line 22: "checksum"',
        "date": "2026-02-30",
        "links": {"supports": [], "supersedes": None, "refuted_by": None},
        "empty": None,
    }
    assert page.body == "SYMPTOM: --- no.\n" and page.body_line == 18
    assert page.lines["id"] == 2 and page.lines["links"] == 10 and page.lines["links.supersedes"] == 14


@pytest.mark.usefixtures("either_parser")
def test_the_strict_reader_alone_reads_it_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    page = parse(CARD)
    monkeypatch.setattr(quick, "read", lambda block, line: None)
    assert parse(CARD) == page
    assert list(parse(CARD).meta) == list(page.meta)


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("block", "value"),
    [
        ("k: |\n  # no comment\n  two\n\n", "# no comment\ntwo\n"),
        ("k: >-\n  one\n  two", "one two"),
        ("k: one\n  two", "one two"),
        ('k: "a\\nb\\u00e9"', "a\nbé"),
        ("k: 'null'", "null"),
        ('k: ""', ""),
        ("k: NULL", "NULL"),
        ("k: yes", "yes"),
        ("k: 2026-07-30T09:05:28-06:00", "2026-07-30T09:05:28-06:00"),
        ("k: " + "9" * 5000, "9" * 5000),
        ("k:\n- a\n-\n- [b, ~]\n- c: d\n  e: f", ["a", None, ["b", None], {"c": "d", "e": "f"}]),
        ("k: {a: b, c: {d: e}}", {"a": "b", "c": {"d": "e"}}),
        ("k: <<\n", "<<"),
        ("k: 😀 é", "😀 é"),
        ("k: a#b:c", "a#b:c"),
        ("k:   # nothing but this comment", None),
    ],
)
def test_values(block: str, value: object) -> None:
    assert parse(front(block)).meta == {"k": value}


def test_lines_of_nested_keys_are_dotted() -> None:
    page = parse("---\n\na: {b: c}\nlinks:\n  supports:\n    - x\n  more:\n    deep: y\n---\n")
    assert page.lines == {"a": 3, "a.b": 3, "links": 4, "links.supports": 5, "links.more": 7, "links.more.deep": 8}
    assert page.body == "" and page.body_line == 10


def test_byte_order_mark_and_crlf_read_as_absent() -> None:
    with_both = b"\xef\xbb\xbf" + CARD.replace("\n", "\r\n").encode()
    assert parse(with_both) == parse(CARD)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Just text.\n",
        "---\n",
        "---",
        "---\n\nA rule, then prose.\n",
        "---\n# A heading after a rule\n",
        "\n---\nid: x\n---\n",
        "----\nid: x\n---\n",
        "text\n\x00"[:5],
    ],
)
def test_without_frontmatter_all_is_body(text: str) -> None:
    assert parse(text) == Page({}, text, {}, 1)


@pytest.mark.parametrize(
    "body", ["", "\n\n", "---\nrule\n", "one\n---\ntwo\n---\n", "```\n---\nid: x\n---\n", "\x07 \x85"]
)
def test_a_body_is_kept_to_the_byte(body: str) -> None:
    assert parse("---\nid: x\n---  \n" + body).body == body
    assert parse("---\nid: x\n...\n" + body).body == body


def test_an_empty_block_is_an_empty_mapping() -> None:
    assert parse("---\n---\nBody.\n") == Page({}, "Body.\n", {}, 3)
    assert parse("---\n# nothing\n\n---\nBody.\n") == Page({}, "Body.\n", {}, 5)


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("block", "line", "said", "mend"),
    [
        ("a: b\ntitle: Cache: why", 3, "reads as another key", 'title: "Cache: why"'),
        ("path: `C:\\a`", 2, "backtick", "path: '`C:\\a`'"),
        ("title: *Italic start*", 2, "alias", 'title: "*Italic start*"'),
        ("title: **Bold** x", 2, "alias", 'title: "**Bold** x"'),
        ("see:\n  - [[note]] and a tail", 3, "closing `]`", '- "[[note]] and a tail"'),
        ("title: [WIP] fix", 2, "closing `]`", 'title: "[WIP] fix"'),
        ("date: {{date}}", 2, "placeholder", 'date: "{{date}}"'),
        ("? [a]\n: b", 2, "a key is itself a list", ""),
        ("owner: @sam", 2, "`@`", 'owner: "@sam"'),
        ("owner: %sam", 2, "`%`", 'owner: "%sam"'),
        ("owner: &sam x", 2, "anchor", ""),
        ("a: b\nc: [*x]", 3, "alias", ""),
        ("- *x", 2, "a list", "`key: value`"),
        ("owner: !sam x", 2, "tag", ""),
        ("title: > see below", 2, "`>`", 'title: "> see below"'),
        ('title: "a" tail', 2, 'closing `"`', "title: '\"a\" tail'"),
        ('a: b\ntitle: "abc\nc: d', 3, "quote is opened and not closed", "close the quote"),
        ('title: "C:\\path"', 2, "backslash", "title: 'C:\\path'"),
        ("a: [b, c\nd: e", 2, "`[` is opened and not closed", "close it"),
        ("a: [b,", 2, "opened and not closed", "close it"),
        ("a: [b,,c]", 2, "item", "fill it in"),
        ("a: b\ntitle Cache\nc: d", 3, "`title Cache` is not `key: value`", "close the frontmatter"),
        ("id:x\ntitle: y", 2, "`id:x` is not `key: value`", ""),
        ("a: b\nid:x\ntitle: y", 3, "`id:x` is not `key: value`", "space after the colon"),
        ("just words", 2, "`just words` is not `key: value`", "blank line before it"),
        ("- a\n- b", 2, "a list", "`key: value`"),
        ("a: b\n  c: d", 3, "indented under a key that has a value", "left"),
        ("a:\n    b: c\n  d: e", 4, "fits nothing above it", "indentation"),
        ("links:\n\tsupports: []", 3, "a tab", "spaces"),
        ("a: b\n\t\nc: d", 3, "a tab", "spaces"),
        (": b", 2, "a key is empty", ""),
        ("a: {: b}", 2, "a key is empty", ""),
        ("a: 1\nb: 2\na: 3\nb: 4", 4, "`a` (lines 2 and 4), `b` (lines 3 and 5)", "keep one"),
        ("l:\n  a: 1\n  a: 2", 4, "duplicate key `l.a`", "keep one"),
        ("l:\n- a: 1\n  a: 2", 4, "duplicate key `a`", "keep one"),
        ('"a\\nb": 1\n"a\\nb": 2', 3, 'duplicate key `"a\\nb"`', "keep one"),
        ("a: b\n--- c", 3, "more than one document", ""),
        ("--- c", 2, "more than one document", ""),
        ("a: b\nc: " + "[" * 30 + "]" * 30, 3, "20 levels", ""),
        ("a: b\nc: " + "[" * 1200 + "]" * 1200, 3, "20 levels", ""),
        ("\n".join(" " * i + f"k{i}:" for i in range(30)), 21 + 1, "20 levels", ""),
        ("a: b\nc: d\x07", 3, "U+0007", "remove it"),
        ("a: b\nc: d\u2028e", 3, "U+2028", "remove it"),
        ("a: b\nc: d\x85e", 3, "U+0085", "remove it"),
        ("a: b\rc: d", 2, "U+000D", "remove it"),
        ('a: "\\ud800"', 2, "", ""),
        ("title: Fix #12 at last", 2, "drops the text", 'title: "Fix #12 at last"'),
        ("tags: #one", 2, "drops the text", 'tags: "#one"'),
        ("<<<<<<< HEAD\na: b\n=======\na: c\n>>>>>>> x", 2, "merge-conflict marker", "resolve"),
        ("z: y\n<<<<<<< HEAD\na: b\n=======\na: c\n>>>>>>> x", 3, "merge-conflict marker", "resolve"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_mend(block: str, line: int, said: str, mend: str) -> None:
    error = refused(front(block))
    assert (error.line, said in error.message, mend in error.mend) == (line, True, True), (error.message, error.mend)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("---\nid: x\n---\none\n\0", 5, "NUL"),
        (b"one\ntwo \xff\n", 2, "0xFF is not UTF-8"),
        (b"---\nid: \xed\xa0\x80\n---\n", 2, "not UTF-8"),
        ("---\nid: x\n---\none\n\ud800\n", 5, "U+D800"),
        ("---\nid: x\ntitle: y\n\nBody.\n", 1, "never closed"),
        ("---\n# comment\nid: x", 1, "never closed"),
        ("---\rid: x\r---\r", 1, "carriage returns"),
        ("---\na: b\n---\n\n---\nid: x\n---\nBody.\n", 5, "two frontmatter blocks"),
        ("---\na: b\n---\n---\nid: x: y\n---\nBody.\n", 4, "two frontmatter blocks"),
        ("---\na: b\n---\n---\nmy id: x\n---\nBody.\n", 4, "two frontmatter blocks"),
        ("---\n---\nid: x\n---\nBody.\n", 2, "two frontmatter blocks"),
        ("---\n---\n\n---\nid: x\n---\nBody.\n", 4, "two frontmatter blocks"),
        ("---\na: " + "é" * 33_000 + "\n---\n", 2, "64 KiB"),
        ("---\n" + "a: b\n" * 20_000 + "---\n", 2, "64 KiB"),
    ],
)
def test_what_is_wrong_with_the_file(text: str | bytes, line: int, said: str) -> None:
    error = refused(text)
    assert (error.line, said in error.message) == (line, True), error.message


def test_lines_count_from_where_the_text_stands_in_its_file() -> None:
    assert parse("---\nid: x\n---\nB\n", line=11).lines == {"id": 12}
    assert parse("---\nid: x\n---\nB\n", line=11).body_line == 14
    with pytest.raises(Unreadable) as caught:
        parse("---\nid: x\nt: a: b\n---\n", "a.md", line=11)
    assert caught.value.where == "a.md:13"


def test_a_file_that_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read") as caught:
        read(tmp_path, "memory/know")
    assert (caught.value.path, caught.value.line, caught.value.where) == ("memory/know", 0, "memory/know")
    (tmp_path / "🐘.md").write_bytes(b"---\r\nid: x\r\n---\r\nB")
    assert read(tmp_path / "🐘.md", "🐘.md") == Page({"id": "x"}, "B", {"id": 2}, 4)


def test_conflict_line() -> None:
    assert conflict_line("a\n<<<<<<< HEAD\nb\n") == 2
    assert conflict_line("\ufeffa\r\n```\r\n>>>>>>> topic\r\n") == 3
    assert conflict_line("Heading\n=======\n`<<<<<<< HEAD`\n    >>>>>>> topic\n<<<<<<<<\n") is None


def test_python_frontmatter_reads_through_the_handler() -> None:
    post = frontmatter.loads(CARD, handler=strict.StrictHandler("a.md"))
    assert post.metadata == parse(CARD).meta and post.content == "SYMPTOM: --- no."
    assert parse(frontmatter.dumps(post, handler=strict.StrictHandler())).meta == post.metadata
    with pytest.raises(Unreadable) as caught:
        frontmatter.loads(front("a: b\ntitle: Cache: why"), handler=strict.StrictHandler("a.md"))
    assert caught.value.where == "a.md:3"


def test_plain_cards_are_read_without_yaml() -> None:
    code = "import sys; from khms.store import markdown; markdown.parse(sys.stdin.read()); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], input=CARD, capture_output=True, encoding="utf-8", check=True)
    assert not {"yaml", "frontmatter", "datetime", "subprocess"} & set(done.stdout.split())


# The quick reader against the strict one: lines near the plain form, and how they may stand together.
WORDS = st.sampled_from([
    "a", "null", "~", "yes", "0123456", "2026-02-30", "12:30", "a b", "a:b", "a: b", "a #b", "a # b", "a#b", "a:",
    "é", "→", "\xa0x", "x\xa0", "- a", "?", ":", "#", "[", "]", "[]", "{}", "[a]", "[a,b]", "[ a , 'b' ]", '["a"]',
    "-a", "[a,]", "[a: b]", "[,]", "[null, ~]", "[[a]]", "'a'", "'it''s'", "'", '"', '"a"', '"a\\n"', '"a" b',
    "'a' # c", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a`", "<<", "=", "~/x", "(a)", "\\a", "$a", "😀", "a\tb", "",
    " ", "  ", "...", "---a",
])  # fmt: skip
VALUES = st.lists(WORDS | st.text("ab :#'\"[],{}~-?!&*|>\\\t", max_size=6), max_size=3).map("".join)
KEYS = st.sampled_from(["a", "b", "c", "links", "null", "a-b", "a b", "'a'", '"b"', "<<", "é", "x" * 200])
PLAIN = st.sampled_from(
    ["a b", "a:b, c", "0123456", "null", "~", "[a, b]", "[]", '"x y"', "'it''s'", "a # c", "[ a , 'b' ]", ""]
)
LINES = st.one_of(
    st.builds("{}{}: {}".format, st.sampled_from(["", "", "  "]), st.sampled_from("abcdef"), PLAIN),
    st.builds("{}{}: {}".format, st.sampled_from(["", "", "  "]), st.sampled_from("abcdef"), PLAIN),
    st.builds("{}{}{}{}".format, st.sampled_from(["", "", "", "  ", "  ", " ", "    "]), KEYS,
              st.sampled_from([": ", ": ", ":  ", ":", ": # c", " : "]), VALUES),
    st.builds("{}{}".format, st.sampled_from(["", "  ", "- ", "  - ", "# ", "  #"]), VALUES),
)  # fmt: skip


@settings(max_examples=2000, deadline=None)
@given(st.lists(LINES, max_size=6).map("\n".join))
def test_the_quick_reader_reads_what_the_strict_one_reads_or_gives_up(block: str) -> None:
    found = quick.read(block + "\n", 2)
    if found is not None:
        meta, entries = strict.StrictHandler(line=2).read(block + "\n")
        assert found == (meta, {name: 2 + entry.key[0] for name, entry in entries.items()})
        assert list(found[0]) == list(meta)


@settings(max_examples=500, deadline=None)
@given(
    st.binary(max_size=60)
    | st.lists(LINES | st.text(max_size=8), max_size=8).map(lambda rows: "---\n" + "\n".join(rows))
)
def test_whatever_comes_is_a_page_or_unreadable(text: str | bytes) -> None:
    as_text = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    for call in (
        lambda: parse(text),
        lambda: blocks(text),
        lambda: set_key(as_text, "links.a", ["x"]),
        lambda: set_key(as_text, "a", "x"),
        lambda: remove_keys(as_text, ["a", "links.a"]),
    ):
        try:
            call()
        except Unreadable as error:
            assert error.line >= 1 and error.mend and "\n" not in error.message + error.mend


def test_no_line_takes_the_quick_reader_long() -> None:
    for row in ("a: [" + "b   , " * 2000, "a: " + "b #c: " * 2000, "a: '" + "''" * 5000, "a: [" + "'', " * 3000):
        assert quick.read(row, 1) is None


@pytest.mark.parametrize(
    ("case", "line", "said"),
    [
        ("01-colon-title.md", 4, "another key"),
        ("03-two-frontmatter-blocks.md", 5, "two frontmatter blocks"),
        ("10-duplicate-keys.md", 6, "`title` (lines 4 and 6), `tags` (lines 5 and 7)"),
        ("11-not-a-yamlerror.md", 7, "20 levels"),
        ("12-alias-bomb.md", 5, "anchor"),
    ],
)
def test_cases_that_are_refused(case: str, line: int, said: str, shared: Shared) -> None:
    error = refused(shared(f"cases/{case}").read_bytes())
    assert (error.line, said in error.message) == (line, True), error.message


def test_cases_and_notes_that_are_read(shared: Shared) -> None:
    cases = shared("cases/INDEX.md").parent
    dates = read(cases / "05-bare-dates.md", "05")
    assert dates.meta["updated"] == "2026-07-30T09:05:28-06:00" and dates.meta["tags"] == ["2026-07-30", "demo"]
    assert read(cases / "08-bom-crlf.md", "08").body == "Needle word: crumbwhistle.\n"
    assert read(cases / "22-empty.md", "22") == Page({}, "", {}, 1)
    for path in sorted(shared("real/README.md").parent.rglob("*.md")):
        data = path.read_bytes()
        page = parse(data, path.name)
        assert data.decode().endswith(page.body)
        assert bool(page.meta) == data.startswith(b"---\n")
