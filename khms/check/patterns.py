"""The patterns of schemas/screening.json: which of them may concern a text, and where they count.

Searching for all of them would cost 10 ms a kilobyte. So each expression names the words it can begin with and probes
that must occur: one look at the set of a text's words leaves few or none, and those are tried only where such a word
stands.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from khms import resources
from khms.check.disguise import Reading, misspelled, stems
from khms.check.mention import described, mentioned

Kind = Literal["secret", "injection", "exfiltration"]
MOST = 5  # matches shown of one expression in one text


@dataclass(frozen=True, slots=True)
class Probes:
    """Of which one must occur: whole words, beginnings of words with a star (both in UTF-8), signs anywhere."""

    words: frozenset[bytes]
    stems: frozenset[bytes]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One expression of schemas/screening.json, with what its entry says of it.

    `needs` has a bit for each group of probes that only words can meet; `groups` are those that signs can meet too.
    """

    id: str
    kind: Kind
    view: str
    mood: str
    flags: str
    starts: Probes | None
    groups: tuple[Probes, ...]
    needs: int
    sources: tuple[str, ...]
    unless: str


@dataclass(frozen=True, slots=True)
class Patterns:
    """The whole table. `index` leads from a word, or a stem with its star, to the bits it brings and to the patterns
    whose rarest group it belongs to; `foreign` from a sign of a script without blanks to the latter."""

    plain: tuple[Pattern, ...]
    hidden: tuple[Pattern, ...]
    compact: tuple[Pattern, ...]
    words: frozenset[bytes]
    stems: frozenset[bytes]
    index: Mapping[bytes, tuple[int, tuple[int, ...]]]
    foreign: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Sifted:
    """What matters of a reading's words: those of the table, those that begin with a stem of the table and these stems,
    the length of the longest (0 where none is long), and whether one is a telling word spelled with digits."""

    words: frozenset[bytes]
    stemmed: dict[bytes, frozenset[bytes]]
    stems: frozenset[bytes]
    longest: int
    misspelt: bool


LONG = 16  # letters and digits; shorter words hold neither a key nor a hidden sentence
_LOOKED_AT = 64  # characters of a word whose beginnings are looked up
_loaded: list[Patterns] = []
_compiled: dict[str, "re.Pattern[str]"] = {}
# The words of a base come again and again: what was found of them is remembered, up to a limit.
_indifferent: set[bytes] = set()  # neither stemmed nor long nor misspelt
_stemmed: dict[bytes, frozenset[bytes]] = {}
_REMEMBERED = 100_000


def patterns() -> Patterns:
    """The table, read once."""
    if not _loaded:
        text = (resources.folder("schemas") / "screening.json").read_text(encoding="utf-8")
        _loaded.append(_table(json.loads(text)["patterns"]))
    return _loaded[0]


def _table(entries: list[dict[str, Any]]) -> Patterns:
    bits: dict[Probes, int] = {}
    index: dict[bytes, tuple[int, tuple[int, ...]]] = {}
    foreign = []
    plain: list[Pattern] = []
    others: dict[str, list[Pattern]] = {"hidden": [], "compact": []}
    for entry in entries:
        for row in entry["expressions"]:
            starts = _probes(row["starts"]) if "starts" in row else None
            names = dict.fromkeys([*row.get("probes", ()), *(["starts"] if starts else [])])
            groups = [starts if starts and name == "starts" else _probes(name) for name in names]
            groups.sort(key=lambda group: not (group.words or group.stems))  # signs last: each costs a search
            pattern = _pattern(entry, row, starts, groups, bits)
            if pattern.view in others:
                others[pattern.view].append(pattern)
                continue
            for number, group in enumerate(groups):
                for key in group.words | group.stems:
                    brings, leads = index.get(key, (0, ()))
                    index[key] = (brings | bits.get(group, 0), leads if number else (*leads, len(plain)))
            foreign += [(sign, len(plain)) for sign in groups[0].signs]
            plain.append(pattern)
    stems = frozenset(key for key in index if key.endswith(b"*"))
    hidden, compact = tuple(others["hidden"]), tuple(others["compact"])
    return Patterns(tuple(plain), hidden, compact, frozenset(index) - stems, stems, index, tuple(foreign))


def _pattern(
    entry: Mapping[str, Any],
    row: Mapping[str, Any],
    starts: Probes | None,
    groups: list[Probes],
    bits: dict[Probes, int],
) -> Pattern:
    """One pattern; `bits` gets one more for each group of words that is new."""
    needs = 0
    for group in groups:
        if not group.signs:
            needs |= bits.setdefault(group, 1 << len(bits))
    return Pattern(
        id=entry["id"],
        kind=entry["kind"],
        view=entry["view"],
        mood=entry.get("mood", ""),
        flags=entry["flags"],
        starts=starts,
        groups=tuple(group for group in groups if group.signs),
        needs=needs,
        sources=tuple(row["together"]) if "together" in row else (row["regex"],),
        unless=row.get("unless", ""),
    )


def _probes(group: str) -> Probes:
    names = group.split("|")
    signs = tuple(name for name in names if not name[0].isalnum() or name[0] >= "\u0590")
    named = [name.encode() for name in names if name not in signs]
    stems = frozenset(name for name in named if name.endswith(b"*"))
    return Probes(frozenset(named) - stems, stems, signs)


def sift(table: Patterns, reading: Reading) -> Sifted:
    """The words of a reading that matter, told at one stroke from those that were seen before and do not."""
    stemmed: dict[bytes, frozenset[bytes]] = {}
    longest, misspelt = 0, False
    for word in reading.words - _indifferent:
        beginnings = _stemmed.get(word)
        if beginnings is None:
            beginnings = table.stems.intersection(stems(word[:_LOOKED_AT]))
            if len(_stemmed) + len(_indifferent) < _REMEMBERED and len(word) < LONG:
                if not beginnings and not misspelled(word):
                    _indifferent.add(word)
                    continue
                _stemmed[word] = beginnings
        if beginnings:
            stemmed[word] = beginnings
        longest = max(longest, len(word) if len(word) >= LONG else 0)
        misspelt = misspelt or misspelled(word)
    found = frozenset().union(*stemmed.values()) if stemmed else frozenset()
    return Sifted(reading.words & table.words, stemmed, found, longest, misspelt)


def concerned(table: Patterns, reading: Reading, sifted: Sifted) -> Iterator[Pattern]:
    """The patterns that may match: each of their groups of probes occurs in the reading."""
    met = 0
    numbers: set[int] = set()
    for key in sifted.words | sifted.stems:
        brings, leads = table.index[key]
        met |= brings
        if leads:
            numbers.update(leads)
    plain = reading.plain
    if reading.foreign:
        numbers.update(number for sign, number in table.foreign if sign in plain)
    for number in sorted(numbers):
        pattern = table.plain[number]
        if met & pattern.needs == pattern.needs and all(
            not sifted.words.isdisjoint(group.words)
            or not sifted.stems.isdisjoint(group.stems)
            or any(sign in plain for sign in group.signs)
            for group in pattern.groups
        ):
            yield pattern


_GAP = '(?:,?[\\s*"`>#~]{1,6})'
_PIECE = re.compile(r"\\.|\(\?<[!=](?:\[[^\]]*\]|[^)\[])*\)|\[(?:\\.|[^\]\\])*\]|<\.\.(\d+)>| ", re.DOTALL)


def expression(pattern: Pattern) -> "re.Pattern[str]":
    """The compiled expression of `pattern`, of view sentence the first one."""
    return _compile(pattern.sources[0], pattern)


def _compile(source: str, pattern: Pattern) -> "re.Pattern[str]":
    if source not in _compiled:
        widened = source if pattern.view in ("hidden", "compact") else _PIECE.sub(_widen, source)
        _compiled[source] = re.compile(widened, re.IGNORECASE if "i" in pattern.flags else re.NOFLAG)
    return _compiled[source]


def _widen(piece: "re.Match[str]") -> str:
    """What a blank and `<..N>` stand for; classes, look-behinds and escaped signs stay."""
    if piece.group() == " ":
        return _GAP
    if piece.group(1):
        return r"(?:[^.!?。！？]|[.!?](?=\S)){0," + piece.group(1) + "}?"
    return piece.group()


def matches(table: Patterns, reading: Reading, sifted: Sifted | None = None) -> Iterator[tuple[Pattern, int, int]]:
    """(pattern, start, end) in `reading.plain` wherever a pattern counts: where it is not described or talked about."""
    sifted = sifted or sift(table, reading)
    plain = reading.plain
    places: dict[bytes, list[int]] = {}
    for pattern in concerned(table, reading, sifted):
        shown = 0
        for start, end in _anchored(pattern, reading, sifted, places) if pattern.starts else _searched(pattern, plain):
            if not described(pattern.mood, plain, start) and not mentioned(plain, start, end):
                yield pattern, start, end
                shown += 1
                if shown == MOST:
                    break


def _anchored(
    pattern: Pattern, reading: Reading, sifted: Sifted, places: dict[bytes, list[int]]
) -> list[tuple[int, int]]:
    """Matches that begin with one of the pattern's words. `places` remembers where words stand."""
    starts = pattern.starts
    assert starts is not None
    begins = set(sifted.words & starts.words)
    if starts.stems and not starts.stems.isdisjoint(sifted.stems):
        begins.update(word for word, parts in sifted.stemmed.items() if not parts.isdisjoint(starts.stems))
    spans = []
    matcher = expression(pattern).match
    for word in begins:
        if word not in places:
            places[word] = reading.places(word)
        for at in places[word]:
            match = matcher(reading.plain, at)
            if match:
                spans.append(match.span())
    return spans


def _searched(pattern: Pattern, plain: str) -> Iterator[tuple[int, int]]:
    if pattern.view == "sentence":
        return _sentences(pattern, plain)
    return (match.span() for match in expression(pattern).finditer(plain))


_END = re.compile(r"[.!?](?=\s|$)|[。！？\n]")


def _sentences(pattern: Pattern, plain: str) -> Iterator[tuple[int, int]]:
    """The sentences, of at most 300 characters, in which every expression of `pattern` matches."""
    done = -1
    for match in expression(pattern).finditer(plain):
        if match.start() < done:
            continue
        first = max((end.end() for end in _END.finditer(plain, max(0, match.start() - 150), match.start())), default=0)
        first = max(first, match.start() - 150)
        last = _END.search(plain, match.end(), match.end() + 150)
        done = last.start() if last else min(len(plain), match.end() + 150)
        sentence = plain[first:done]
        if pattern.unless and _compile(pattern.unless, pattern).search(sentence):
            continue
        if all(_compile(source, pattern).search(sentence) for source in pattern.sources[1:]):
            yield match.start(), match.end()
