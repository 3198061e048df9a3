"""What can be checked word for word in a body stands inside one of the candidate's own quotes.

Specifics are numbers with units, names of programs (identifiers, options, versions, hashes), paths and addresses, what
stands in code spans or quotation marks (error messages mostly), and each sentence under VERIFIED.
"""

import re
from collections.abc import Iterator

from khms.model.candidate import Candidate
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome
from khms.pipeline import quotes
from khms.pipeline.duplicates import LABELS, claim

_UNITS = (
    r"%|‰|°[CF]?|[kMGTPE]i?[Bb](?:it|yte)?(?:/s|ps)?|bytes?|bits?|[nµumk]?s|ms|sec(?:ond)?s?|min(?:ute)?s?|h(?:ou)?rs?|h|"
    r"days?|weeks?|months?|years?|[kMG]?Hz|[mk]?[VWA]|[mk]?Wh|mAh|[kMG]?Ω|[cmkµn]?m|km/h|[mkµ]?g|[mµ]?l|px|pt|rpm|fps|dpi|"
    r"dB|K|hPa|[kM]?Pa|bar|lux|ppm|€|\$|USD|EUR|cores?|threads?|workers?|retries|attempts|requests?(?:/s)?|rps|qps|rows?|"
    r"files?|lines?|frames?|times|x|×"
)
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
    (
        "error",
        r"\b[A-Za-z][\w.]{0,100}(?:Error|Exception|Fault|Panic)\b(?::[^\n.;]{3,80})?|\bE[A-Z]{3,12}\b|\bSIG[A-Z]{3,6}\b",
    ),
    ("name", r"\b[A-Za-z]\w*(?:_\w+)+\b|\b_+[A-Za-z]\w+|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){3,}\b"),
    ("name", r"\b\w{1,80}(?:(?:\.|::)\w{1,80}){0,10}\(\)|\b\w+(?:::\w+){1,10}\b"),
    ("version", r"\bv?\d+(?:\.\d+){2,8}\b|\bv\d+(?:\.\d+)*\b"),
    ("hash", r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"),
    ("number", rf"(?<![\w.,])[-+]?\d[\d.,]*\s?(?:{_UNITS})(?![\w])"),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)
_VERIFIED = re.compile(r"(?<!\S)VERIFIED:\s*(.*?)(?=(?<!\S)(?:" + "|".join(LABELS) + r"):|\n\s*\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


def named(body: str) -> Iterator[tuple[str, str]]:
    """(kind, words) of every specific of a body, in the order of kinds, each once."""
    seen = set()
    text = claim(body)
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            words = next((group for group in match.groups() if group), match.group()).strip().rstrip(".,;:")
            if words and words not in seen:
                seen.add(words)
                yield kind, words
    for match in _VERIFIED.finditer(text):
        for sentence in _SENTENCE.split(match[1].strip()):
            if sentence.strip() and sentence not in seen:
                seen.add(sentence)
                yield "verified", sentence.strip()


def check(candidate: Candidate) -> Outcome:
    """Fails naming what stands in the body and in no quote; not-run where there is no quote to look into."""
    held = [_plain(text) for text in quotes.passages(candidate)]
    found = list(named(candidate.body))
    if not found:
        return Outcome("specifics", candidate.label, PASS)
    if not held:
        return Outcome("specifics", candidate.label, NOT_RUN, "there is no quote to look into")
    missing = [words for kind, words in found if not _stands(kind, words, held)]
    if not missing:
        return Outcome("specifics", candidate.label, PASS)
    shown = ", ".join(f"“{' '.join(words.split())[:60]}”" for words in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return Outcome("specifics", candidate.label, FAIL, f"in none of its quotes: {shown}{more}")


def _stands(kind: str, words: str, held: list[str]) -> bool:
    wanted = _plain(words)
    if kind == "verified":
        wanted = wanted.rstrip(".;")
    if kind == "number":
        wanted, held = wanted.replace(" ", ""), [text.replace(" ", "") for text in held]
        return any(re.search(rf"(?<![\d.,]){re.escape(wanted)}(?!\w*\d)", text) for text in held)
    return any(quotes.stands(wanted, text) for text in held)


def _plain(text: str) -> str:
    return quotes.plain(text).casefold()
