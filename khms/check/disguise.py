"""What a text says once its disguises are off: the reading that the patterns of screening are matched against.

Lines keep their numbers, so that a match in the reading can be shown in the text.
"""

import re
import unicodedata
from collections.abc import Iterator

from khms.model.frame import invisible

_ACCENTS = re.compile("[\u0300-\u036f]+")
_MIXED = re.compile("[a-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][a-z]")
_WORD = re.compile(r"\w+")
_SIGNS = (("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("„", '"'), ("«", '"'), ("»", '"'), ("—", "-"), ("–", "-"))
# Letters of other alphabets that are read as Latin ones; only in words that hold Latin letters too.
_LOOK_ALIKES = str.maketrans("аеорсухіѕјԁһкѵԝɡոαορνικτυεм", "aeopcyxisjdhkvwgnaopviktuem")
# Of UTF-8: letters, digits and everything beyond ASCII are parts of words.
_IN_WORDS = bytes(c if c > 127 or chr(c).isalnum() else 32 for c in range(256))
_DIGITS_AS_LETTERS = bytes.maketrans(b"013457", b"oieast")
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,20000}={0,2}")


def reading(text: str) -> str:
    """`text` in lower case, without accents, widths, entities, look-alike letters and characters that draw nothing."""
    if "&#" in text or "&lt;" in text:
        import html

        text = html.unescape(text)
    lower = text.lower()
    if lower.isascii():
        return lower
    for sign, plain in _SIGNS:
        lower = lower.replace(sign, plain)
    if not lower.replace("\n", "").isprintable():
        gone = {code: into for code, into in invisible().items() if code not in (9, 10, 13)}
        lower = lower.translate(gone)
    if not unicodedata.is_normalized("NFKD", lower):
        lower = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", lower))).lower()
    if _MIXED.search(lower):
        lower = _WORD.sub(_latin, lower)
    return lower


def _latin(word: "re.Match[str]") -> str:
    found = word.group()
    return found.translate(_LOOK_ALIKES) if _MIXED.search(found) else found


def words(plain: str) -> list[bytes]:
    """The words of a reading, in UTF-8, cut at everything in ASCII that is no letter and no digit."""
    return plain.encode("utf-8", "surrogatepass").translate(_IN_WORDS).split()


def compact(found: list[bytes]) -> bytes:
    """The words run together, digits read as the letters they resemble: `1 g n 0 r e` is `ignore`."""
    return b"".join(found).translate(_DIGITS_AS_LETTERS)


def decoded(text: str) -> Iterator[tuple[int, str]]:
    """(offset, reading) of each base64 run of `text` that holds a sentence."""
    import base64
    import binascii

    for match in _ENCODED.finditer(text):
        run = match.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = base64.b64decode(run + "=" * (-len(run) % 4)).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue
        if " " in plain and plain.replace("\n", " ").isprintable():
            yield match.start(), reading(plain)
