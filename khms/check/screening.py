"""What may not enter: secrets, text that tries to become an instruction, and ways to carry data out.

Screening is best effort: it withholds for a person to look at, and the review gate and the frame around injected text
stand behind it. A text *about* such attacks may quote them (see `patterns`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from khms.check.credentials import Secret, secrets
from khms.check.disguise import compact, decoded, reading, words
from khms.check.patterns import MOST, Kind, Pattern, Patterns, concerned, expressions, matches, patterns
from khms.model.frame import neutralise
from khms.model.redact import key_shapes

SNIPPET = 80


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
    plain = reading(text)
    found = words(plain)
    unique = set(found)
    longest = max(map(len, unique), default=0)
    keys = secrets(text, longest, config)
    spans: list[tuple[Pattern, int, int, str]] = []
    for pattern in concerned(table, plain, unique):
        spans += [(pattern, start, end, plain) for start, end in matches(pattern, plain)]
    spans += _unseen(table, text)
    run = compact(found)
    for pattern in table.compact:
        spans += _run_together(pattern, run, plain)
    said = list(decoded(text)) if longest >= 24 else []
    if not (keys or spans or said):
        return []
    view = _View(text, keys)
    hits = [
        Hit("secret", name, view.line(text, start), view.secret(start, end, name), known)
        for start, end, name, known in keys
    ]
    hits += [Hit(row.kind, row.id, view.line(read, at), view.snippet(read, at, end)) for row, at, end, read in spans]
    for at, sentence in said:
        for pattern in concerned(table, sentence, set(words(sentence))):
            for start, end in matches(pattern, sentence):
                hits.append(Hit(pattern.kind, pattern.id, view.line(text, at), _cut("base64: " + sentence[start:end])))
    return sorted(set(hits), key=lambda hit: (hit.line, hit.kind, hit.id, hit.snippet))


def _unseen(table: Patterns, text: str) -> list[tuple[Pattern, int, int, str]]:
    """Matches of the patterns of view `hidden`; they are tried only where some character does not print."""
    if text.isascii() and "\x1b" not in text and "\x08" not in text:
        return []
    if text.replace("\n", "").isprintable() and b"\xf3\xa0" not in text.encode("utf-8", "surrogatepass"):
        return []
    return [
        (pattern, *match.span(), text)
        for pattern in table.hidden
        for expression in expressions(pattern)
        for match, _ in zip(expression.finditer(text), range(MOST), strict=False)
    ]


def _run_together(pattern: Pattern, run: bytes, plain: str) -> list[tuple[Pattern, int, int, str]]:
    """Matches of a pattern of view `compact` whose words do not stand in the reading as words."""
    keys, _ = pattern.groups[0]
    if not any(key in run for key in keys):
        return []
    letters = run.decode("utf-8", "replace")
    for expression in expressions(pattern):
        match = expression.search(letters)
        if match and any(part and part not in plain for part in match.groups()):
            for at, line in _lines(plain):
                if expression.search(compact(words(line)).decode("utf-8", "replace")):
                    return [(pattern, at, at + len(line), plain)]
            return [(pattern, 0, min(len(plain), SNIPPET), plain)]
    return []


def _lines(text: str) -> list[tuple[int, str]]:
    at, found = 0, []
    for line in text.split("\n"):
        found.append((at, line))
        at += len(line) + 1
    return found


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
