"""Values as YAML text that reads back as the same text, here and in any other YAML reader.

`scalar` leaves plain only what YAML 1.1 and 1.2 both take for a string (and dates, which cards write plain); all
else is quoted, and what a reviewer could not see (controls, line and paragraph separators, bidirectional
overrides) is escaped. `Unreadable` stands here because the reader, the editor and this module all raise it.
"""

import re
from collections.abc import Mapping
from typing import Any

from khms.errors import Refused

Value = str | list[Any] | dict[str, Any] | None

FLOW_COLUMNS, FLOW_ITEM = 100, 60
# True, null and their kin in either YAML version, in any case; y and n are booleans of YAML 1.1.
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
# What a reader of the text could not see: controls, other line ends, bidirectional overrides, half characters.
_HIDDEN = "\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff"
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class Unreadable(Refused):
    """One file cannot be read, or cannot be changed in place: which one, on which line, why, and what mends it.

    `line` counts from 1 in the file; 0 is the whole file. `message` and `mend` are one line each.
    """

    def __init__(self, message: str, *, path: str = "", line: int = 0, mend: str = "") -> None:
        place = f"{path or 'line'}:{line}" if line else path
        super().__init__(message, hint=mend, where=place)
        self.path = path
        self.line = line
        self.mend = mend


def scalar(value: str) -> str:
    """`value` as a YAML scalar on one line: plain where that is safe everywhere, else quoted."""
    return value if _is_plain(value) else quoted(value)


def quoted(value: str) -> str:
    """`value` in quotes: double ones, single ones where double ones would need escapes for visible characters."""
    if _is_hidden(value):
        return '"' + re.sub(f'[{_HIDDEN}"\\\\]', _escape, value) + '"'
    if '"' in value or "\\" in value:
        return "'" + value.replace("'", "''") + "'"
    return f'"{value}"'


def _is_hidden(text: str) -> bool:
    return re.search(f"[{_HIDDEN}]", text) is not None


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if "\ud800" <= character <= "\udfff":
        raise Unreadable(
            f"a lone surrogate U+{ord(character):04X} cannot be written as UTF-8", mend="remove it from the text"
        )
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def _is_plain(text: str, flow: bool = False) -> bool:
    if not text or not (text[0].isalnum() or text[0] == "(") or text != text.strip():
        return False
    if ": " in text or " #" in text or text[-1] == ":" or text.lower() in _WORDS:
        return False
    if flow and any(character in text for character in ",[]{}:?#\"'"):
        return False
    if max(text) > "\uffff" or _is_hidden(text):
        return False
    # All that is made of the letters of numbers, times and hashes: 0123456, 1.10, 12:30, 0x1F, 1e5, 190:20:30.
    return re.fullmatch(r"[0-9][0-9a-fA-FoOxX_.:,+\-TtZz ]*", text) is None or _is_date(text)


def _is_date(text: str) -> bool:
    """Whether `text` is a day that exists: PyYAML fails with a ValueError on a plain 2026-02-30."""
    from datetime import date

    try:
        return re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def lines(meta: Mapping[str, Any], pad: str = "") -> list[str]:
    """The lines of a block mapping, keys in the order given: short lists of scalars in flow style, all other
    lists and mappings in block style. Raises TypeError for what is no Value."""
    written = []
    for key, value in meta.items():
        is_plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_-]*", key) and key.lower() not in _WORDS
        head = pad + (key if is_plain else quoted(key)) + ":"
        text = inline(value)
        written += [head, *nested(value, pad + "  ")] if text is None else [f"{head} {text}"]
    return written


def inline(value: Any) -> str | None:
    """`value` on one line, or None where it needs lines of its own."""
    if value is None or isinstance(value, str):
        return "null" if value is None else scalar(value)
    if not isinstance(value, list | dict):
        raise TypeError(f"{type(value).__name__} is no frontmatter value: {value!r}")
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict) or any(isinstance(item, list | dict) for item in value):
        return None
    items = [item if isinstance(item, str) and _is_plain(item, flow=True) else _flow(item) for item in value]
    text = f"[{', '.join(items)}]"
    return text if len(text) <= FLOW_COLUMNS and max(map(len, items)) <= FLOW_ITEM else None


def _flow(item: Any) -> str:
    if item is not None and not isinstance(item, str):
        raise TypeError(f"{type(item).__name__} is no frontmatter value: {item!r}")
    return "null" if item is None else quoted(item)


def nested(value: Any, pad: str) -> list[str]:
    """The lines below a key whose value has no place on its line."""
    if isinstance(value, dict):
        return lines(value, pad)
    written = []
    for item in value:
        text = inline(item)
        below = [f"{pad}  {text}"] if text is not None else nested(item, pad + "  ")
        written += [f"{pad}- {below[0][len(pad) + 2 :]}", *below[1:]]
    return written
