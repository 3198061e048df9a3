"""What must be known before a risky action: the policies in force, the gotchas, and what was refuted or is disputed.

By tags alone, no model: the question is not what sounds like the action, but what people put down under its name. It
runs before every shell command, so a command of no risky class opens no index.
"""

from __future__ import annotations

import time

from khms.errors import Refused
from khms.index import current, freshness
from khms.index.fields import day
from khms.index.lexical import Damaged
from khms.index.text import fold, terms
from khms.model.document import GOTCHA, Document, Hit, Query
from khms.model.risk import Risk, classify, risks_from, words_of
from khms.recall import links, rank, snippet
from khms.store.layout import Base
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from khms.index.lexical import Reader

SCHEMA = "khms.precheck/1"
LOOKED_AT = 24  # cards, the best and the newest, that are put in order
POLICY = "policy"
DEAD_ENDS = ("challenged", "refuted")
# What a command is about, as far as a title can say so: common words of command lines tell nothing.
_NO_WORDS = frozenset(("sudo", "the", "and", "for", "not", "with"))


@dataclass(frozen=True, slots=True)
class Known:
    """What is on record: the hits, nearest first, and how many there are in all. `classes` are those of the command,
    `tags` all that were looked under. `behind` is empty, or says why the index may be behind the base."""

    command: str
    classes: tuple[str, ...]
    tags: tuple[str, ...]
    hits: tuple[Hit, ...] = ()
    total: int = 0
    behind: str = ""
    elapsed_ms: float = 0.0

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "command": self.command or None,
            "classes": list(self.classes),
            "tags": list(self.tags),
            "total": self.total,
            "behind": self.behind or None,
            "elapsed_ms": self.elapsed_ms,
            "hits": [hit.as_json() for hit in self.hits],
        }


def precheck(
    base: Base,
    config: Mapping[str, Any],
    *,
    tags: Sequence[str] = (),
    command: str = "",
    limit: int | None = None,
    snippets: bool = False,
) -> Known:
    """The cards that bear on a risky action, told by its `tags`, by its shell `command` or by both: active policies and
    gotchas, challenged and refuted cards, each with what corrects it. At most `limit` (recall.limit) of them; a file is
    read only for `snippets`. Raises Unavailable where there is no index that can be trusted, Refused for a class that
    cannot be read; asks no index where there is nothing to look under."""
    began = time.perf_counter()
    found = classify(command, risks(config)) if command.strip() else []
    asked = tuple(dict.fromkeys([*map(fold, tags), *(fold(tag) for risk in found for tag in risk.tags)]))
    names = tuple(risk.name for risk in found)
    if not asked:
        return Known(command, names, asked, elapsed_ms=_since(began))
    most = config["recall.limit"] if limit is None else limit
    reader, known = current.opened(base)
    try:
        words = _words(command)
        documents, total = bearing(reader, asked, words, most)
        shown = nearest(documents, asked, words)[:most]
        hits = tuple(_hit(base, reader, document, snippets) for document in shown)
    except Damaged as error:
        raise current.unusable(base, str(error)) from error
    behind = freshness.compare(base, known).why
    return Known(command, names, asked, hits, total, behind, _since(began))


def names_of(base: Base, tags: Iterable[str]) -> tuple[str, ...]:
    """What to look under for what somebody calls `tags`: as said, the registered name, its other aliases."""
    from khms.store import tags as registered

    registry = registered.registry(base)
    under = [tag.strip() for tag in tags if tag.strip()]
    wanted = {registry.canonical(tag) for tag in under}
    other = {alias for alias, tag in registry.aliases.items() if tag in wanted}
    return (*under, *sorted(wanted.difference(under)), *sorted(other.difference(under)))


def risks(config: Mapping[str, Any]) -> list[Risk]:
    """The classes in force; raises Refused for one that is not of the form."""
    try:
        return risks_from(config["precheck.classes"])
    except ValueError as error:
        raise Refused(
            f"precheck.classes: {error}",
            hint='write it as: name = { patterns = ["rm -r"], tags = ["cleanup"] }',
        ) from error


def bearing(reader: Reader, tags: Iterable[str], words: Iterable[str], limit: int) -> tuple[tuple[Document, ...], int]:
    """Of the cards under any of the tags that must be known before one acts, those that can be among the `limit`
    nearest ones; and how many there are in all."""
    card = ("kind", "card")
    sorts = (
        (0.3, Query("", (), (card, ("type", POLICY), ("status", "active")))),
        (0.2, Query("", (), (card, ("tag", GOTCHA), ("status", "active")))),
        (0.1, Query("", (), (card, *(("status", status) for status in DEAD_ENDS)))),
    )
    return reader.under(tags, sorts, words, max(LOOKED_AT, limit))


def nearest(documents: Iterable[Document], tags: Sequence[str], words: frozenset[str]) -> list[Document]:
    """In the order in which they are to be read: those whose title and tags share most with the action, then policies,
    gotchas and dead ends, of equals the newest."""

    def order(document: Document) -> tuple[int, int, int, str]:
        own = {fold(tag) for tag in document.tags}
        said = own.union(terms(document.title).words)
        shared = len(words & said) + len(own.intersection(tags))
        return -shared, _place(document), -(day(document.date) or 0), document.id

    return sorted(documents, key=order)


def _place(document: Document) -> int:
    if document.status in DEAD_ENDS:
        return 2 + DEAD_ENDS.index(document.status)
    return 0 if document.type == POLICY else 1


def _words(command: str) -> frozenset[str]:
    said = (word for text in words_of(command) for word in terms(text).words)
    return frozenset(word for word in said if len(word) > 1 and word not in _NO_WORDS)


def _hit(base: Base, reader: Reader, document: Document, snippets: bool) -> Hit:
    correcting = links.correctors(reader, document)
    line, text = snippet.best_line(base.root, document, {}, reader.language) if snippets else (document.line, "")
    return Hit.of(
        document,
        line,
        1.0,
        flags=(*(("policy",) if document.type == POLICY else ()), *rank.flags(document)),
        snippet=text,
        links=links.neighbours(reader, document, correcting) if snippets else (),
        correctors=correcting,
    )


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 2)
