"""A person's text as a question: phrases in double quotes, filters, and the rest, which is only text.

    "exact phrase" tag:sensors type:policy kind:card scope:universal status:active after:2026-01-01 before:2026-02

A filter counts only as a whole word of a known name with a value; a phrase only where the quotes stand at the edges of
words. `after` takes its own day in, `before` leaves it out.
"""

from __future__ import annotations

from khms.errors import Usage
from khms.index.fields import day
from khms.index.text import fold
from khms.model.document import FILTERS, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIMIT = 4096  # characters that are read, unless the caller says otherwise
_PHRASE = r'(?<!\S)"([^"\n]*\w[^"\n]*)"(?=[\s.,;:!?)]|\Z)'
_FILTER = rf'(?<!\S)({"|".join(FILTERS)}):([^\s"]+)(?!\S)'


def parse(text: str, *, limit: int = LIMIT, strict: bool = False) -> Query:
    """The question in `text`. Never raises, unless it is to be `strict`: then Usage for a date that is none."""
    import re  # a hook asks in plain text and never needs it

    from khms.model.card import canonical_type

    phrases: list[str] = []
    filters: list[tuple[str, str]] = []

    def phrase(found: re.Match[str]) -> str:
        phrases.append(found[1])
        return " "

    def chosen(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name in ("after", "before") and day(value) is None:
            if strict:
                raise _misfit(name, value, "a date is written 2026-03-04, 2026-03 or 2026")
            return found[0]
        filters.append((name, canonical_type(value) if name == "type" else value))
        return " "

    rest = re.sub(_FILTER, chosen, re.sub(_PHRASE, phrase, _short(text, limit)))
    return Query(rest.strip(), tuple(phrases), tuple(filters))


def demand(query: Query, holds: Callable[[str, str], bool], types: Iterable[str]) -> None:
    """Raises Usage for a filter by kind, type or status whose value no document can have: it is none that khms gives,
    and no document that the index holds has it all the same (`holds`). `types` are the base's card types."""
    from khms.index.sources import FOLDERS
    from khms.model.card import STATUSES

    known = {
        "kind": (*dict.fromkeys(FOLDERS.values()), "note"),
        "type": tuple(types),
        "status": (*STATUSES, "waiting", "pending", "deferred", "dropped"),
    }
    for name, value in query.filters:
        if name in known and fold(value) not in known[name] and not holds(name, fold(value)):
            from khms.recall.near import nearest

            close = nearest(value, set(known[name]))
            meant = f"did you mean {', '.join(f'{name}:{one}' for one in close)}? " if close else ""
            raise _misfit(name, value, f"{meant}one of: {', '.join(known[name])}")


def _misfit(name: str, value: str, valid: str) -> Usage:
    return Usage(f"no document can be {name}:{value}", hint=f"{valid}; as a word to look for: '\"{name}:{value}\"'")


def plain(text: str, *, limit: int = LIMIT) -> Query:
    """The question in a text that nobody wrote for a search: quotes and colons in it mean nothing."""
    return Query(_short(text, limit).strip())


def _short(text: str, limit: int) -> str:
    """Of a text over the limit the beginning and, of the same length, the end: a stack trace says what failed in its
    last line."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[: limit - half]} {text[len(text) - half :]}"
