"""A file as the documents it holds.

Short kinds are one document a file. Journals, notes and the older single-file inboxes are cut at headings, and a long
section at its blocks, never inside a code block; each piece knows its line.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

from khms.index.sources import HEADED, Place
from khms.model.card import as_list, as_text, card_from
from khms.model.document import Document
from khms.model.finding import Finding
from khms.store import markdown

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# Measured on 200 notes of 7 kB asked for by their descriptions, MRR: whole 97.5; cut at every heading above 4,000
# characters 95.6; as below 97.3.
SHORT = 8000  # characters up to which a note or journal stays one document
LEAST = 2000  # characters from which a piece of a longer one ends at the next heading
MOST = 4000  # characters from which it ends at the next block
_CANDIDATE = re.compile(r"(C\d+)\b")


def documents(place: Place, path: str, data: bytes) -> tuple[Document, ...] | Finding:
    """The documents in the bytes of one file, or why there are none. A generated file of khms's own is no document:
    an empty tuple."""
    if path in HEADED and b"khms" in data[:400].partition(b"\n")[0]:
        return ()
    if not data.strip():
        return Finding("KH001", "error", path, 0, "the file is empty", "write the card, or remove the file")
    text = data.decode("utf-8", "surrogateescape")
    line = markdown.conflict_line(text)
    if line is not None:
        return Finding("KH015", "error", path, line, "a merge-conflict marker", "settle the conflict")
    try:
        page = markdown.parse(text, path)
    except markdown.Unreadable as error:
        return Finding("KH001", "error", path, error.line or 0, error.message, error.mend)
    return _READERS[place.kind](place, path, page)


def _card(place: Place, path: str, page: markdown.Page) -> tuple[Document, ...]:
    card = card_from(page.meta, page.body, path, page.body_line)
    return (
        Document(
            card.id,
            place.kind,
            path,
            1,
            shown(card.title),
            card.body,
            card.tags,
            card.type,
            card.status,
            card.scope,
            card.evidence,
            card.date,
            card.level,
            card.links.edges(),
        ),
    )


def _lesson(place: Place, path: str, page: markdown.Page) -> tuple[Document, ...]:
    """A lesson that waits for confirmation has the status pending: nobody has approved it."""
    title = shown(first_line(page.body))
    status = "pending" if as_text(page.meta.get("review")) == "pending" else "active"
    tags = as_list(page.meta.get("category"))
    date = as_text(page.meta.get("created"))
    return (Document(place.id, place.kind, path, 1, title, page.body, tags, "", status, date=date),)


def _candidate(place: Place, path: str, page: markdown.Page) -> tuple[Document, ...]:
    """A candidate of a unit, or the older single file, whose sections are candidates."""
    if "/" not in place.id:
        pieces = sections(page.body, page.body_line, short=0, least=0)
        found = ((_CANDIDATE.match(heading), heading, body, line) for heading, body, line in pieces)
        return tuple(
            Document(f"{place.id}/{label[1]}", place.kind, path, line, shown(heading), body, status="waiting")
            for label, heading, body, line in found
            if label
        )
    if "change" in page.meta:  # of another card's status: it says nothing itself
        return ()
    card = card_from(page.meta, page.body, path, page.body_line)
    folder = place.id.split("/")[-2]
    state = folder if folder in ("deferred", "dropped") else "waiting"
    return (
        Document(
            place.id, place.kind, path, 1, shown(card.title), card.body, card.tags, card.type, state, card.scope,
            card.evidence, card.date, card.level,
        ),
    )  # fmt: skip


def _journal(place: Place, path: str, page: markdown.Page) -> tuple[Document, ...]:
    day = place.id.rpartition("/")[2]
    pieces = sections(page.body, page.body_line)
    return tuple(
        Document(place.id, place.kind, path, line, shown(heading) or day, body, date=day[:10])
        for heading, body, line in pieces
    )


def _note(place: Place, path: str, page: markdown.Page) -> tuple[Document, ...]:
    meta = page.meta
    title = shown(as_text(meta.get("title"))) or first_heading(page.body) or place.id.rpartition("/")[2]
    tags = tuple(t.lstrip("#") for value in as_list(meta.get("tags")) for t in value.replace(",", " ").split())
    date = as_text(meta.get("date")) or as_text(meta.get("created"))
    about = [as_text(meta.get(key)) for key in ("description", "summary")] + list(as_list(meta.get("aliases")))
    lead = "\n".join(text for text in about if text)
    pieces = sections(page.body, page.body_line)
    return tuple(
        Document(
            place.id,
            place.kind,
            path,
            line,
            title if number == 0 or not heading or heading == title else f"{title}: {shown(heading)}",
            f"{lead}\n{body}" if lead and number == 0 else body,
            tags,
            date=date,
        )
        for number, (heading, body, line) in enumerate(pieces)
    )


_READERS = {"card": _card, "lesson": _lesson, "inbox": _candidate, "journal": _journal, "note": _note}


def shown(text: str) -> str:
    """`text` on one line and without control characters, fit for a terminal."""
    if not text.isprintable():
        text = "".join([c if c.isprintable() else " " for c in text])
    return " ".join(text.split())


def first_line(body: str) -> str:
    return next((line.strip("# \t") for line in body.splitlines() if line.strip()), "")


def first_heading(body: str) -> str:
    """The text of the first heading that is not in a code fence."""
    fence = ""
    for line in body.splitlines():
        start = line.lstrip()[:3]
        if start in ("```", "~~~") and fence in ("", start):
            fence = "" if fence else start
        elif not fence and line.startswith("#") and line.lstrip("#").startswith(" "):
            return shown(line.strip("# \t"))
    return ""


def sections(body: str, first: int, *, short: int = SHORT, least: int = LEAST) -> list[tuple[str, str, int]]:
    """`body` as (heading, text, file line) pieces; one piece up to `short` characters, none below `least` but the last.
    `first` is the file line of the body's first line. A piece's heading is the one it begins with or stands under."""
    if len(body) <= short:
        return [(first_heading(body), body, first)]
    rows = body.split("\n")
    cuts: list[tuple[int, str]] = [(0, "")]  # first row of each piece, its heading
    heading, size = "", 0
    for at, end, title in _blocks(body):
        if size and ((title is not None and size >= least) or size > MOST):
            cuts.append((at, heading))
            size = 0
        if title is not None:
            heading = title
            if not size:
                cuts[-1] = (cuts[-1][0], title)
        size += sum(len(row) + 1 for row in rows[at:end])
    ends = [at for at, _ in cuts[1:]] + [len(rows)]
    return [(title, "\n".join(rows[at:end]), first + at) for (at, title), end in zip(cuts, ends, strict=True)]


def _blocks(body: str) -> list[tuple[int, int, str | None]]:
    """The top-level blocks of a Markdown text as (first row, row after the last, heading text or None)."""
    tokens = _parser().parse(body.replace("\r", " "))
    found: list[tuple[int, int, str | None]] = []
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0 and token.map is not None:
            title = tokens[index + 1].content if token.type == "heading_open" else None
            found.append((token.map[0], token.map[1], title))
    return found


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])  # headings need no inline pass, which costs most of the time
    return parser
