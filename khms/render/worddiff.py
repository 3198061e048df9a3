"""Two texts word by word: what both say, what only the old one says, what only the new one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

SAME, OLD, NEW = " ", "-", "+"
MOST = 4_000_000  # pairs of words; beyond, the comparison would be waited for
LEAST = 0.3  # of the words must be the same; two texts that share less are told apart better one after the other
# A script without blanks has no words to compare: there each character counts.
_WORD = re.compile(r"\n|[^\S\n]+|[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff]|[^\W\u2e80-\u9fff\uac00-\ud7a3]+|.")


@dataclass(frozen=True, slots=True)
class Piece:
    kind: str
    text: str


def diff(old: str, new: str) -> tuple[Piece, ...]:
    """The pieces of both texts in order; joined, those that are not NEW are `old`, those that are not OLD are `new`.
    Texts that have little in common, or are very long, come whole, the old one first."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    if len(before) * len(after) > MOST:
        return _whole(old, new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    told = [word for word in (*before, *after) if not word.isspace()]
    blocks = matcher.get_matching_blocks()
    shared = sum(not word.isspace() for block in blocks for word in before[block.a : block.a + block.size])
    if told and 2 * shared / len(told) < LEAST:
        return _whole(old, new)
    return tuple(_pieces(matcher, before, after))


def _whole(old: str, new: str) -> tuple[Piece, ...]:
    return tuple(piece for piece in (Piece(OLD, old), Piece(NEW, new)) if piece.text)


def _pieces(matcher: "SequenceMatcher[str]", before: list[str], after: list[str]) -> Iterator[Piece]:
    """Changes with only a blank between them are one change: they are read at one go."""
    old, new = "", ""
    codes = matcher.get_opcodes()
    for at, (tag, a, b, c, d) in enumerate(codes):
        same = "".join(before[a:b])
        blank = tag == "equal" and same.isspace() and "\n" not in same and 0 < at < len(codes) - 1
        if tag == "equal" and not blank:
            yield from _whole(old, new)
            yield Piece(SAME, same)
            old, new = "", ""
        else:
            old, new = old + same, new + "".join(after[c:d])
    yield from _whole(old, new)
