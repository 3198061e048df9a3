"""What is said of a filter that nothing passes because no document has its value: the values nearest to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from khms.index.text import fold
from khms.model.document import UNREVIEWED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from khms.index.lexical import Reader
    from khms.model.document import Query

NAMED = ("tag", "type", "kind", "scope", "status")
MOST = 3


def unmet(readers: Sequence[Reader], query: Query) -> Iterator[str]:
    """A sentence for each filter of `query` whose value occurs in none of the indexes. It reads every document of them,
    so it is for where nothing was found."""
    for name, value in query.filters:
        if name in NAMED and not any(reader.frequency(name, fold(value)) for reader in readers):
            found = nearest(value, {one for reader in readers for one in _values(reader, name)})
            meant = f"; did you mean {', '.join(f'{name}:{one}' for one in found)}?" if found else ""
            yield f"no document has {name}:{value}{meant}"


def nearest(value: str, held: set[str]) -> list[str]:
    """The values nearest to `value`: misspellings of it, then what begins with it or what it begins with."""
    from difflib import get_close_matches

    by_fold = {fold(one): one for one in sorted(held)}
    wanted = fold(value)
    close = get_close_matches(wanted, by_fold, n=MOST)
    close += sorted(one for one in by_fold if one.startswith(wanted) or (len(one) > 2 and wanted.startswith(one)))
    return [by_fold[one] for one in dict.fromkeys(close)][:MOST]


def _values(reader: Reader, name: str) -> Iterator[str]:
    for document in reader.everything():
        if document.shelf != UNREVIEWED:  # what nobody reviewed is told to nobody who did not ask for it
            yield from document.tags if name == "tag" else filter(None, [str(getattr(document, name))])
