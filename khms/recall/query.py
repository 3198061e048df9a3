"""A person's text as a question: phrases in double quotes, filters, and the rest, which is only text.

    "exact phrase" tag:sensors type:policy kind:card scope:universal status:active after:2026-01-01 before:2026-02

A filter counts only as a whole word of a known name with a value; a phrase only where the quotes stand at the edges of
words. `after` takes its own day in, `before` leaves it out.
"""

from khms.index.fields import day
from khms.model.document import FILTERS, Query

LIMIT = 4096  # characters that are read, unless the caller says otherwise
_PHRASE = r'(?<!\S)"([^"\n]*\w[^"\n]*)"(?=[\s.,;:!?)]|\Z)'
_FILTER = rf'(?<!\S)({"|".join(FILTERS)}):([^\s"]+)(?!\S)'


def parse(text: str, *, limit: int = LIMIT) -> Query:
    """The question in `text`; never raises."""
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
            return found[0]
        filters.append((name, canonical_type(value) if name == "type" else value))
        return " "

    rest = re.sub(_FILTER, chosen, re.sub(_PHRASE, phrase, text[:limit]))
    return Query(rest.strip(), tuple(phrases), tuple(filters))


def plain(text: str, *, limit: int = LIMIT) -> Query:
    """The question in a text that nobody wrote for a search: quotes and colons in it mean nothing."""
    return Query(text[:limit].strip())
