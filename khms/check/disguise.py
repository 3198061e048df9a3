"""What a text says once its disguises are off: the reading that the patterns of screening are matched against.

Lines keep their numbers, so that a match in the reading can be shown in the text.
"""

import re
import unicodedata
from collections.abc import Iterator

from khms.model.frame import invisible

_ACCENTS = re.compile("[\u0300-\u036f]+")
_MIXED = re.compile("[a-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][a-z]")
_WORD = re.compile(r"[^\W_]+")
_SIGNS = (("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("„", '"'), ("«", '"'), ("»", '"'), ("—", "-"), ("–", "-"))
# Letters of other alphabets that are read as Latin ones; only in words that hold Latin letters too.
_LOOK_ALIKES = str.maketrans("аеорсухіѕјԁһкѵԝɡոαορνικτυεм", "aeopcyxisjdhkvwgnaopviktuem")
_DIGITS = str.maketrans("013457", "oieast")
_TELLING = frozenset(
    b"ignore disregard forget bypass override approve previous instruction instructions prompt system rules".split()
)
_LETTERS = frozenset(bytes((code,)) for code in b"abcdefghijklmnopqrstuvwxyz")
_APART = 8  # different letters that stand alone, from which on a text is looked at without its blanks
_SHORTEST = 24  # characters of the shortest base64 run that is looked into
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,20000}={0,2}")

# Over UTF-8, where deleting or mapping bytes is the cheapest look at a text that Python has: what belongs to a word
# (ASCII letters and digits, everything beyond ASCII); all but the first bytes of Greek and Cyrillic; all but those of
# Hebrew, Arabic, the Indian scripts and what follows them, signs (E2) excepted.
_IN_WORDS = bytes(c if c > 127 or chr(c).isalnum() else 32 for c in range(256))
_BESIDE_GREEK_CYRILLIC = bytes(c for c in range(256) if not 0xCD <= c <= 0xD4)
_FAMILIAR = bytes(c for c in range(256) if not (0xD6 <= c <= 0xE1 or 0xE3 <= c <= 0xED))
_DIGITS_AS_LETTERS = bytes.maketrans(b"013457", b"oieast")
_SELECTORS = "\U000e0100".encode()[:2]  # variation selectors draw nothing and yet count as printable


class Reading:
    """A text laid bare.

    `words` are in UTF-8, cut at everything in ASCII that is no letter and no digit. `foreign` tells whether signs of
    scripts that put no blanks between words, or prefix articles, occur; `unseen` whether characters that do not print.
    """

    __slots__ = ("_spaced", "foreign", "plain", "run", "unseen", "words")

    def __init__(self, text: str) -> None:
        lower = text.lower()
        if "&" in lower and ("&#" in lower or "&lt;" in lower):
            import html

            lower = html.unescape(lower).lower()
        self.unseen = "\x1b" in lower or "\x08" in lower
        self.foreign = False
        data = lower.encode("utf-8", "surrogatepass")
        if not data.isascii():
            self.unseen = self.unseen or not lower.replace("\n", "").isprintable() or _SELECTORS in data
            lower = _bare(lower, self.unseen)
            data = lower.encode("utf-8", "surrogatepass")
            if data.translate(None, _BESIDE_GREEK_CYRILLIC) and _MIXED.search(lower):
                lower = _WORD.sub(_latin, lower)
                data = lower.encode("utf-8", "surrogatepass")
            self.foreign = bool(data.translate(None, _FAMILIAR))
        self.plain = lower
        spaced = data.translate(_IN_WORDS)
        self.run = spaced.split()
        self.words = frozenset(self.run)
        self._spaced = b" " + spaced + b" " if len(data) == len(lower) else b""

    def places(self, word: bytes) -> list[int]:
        """Where `word`, one of `words`, stands in `plain`."""
        found = []
        if self._spaced:  # in ASCII, offsets of bytes and characters are the same
            at = self._spaced.find(b" " + word + b" ")
            while at >= 0:
                found.append(at)
                at = self._spaced.find(b" " + word + b" ", at + 1)
            return found
        sought = word.decode("utf-8", "replace")
        at = self.plain.find(sought)
        while at >= 0:
            if not at or not self.plain[at - 1].isalnum():
                found.append(at)
            at = self.plain.find(sought, at + 1)
        return found


def stems(word: bytes) -> list[bytes]:
    """The beginnings of a word in UTF-8, from four letters on, each with a star."""
    if word.isascii():
        return [word[:length] + b"*" for length in range(4, len(word) + 1)]
    letters = word.decode("utf-8", "replace")
    return [letters[:length].encode() + b"*" for length in range(4, len(letters) + 1)]


def _bare(lower: str, unseen: bool) -> str:
    """`lower` without accents, widths, typographic quotation marks and, where `unseen`, what draws nothing."""
    for sign, plain in _SIGNS:
        lower = lower.replace(sign, plain)
    if unseen:
        lower = lower.translate({code: into for code, into in invisible().items() if code not in (9, 10, 13)})
    if not unicodedata.is_normalized("NFKD", lower):
        lower = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", lower))).lower()
    return lower


def _latin(word: "re.Match[str]") -> str:
    found = word.group()
    return found.translate(_LOOK_ALIKES) if _MIXED.search(found) else found


def apart(reading: Reading) -> str:
    """The words of a reading run together, where many are single letters (`i g n o r e`); else nothing."""
    if len(reading.words & _LETTERS) < _APART:
        return ""
    return b"".join(reading.run).decode("utf-8", "replace")


def misspelled(word: bytes) -> bool:
    """True for a word that digits make of a telling one (`1gn0re`)."""
    return not word.isalpha() and word.translate(_DIGITS_AS_LETTERS) in _TELLING


def spelled(reading: Reading) -> Reading:
    """The reading with digits as the letters they resemble."""
    return Reading(reading.plain.translate(_DIGITS))


def decoded(text: str) -> Iterator[tuple[int, Reading]]:
    """(offset, reading) of each base64 run of `text` that holds a sentence."""
    at = 0
    for word in text.split():
        if len(word) < _SHORTEST:
            continue
        at = text.find(word, at)
        for match in _ENCODED.finditer(word):
            plain = _sentence(match.group())
            if plain:
                yield at + match.start(), Reading(plain)
        at += len(word)


def _sentence(run: str) -> str:
    """What a base64 run says, where that is printable and more than a word; else nothing."""
    import base64
    import binascii

    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = base64.b64decode(run + "=" * (-len(run) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if " " in plain and plain.replace("\n", " ").isprintable() else ""
