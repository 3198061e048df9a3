"""What a body says of other cards: that it corrects one.

The words were chosen on real texts. In 200 notes about knowledge bases (which speak of corrections all the time), 60
engineering cards, 10 files of an example base and 2,960 turns of conversation nothing is taken for a correction but the
one card that is, and that has its link. Of 24 sentences that correct something, written after the patterns stood, 16
are seen; of 24 that only speak of wrong, old and replaced things, 1 is taken for one ("Nobody has found that K-00012 is
wrong"). English only: what is said in other languages passes.
"""

import re
from collections.abc import Iterator, Mapping

from khms.check.context import Context
from khms.check.prose import prose
from khms.check.subject import CARD, Fault, Subject
from khms.model.card import as_text

# What a body must hold to be looked at, and to which pattern. They are few, because each is looked for in every body.
_WRONGS = ("wrong", "orrect", "istake", "o longer", " false", "utdated")
_DOING = ("orrects", "upersedes", "ontradicts", "efutes", "eplaces", "etracts", "verturns", "isproves", "nvalidates")
_HOLDING = ("hought", "assumed", "believed", "wrong", "istake", "orrect")
_PROBES = (*_WRONGS[:4], *_DOING[1:5], *_HOLDING[:2], "SUPERSEDES", "CORRECT", "ontrary")

_CARD = r"\[{0,2}K-\d{5,}(?:\|[^\]\n]*)?(?:\]\])?"
_VERB = r"(?:corrects|supersedes|refutes|contradicts|retracts|overturns|disproves|invalidates|replaces)"
_OPENS = r"(?:Corrects|Supersedes|Refutes|Retracts|Contradicts|Overturns|Disproves|Invalidates)"
_OLD = r"(?:earlier|previous|original|old|older|first)"  # "old" and "first" only beside a word of wrongness
_CLAIM = (
    r"(?:card|note|claim|belief|finding|conclusion|diagnosis|explanation|assumption|statement|decision|advice|rule|"
    r"theory|answer|entry)"
)
_WRONG = (
    r"(?:is|was|proved|has proved|turned out|turns out)(?: to be)?\s+(?:(?!not|never|hardly)\w+\s+)?(?:wrong|incorrect|"
    r"mistaken|false|outdated|no longer (?:true|right|correct|valid)|a mistake)\b"
)
_HELD = r"(?:believed|thought|assumed|said|wrote|recorded|noted|claimed|stated|concluded|reported)"
_BELIEVED = r"(?:believed|thought|assumed)"
_THEN = r"(?:(?:earlier|previously|first|originally|before)\s+)?"
_LABELS = r"(?:CORRECTION|CORRECTS|CORRECTED|RETRACTION|RETRACTS|ERRATUM|Correction|Corrects|Retraction|Erratum)"

_LEAD = ("CORREC", "RETRACT", "ERRATUM", "orrect", "etract", "rratum")
# (what it needs, does it begin with a verb, the pattern); what begins with a verb says it of its own card only where no
# other subject stands before it.
_SAYS: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (_LEAD, False, rf"^[ \t*#-]*{_LABELS}\b\**(?:\s+(?:of|to|for)\s[^\n:]{{1,80}})?:"),
    (("SUPERSEDES",), False, r"^SUPERSEDES\s+K-\d+\s+BECAUSE:"),
    (_DOING, False, rf"(?:^|[.:;]\s){_OPENS}\s+(?:{_CARD}|(?:the|our|my)\s+{_OLD}\s+{_CLAIM}\b)"),
    (_DOING, False, rf"(?:^|[.:;]\s)(?:Corrects|Retracts)\s+(?:the|our|my)\s+(?:\w+\s+)?{_CLAIM}\b"),
    (("ontrary",), False, rf"\b[Cc]ontrary to\s+(?:(?:card|the {_CLAIM} (?:of|in))\s+)?{_CARD}"),
    (
        _WRONGS,
        False,
        rf"{_CARD}\s+(?:{_WRONG}|no longer (?:holds|applies)\b|(?:got|has|had)\s+(?:this|it|that)\s+wrong\b)",
    ),
    (_WRONGS, False, rf"\b(?:[Tt]he|[Oo]ur|[Mm]y)\s+{_OLD}\s+(?:\w+\s+)?{_CLAIM}\s+{_WRONG}"),
    (_WRONGS, False, rf"\b[Tt]he {_CLAIM} (?:that|in|of)\b[^.\n]{{1,80}}\b{_WRONG}"),
    (_WRONGS, False, rf"\b[Ww]hat (?:we|I) (?:had\s+)?{_HELD}\b[^.\n]{{0,40}}\b{_WRONG}"),
    (_WRONGS, False, r"\b(?:[Ww]e|I)\s+(?:was|were|had been)\s+wrong\s+(?:about|that|to|in|when)\b"),
    (_WRONGS, False, rf"\b{_HELD}\b[^.\n]{{0,80}}[.;,]\s+[Tt]hat (?:is|was) (?:wrong|incorrect|mistaken|a mistake)\b"),
    (("ontrary",), False, rf"\b[Cc]ontrary to what (?:we|I|was)\s+(?:had\s+|have\s+)?{_THEN}{_HELD}\b"),
    (_HOLDING, False, rf"\b(?:[Uu]nlike|[Nn]ot as|[Ii]nstead of) what (?:we|I|was)\s+(?:had\s+)?{_THEN}{_BELIEVED}\b"),
    (_HOLDING, False, rf"\bnot\b[^.\n]{{1,60}},?\s+as (?:we|I|was) (?:had\s+)?{_THEN}{_BELIEVED}\b"),
    (_DOING, True, rf"\b{_VERB}\s+(?:(?:the\s+)?card\s+)?{_CARD}"),
    (
        _DOING,
        True,
        rf"\b{_VERB}\s+(?:the|an?|our|my)\s+(?:\w+\s+)?(?:earlier|previous|original|older)\s+(?:(?:\w+\s+)?"
        rf"(?:{_CLAIM}s?|measurements?)|one)\b",
    ),
)
_PATTERNS = tuple((needs, does, re.compile(pattern, re.MULTILINE)) for needs, does, pattern in _SAYS)
# Words that make it a denial or a possibility; and before a verb, somebody else's doing.
_DENIED = re.compile(
    r"(?:\b(?:not|never|nor|neither|nothing|without|cannot|would|could|might|may|should|must|can|will|if|whether|unless|"
    r"when|whenever|each|every|any|no)|n't|n’t)\s+(?:\w+\s+)?$",
    re.IGNORECASE,
)
_OTHERS = re.compile(r"\b(?:that|which|who|to|what|it|they|users?|people)\s+$")
_NO_TARGET = re.compile(r"^NO-CORRECTION-TARGET:[ \t]*\S", re.MULTILINE)


def corrections(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH008: a body that says it corrects something has the edge for it, or says why there is no card to correct. A
    card that a record names was asked when it came in, and its words can no longer be mended."""
    body = subject.page.body
    if subject.name in context.proofs:
        return
    for probe in _PROBES:
        if probe in body:
            break
    else:
        return
    links = subject.card.links
    if links.supersedes or links.contradicts or links.refuted_by or _corrects(subject):
        return
    text = prose(body)
    said = _correction(text)
    if said is None or _NO_TARGET.search(text):
        return
    line = subject.page.body_line + text.count("\n", 0, said.end() - len(said[0].lstrip("\n")))
    words = " ".join(said[0].split())[:60]
    mend = "name the card under links.supersedes or links.contradicts, or add a line `NO-CORRECTION-TARGET: <why>`"
    yield Fault(line, f"it says that it corrects something (`{words}`), and no link says what", mend)


def _corrects(subject: Subject) -> bool:
    """Whether it is a candidate whose relation will become such an edge."""
    relation = subject.meta.get("relation") if subject.kind != CARD else None
    return isinstance(relation, Mapping) and as_text(relation.get("kind")) in ("supersedes", "contradicts")


def _correction(text: str) -> "re.Match[str] | None":
    """The first words of the prose that say so."""
    found = []
    for needs, does, pattern in _PATTERNS:
        if not any(need in text for need in needs):
            continue
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - 40) : match.start()]
            if not _DENIED.search(before) and not (does and _OTHERS.search(before)):
                found.append(match)
                break
    return min(found, key=lambda match: match.start(), default=None)
