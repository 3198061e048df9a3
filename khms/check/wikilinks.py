"""`[[K-00042]]` in a body: which links there are, and on which line. Code, comments and escaped brackets hold none.

Most bodies need no Markdown parser: it is asked only where code, comments or indentation may matter
(tests/check/test_wikilinks.py holds both ways against each other).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_LINK = re.compile(r"\[\[([^\[\]\n]*?)(?:\\?\|([^\[\n]*?))?\]\]")
_HARD = re.compile(r"```|~~~|\\[\\`\[\]]|<|^[ \t>*+\-\d.)]{0,60}(?: {4}|\t)[^\n]*\[\[", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`(?!`)[^`\n]*`(?!`)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_CODE = "\x00"


@dataclass(frozen=True, slots=True)
class Wikilink:
    """`target` is what stands before `|` and `#`, empty in `[[]]`; `line` counts from the body's first line, 1."""

    target: str
    line: int


def wikilinks(body: str) -> list[Wikilink]:
    """Every wikilink that a reader would see as one, in order."""
    if "[[" not in body:
        return []
    if "```" in body or "~~~" in body:
        body = _without_fences(body)
    if _HARD.search(body):
        return list(_parsed(body))
    quick = _quick(body)
    return list(_parsed(body)) if quick is None else quick


def _without_fences(body: str) -> str:
    """The body with the fenced code that begins at a line's start emptied: such a fence opens whatever stands before
    it, and only its like closes it. Where one is written in any other way, all of them are left to the parser."""
    lines = body.split("\n")
    fence = ""
    for i, line in enumerate(lines):
        run = _FENCE.match(line)
        if fence:
            closes = run is not None and run[1].startswith(fence) and not run[2].strip()
            fence = "" if closes else fence
            lines[i] = ""
        elif run is not None:
            if line[0] == " " or (run[1][0] == "`" and "`" in run[2]):
                return body
            fence = run[1]
            lines[i] = ""
        elif "```" in line or "~~~" in line or "<" in line:
            return body
    return "\n".join(lines)


def _quick(body: str) -> list[Wikilink] | None:
    """The links of a body without fences, comments, escapes and indented code; None where a code span may run over a
    line's end, for which paragraphs matter."""
    found = []
    for number, line in enumerate(body.split("\n"), 1):
        if "`" in line:
            line = _SPAN.sub(_CODE, line)
            if "`" in line:
                return None
        if "[[" in line:
            found += [Wikilink(_target(link), number) for link in _LINK.finditer(line)]
    return found


def _target(found: re.Match[str]) -> str:
    return found[1].partition("#")[0].strip()


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # Without links, so that brackets stay text; without tables, whose cells then read as running text, where `|` and
    # `\\|` both part a target from its alias.
    return MarkdownIt("commonmark").disable(["text_join", "link", "image", "reference"])


def _parsed(body: str) -> Iterator[Wikilink]:
    lines = body.split("\n")
    for token in _parser().parse(body):
        if token.type == "inline":
            text = "".join(_inline(child) for child in token.children or ())
        elif token.type == "html_block":
            text = _COMMENT.sub("", token.content)
        else:
            continue
        if "[[" in text and token.map:
            yield from _placed(text, lines, *token.map)


def _inline(token: Any) -> str:
    if token.type == "text":
        return str(token.content)
    if token.type == "text_special":
        return "|" if token.content == "|" else _CODE
    return "\n" if token.type in ("softbreak", "hardbreak") else _CODE if token.type == "code_inline" else ""


def _placed(text: str, lines: list[str], start: int, end: int) -> Iterator[Wikilink]:
    """The links in `text`, a block of the lines from `start` on. A code span may hide a line's end, so each link stands
    on the first line, from the one counted on, that holds its target."""
    for found in _LINK.finditer(text):
        target = _target(found)
        at = start + text.count("\n", 0, found.start())
        line = next((i for i in range(at, end) if "[[" in lines[i] and target in lines[i]), min(at, end - 1))
        yield Wikilink(target, line + 1)
