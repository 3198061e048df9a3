"""What is indexed, what is asked, what is found: the values that the index and recall pass to each other."""

from __future__ import annotations

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from khms.model.belief import Belief

GOTCHA = "gotcha"  # the tag of a trap that cost time once: a flag of its card, and a reason to warn before acting
LIVE = "live"  # answers every question
FOG = "fog"  # the archive: answers only where fog is asked for
UNREVIEWED = "unreviewed"  # nobody has approved it: shown only where asked for, and labelled

FILTERS = ("tag", "type", "kind", "scope", "status", "after", "before")


@dataclass(frozen=True, slots=True)
class Document:
    """The unit of indexing: a file, or one section of a long one (several documents then share an id).

    `path` is relative to the base, with forward slashes; `line` is where the document begins in the file. A document
    that comes out of the index has no body: the index stores none.
    """

    id: str
    kind: str
    path: str
    line: int
    title: str
    body: str = ""
    tags: tuple[str, ...] = ()
    type: str = ""
    status: str = ""
    scope: str = ""
    evidence: str = ""
    date: str = ""
    level: str = ""
    links: tuple[tuple[str, str], ...] = ()

    @property
    def shelf(self) -> str:
        """Which questions it answers: LIVE, FOG or UNREVIEWED."""
        if self.kind in ("journal", "inbox") or self.status == "pending":
            return UNREVIEWED
        return FOG if self.path.startswith("memory/archive/") else LIVE


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart: plain text, phrases that must stand word for word, and filters as (name, value)."""

    text: str
    phrases: tuple[str, ...] = ()
    filters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of the graph seen from a hit: the other card and how it stands to it."""

    rel: str
    id: str
    title: str

    def as_json(self) -> dict[str, object]:
        return {"rel": self.rel, "id": self.id, "title": self.title}


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer. `score` is 0-1: how sure it is that the document is about the question, in the same unit for every
    base and channel (recall/relevance.py). Ranks count from 1, None where that channel did not find it. `note` says in
    words what is special about it. `base` is empty, or the root of the other base that it comes from; then its path is
    absolute. `exact` says how the question names it, 0 where it does not. `belief` is a derived card's."""

    id: str
    kind: str
    type: str
    title: str
    path: str
    line: int
    score: float
    lexical_rank: int | None = None
    dense_rank: int | None = None
    status: str = ""
    flags: tuple[str, ...] = ()
    snippet: str = ""
    tags: tuple[str, ...] = ()
    date: str = ""
    links: tuple[Link, ...] = ()
    correctors: tuple[Link, ...] = ()
    note: str = ""
    base: str = ""
    exact: int = 0
    belief: Belief | None = None

    @classmethod
    def of(cls, document: Document, line: int, score: float, **more: Any) -> Hit:
        """The hit that a document is; `more` are the fields that the document does not know."""
        return cls(
            document.id,
            document.kind,
            document.type,
            document.title,
            document.path,
            line,
            score,
            status=document.status,
            tags=document.tags,
            date=document.date,
            **more,
        )

    def as_json(self) -> dict[str, object]:
        other = {"base": self.base} if self.base else {}
        return {
            "id": self.id,
            "kind": self.kind,
            "type": self.type,
            "title": self.title,
            "path": self.path,
            "line": self.line,
            "score": self.score,
            "lexical_rank": self.lexical_rank,
            "dense_rank": self.dense_rank,
            "status": self.status,
            "flags": list(self.flags),
            "snippet": self.snippet,
            "tags": list(self.tags),
            "date": self.date,
            "links": [link.as_json() for link in self.links],
            "correctors": [link.as_json() for link in self.correctors],
            "note": self.note,
            "belief": self.belief and self.belief.as_json(),
            **other,
        }
