"""MARKs that nobody wrote down: an agent finds them in the digest of a session, each with words of it.

Such a MARK is made as any other and decided as any other. It counts only where its quote stands in the digest, where no
MARK that is known says the same, and where nobody decided it before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from khms.model.candidate import ABSENT
from khms.model.mark import Mark, mark_id, normalise
from khms.model.redact import redact
from khms.pipeline import prompts, quotes
from khms.pipeline.digest import Chunk
from khms.pipeline.duplicates import Bodies
from khms.pipeline.packet import RADIUS
from khms.pipeline.prompts import Prompt
from khms.pipeline.sources import Page, clean
from khms.store import schema

SCHEMA = "generated"


@dataclass(frozen=True, slots=True)
class Found:
    """What an answer about one chunk came to: its MARKs, and what was left out with the reason."""

    page: Page
    marks: tuple[Mark, ...] = ()
    left_out: tuple[str, ...] = ()


def prompt(chunk: Chunk, run: str) -> Prompt:
    """What an agent is shown about one chunk: the digest, each line of it behind a bar."""
    lines = [f"# The digest of {chunk.source}", "", *(f"| {line}" for line in chunk.text.rstrip("\n").split("\n")), ""]
    return prompts.made(prompts.GENERATE, "\n".join(lines), run)


def wrong(value: dict[str, Any]) -> list[str]:
    return [f"{where}: {words}" if where else words for where, words in schema.problems(SCHEMA, value)]


def marks(chunk: Chunk, value: dict[str, Any], known: "Known") -> Found:
    """The MARKs of a valid answer. Lines are those of the chunk in which the quote stands."""
    page = chunk.page
    source = quotes.Source(page.path, chunk.text, page.sha256)
    made, left_out = [], []
    for one in value["marks"]:
        text = normalise(redact(clean(one["text"])))
        grade, first, last = source.look_up(one["quote"])
        shown = f"“{text[:80]}”"
        if grade == ABSENT or len(quotes.plain(one["quote"])) < quotes.SHORTEST:
            left_out.append(f"{shown}: its quote does not stand in the digest")
        elif twin := known.same(text):
            left_out.append(f"{shown}: {twin} says it")
        else:
            mark = known.mark(chunk, one["kind"].casefold(), text, first, last)
            made.append(mark)
    return Found(replace(page, marks=tuple(made)), tuple(made), tuple(left_out))


class Known:
    """The MARKs that are there already, written or found."""

    def __init__(self, written: Iterable[Mark], least: float) -> None:
        self._least = least
        self._bodies = Bodies((mark.id, mark.text) for mark in written)

    def same(self, text: str) -> str:
        """The id of a MARK that says the same; empty where none does."""
        found = self._bodies.same(text, self._least)
        return found[0].id if found else ""

    def mark(self, chunk: Chunk, kind: str, text: str, first: int, last: int) -> Mark:
        """A new MARK. Its id hangs on the session and its words, not on the chunk: a session that is read again in
        other pieces gives the same ids."""
        name = mark_id(chunk.source, kind, text, 1)
        self._bodies.add(name, text)
        return Mark(name, kind, text, chunk.session, chunk.path, first, last)


def excerpt(mark: Mark, chunks: Sequence[Chunk]) -> tuple[str, list[str]]:
    """(source, lines) of the digest of the session that a MARK names, up to where it was written, or, for one that was
    found in that very digest, up to the lines around it, which are shown anyway; nothing where none was read."""
    own = [chunk for chunk in chunks if mark.session and _is(chunk.session, mark.session)]
    lines: list[str] = []
    for chunk in own:
        told = chunk.text.rstrip("\n").split("\n")
        if chunk.path == mark.path:
            return own[0].source, lines + told[: max(mark.line - 1 - RADIUS, 0)]
        lines += told
    start = mark.text[:40]
    ends = [at for at, line in enumerate(lines) if start in line]
    return (own[0].source if own else ""), lines[: ends[0]] if ends else lines


def _is(session: str, named: str) -> bool:
    """Whether a MARK's note names this session; a note may hold the first characters of a long id."""
    return session == named or (len(named) >= 8 and session.startswith(named))
