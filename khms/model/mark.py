"""The MARK: one journal line `MARK[kind] text`, its parsing and its stable id."""

import unicodedata
from collections import Counter
from collections.abc import Iterator

from khms.model.digest import sha256_hex
from khms.values import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """`line` and `end` are the first and last line (from 1) that hold it; `text` is joined and normalised."""

    id: str
    kind: str
    text: str
    session: str
    path: str
    line: int
    end: int

    @property
    def date(self) -> str:
        """The journal day, from the file's name."""
        return self.path.rpartition("/")[2][:10]


def normalise(text: str) -> str:
    """NFC with white space collapsed: the form that a MARK's id is made of."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def mark_id(stem: str, kind: str, text: str, n: int) -> str:
    """`M-` and 12 hex digits over the journal's stem, the kind, the normalised text and its ordinal among equals."""
    return "M-" + sha256_hex("\0".join((stem, kind, text, str(n))).encode("utf-8", "surrogatepass"))[:12]


def split_session(text: str) -> tuple[str, str]:
    """(text, session id) with a trailing `(sess …)` taken off."""
    if text.endswith(")"):
        start = text.rfind("(sess ")
        if start >= 0 and ")" not in text[start:-1]:
            return text[:start].rstrip(), text[start + 6 : -1].strip()
    return text, ""


def opening(line: str) -> tuple[str, str] | None:
    """(kind, rest) where `line` begins a MARK, else None. Indentation and a list bullet before it are allowed."""
    text = line.lstrip(" \t")
    if text[:2] in ("- ", "* "):
        text = text[2:].lstrip(" \t")
    if not text.startswith("MARK["):
        return None
    kind, sep, rest = text[5:].partition("]")
    if not sep or not kind or not kind.isprintable() or " " in kind or "[" in kind:
        return None
    return kind, rest.lstrip(":").strip()


def _fence(line: str) -> str:
    """The fence run (``` or ~~~, three or more) that `line` starts with, else nothing."""
    text = line.lstrip(" ")
    if len(line) - len(text) > 3:
        return ""
    for char in "`~":
        run = len(text) - len(text.lstrip(char))
        if run >= 3:
            return text[:run]
    return ""


def _fenced(lines: list[str]) -> set[int]:
    """Indexes of the lines inside closed code fences. A fence that is never closed hides nothing: better a MARK
    too many before a reviewer than one lost."""
    inside: set[int] = set()
    start, fence = -1, ""
    for i, line in enumerate(lines):
        run = _fence(line)
        if start < 0 and run:
            start, fence = i, run
        elif start >= 0 and run and run[0] == fence[0] and len(run) >= len(fence) and line.strip() == run:
            inside.update(range(start, i + 1))
            start = -1
    return inside


def _is_rule(line: str) -> bool:
    text = line.replace(" ", "")
    return len(text) >= 3 and text[0] in "-*_" and text == text[0] * len(text)


def _is_heading(line: str) -> bool:
    text = line.lstrip("#")
    return 0 < len(line) - len(text) <= 6 and (not text or text[0] in " \t")


def parse_marks(text: str, path: str) -> list[Mark]:
    """Every MARK of one journal file, in order. `path` names the file; its stem takes part in the ids."""
    stem = path.rpartition("/")[2].removesuffix(".md")
    lines = text.removeprefix("﻿").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    fenced = _fenced(lines)
    seen: Counter[tuple[str, str]] = Counter()
    marks = []
    for first, last, kind, raw in _spans(lines, fenced):
        body, session = split_session(normalise(raw))
        if not body:
            continue
        seen[kind, body] += 1
        marks.append(Mark(mark_id(stem, kind, body, seen[kind, body]), kind, body, session, path, first + 1, last + 1))
    return marks


def _spans(lines: list[str], fenced: set[int]) -> Iterator[tuple[int, int, str, str]]:
    i = 0
    while i < len(lines):
        begin = None if i in fenced else opening(lines[i])
        if begin is None:
            i += 1
            continue
        first, (kind, rest) = i, begin
        parts = [rest]
        i += 1
        while i < len(lines) and not _ends(lines[i], i in fenced):
            parts.append(lines[i].strip())
            i += 1
        yield first, i - 1, kind, " ".join(parts)


def _ends(line: str, fenced: bool) -> bool:
    return fenced or not line.strip() or opening(line) is not None or _is_heading(line) or _is_rule(line)
