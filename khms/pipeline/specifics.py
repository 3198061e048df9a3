"""What can be checked word for word in a title and a body stands inside one of the candidate's own quotes.

Specifics are numbers with their units, names of programs (identifiers, options, versions, hashes), paths and addresses,
error messages, what stands in code spans or quotation marks, and each sentence under VERIFIED.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from khms.model.candidate import Candidate
from khms.model.card import as_text
from khms.model.claim import LABELS
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome
from khms.pipeline import quotes

# What an error says, to the end of its line or sentence, or to the next label of the body.
_END = r"(?=[.;](?:\s|$)|[ \t]*(?:\n|\Z)|\s(?:" + "|".join(LABELS) + r"):)"
_MESSAGE = rf"(?:[^\n]{{3,300}}?{_END}|[^\n]{{3,300}}(?=\s))"
# Every repetition that can begin anywhere is bounded: a body of 200 kB made of dots and letters stays linear.
_KINDS: tuple[tuple[str, str], ...] = (
    ("code", r"(?<!`)`([^`\n]{2,200})`(?!`)"),
    ("text", r"\"([^\"\n]{3,200})\"|“([^”\n]{3,200})”|«([^»\n]{3,200})»"),
    ("address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]]+"),
    (
        "path",
        r"(?<![\w/.])(?:~|\.{1,2})?(?:/[\w.+@-]+){2,}/?|\b(?:[\w.+-]{1,80}/){1,30}[\w+-]{1,80}\.\w{1,8}\b|\b[A-Za-z]:\\[^\s\"'`]+",
    ),
    ("option", r"(?<![\w-])--[a-z][\w-]+"),
    ("error", rf"\b[A-Za-z][\w.]{{0,100}}(?:Error|Exception|Fault|Panic)\b(?::{_MESSAGE})?|\bE[A-Z]{{3,12}}\b"),
    ("error", r"\bSIG[A-Z]{3,6}\b"),
    ("error", rf"(?<![\w.])(?i:error|fatal|panic|exception|critical)(?:\[\w{{1,20}}\])?:[ \t]{_MESSAGE}"),
    ("name", r"\b[A-Za-z]\w*(?:_\w+)+\b|\b_+[A-Za-z]\w+|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){3,}\b"),
    ("name", r"\b\w{1,80}(?:(?:\.|::)\w{1,80}){0,10}\(\)|\b\w+(?:::\w+){1,10}\b"),
    ("version", r"\bv?\d+(?:\.\d+){2,8}\b|\bv\d+(?:\.\d+)*\b"),
    ("hash", r"\b(?<!M-)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)
_VERIFIED = re.compile(r"(?<!\S)VERIFIED:\s*(.*?)(?=(?<!\S)(?:" + "|".join(LABELS) + r"):|\n\s*\n|\Z)", re.DOTALL)
_LABEL = re.compile(r"(?<!\S)(?:" + "|".join(LABELS) + r"):(?=\s|$)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")

# A number is everything that is written together around a digit: `41`, `-5.5`, `30ms`, `sha256`, `1h30m`, `10:45`. In a
# script without blanks it ends where the letters of such a script begin. ASCII first: most text is.
_DIGIT = r"\d²³¹¼-¾⁰-₉⅐-↋①-⓿"
_LETTER = r"A-Za-z_µ\u00c0-\u0dff"
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)\]-])-)?(?<![{_LETTER}{_DIGIT}])(?P<token>[{_LETTER}]*[{_DIGIT}]"
    rf"(?:[{_LETTER}{_DIGIT}]|[.,:](?=[{_DIGIT}]))*)(?P<mark>[%‰°′″€$£¥Ω]?[{_LETTER}]*(?:/[{_LETTER}]+)?)"
)
_ALONE = re.compile(rf"(?P<value>[{_DIGIT}][{_DIGIT}.,:]*)(?P<unit>[{_LETTER}]*)")
_UNITS = (
    r"%|‰|°[A-Za-z]?|[kMGTPE]i?[Bb](?:it|yte)?s?(?:/s|ps)?|[kMGT]?bps|bytes?|bits?|baud|[nµumk]?s|sec(?:ond)?s?|"
    r"min(?:ute)?s?|h(?:ou)?rs?|hours?|days?|weeks?|months?|years?|[kMGT]?Hz|[mkMG]?[VWAJN]|[kMG]?VA|[mkMG]?Wh|mAh|Ah|"
    r"[kMG]?Ω|[kM]?ohms?|[cmkµn]?m|km/h|m/s|mph|[mkµ]?g|[mµc]?l|px|pt|rpm|fps|dpi|dB[A-Za-z]?|h?Pa|[kMG]Pa|m?bar|psi|"
    r"lux|lx|lm|ppm|ppb|mol|rad|deg(?:rees?)?|celsius|kelvin|fahrenheit|inch(?:es)?|ft|feet|miles?|yards?|lbs?|oz|"
    r"gallons?|lit(?:er|re)s?|met(?:er|re)s?|grams?|volts?|watts?|amp(?:ere)?s?|hertz|percent|points?|€|\$|£|¥|USD|EUR|"
    r"GBP|euros?|dollars?|cores?|threads?|workers?|processes|nodes?|retries|attempts?|requests?(?:/s)?|calls?|rps|qps|"
    r"tps|rows?|files?|lines?|frames?|packets?|messages?|records?|pages?|items?|entries|tokens?|characters?|words?|"
    r"users?|people|clients?|sessions?|connections?|tests?|runs?|errors?|failures?|commits?|times|[xX×]|[B-HJ-Z]"
)
_SPACED = re.compile(rf"[\s-]?(?P<unit>(?:{_UNITS}))(?![\w/])")
_IDS = re.compile(r"(?<!\w)(?:K-\d{5,}|C\d+|M-[0-9a-f]{12})(?!\w)")
_NUMBERING = re.compile(r"^[ \t]*(?:[-*>#][ \t]+)*(\d{1,3})[.)](?=\s)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TAIL = re.compile(r"^\*\*(?:QUOTES|LINKS):\*\*", re.MULTILINE)
_LISTED = re.compile(r"^[ \t]*[-*][ \t]+src=\S+[ \t]*::.*$", re.MULTILINE)
_CORRECTS = re.compile(r"^SUPERSEDES (?:K-|C)\d+ BECAUSE:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written (`shown`), apart from its unit. `apart` says that a blank or nothing follows it."""

    shown: str
    value: str
    unit: str
    apart: bool


def named(text: str) -> Iterator[tuple[str, str]]:
    """(kind, words) of every specific of a text but its numbers, in the order of kinds, each once."""
    seen = set()
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            words = next((group for group in match.groups() if group), match.group()).strip().rstrip(".,;:")
            if words and words not in seen and not _IDS.fullmatch(words):
                seen.add(words)
                yield kind, words
    for match in _VERIFIED.finditer(text):
        for sentence in _SENTENCE.split(match[1].strip()):
            if sentence.strip() and sentence not in seen:
                seen.add(sentence)
                yield "verified", sentence.strip()


def numbers(text: str) -> Iterator[Number]:
    """Every number of a text and every day, but for those in ids. A counted word is the same in singular and plural;
    other units keep their case (mW is not MW)."""
    text = _IDS.sub(" ", text).replace("−", "-")
    for day in _DAY.findall(text):
        yield Number(day, day, "", True)
    text = _DAY.sub(" ", text)
    for match in _NUMBER.finditer(text):
        sign, token, mark = match["sign"] or "", match["token"], match["mark"]
        alone = _ALONE.fullmatch(token)
        if alone is None:  # letters before or within it: a name, such as sha256 or 1h30m
            yield Number(match.group(), sign + (token + mark).casefold(), "", True)
            continue
        unit, shown = alone["unit"] + mark, match.group()
        spaced = None if unit else _SPACED.match(text, match.end())
        if spaced:
            unit, shown = spaced["unit"], shown + spaced.group()
        yield Number(shown, sign + alone["value"], _one(unit), bool(spaced) or not unit)


def _one(unit: str) -> str:
    return unit.casefold().removesuffix("s") if len(unit) > 3 and unit.isalpha() else unit


def _unnumbered(text: str) -> str:
    """`text` without the numbers of its lists: those that begin with 1 and count on."""
    lines, last = text.split("\n"), 0
    for i, line in enumerate(lines):
        found = _NUMBERING.match(line)
        if found and int(found[1]) in (1, last + 1):
            last = int(found[1])
            lines[i] = line[found.end() :]
    return "\n".join(lines)


def check(candidate: Candidate) -> Outcome:
    """Fails naming what stands in the title or the body and in no quote; not-run where there is no quote to look into.
    The card's own date and the numbers of a numbered list need no quote."""
    held = [quotes.plain(text) for text in quotes.passages(candidate)]
    # A MARK may write its labels within a line, and the body then joins the words before and after one.
    held += [quotes.plain(bare) for text in held if (bare := _LABEL.sub(" ", text)) != text]
    body = _body(candidate)
    texts = [body] if _is_cut(candidate.title, held) else [candidate.title, body]
    found = list(dict.fromkeys(item for text in texts for item in named(text)))
    counted = _counted(texts, as_text(candidate.meta.get("date")))
    if not found and not counted:
        return Outcome("specifics", candidate.label, PASS)
    if not held:
        return Outcome("specifics", candidate.label, NOT_RUN, "there is no quote to look into")
    lost = _lost(found, counted, held)
    if not lost:
        return Outcome("specifics", candidate.label, PASS)
    return Outcome("specifics", candidate.label, FAIL, f"in none of its quotes: {listed(lost)}")


def listed(lost: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(f"“{words[:60]}”" for words in lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")


def missing(texts: Sequence[str], held: Sequence[str], date: str = "") -> list[str]:
    """The specifics of `texts` that stand in none of `held`; their own `date` and sentences under VERIFIED aside."""
    plain = [quotes.plain(text) for text in held]
    found = dict.fromkeys(item for text in texts for item in named(text) if item[0] != "verified")
    return _lost(list(found), _counted(texts, date), plain)


def _counted(texts: Sequence[str], date: str) -> list[Number]:
    found = (n for text in texts for n in numbers(quotes.plain(_unnumbered(text))))
    return list(dict.fromkeys(n for n in found if n.value != date[:10]))


def _lost(found: Sequence[tuple[str, str]], counted: Sequence[Number], held: list[str]) -> list[str]:
    lost = [words for kind, words in found if not _stands(kind, words, held)]
    there = {form for text in held for number in numbers(text) for form in _forms(number)}
    lost += [number.shown for number in counted if (number.value, number.unit) not in there]
    return list(dict.fromkeys(" ".join(words.split()) for words in lost))


def _forms(number: Number) -> Iterator[tuple[str, str]]:
    """What a quoted number vouches for: itself, and its value alone where the unit is a word of its own."""
    yield number.value, number.unit
    if number.apart:
        yield number.value, ""


def _body(candidate: Candidate) -> str:
    """The body without what belongs to the card: the words that announce a correction, and the quotes where the body is
    the place that lists them."""
    body = candidate.body if candidate.quotes else _LISTED.sub("", candidate.body)
    return _CORRECTS.sub("", _TAIL.sub("", body))


def _is_cut(title: str, held: list[str]) -> bool:
    """Whether the title is the beginning of one quoted word too long for a title, an address mostly."""
    return len(title) > 60 and " " not in title and any(text.startswith(quotes.plain(title)) for text in held)


def _stands(kind: str, words: str, held: list[str]) -> bool:
    wanted = quotes.plain(words).casefold()
    if kind == "verified":
        wanted = wanted.rstrip(".;")
    return any(quotes.stands(wanted, text.casefold()) for text in held)
