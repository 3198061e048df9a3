"""Whether a candidate's quotes stand in the sources that they name: a match, a mismatch, or not looked up; no guess.

EXACT    the words stand there as they are
WRAPPED  only white space or typographic quotation marks differ
ELIDED   left-out words are marked (…, ..., [...]) and every part stands there, in that order
ABSENT   anything else

A match begins and ends at a word's edge: `14 of 600` does not stand in `214 of 600`.
"""

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from khms.errors import Refused
from khms.index.text import STOP_WORDS, terms
from khms.model.candidate import ABSENT, ELIDED, EXACT, WRAPPED, Candidate, Quote
from khms.model.card import as_list, as_text, is_card_id
from khms.model.mark import parse_marks
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome
from khms.model.redact import redact
from khms.pipeline import sources
from khms.store import cards, files
from khms.store.layout import INBOX, JOURNAL, Base

SHORTEST = 12  # characters
AROUND = 1  # lines before and after a quote that travel with it
CONTEXT = 600  # characters of them
_ELISION = re.compile(r"\s*(?:\[(?:\.\.\.|…)\]|\((?:\.\.\.|…)\)|\.\.\.|…)\s*")
_TYPOGRAPHIC = str.maketrans("“”„‟«»″‘’‚‛‹›′\u00a0", "\"\"\"\"\"\"\"''''''' ")
_LISTED = re.compile(r"^[ \t]*[-*][ \t]+src=(\S+)[ \t]*::[ \t]*(.+)$", re.MULTILINE)
_PLACE = re.compile(r"(?:\s+lines?\b.*|:\d[\d-]*|#L\d+.*)$", re.DOTALL)
_JOURNAL_PATH = re.compile(rf"{JOURNAL}/[\w.-]+\.md")


def plain(text: str) -> str:
    """The form in which WRAPPED texts are equal."""
    return " ".join(sources.clean(unicodedata.normalize("NFC", text)).translate(_TYPOGRAPHIC).split())


@dataclass(frozen=True)
class Source:
    """A source's text, LF line ends; `shown` names it in messages."""

    shown: str
    text: str
    sha256: str

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _wrapped(self) -> tuple[str, list[int]]:
        """The text in its plain form, and where in it each line starts."""
        parts, starts, at = [], [], 0
        for line in self._lines:
            part = plain(line)
            starts.append(at)
            if part:
                parts.append(part)
                at += len(part) + 1
        return " ".join(parts), starts

    def look_up(self, words: str) -> tuple[str, int, int]:
        """(grade, first line, last line) of a quote, lines from 1; zeros where it is absent."""
        at = _find(self.text, words, 0)
        if at >= 0:
            return EXACT, self.text.count("\n", 0, at) + 1, self.text.count("\n", 0, at + len(words)) + 1
        text, starts = self._wrapped
        wanted = plain(words)
        at = _find(text, wanted, 0)
        if at >= 0:
            return WRAPPED, bisect_right(starts, at), bisect_right(starts, at + len(wanted) - 1)
        parts = [part for part in _ELISION.split(wanted) if part]
        if len(parts) > 1 or (parts and parts[0] != wanted):
            first, end = -1, 0
            for part in parts:
                at = _find(text, part, end)
                if at < 0:
                    return ABSENT, 0, 0
                first, end = (at if first < 0 else first), at + len(part)
            return ELIDED, bisect_right(starts, first), bisect_right(starts, end - 1)
        return ABSENT, 0, 0

    def context(self, first: int, last: int) -> str:
        """The lines around a place, without what may not be kept anywhere."""
        lines = self._lines[max(first - 1 - AROUND, 0) : last + AROUND]
        return redact(sources.clean("\n".join(lines).strip("\n")))[:CONTEXT]


def _find(text: str, words: str, start: int) -> int:
    """Where `words` stand in `text` from `start` on, not as a part of longer words; -1 where they do not."""
    while words and (at := text.find(words, start)) >= 0:
        if _edge(text, at, at - 1, -1) and _edge(text, at + len(words) - 1, at + len(words), 1):
            return at
        start = at + 1
    return -1


def stands(words: str, text: str) -> bool:
    """Whether `words` stand in `text`, beginning and ending at a word's edge."""
    return _find(text, words, 0) >= 0


def _edge(text: str, inner: int, outer: int, step: int) -> bool:
    """Whether a word ends between two neighbouring places. `1.5` is one word, and a script without blanks has none."""
    if not 0 <= outer < len(text):
        return True
    one, other = text[inner], text[outer]
    if one.isdigit() and other in ".,":
        beyond = outer + step
        return not (0 <= beyond < len(text) and text[beyond].isdigit())
    if not (_wordy(one) and _wordy(other)):
        return True
    return one > "\u0dff" or other > "\u0dff"


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"


@dataclass(frozen=True, slots=True)
class Missing:
    """A source that cannot be looked into. `forged` is one that may never be one: that is a failure, not a lack."""

    why: str
    forged: bool = False


class Reader:
    """Finds sources in a base. `held` are the bytes of files as a run read them; others are read from the disk."""

    def __init__(self, base: Base, held: Mapping[str, bytes] | None = None) -> None:
        self.base = base
        self._held = held or {}
        self._read: dict[str, Source | Missing] = {}
        self._marks: dict[str, frozenset[str]] = {}

    def find(self, named: str, candidate: Candidate) -> list[Source] | Missing:
        """What the `source` of a quote means for this candidate; more than one text only for a journal nobody named."""
        if named == "journal":
            return self._journal(candidate)
        if is_card_id(named):
            path = cards.find(self.base, named)
            return self._one(self.base.relative(path)) if path else Missing(f"there is no card {named}")
        if named.startswith(sources.SESSION):
            pieces = [path for path in self._held if path == named or path.startswith(f"{named}/")]
            read = [found for path in pieces if isinstance(found := self.source(path), Source)]
            return read or Missing(f"{named} cannot be looked into from here")
        if "://" in named:
            return Missing(f"{named} cannot be looked into from here")
        return self._one(_PLACE.sub("", named))

    def _one(self, path: str) -> list[Source] | Missing:
        found = self.source(path)
        return found if isinstance(found, Missing) else [found]

    def source(self, path: str) -> Source | Missing:
        if path not in self._read:
            self._read[path] = self._load(path)
        return self._read[path]

    def _load(self, path: str) -> Source | Missing:
        data = self._held.get(path)
        if data is None:
            try:
                file = files.inside(self.base.root, self.base.root / path)
                place = file.relative_to(self.base.root.resolve()).as_posix()
                if f"{INBOX}/" in f"{place}/":
                    return Missing(f"{path} is itself a proposal", forged=True)
                # git's folder, this machine's, .env: what lies there is kept out of git, and a quote's lines are not
                if any(part.startswith(".") for part in place.split("/")):
                    return Missing(f"{path} is hidden, and nothing hidden is a source", forged=True)
                data = files.read(file)
            except Refused:
                return Missing(f"{path} leads out of the base", forged=True)
            except (OSError, ValueError):
                return Missing(f"there is no file {path}")
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        return Source(path, text, hashlib.sha256(data).hexdigest())

    def _journal(self, candidate: Candidate) -> list[Source] | Missing:
        """The file that holds the candidate's MARK; without a MARK the file that its source names, else every one."""
        named = [path for path in _JOURNAL_PATH.findall(as_text(candidate.meta.get("source"))) if self._there(path)]
        if candidate.mark:
            for path in [*named, *(path for path in self._days() if path not in named)]:
                found = self.source(path)
                if isinstance(found, Source) and self._holds(found, candidate.mark):
                    return [found]
        wanted = named or ([] if candidate.mark else self._days())
        texts = [found for path in wanted if isinstance(found := self.source(path), Source)]
        return texts or Missing(f"no journal file holds {candidate.mark or 'anything'}")

    def late(self, candidate: Candidate, quote: Quote, found: list[Source]) -> bool:
        """Whether these files lack the quote's MARK because the journal, as it was read, has not come here yet: a unit
        on a branch of its own can come first. Then the lines kept with the quote stand for it, as for a lost source."""
        return (
            bool(candidate.mark and quote.sha256)
            and all(source.shown.startswith(f"{JOURNAL}/") for source in found)
            and not any(quote.sha256 == source.sha256 or self._holds(source, candidate.mark) for source in found)
        )

    def _holds(self, source: Source, mark: str) -> bool:
        if source.shown not in self._marks:
            self._marks[source.shown] = frozenset(found.id for found in parse_marks(source.text, source.shown))
        return mark in self._marks[source.shown]

    def _there(self, path: str) -> bool:
        return isinstance(self.source(path), Source)

    def _days(self) -> list[str]:
        on_disk = {f"{JOURNAL}/{file.name}" for file in self.base.journal.glob("*.md") if file.is_file()}
        return sorted({*on_disk, *(path for path in self._held if path.startswith(f"{JOURNAL}/"))})


def of(candidate: Candidate) -> tuple[Quote, ...]:
    """The candidate's quotes: its own, else those that the older tools write below a body, else a lone `quote` key."""
    if candidate.quotes:
        return candidate.quotes
    listed = tuple(Quote(source, text.strip()) for source, text in _LISTED.findall(candidate.body))
    named = as_text(candidate.meta.get("source")) or "journal"
    return listed or tuple(Quote(named, text) for text in as_list(candidate.meta.get("quote")))


def graded(reader: Reader, candidate: Candidate, quote: Quote) -> Quote:
    """The quote with what looking it up found: grade, the source's SHA-256, the lines around it."""
    found = reader.find(quote.source, candidate)
    if isinstance(found, Missing):
        return quote
    for source in found:
        grade, first, last = source.look_up(quote.text)
        if grade != ABSENT:
            return replace(quote, sha256=source.sha256, grade=grade, context=source.context(first, last))
    if reader.late(candidate, quote, found) and _kept(quote):
        return quote
    return replace(quote, sha256=found[0].sha256, grade=ABSENT, context="")


def check(reader: Reader, candidate: Candidate) -> list[Outcome]:
    """One outcome for each quote, looked up anew; not-run where there is none. A source that is gone is replaced by the
    lines that travel with the quote."""
    quotes = of(candidate)
    if not quotes:
        return [Outcome("quotes", candidate.label, NOT_RUN, "it quotes nothing")]
    return [Outcome("quotes", candidate.label, *_judge(reader, candidate, quote)) for quote in quotes]


def _judge(reader: Reader, candidate: Candidate, quote: Quote) -> tuple[str, str]:
    shown = f"“{_short(quote.text)}”"
    if len(plain(quote.text)) < SHORTEST:
        return FAIL, f"{shown} is shorter than {SHORTEST} characters"
    if not _tells(quote.text):
        return FAIL, f"{shown} is made of stop words alone"
    found = reader.find(quote.source, candidate)
    if isinstance(found, Missing):
        if found.forged:
            return FAIL, f"{shown}: {found.why}"
        if _kept(quote):
            return PASS, f"{found.why}; {shown} stands in the lines kept with it"
        return NOT_RUN, f"{shown}: {found.why}"
    if any(source.look_up(quote.text)[0] != ABSENT for source in found):
        return PASS, ""
    if reader.late(candidate, quote, found) and _kept(quote):
        return PASS, f"no journal file here holds {candidate.mark}; {shown} stands in the lines kept with it"
    where = found[0].shown if len(found) == 1 else "the journal"
    return FAIL, f"{shown} is not in {where}"


def _kept(quote: Quote) -> bool:
    """Whether the lines that travel with the quote hold it."""
    if not (quote.context and quote.sha256):
        return False
    return Source("the lines kept with it", quote.context, quote.sha256).look_up(quote.text)[0] != ABSENT


def _tells(text: str) -> bool:
    """Whether any word is left when stop words go."""
    found = terms(text)
    return any(word not in STOP_WORDS for word in found.words)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def passages(candidate: Candidate) -> Iterator[str]:
    """The text of each quote, for checks that ask what the candidate's own quotes hold."""
    for quote in of(candidate):
        yield quote.text
