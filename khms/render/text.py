"""Words of a card on a Markdown page: always just words, whatever they are.

One line, bounded, without what a terminal, a page or a reader of frames would take for more than text.
"""

import re
import unicodedata

LINE_CHARS = 110

# Bidirectional marks, overrides and isolates, and tag characters: unseen, and able to show a reader something else.
# Joiners stay: several scripts need them.
_HIDDEN = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0xFEFF, *range(0xE0000, 0xE0080)}
# Each alternative begins with the sign itself, so that the search may skip from sign to sign.
_SPECIAL = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)|[`*\[\]<~]|&(?=#?\w+;)|_(?<![^\W_]_)|_(?![^\W_])")
_FIRST = re.compile(r"[-+=#>]|\d+[.)]")  # what makes a heading, list or quotation of a line that begins with it


def text(raw: str, most: int = LINE_CHARS) -> str:
    """`raw` as plain text inside a Markdown line, at most `most` characters before escaping. Underscores inside a word
    stay bare, so that identifiers can be read and copied."""
    shown = visible(raw)
    if len(shown) > most:
        shown = shown[: most - 1].rstrip() + "…"
    escaped = _SPECIAL.sub(_escaped, shown)
    first = _FIRST.match(escaped)
    return _escaped(first) + escaped[first.end() :] if first else escaped


def _escaped(match: re.Match[str]) -> str:
    return match[0][:-1] + "\\" + match[0][-1]


def code(raw: str) -> str:
    """`raw` as a code span, whatever backticks it holds."""
    shown = visible(raw)
    fence = "`"
    while fence in shown:
        fence += "`"
    return f"{fence} {shown} {fence}" if "`" in shown else f"{fence}{shown}{fence}"


def visible(raw: str) -> str:
    """`raw` on one line without controls, lone surrogates and hidden direction changes."""
    if raw.isprintable():
        return " ".join(raw.split())
    spaced = "".join(" " if char.isspace() else char for char in raw if ord(char) not in _HIDDEN)
    return " ".join("".join(c for c in spaced if unicodedata.category(c) not in ("Cc", "Cs")).split())
