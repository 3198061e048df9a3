"""The patterns of schemas/screening.json: which of them may concern a text, and where they count.

Trying them all would cost 2 ms a card. So each names probes, and one look at the beginnings of the text's words tells
which patterns are worth a regular expression: for most cards none.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from khms import resources
from khms.check.disguise import reading, words

Kind = Literal["secret", "injection", "exfiltration"]
MOST = 5  # matches shown of one pattern in one text


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry of schemas/screening.json, its regular expressions compiled when first needed."""

    id: str
    kind: Kind
    view: str
    mood: str
    groups: tuple[tuple[frozenset[bytes], tuple[str, ...]], ...]
    sources: tuple[str, ...]
    flags: str


@dataclass(frozen=True, slots=True)
class Patterns:
    """All of them, with the way from the start of a word to those it may concern."""

    plain: tuple[Pattern, ...]
    hidden: tuple[Pattern, ...]
    compact: tuple[Pattern, ...]
    by_word: Mapping[bytes, tuple[int, ...]]
    loose: tuple[tuple[str, int], ...]


_loaded: list[Patterns] = []
_compiled: dict[str, tuple["re.Pattern[str]", ...]] = {}


def patterns() -> Patterns:
    """The table, read once."""
    if not _loaded:
        rows = json.loads((resources.folder("schemas") / "screening.json").read_text(encoding="utf-8"))["patterns"]
        made = [_pattern(row) for row in rows]
        plain = tuple(pattern for pattern in made if pattern.view == "plain")
        by_word: dict[bytes, tuple[int, ...]] = {}
        loose = []
        for number, pattern in enumerate(plain):
            keys, signs = pattern.groups[0]
            for key in keys:
                by_word[key] = (*by_word.get(key, ()), number)
            loose += [(sign, number) for sign in signs]
        views = {view: tuple(pattern for pattern in made if pattern.view == view) for view in ("hidden", "compact")}
        _loaded.append(Patterns(plain, views["hidden"], views["compact"], by_word, tuple(loose)))
    return _loaded[0]


def _pattern(row: Mapping[str, Any]) -> Pattern:
    groups = []
    for probes in row["probes"]:
        plain = [reading(probe) for probe in probes]
        signs = tuple(probe for probe in plain if probe[0] >= "\u0590")
        keys = frozenset(_key(word) for probe in plain if probe[0] < "\u0590" for word in words(probe)[:1])
        groups.append((keys, signs))
    return Pattern(
        row["id"],
        row["kind"],
        row["view"],
        row.get("mood", ""),
        tuple(groups),
        tuple(row["regex"]),
        row["flags"],
    )


def _key(word: bytes) -> bytes:
    """The start by which a word is known: four letters, of other alphabets four too (eight bytes)."""
    return word[:4] if word.isascii() else word[:8]


def concerned(table: Patterns, plain: str, unique: set[bytes]) -> Iterator[Pattern]:
    """The patterns of which each group of probes occurs."""
    keys = {word[:4] for word in unique}
    exotic = not plain.isascii()
    if exotic:
        keys |= {word[:8] for word in unique}
    numbers = {number for key in keys & table.by_word.keys() for number in table.by_word[key]}
    if exotic and max(plain) >= "\u0590":
        numbers |= {number for sign, number in table.loose if sign in plain}
    for number in sorted(numbers):
        pattern = table.plain[number]
        if all(
            not keys.isdisjoint(group) or any(sign in plain for sign in signs) for group, signs in pattern.groups[1:]
        ):
            yield pattern


_GAP = r"(?:[\s*_~\"'`>,#-]{1,8})"
_PIECE = re.compile(r"\\.|\(\?<[!=][^)]*\)|\[(?:\\.|[^\]\\])*\]|<\.\.(\d+)>| ", re.DOTALL)


def expressions(pattern: Pattern) -> tuple["re.Pattern[str]", ...]:
    """The compiled regular expressions of `pattern`, compiled once."""
    if pattern.id not in _compiled:
        sources = [_PIECE.sub(_widen, source) if pattern.view == "plain" else source for source in pattern.sources]
        flags = re.IGNORECASE if "i" in pattern.flags else re.NOFLAG
        _compiled[pattern.id] = tuple(re.compile(source, flags) for source in sources)
    return _compiled[pattern.id]


def _widen(piece: "re.Match[str]") -> str:
    """What a blank and `<..N>` stand for; classes, look-behinds and escaped signs stay."""
    if piece.group() == " ":
        return _GAP
    if piece.group(1):
        return r"(?:[^.!?。！？]|[.!?](?=\S)){0," + piece.group(1) + "}?"
    return piece.group()


def matches(pattern: Pattern, plain: str) -> Iterator[tuple[int, int]]:
    """Where `pattern` counts in a reading: where it is neither described nor talked about."""
    shown = 0
    for expression in expressions(pattern):
        for match in expression.finditer(plain):
            start, end = match.span()
            if _described(pattern.mood, plain, start) or _mentioned(plain, start, end):
                continue
            yield start, end
            shown += 1
            if shown == MOST:
                return


_SUBJECT = re.compile(
    r"(?:\b(?:to|can|could|may|might|would|will|they|we|it|i|he|she|which|who|that|often|sometimes|usually|rarely|not|"
    r"never|cannot|can't|don't|doesn't|didn't|won't|nobody|nothing|shouldn't)|[a-z]{2,}(?<!way)(?<!yes)s) {1,3}$"
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
