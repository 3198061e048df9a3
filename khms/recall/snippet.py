"""The line of a document that says most of what was asked, read from its file: the index stores no text."""

from __future__ import annotations

from khms.index.fields import stems
from khms.index.text import terms
from khms.model.document import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LONGEST = 240  # characters of a snippet
READ = 20_000  # characters of a document that are looked through
LEAD = 60  # characters kept before the first word that counts
PART = 40  # characters of a word that are weighed at once


def best_line(root: Path, document: Document, weights: Mapping[str, float], language: str) -> tuple[int, str]:
    """(line, text): the line whose words weigh most, the first of equals; without any, the first that says something.
    A fence of code, a rule and the title once more are taken only where there is nothing else. The document's own line
    and no text where the file cannot be read."""
    rows = _rows(root, document)
    best, best_weight, left = (0, ""), -1.0, READ
    for number in range(_start(rows, document), len(rows)):
        row = rows[number][:left]
        if row.strip():
            weight = _weight(row, weights, language) if _says(row, document.title) else -0.5
            if weight > best_weight:
                best, best_weight = (number + 1, row), weight
        left -= len(row) + 1
        if left <= 0:
            break
    if not best[0]:
        return document.line, ""
    return best[0], _cut(best[1], weights, language)


def body(root: Path, document: Document) -> str:
    """What a document says, from its file; empty where that cannot be read."""
    rows = _rows(root, document)
    return "\n".join(rows[_start(rows, document) :])[:READ]


def _rows(root: Path, document: Document) -> list[str]:
    try:
        text = (root / document.path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        text = ""
    return text.replace("\r\n", "\n").split("\n")


def _start(rows: list[str], document: Document) -> int:
    """The row to begin with: the document's own, or the one after its frontmatter."""
    if document.line > 1 or rows[0].rstrip() != "---":
        return min(document.line - 1, len(rows))
    closing = (number for number, row in enumerate(rows[1:], 1) if row.rstrip() in ("---", "..."))
    return next(closing, -1) + 1


def _says(row: str, title: str) -> bool:
    """Whether a row says something of its own."""
    bare = row.strip()
    return not (bare.startswith(("```", "~~~")) or bare.strip("-*_=|:+ ") == "" or bare.lstrip("# ") == title.strip())


def _weight(text: str, weights: Mapping[str, float], language: str) -> float:
    return sum(weights.get(stem, 0.0) for stem in set(_stems(text, language)))


def _stems(text: str, language: str) -> list[str]:
    found = terms(text)
    return stems([*found.words, *found.parts, *found.grams], language)


def _cut(row: str, weights: Mapping[str, float], language: str) -> str:
    """`row` without control characters and, where it is long, the stretch from shortly before its heaviest word."""
    text = " ".join("".join(c if c.isprintable() else " " for c in row).split())
    if len(text) <= LONGEST:
        return text
    pieces = list(_pieces(text))
    at = max(pieces, key=lambda piece: _weight(piece[1], weights, language))[0]
    start = min(max(0, at - LEAD), len(text) - LONGEST)
    if start:
        start = text.find(" ", start, at) + 1 or start
    end = start + LONGEST
    if end < len(text):
        blank = text.rfind(" ", at, end)
        end = blank if blank > 0 else end
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Where each word begins, with the word; of a long one, as scripts without blanks have them, overlapping parts."""
    at = 0
    for word in text.split(" "):
        yield from (
            (at + part, word[part : part + PART]) for part in range(0, max(1, len(word) - PART // 2), PART // 2)
        )
        at += len(word) + 1
