"""ULIDs: 48 bits of milliseconds and 80 random bits in Crockford's base 32, sortable by time.

The format is that of github.com/ulid/spec; the generator is eight lines, which is less than a dependency.
"""

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid(milliseconds: int | None = None) -> str:
    stamp = int(time.time() * 1000) if milliseconds is None else milliseconds
    number = stamp << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def is_ulid(text: str) -> bool:
    return len(text) == 26 and all(char in _ALPHABET for char in text)


def ulid_milliseconds(ulid: str) -> int:
    """When a ULID was made, in milliseconds since 1970."""
    number = 0
    for char in ulid[:10]:
        number = number << 5 | _ALPHABET.index(char)
    return number
