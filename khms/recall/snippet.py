"""The line of a document that says most of what was asked, read from its file: the index stores no text."""

from __future__ import annotations

from khms.index.fields import stems
from khms.index.text import terms
from khms.model.document import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LONGEST = 240  # characters of a snippet
READ = 20_000  # characters of a document that are looked through
LEAD = 60  # characters kept before the first word that counts


def best_line(root: Path, document: Document, weights: Mapping[str, float], language: str) -> tuple[int, str]:
    """(line, text): the line whose words weigh most, the first of equals; without any, the first that says something.
    The document's own line and no text where the file cannot be read."""
    try:
        text = (root / document.path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return document.line, ""
    rows = text.replace("\r\n", "\n").split("\n")
    best, best_weight, left = (0, ""), -1.0, READ
    for number in range(_start(rows, document), len(rows)):
        row = rows[number]
        if row.strip():
            weight = sum(weights.get(stem, 0.0) for stem in set(_stems(row, language)))
            if weight > best_weight:
                best, best_weight = (number + 1, row), weight
        left -= len(row) + 1
        if left <= 0:
            break
    if not best[0]:
        return document.line, ""
    return best[0], _cut(best[1], weights, language)


def _start(rows: list[str], document: Document) -> int:
    """The row to begin with: the document's own, or the one after its frontmatter."""
    if document.line > 1 or rows[0].rstrip() != "---":
        return min(document.line - 1, len(rows))
    closing = (number for number, row in enumerate(rows[1:], 1) if row.rstrip() in ("---", "..."))
    return next(closing, -1) + 1


def _stems(text: str, language: str) -> list[str]:
    found = terms(text)
    return stems([*found.words, *found.parts, *found.grams], language)


def _cut(row: str, weights: Mapping[str, float], language: str) -> str:
    """`row` without control characters and, where it is long, the stretch from shortly before its heaviest word."""
    text = " ".join("".join(c if c.isprintable() else " " for c in row).split())
    if len(text) <= LONGEST:
        return text
    pieces = text.split(" ")
    worth = [sum(weights.get(stem, 0.0) for stem in set(_stems(piece, language))) for piece in pieces]
    before = pieces[: worth.index(max(worth))]
    at = len(" ".join(before)) + bool(before)
    start = min(max(0, at - LEAD), len(text) - LONGEST)
    if start:
        start = min(text.find(" ", start) + 1 or at, at)
    end = start + LONGEST
    if end < len(text):
        blank = text.rfind(" ", at, end)
        end = blank if blank > 0 else end
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
