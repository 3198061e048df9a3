"""The quick reading of plain frontmatter: line by line, without yaml, or not at all.

What is taken is what cards look like: `key: scalar`, `key: [list]` and one level of such below a key. Whatever else
a block holds, right or wrong, is left to `strict`, which reads the same texts to the same values; the tests hold the
two against each other. Measured on 10,000 different cards of 1 kB: 0.33 s, over libyaml's events 1.45 s.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

LIMIT = 16 * 1024  # characters; a longer block is left to `strict`, which measures bytes
Line = tuple[str, str, str | list[str | None] | None, bool]


def read(block: str, line: int) -> tuple[dict[str, Any], dict[str, int]] | None:
    """The values of the block and the line of each key, nested ones dotted, where its first line is line `line`;
    None if it holds anything but the plain form."""
    match_odd, _, _ = _patterns()
    if len(block) > LIMIT or match_odd(block):
        return None
    meta: dict[str, Any] = {}
    lines: dict[str, int] = {}
    target, prefix, above = meta, "", ""  # where a line's key goes, how it is named, the key at the left above it
    indent: str | None = None  # of the nested lines allowed here; "" before the first of them, None for none
    for number, row in enumerate(block.split("\n"), line):
        found = _line(row)
        if found is None:
            return None
        pad, key, value, is_open = found
        if not key:
            continue
        if not pad:
            target, prefix, above, indent = meta, "", key, "" if is_open else None
        elif pad != indent:
            if indent != "":
                return None
            target = meta[above] = {}
            prefix, indent = above + ".", pad
        if key in target:
            return None
        target[key] = value.copy() if value.__class__ is list else value
        lines[prefix + key] = number
    return meta, lines


@lru_cache(maxsize=2048)  # cards repeat many of their lines word for word
def _line(row: str) -> Line | None:
    """Indentation, key, value and whether there is none on the line; the key is empty if nothing stands there; None
    for a line that is not of the plain form."""
    _, match_line, match_items = _patterns()
    found = match_line(row)
    if found is None:
        text = row.lstrip(" ")
        return ("", "", None, False) if not text or text[0] == "#" else None
    pad, key, double, single, items, plain = found.groups()
    value: str | list[str | None] | None = None
    if plain is not None:
        value = plain.rstrip(" ")
        value = None if value in ("null", "~") else value
    elif items is not None:
        value = [_item(item[0]) for item in match_items(items)]
    elif double is not None:
        value = double
    elif single is not None:
        value = single.replace("''", "'")
    return pad, key, value, found.lastindex == 2


def _item(text: str) -> str | None:
    if text[0] == '"':
        return text[1:-1]
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    text = text.rstrip(" ")
    return None if text == "null" else text


@cache
def _patterns() -> tuple[
    Callable[[str], re.Match[str] | None],
    Callable[[str], re.Match[str] | None],
    Callable[[str], Iterable[re.Match[str]]],
]:
    """A character that is left to `strict`, one line `key: value`, and one item of a list in brackets. Possessive, so
    that no line takes long to fail; made at the first use, since making them takes longer than a card."""
    odd = re.compile("[\t\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
    quoted = r"""\"[^"\\]*+\"|'(?:[^']|'')*+'"""
    item = rf"""(?:{quoted}|[\w./][^,\[\]{{}}:\#"'?&*!|>%@`]*+)"""
    line = rf"""
        (\ *+)([A-Za-z_][A-Za-z0-9_-]{{0,99}}):
        (?:\ ++(?:
            "([^"\\]*+)"
          | '((?:[^']|'')*+)'
          | \[\ *+((?:{item}\ *+(?:,\ *+{item}\ *+)*+)?)\]
          | ([\w/.(+<$^=~;\\\x80-\U0010ffff][^:\#]*+(?:(?::(?=[^ ])|(?<![ ])\#)[^:\#]*+)*+)
        ))?
        \ *+(?:(?<=[ ])\#(?!\w).*+)?"""
    return odd.search, re.compile(line, re.VERBOSE).fullmatch, re.compile(item).finditer
