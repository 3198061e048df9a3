"""What a card claims, without its form: the text by which two cards are told to say exactly the same."""

import hashlib
import re
import unicodedata

from khms.model.card import TYPES

LABELS = tuple(dict.fromkeys(label for kind in TYPES.values() for label in kind.labels))
_LABEL = re.compile(r"(?<!\S)(?:" + "|".join(LABELS) + r"):(?=\s|$)")
_LEAD = re.compile(r"^[ \t]*(?:[-*+>][ \t]+|#{1,6}[ \t]+)+", re.MULTILINE)
_MARKS = re.compile(r"\*+|`+|~~|__|\[\[|\]\]")
_TAIL = re.compile(r"^\*\*(?:QUOTES|LINKS):\*\*.*", re.MULTILINE | re.DOTALL)
_SUPERSEDES = re.compile(r"^SUPERSEDES K-\d+ BECAUSE:", re.MULTILINE)


def claim(body: str) -> str:
    """A card's body without what belongs to the card and not to its claim: the quotes and links that older bases write
    below it, and the words that announce a correction."""
    return _SUPERSEDES.sub("", _TAIL.sub("", body))


def normalised(text: str) -> str:
    """The form in which two texts are compared: no labels, no Markdown marks, NFKC, case folded, single blanks."""
    text = _MARKS.sub("", _LEAD.sub("", _LABEL.sub(" ", unicodedata.normalize("NFKC", text))))
    return " ".join(text.casefold().split()).rstrip(".")


def key(text: str) -> str:
    """A short name of a text's normalised form; empty where nothing is left of it."""
    plain = normalised(text)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:32] if plain else ""
