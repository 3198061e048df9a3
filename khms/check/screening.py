"""What may not enter: secrets, text that tries to become an instruction, and ways to carry data out.

Screening is best effort: it withholds for a person to look at, and the review gate and the frame around injected text
stand behind it. A text *about* such attacks may quote them (see `patterns`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from khms.check.credentials import Secret, secrets
from khms.check.disguise import Reading, apart, decoded, spelled
from khms.check.patterns import (
    MOST,
    Kind,
    Pattern,
    Patterns,
    expression,
    matches,
    patterns,
    sift,
)
from khms.model.frame import neutralise
from khms.model.redact import key_shapes, redact

SNIPPET = 80

Span = tuple[Pattern, int, int, str]  # a match, and the text or reading that its offsets count in


@dataclass(frozen=True, slots=True)
class Hit:
    """One reason to withhold a text. `snippet` is redacted, on one line, and at most 80 characters long."""

    kind: Kind
    id: str
    line: int
    snippet: str
    known_prefix: bool = False


def screen(text: str, *, config: Mapping[str, Any] | None = None) -> list[Hit]:
    """Every reason to withhold `text`, by line; an empty list lets it pass. Never raises, whatever the text."""
    table = patterns()
    reading = Reading(text)
    sifted = sift(table, reading)
    keys = secrets(text, sifted.longest, config)
    spans = [(*span, reading.plain) for span in matches(table, reading, sifted)]
    if sifted.misspelt:
        spans += [(*span, reading.plain) for span in matches(table, spelled(reading))]
    if reading.unseen:
        for pattern in table.hidden:
            found = zip(expression(pattern).finditer(text), range(MOST), strict=False)
            spans += [(pattern, *match.span(), text) for match, _ in found]
    together = apart(reading)
    if together:
        spans += _run_together(table, together, reading)
    said = list(decoded(text)) if sifted.longest >= 24 else []
    if not (keys or spans or said):
        return []
    view = _View(text, keys)
    hits = [Hit("secret", row[2], view.line(text, row[0]), view.secret(*row[:3]), row[3]) for row in keys]
    hits += [Hit(row.kind, row.id, view.line(shown, at), view.snippet(shown, at, end)) for row, at, end, shown in spans]
    for at, sentence in said:
        for row, start, end in matches(table, sentence):
            shown = _cut("base64: " + redact(sentence.plain[start:end]))
            hits.append(Hit(row.kind, row.id, view.line(text, at), shown))
    return sorted(set(hits), key=lambda hit: (hit.line, hit.kind, hit.id, hit.snippet))


def _run_together(table: Patterns, together: str, reading: Reading) -> list[Span]:
    """Matches of the patterns of view `compact`, where their words do not stand in the reading as words."""
    spans = []
    for pattern in table.compact:
        match = expression(pattern).search(together)
        if match and not all(part in reading.plain for part in match.groups()):
            at = 0
            for line in reading.plain.split("\n"):
                if expression(pattern).search(apart(Reading(line))):
                    spans.append((pattern, at, at + len(line), reading.plain))
                at += len(line) + 1
            spans = spans or [(pattern, 0, 0, reading.plain)]
    return spans


class _View:
    """The text as it may be shown: secrets, doubtful ones too, are crossed out without moving anything."""

    def __init__(self, text: str, keys: list[Secret]) -> None:
        spans = [(start, end) for start, end, _, _ in keys]
        spans += [(start, end) for start, end, _ in key_shapes(text, doubtful=True)]
        masked = list(text)
        for start, end in spans:
            masked[start:end] = ["\n" if c == "\n" else "*" for c in masked[start:end]]
        self._lines = "".join(masked).split("\n")
        self._text = text

    def line(self, read: str, at: int) -> int:
        """The line, from 1, of offset `at` in the text or in a reading of it."""
        return min(read.count("\n", 0, at) + 1, len(self._lines))

    def secret(self, start: int, end: int, name: str) -> str:
        """What stands around a secret, and its id in its place."""
        line = self._lines[self.line(self._text, start) - 1]
        column = start - self._text.rfind("\n", 0, start) - 1
        return _cut(f"{line[max(0, column - 24) : column]}[redacted:{name}]{line[column + end - start :]}")

    def snippet(self, read: str, start: int, end: int) -> str:
        """The line of a match, or as much of it as fits. `start` and `end` count in `read`."""
        line = self._lines[self.line(read, start) - 1]
        first = read.rfind("\n", 0, start) + 1
        last = read.find("\n", start)
        length = (last if last >= 0 else len(read)) - first
        if len(line) <= SNIPPET:
            return _cut(line)
        if length == len(line):
            return _cut(line[max(0, start - first - 8) :])
        share = (start - first) / max(1, length)
        return _cut(line[max(0, int(share * len(line)) - 16) :])


def _cut(text: str) -> str:
    return neutralise(text[: 4 * SNIPPET]).strip()[:SNIPPET]
