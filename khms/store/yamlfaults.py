"""What is wrong with a block of YAML, in the words of whoever wrote the file and not of the YAML grammar.

A fault is the row it is on, a message and a mend; where quoting mends it, the mend shows the quoted line.
"""

import re
from collections.abc import Sequence

import yaml

from khms.store import yamltext

Fault = tuple[int, str, str]

DEPTH = 20
TOO_DEEP = f"nested more than {DEPTH} levels deep", "write it flatter"
NO_KEY = "a key is empty", "write `key: value`"
SIGNS = {
    "&": "`&` makes an anchor, and anchors are not allowed",
    "*": "`*` makes an alias, and aliases are not allowed",
    "!": "`!` makes a tag, and tags are not allowed",
}
_CLOSING = {"[": "]", "{": "}", '"': '"', "'": "'"}
_PARTS = re.compile(r"""(\s*(?:-\ +)*(?:(?:"[^"]*"|'[^']*'|[^\s:\#"'\[{-][^:]*):(?:\ +|$))?)(.*)""", re.VERBOSE)


def explain(rows: Sequence[str], error: yaml.MarkedYAMLError) -> Fault:
    """The fault behind an error of the YAML scanner or parser, libyaml's or PyYAML's own."""
    problem, context, mark = error.problem or "", error.context or "", error.problem_mark or error.context_mark
    if error.context_mark and any(sign in problem for sign in ("end of stream", "expected ':'", "expected ','")):
        mark = error.context_mark  # noticed only where the text goes on or ends
    row, column = (min(mark.line, len(rows) - 1), mark.column) if mark else (0, 0)
    before, value = _parts(rows[row])
    first, inside = value[:1], column >= len(before)
    quote = quoting(rows[row])
    if fault := conflict(rows):
        return fault
    if "mapping values" in problem:
        return (row, "`: ` inside a value reads as another key", quote) if inside else _misplaced_key(rows, row)
    if "flow level" in context:
        return row, *TOO_DEEP
    if "expected ':'" in problem:
        return _no_key(rows, row)
    if "quoted scalar" in context:
        return row, *_quote_fault(problem, before, value)
    if "expected ','" in problem:
        sign = "[" if "sequence" in context else "{"
        return row, f"a `{sign}` is opened and not closed", f"close it, or {quote}"
    if first in SIGNS:
        return row, SIGNS[first], f"write it out; if it is text, {quote}"
    if first in ("`", "@", "%", ","):
        return row, f"a value cannot start with {'a backtick' if first == '`' else f'`{first}`'}", quote
    if first in ("|", ">"):
        return row, f"`{first}` starts a block of text that must begin on the next line", quote
    if first == ":" or ("flow node" in context and rows[row][column : column + 1] == ":"):
        return row, *NO_KEY
    if "flow node" in context and rows[row][column : column + 1] == ",":
        return row, "an item of a list in brackets is missing", f"fill it in, or {quote}"
    if "flow node" in context:
        row = next((i for i in range(row, -1, -1) if _parts(rows[i])[1][:1] in ("[", "{")), row)
        return row, "a bracket is opened and not closed", f"close it, or {quoting(rows[row])}"
    if first in _CLOSING and column > len(before):
        return row, f"text follows the closing `{_CLOSING[first]}` of a value", quote
    if inside and value[:2] in ("- ", "? "):
        return row, f"a value cannot start with `{value[:2]}`", quote
    return row, f"`{short(rows[row])}` fits nothing above it", "correct its indentation, or the line above it"


def conflict(rows: Sequence[str]) -> Fault | None:
    """The first merge-conflict marker among the rows, if there is one."""
    for row, text in enumerate(rows):
        if text.startswith(("<<<<<<< ", ">>>>>>> ")):
            return row, "a merge-conflict marker in the frontmatter", "resolve the conflict"
    return None


def quoting(row: str) -> str:
    """How to quote the value on a row."""
    before, value = _parts(row)
    if len(value) > 1 and value[0] in "\"'" and value[0] == value[-1]:
        value = value[1:-1]
    if not value or len(before + value) > 100:
        return "quote the value"
    return "quote the value: " + f"{before.strip()} {yamltext.quoted(value)}".strip()


def short(row: str) -> str:
    text = row.strip()
    return text if len(text) <= 60 else text[:59] + "…"


def _parts(row: str) -> tuple[str, str]:
    """A row up to its value, and the value."""
    match = _PARTS.match(row)
    return (match[1], match[2].strip()) if match else ("", row.strip())


def _misplaced_key(rows: Sequence[str], row: int) -> Fault:
    """A key where none can stand: indented under a value, or after a line that is no key."""
    if rows[row][:1] == " ":
        message = f"`{short(rows[row])}` is indented under a key that has a value already"
        return row, message, "move it to the left, or empty the value above it"
    return _no_key(rows, next((i for i in range(row - 1, -1, -1) if rows[i].strip()), row))


def _no_key(rows: Sequence[str], row: int) -> Fault:
    mend = "put a space after the colon; if it belongs to the body, close the frontmatter with `---` above it"
    return row, f"`{short(rows[row])}` is not `key: value`", mend


def _quote_fault(problem: str, before: str, value: str) -> tuple[str, str]:
    if "end of stream" in problem:
        return "a quote is opened and not closed", "close the quote, or remove it"
    mend = "double the backslash, or use single quotes"
    if len(before + value) <= 100 and value[-1:] == '"':
        mend += f": {before.strip()} '{value[1:-1]}'"
    return "a backslash in double quotes starts an unknown escape", mend
