"""Where the blocks of a file lie that holds several, one candidate each, one after the other."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_KEY = re.compile(r"[\"']?\w[\w-]*[\"']?:(?:\s|\Z)")
_ID = re.compile(r"id:(?:\s+[\"']?([^\s\"']*)|\Z)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_CODE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Part:
    """One block's text, from its opening fence (file line `line`) on; `next_line` is the next one's, 0 if none;
    `label` what its `id:` line says."""

    text: str
    line: int
    next_line: int
    label: str
    heading: str


def parts(text: str) -> Iterator[Part]:
    """The blocks of a text with LF line ends, as `khms.store.markdown.blocks` defines them."""
    rows = text.split("\n")
    starts = _starts(rows)
    for start, following in pairwise([*starts, 0]):
        heading = _HEADING.fullmatch(rows[start - 1]) if start else None
        end = following or len(rows)
        if following:
            end -= 1 if _HEADING.fullmatch(rows[end - 1]) else 0
            while not rows[end - 1].strip():
                end -= 1
        written = "\n".join(rows[start:end]) + ("\n" if following else "")
        named = next(filter(None, map(_ID.match, rows[start:end])), None)
        label = named[1] or "" if named else ""
        yield Part(written, start + 1, following and following + 1, label, heading[1].strip() if heading else "")


def _starts(rows: list[str]) -> list[int]:
    starts: list[int] = []
    inside = False  # between the fences of a block, where a code fence means nothing
    row = 0
    open_until: dict[str, tuple[str, int]] = {}  # keeps a file of nothing but open fences from taking forever
    while row < len(rows):
        fence = None if inside else _code_fence(rows[row])
        known, until = open_until.get(fence[0], ("", 0)) if fence else ("", 0)
        if fence and not (row < until and fence.startswith(known)):
            is_closed, end = _code_end(rows, row, fence)
            if is_closed:
                row = end
            else:
                open_until[fence[0]] = fence, end
        elif _is_start(rows, row):
            starts.append(row)
            inside = True
        elif inside and rows[row].rstrip() in ("---", "..."):
            inside = False
        row += 1
    return starts


def _is_start(rows: list[str], row: int) -> bool:
    if rows[row].rstrip(" \t") != "---":
        return False
    first = next((i for i in range(row + 1, len(rows)) if rows[i].strip()), None)
    if first is None or (row and rows[row - 1].strip() and not _HEADING.fullmatch(rows[row - 1])):
        return False
    if row == 0 or _ID.match(rows[first]):
        return _KEY.match(rows[first]) is not None
    # An id that does not come first: only in a closed block without a gap, or prose between rules would count.
    end = next((i for i in range(first, len(rows)) if rows[i].rstrip() in ("---", "...", "")), first)
    is_closed = end < len(rows) and rows[end].strip() != ""
    return is_closed and _KEY.match(rows[first]) is not None and any(map(_ID.match, rows[first:end]))


def _code_fence(row: str) -> str | None:
    """The characters of a code fence that can open on `row`."""
    found = _CODE.fullmatch(row)
    return None if found is None or (found[1][0] == "`" and "`" in found[2]) else found[1]


def _code_end(rows: list[str], row: int, fence: str) -> tuple[bool, int]:
    """Whether the code fence that opens on `row` is closed, and the row where that is known.

    A fence that nothing closes counts as none, and so does one that would run over the start of a block into the
    opening of another fence: there its own end is missing, and the block must not vanish into it.
    """
    over_block = False
    for below in range(row + 1, len(rows)):
        found = _CODE.fullmatch(rows[below])
        if found and found[1].startswith(fence):
            if not found[2].strip():
                return True, below
            if over_block:
                return False, below
        over_block = over_block or _is_start(rows, below)
    return False, len(rows)
