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
from khms.check.disguise import Reading, misspelled, stem

Kind = Literal["secret", "injection", "exfiltration"]
MOST = 5  # matches shown of one expression in one text


@dataclass(frozen=True, slots=True)
class Probes:
    """Of which one must occur: whole words, first four letters of words (both in UTF-8), signs anywhere."""

    words: frozenset[bytes]
    stems: frozenset[bytes]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One expression of schemas/screening.json, with what its entry says of it."""

    id: str
    kind: Kind
    view: str
    mood: str
    flags: str
    starts: Probes | None
    groups: tuple[Probes, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Patterns:
    """The whole table, with the way from a word, a stem or a sign to the patterns it may concern."""

    plain: tuple[Pattern, ...]
    hidden: tuple[Pattern, ...]
    compact: tuple[Pattern, ...]
    words: frozenset[bytes]
    stems: frozenset[bytes]
    by_word: Mapping[bytes, tuple[int, ...]]
    by_stem: Mapping[bytes, tuple[int, ...]]
    by_foreign: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Sifted:
    """What matters of a reading's words: those of the table, the stems of the table, the length of the longest (0 if
    it is no long one), and whether one is a telling word spelled with digits."""

    words: frozenset[bytes]
    stems: set[bytes]
    longest: int
    misspelt: bool


LONG = 16  # letters and digits; shorter words hold neither a key nor a hidden sentence
_loaded: list[Patterns] = []
_indifferent: set[bytes] = (
    set()
)  # words seen before that have no stem of the table, are short and spelled as they should
_REMEMBERED = 100_000
_compiled: dict[str, "re.Pattern[str]"] = {}


def patterns() -> Patterns:
    """The table, read once."""
    if not _loaded:
        entries = json.loads((resources.folder("schemas") / "screening.json").read_text(encoding="utf-8"))["patterns"]
        made = [_pattern(entry, row) for entry in entries for row in entry["expressions"]]
        plain = tuple(row for row in made if row.view == "plain")
        by_word: dict[bytes, tuple[int, ...]] = {}
        by_stem: dict[bytes, tuple[int, ...]] = {}
        foreign = []
        for number, pattern in enumerate(plain):
            first = pattern.groups[0]
            for index, keys in ((by_word, first.words), (by_stem, first.stems)):
                for key in keys:
                    index[key] = (*index.get(key, ()), number)
            foreign += [(sign, number) for sign in first.signs]
        _loaded.append(
            Patterns(
                plain,
                tuple(row for row in made if row.view == "hidden"),
                tuple(row for row in made if row.view == "compact"),
                frozenset(word for row in plain for group in row.groups for word in group.words),
                frozenset(stem for row in plain for group in row.groups for stem in group.stems),
                by_word,
                by_stem,
                tuple(foreign),
            )
        )
    return _loaded[0]


def _pattern(entry: Mapping[str, Any], row: Mapping[str, Any]) -> Pattern:
    starts = _probes(row["starts"]) if "starts" in row else None
    named = [*row.get("probes", ()), *(["starts"] if starts else [])]
    groups = [starts if starts and group == "starts" else _probes(group) for group in dict.fromkeys(named)]
    groups.sort(key=lambda group: not (group.words or group.stems))  # signs last: a search for each is what costs
    name, kind, view, flags = entry["id"], entry["kind"], entry["view"], entry["flags"]
    return Pattern(name, kind, view, entry.get("mood", ""), flags, starts, tuple(groups), row["regex"])


def _probes(group: str) -> Probes:
    names = group.split("|")
    signs = tuple(name for name in names if not name[0].isalnum() or name[0] >= "\u0590")
    named = [name for name in names if name not in signs]
    stems = frozenset(name[:-1].encode() for name in named if name.endswith("*"))
    return Probes(frozenset(name.encode() for name in named if not name.endswith("*")), stems, signs)


def sift(table: Patterns, reading: Reading) -> Sifted:
    """The words of a reading that matter. Most words of a base come again and again: those are told at one stroke."""
    words = reading.words & table.words
    stems, long, misspelt = set(), [], False
    for word in reading.words - _indifferent:
        beginning = stem(word)
        if beginning in table.stems:
            stems.add(beginning)
        elif len(word) < LONG and not misspelled(word):
            if len(_indifferent) < _REMEMBERED:
                _indifferent.add(word)
            continue
        if len(word) >= LONG:
            long.append(word)
        misspelt = misspelt or misspelled(word)
    return Sifted(words, stems, max(map(len, long), default=0), misspelt)


def concerned(table: Patterns, reading: Reading, sifted: Sifted) -> Iterator[Pattern]:
    """The patterns that may match: each of their groups of probes occurs in the reading."""
    words, stems = sifted.words, sifted.stems
    numbers = {number for key in words & table.by_word.keys() for number in table.by_word[key]}
    if stems:
        numbers |= {number for key in stems & table.by_stem.keys() for number in table.by_stem[key]}
    if reading.foreign:
        numbers |= {number for sign, number in table.by_foreign if sign in reading.plain}
    for number in sorted(numbers):
        pattern = table.plain[number]
        for group in pattern.groups:
            if words.isdisjoint(group.words) and stems.isdisjoint(group.stems):
                for sign in group.signs:
                    if sign in reading.plain:
                        break
                else:
                    break
        else:
            yield pattern


_GAP = '(?:,?[\\s*"`>#~]{1,6})'
_PIECE = re.compile(r"\\.|\(\?<[!=](?:\[[^\]]*\]|[^)\[])*\)|\[(?:\\.|[^\]\\])*\]|<\.\.(\d+)>| ", re.DOTALL)


def expression(pattern: Pattern) -> "re.Pattern[str]":
    """The compiled expression of `pattern`, compiled when first asked for."""
    if pattern.source not in _compiled:
        source = _PIECE.sub(_widen, pattern.source) if pattern.view == "plain" else pattern.source
        _compiled[pattern.source] = re.compile(source, re.IGNORECASE if "i" in pattern.flags else re.NOFLAG)
    return _compiled[pattern.source]


def _widen(piece: "re.Match[str]") -> str:
    """What a blank and `<..N>` stand for; classes, look-behinds and escaped signs stay."""
    if piece.group() == " ":
        return _GAP
    if piece.group(1):
        return r"(?:[^.!?。！？]|[.!?](?=\S)){0," + piece.group(1) + "}?"
    return piece.group()


def matches(pattern: Pattern, reading: Reading, sifted: Sifted) -> Iterator[tuple[int, int]]:
    """Where `pattern` counts in `reading.plain`: where it is neither described nor talked about."""
    shown = 0
    for start, end in _found(pattern, reading, sifted):
        if _described(pattern.mood, reading.plain, start) or _mentioned(reading.plain, start, end):
            continue
        yield start, end
        shown += 1
        if shown == MOST:
            return


def _found(pattern: Pattern, reading: Reading, sifted: Sifted) -> Iterator[tuple[int, int]]:
    plain = reading.plain
    if pattern.starts is None:
        yield from (match.span() for match in expression(pattern).finditer(plain))
        return
    begins = sifted.words & pattern.starts.words
    if not sifted.stems.isdisjoint(pattern.starts.stems):
        begins |= {word for word in reading.words if stem(word) in pattern.starts.stems}
    for begin in begins:
        word = begin.decode("utf-8", "replace")
        at = plain.find(word)
        while at >= 0:
            if not at or not plain[at - 1].isalnum():
                match = expression(pattern).match(plain, at)
                if match:
                    yield match.span()
            at = plain.find(word, at + 1)


_SUBJECT = re.compile(
    r"(?:\b(?:to|can|could|may|might|would|will|they|we|it|i|he|she|which|who|that|often|sometimes|usually|rarely|not|"
    r"never|cannot|can't|don't|doesn't|didn't|won't|nobody|nothing|shouldn't|the|an?|its|their|our|my|your|no)|[a-z]{2,}(?<!way)(?<!yes)s) {1,3}$"
)
_TO_YOU = re.compile(r"\byou(?:'ll|'d)?\b[\w' ]{0,25} (?:to|can|could|may|might|would|will) {1,3}$|\btask is to {1,3}$")


_STARTS = re.compile(
    r"(?:^|[^\w\s'’][\s*_\"'`>#-]{0,8}|\n[\s*_\"'`>#-]{0,8}|[\"*`(\[]|\b(?:et|y|e|ed|puis|alors|donc|maintenant|toujours|siempre|sempre|"
    r"automati\w+|favor|ahora|agora|ora|adesso|luego|poi|entonces|entao|simple\w+|tambien|tambem|anche|aussi|veuillez|plait|"
    r"dois|devez|debes?|deve|devi|dovete|pero|mais|ma|mas|cosi|asi|assim|ainsi|ne|non|nao|no|tu|vous|usted|voce|lei|de|a) {1,3})$"
)


def _described(mood: str, plain: str, start: int) -> bool:
    """True where the words before `start` make it a statement about somebody, or a prohibition, and no order."""
    if not mood:
        return False
    before = plain[max(0, start - 60) : start]
    if mood == "clause-start":
        return _STARTS.search(before) is None
    return _SUBJECT.search(before) is not None and _TO_YOU.search(before) is None


_ABOUT = re.compile(
    r"inject|attack|malicious|jailbreak|adversar|payload|poison|phras|pattern|screening|detect|filter|flagg|withh[eo]ld|"
    r"hostile|untrusted|red[- ]team|example|e\.g\.|such as|marker|delimiter|template|spoof|forg(?:e|ing)|imitat|saniti[sz]|"
    r"neutrali[sz]|scanner|exfiltrat|"
    r"angriff|angreif|injektion|einschleus|muster|erkenn|beispiel|schadlich|attaque|motif|exemple|malveillant|"
    r"ataque|atacante|patron|ejemplo|malicios|inyecci|padrao|exemplo|injecao|attacco|iniezion|esempi|malevol|"
    r"атак|инъекц|шаблон|пример|вредонос|фильтр|注入|攻击|攻擊|示例|例如|检测|檢測|恶意|惡意|过滤|攻撃|インジェクション|検出|例えば|悪意|フィルタ|공격|주입"
)
_SPAN = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|(?<!\w)'[^'\n]{1,200}'(?!\w)|「[^」\n]{1,120}」|『[^』\n]{1,120}』|“[^”\n]{1,200}”"
)
_FENCE = re.compile(r"(?m)^ {0,3}(?:```|~~~)[^\n]*$")
_TAG_ALONE = re.compile(
    r"`\s?(?:<[^<>`]{1,80}>|\[[^\[\]`]{1,30}\])(?:\s?(?:…|\.\.\.)?\s?(?:<[^<>`]{1,80}>|\[[^\[\]`]{1,30}\]))?\s?`"
)


def _mentioned(plain: str, start: int, end: int) -> bool:
    """True where the match is quoted and the words around the quotation say that it is talked about."""
    first = max(plain.rfind("\n\n", 0, start) + 1, start - 2000, 0)
    last = plain.find("\n\n", end)
    paragraph = plain[first : min(last if last >= 0 else len(plain), end + 2000)]
    for span in _SPAN.finditer(paragraph):
        if span.start() <= start - first and end - first <= span.end():
            if _TAG_ALONE.fullmatch(span.group()):
                return True
            return _ABOUT.search(_SPAN.sub(" ", paragraph)) is not None
    fences = [fence.start() for fence in _FENCE.finditer(plain, max(0, start - 4000), start)]
    if len(fences) % 2:
        intro = plain[max(0, fences[-1] - 300) : fences[-1]]
        return _ABOUT.search(intro) is not None
    return False
