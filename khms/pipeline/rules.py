"""The proposer without a model: the MARK's own words become a typed candidate, and nothing is added.

Deterministic and offline. It cannot judge how a claim stands to what is known: a card or candidate that says the same
is recognised, every other relation is left to a reviewer, with the nearest cards named.
"""

import re
import unicodedata

from khms.config import Config
from khms.index.text import STOP_WORDS, terms
from khms.model.candidate import Quote, Relation
from khms.model.card import TYPES, CardType
from khms.model.verdict import ALREADY, ATTACH, NEW, NOT, Proposal, Verdict
from khms.pipeline import quotes
from khms.pipeline.packet import Packet
from khms.pipeline.sources import clean

TITLE = 80  # characters
LONGEST = 40_000  # characters of a MARK; a longer one is a document, and would not fit a card's file with its quote
KINDS = {
    "decision": "decision-rationale",
    "failed": "action-outcome",
    "solved": "problem-solution",
    "req": "requirement",
}
MAIN = {"decision-rationale": "DECIDED", "action-outcome": "THEN", "problem-solution": "FIX", "requirement": "WHAT"}


class Rules:
    name = "rules"

    def __init__(self, config: Config) -> None:
        del config

    def propose(self, packet: Packet) -> Verdict:
        """already-carded or attach where a card in force or a candidate of this run says the same; not-carded where the
        MARK has no words of its own; else a new candidate."""
        text = clean(packet.mark.text)
        if not _says_something(text):
            return Verdict(NOT, reason="it has no words of its own")
        if len(text) > LONGEST:
            return Verdict(NOT, reason=f"{len(text)} characters are no one claim; mark the claim in a few lines")
        if packet.same_cards:
            return Verdict(ALREADY, card=packet.same_cards[0].id)
        if packet.same_candidates:
            return Verdict(ATTACH, to=packet.same_candidates[0].id, quotes=_quotes(packet))
        kind = TYPES[KINDS.get(packet.mark.kind.casefold(), "fact")]
        parts = labelled(text, kind)
        title = cut(dict(parts).get(MAIN.get(kind.name, ""), parts[0][1]))
        proposal = Proposal(title, _body(parts), kind.name, packet.tags)
        return Verdict(NEW, proposal, _quotes(packet), Relation("unjudged"))


def _says_something(text: str) -> bool:
    found = terms(text)
    return any(word not in STOP_WORDS for word in found.words) or bool(found.identifiers)


def _quotes(packet: Packet) -> tuple[Quote, ...]:
    """The MARK's own words; with the `MARK[kind]` before them where they alone would be too short to be looked up."""
    enough = len(quotes.plain(packet.words)) >= quotes.SHORTEST
    return (Quote("journal", packet.words if enough else packet.whole),)


def labelled(text: str, kind: CardType) -> list[tuple[str, str]]:
    """(label, words) of each part of a MARK's text, in the type's order: what stands before any label belongs to the
    type's main label, the rest to the labels that are literally written in it. A part without words is left out."""
    main = MAIN.get(kind.name, "")
    if not kind.labels:
        return [(main, text)]
    pattern = re.compile(r"(?<!\S)(" + "|".join(map(re.escape, kind.labels)) + r"):(?=\s|$)")
    pieces = pattern.split(text)
    found: dict[str, list[str]] = {}
    for label, words in zip([main, *pieces[1::2]], pieces[::2], strict=True):
        if words.strip():
            found.setdefault(label, []).append(words.strip())
    parts = [(label, " ".join(found[label])) for label in kind.labels if label in found]
    return parts or [(main, text)]


def _body(parts: list[tuple[str, str]]) -> str:
    lines = [f"{label}: {words}" if label else words for label, words in parts]
    body = "\n".join(lines) + "\n"
    # At a line's start these would read as a merge conflict, or as the end of the frontmatter.
    return f" {body}" if body.startswith(("<<<<<<< ", ">>>>>>> ", "---", "...")) else body


def cut(text: str, limit: int = TITLE) -> str:
    """`text` cut at a word to at most `limit` characters; between characters where one word is longer."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    kept = text[: limit + 1].rpartition(" ")[0].rstrip(" ,;:—–-(")
    if kept:
        return kept
    while limit > 1 and (unicodedata.combining(text[limit]) or "\u200d" in text[limit - 1 : limit + 1]):
        limit -= 1
    return text[:limit]
