"""The one frontmatter reader: a Markdown text as its metadata and its body, or one Unreadable that says where.

A quick reader takes the plain common form line by line; what it does not know goes to `strict`, which reads the
same texts to the same values (tests/store/test_markdown.py holds the two against each other). A byte-order mark
and CRLF are read as if absent. In a body nothing means anything: rules, fences and markers are text.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from khms.store import files, quick, yamltext
from khms.store.yamltext import Unreadable, Value, scalar

__all__ = [
    "Block",
    "Page",
    "Unreadable",
    "Value",
    "blocks",
    "conflict_line",
    "parse",
    "read",
    "remove_keys",
    "render",
    "scalar",
    "set_key",
]

_OPEN = r"---[ \t]*(?:\n|\Z)"
_CLOSE = r"\n(?:---|\.\.\.)[ \t]*(?=\n|\Z)"
_SECOND = r"(?:[ \t]*\n)*---[ \t]*\n"
_KEYED = r"(?:[ \t]*(?:#.*)?\n)*[\"']?\w[\w-]*[\"']?:(?:[ \t\n]|\Z)"


@dataclass(frozen=True, slots=True)
class Page:
    """`lines` holds the file line, from 1, of each key, nested ones dotted; `body_line` that of the body's start.
    The body is the file's, byte for byte, but for a byte-order mark and the CR of CRLF."""

    meta: dict[str, Any]
    body: str
    lines: dict[str, int]
    body_line: int


@dataclass(frozen=True, slots=True)
class Block:
    """One of the consecutive blocks of a file: its values, or the error that keeps them from being read.

    `line` is the file line of the opening fence; `label` what the `id:` line says, also of a block that cannot be
    read; `heading` the text of a heading directly above the block; `text` the block as it stands, from its fence on.
    """

    meta: dict[str, Any]
    body: str
    line: int
    error: Unreadable | None = None
    label: str = ""
    heading: str = ""
    text: str = ""


def read(path: Path, shown: str) -> Page:
    """The page in a file, named `shown` in errors. Raises Unreadable, also where the file cannot be opened."""
    try:
        data = files.read(path)
    except OSError as error:
        raise Unreadable(
            f"the file cannot be read: {error.strerror or error}", path=shown, mend="check the file and its permissions"
        ) from error
    return parse(data, shown)


def parse(text: str | bytes, path: str = "", line: int = 1) -> Page:
    """The page in `text`, whose first line is line `line` of the file. Without frontmatter the whole text is body.

    Raises Unreadable, and nothing else, for whatever is wrong.
    """
    return _page(_plain_text(text), path, line)


def conflict_line(text: str) -> int | None:
    """The line of the first merge-conflict marker at a line's start, if there is one."""
    if "<<<<<<< " not in text and ">>>>>>> " not in text:
        return None
    rows = _plain_text(text).split("\n")
    return next((i for i, row in enumerate(rows, 1) if row.startswith(("<<<<<<< ", ">>>>>>> "))), None)


def _plain_text(text: str | bytes) -> str:
    """The text with LF line ends and no byte-order mark. Bytes that are not UTF-8 stay visible as surrogates."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if text.startswith("\ufeff"):
        text = text[1:]
    return text.replace("\r\n", "\n") if "\r" in text else text


def _check_text(text: str, path: str, line: int) -> None:
    at = text.find("\0")
    if at >= 0:
        where = line + text.count("\n", 0, at)
        raise Unreadable("a NUL byte in the text", path=path, line=where, mend="remove it; is this a text file?")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        where, code = line + text.count("\n", 0, error.start), ord(text[error.start])
        byte = f"the byte 0x{code - 0xDC00:02X} is not UTF-8" if 0xDC80 <= code <= 0xDCFF else ""
        message = byte or f"the lone surrogate U+{code:04X} is not a character"
        raise Unreadable(message, path=path, line=where, mend="save the file as UTF-8") from None


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """Compiled at the first use: importing this module stays cheap."""
    return re.compile(pattern)


def _page(text: str, path: str, line: int) -> Page:
    _check_text(text, path, line)
    opened = _pattern(_OPEN).match(text)
    if opened is None:
        if text.startswith("---\r"):
            mend = "save the file with LF line ends"
            raise Unreadable("the lines end in bare carriage returns", path=path, line=line, mend=mend)
        return Page({}, text, {}, line)
    closed = _pattern(_CLOSE).search(text, opened.end() - 1)
    if closed is None:
        if _pattern(_KEYED).match(text, opened.end()):
            mend = "close it with a line `---`; if the first `---` is a rule, put a blank line before it"
            raise Unreadable("the frontmatter is never closed", path=path, line=line, mend=mend)
        return Page({}, text, {}, line)
    block = text[opened.end() : closed.start() + 1]
    meta, lines = quick.read(block, line + 1) or _strict(block, line + 1, path)
    start = closed.end() + 1
    _check_single(text, [start] if meta else [closed.start() + 1, start], path, line)
    return Page(meta, text[start:], lines, line + block.count("\n") + 2)


def _strict(block: str, line: int, path: str) -> tuple[dict[str, Any], dict[str, int]]:
    from khms.store.strict import StrictHandler

    meta, entries = StrictHandler(path, line).read(block)
    return meta, {name: line + entry.key[0] for name, entry in entries.items()}


def _check_single(text: str, starts: list[int], path: str, line: int) -> None:
    """Refuse a second block after the first: what stands in it would silently become body."""
    for start in starts:
        opened = _pattern(_SECOND).match(text, start)
        closed = opened and _pattern(_CLOSE).search(text, opened.end() - 1)
        if opened and closed:
            block = text[opened.end() : closed.start() + 1]
            if _pattern(_KEYED).match(block) or _is_mapping(block):
                raise _two_blocks(path, line + text.count("\n", 0, opened.end()) - 1)


def _two_blocks(path: str, line: int) -> Unreadable:
    return Unreadable("two frontmatter blocks", path=path, line=line, mend="merge both into one block")


def _is_mapping(block: str) -> bool:
    try:
        return bool(_strict(block, 1, "")[0])
    except Unreadable:
        return False


def blocks(text: str | bytes, path: str = "") -> list[Block]:
    """The blocks of a file that holds several, each frontmatter and body, in order; text before the first is left.

    A block starts at a line `---` that begins the file, or that follows a blank line or a heading and opens
    frontmatter with an `id`; never inside a code fence. Blank lines before the next block, and its heading, are
    not body. A broken block holds its error and hides none of the others.
    """
    from khms.store import blockfile

    found = []
    for part in blockfile.parts(_plain_text(text)):
        page, error = Page({}, "", {}, 0), None
        try:
            page = _page(part.text, path, part.line)
            if part.next_line and "id" not in page.meta and not page.body.strip():
                raise _two_blocks(path, part.next_line)
        except Unreadable as unreadable:
            page, error = Page({}, "", {}, 0), unreadable
        found.append(Block(page.meta, page.body, part.line, error, part.label, part.heading, part.text))
    return found


def render(meta: Mapping[str, Any], body: str) -> str:
    """A new file: `meta` as frontmatter, then `body` with LF line ends and a final newline.

    Raises Unreadable if that would not read back as the same values, for example where the body begins with a
    block of its own.
    """
    if body and not body.endswith("\n"):
        body += "\n"
    body = body.replace("\r\n", "\n")
    text = "\n".join(["---", *yamltext.lines(meta), "---", body])
    page = parse(text)
    if page.meta != meta or page.body != body:
        raise Unreadable("these values cannot be written as frontmatter", mend="use shorter keys and flatter values")
    return text


def set_key(text: str, key: str, value: Value) -> str:
    """`text` with `key` (`status`, or `links.contradicts` below a key) set to `value`; every other byte stays.

    A missing key is added at the end of its mapping, a missing mapping at the end of the frontmatter. Raises
    Unreadable where the frontmatter is missing or cannot be read, or the key stands inside `{…}`.
    """
    from khms.store import inplace

    return inplace.set_key(text, key, value)


def remove_keys(text: str, keys: Iterable[str]) -> str:
    """`text` without the lines of `keys` (dotted below a key); every other byte stays. A key that is not there is
    passed over; a mapping left without keys goes too. Raises Unreadable as `set_key` does."""
    from khms.store import inplace

    return inplace.remove_keys(text, keys)
