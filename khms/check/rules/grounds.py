"""What a claim rests on: the evidence and source of an observation, the cards that a derived one follows from."""

import re
from collections.abc import Iterator

from khms.check.context import Context
from khms.check.subject import Fault, Subject

_ADDRESS = re.compile(
    r"https?://[^\s<>\"']{3,}|\bsession:[\w.-]+/[\w.-]+|\bsess(?:ion)?\s+[\w-]{3,}"
    r"|\b(?:commit|git|rev|revision)[:\s]+[0-9a-f]{7,64}\b|\b[0-9a-f]{40}\b"
)
_CARD = re.compile(r"(?<![\w/-])K-[0-9]{5,}(?!\w)")
_PATH = re.compile(
    r"(?<![\w/.~-])(?P<path>/?(?:[\w.@+~-]+/)+[\w.@+~-]*\w|[\w@+~-][\w.@+~-]*\.[A-Za-z]\w{0,7})"
    r"(?:,?\s*(?:lines?\s|l\.|:)\s*(?P<first>[0-9]{1,9})(?:\s*(?:[-–—]|to|and)\s*(?P<last>[0-9]{1,9}))?)?"
)
_SPACED = re.compile(r"(?P<path>[^\n]+?)(?:,?\s*(?:lines?\s|l\.|:)\s*(?P<first>[0-9]{1,9})\b.*)?", re.DOTALL)


def evidence(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH003: an observation says how it was made and where it comes from, and that place can be found."""
    if subject.meta.get("level") != "observation":
        return
    if not subject.meta.get("evidence"):
        mend = "add `evidence:` measured, observed or reported"
        yield Fault(subject.line("evidence", "level"), "an observation has `evidence`", mend)
    source = subject.meta.get("source")
    if not source:
        mend = "add `source:`, such as 'journal/2026-03-04.md line 22', a URL, a session or a commit"
        yield Fault(subject.line("source", "level"), "an observation has a `source`", mend)
    elif isinstance(source, str) and (message := _lost(source, context)):
        mend = "name a path of the base with its line, a URL, session:<host>/<id> or commit <hash>"
        yield Fault(subject.line("source"), message, mend)


def _lost(source: str, context: Context) -> str:
    """Why nobody could find the source; nothing where it can be found. One place that is there is enough."""
    if _ADDRESS.search(source) or any(context.exists(found[0]) for found in _CARD.finditer(source)):
        return ""
    said = ""
    for found in _PATH.finditer(source):
        missing = _missing(found, context)
        if not missing:
            return ""
        said = said or missing
    whole = _SPACED.fullmatch(source.strip())
    if whole and " " in whole["path"] and len(whole["path"]) < 200 and not _missing(whole, context):
        return ""
    return said or "the source names nothing that can be found"


def _missing(found: re.Match[str], context: Context) -> str:
    path = found["path"]
    if path.startswith(("/", "~", "../")) or "/../" in path:
        return f"{path} lies outside the base"
    count = context.lines_of(path.removeprefix("./"))
    if count is None:
        return f"{path} is not in the base"
    lines = [int(found[name]) for name in ("first", "last") if name in found.re.groupindex and found[name]]
    if any(not 1 <= line <= count for line in lines):
        return f"{path} has {count} lines, so there is no line {max(lines)}"
    return ""


def derivation(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH004: a derived card names what it follows from. A derived type needs it too, unless it is an assumption."""
    kind = context.types.get(subject.card.type)
    level = subject.meta.get("level")
    derived = level == "derived" or (level == "observation" and kind is not None and kind.level == "derived")
    if derived and not subject.card.links.derived_from:
        mend = "list the cards under links.derived_from, or make it `level: assumption`"
        yield Fault(subject.line("links.derived_from", "links", "level"), "a derived card has `derived_from`", mend)
