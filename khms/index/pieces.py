"""Cutting text into word pieces, as BERT's uncased tokenizer does it, and to the same ids.

Written out here because a question must not pay for loading a tokenizer library, and because a base says the same
words over and over: what a word comes apart into is remembered, and notes and cards are cut in a fifth of the library's
time. The tests hold both to the same ids.
"""

from __future__ import annotations

from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONGEST = 100  # characters of a word; a longer one is unknown as a whole
CONTINUED = "##"
_REMEMBERED = 100_000  # kept cut: some 25 MB at the most
# Written without blanks between words: each character is a word.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_ASCII = r"[a-z0-9]+|[!-/:-@\[-`{-~]"
# Control characters that go without a trace, though Python takes some for blanks; tab, line feed and carriage return
# are blanks.
_CONTROL = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
_GONE = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(127, 160)])


class WordPieces(dict[str, tuple[int, ...]]):
    """`vocabulary` gives each piece its id; `special` are texts that stand for themselves, such as [UNK]. The mapping
    itself is the memory: the pieces of what stood between blanks, for each that was ever cut."""

    def __init__(self, vocabulary: Mapping[str, int], unknown: str, special: tuple[str, ...] = ()) -> None:
        import re

        super().__init__()
        self._vocabulary = vocabulary
        self.unknown = vocabulary[unknown]
        self._special = re.compile("(" + "|".join(map(re.escape, special)) + ")") if special else None
        self._find = re.compile(_ASCII).findall
        self._odd = re.compile(_CONTROL).search

    def cut(self, text: str, limit: int | None = None) -> list[int]:
        """The ids of the first `limit` pieces of `text`, without the unknown ones among them."""
        found: list[int] = []
        if self._special is None or "[" not in text:
            found.extend(self._cut(text))
        else:
            for number, part in enumerate(self._special.split(text)):
                found.extend([self._vocabulary[part]] if number % 2 else self._cut(part))
        if limit is not None:
            del found[limit:]
        unknown = self.unknown
        return [piece for piece in found if piece != unknown] if unknown in found else found

    def _cut(self, text: str) -> Iterable[int]:
        if self._odd(text):
            text = text.translate(_GONE)
        if len(self) >= _REMEMBERED:
            self.clear()
        return chain.from_iterable(map(self.__getitem__, text.split()))

    def __missing__(self, token: str) -> tuple[int, ...]:
        words = self._find(token.lower()) if token.isascii() else _words(token)
        vocabulary = self._vocabulary
        pieces: list[int] = []
        for word in words:
            whole = vocabulary.get(word)
            if whole is None or len(word) > LONGEST:
                pieces += self._pieces(word)
            else:
                pieces.append(whole)
        found = tuple(pieces)
        if len(token) <= LONGEST:
            self[token] = found
        return found

    def _pieces(self, word: str) -> tuple[int, ...]:
        """The longest pieces from the left; the unknown one where any part of the word is in no piece."""
        vocabulary, found, start, end = self._vocabulary, [], 0, len(word)
        if end > LONGEST:
            return (self.unknown,)
        while start < end:
            prefix = CONTINUED if start else ""
            for stop in range(end, start, -1):
                piece = vocabulary.get(prefix + word[start:stop])
                if piece is not None:
                    found.append(piece)
                    start = stop
                    break
            else:
                return (self.unknown,)
        return tuple(found)


def _words(text: str) -> list[str]:
    """The words of any text, folded: no accents, no capitals, no control characters."""
    from unicodedata import category, normalize

    spaced = "".join([_spaced(char, category) for char in text])
    plain = [char for char in normalize("NFD", spaced) if char.isascii() or category(char) != "Mn"]
    found: list[str] = []
    word: list[str] = []
    for char in "".join([char.lower() for char in plain]):
        blank = char.isspace()
        if not blank and not _is_mark(char, category):
            word.append(char)
            continue
        if word:
            found.append("".join(word))
            word.clear()
        if not blank:
            found.append(char)
    if word:
        found.append("".join(word))
    return found


def _spaced(char: str, category) -> str:  # type: ignore[no-untyped-def]
    code = ord(char)
    if code < 128:
        return "" if code in _GONE else char
    if char == "\ufffd" or category(char) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if any(low <= code <= high for low, high in _IDEOGRAPHS):
        return f" {char} "
    return char


def _is_mark(char: str, category) -> bool:  # type: ignore[no-untyped-def]
    if char.isascii():
        return not char.isalnum() and "!" <= char <= "~"
    return bool(category(char)[0] == "P")
