"""A candidate: a proposed card with a label, and all that a reviewer needs to judge it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from khms.model.card import as_list, as_text

EXACT, WRAPPED, ELIDED, ABSENT = "EXACT", "WRAPPED", "ELIDED", "ABSENT"
RELATION_KINDS = ("new", "supports", "contradicts", "supersedes", "unjudged")
CANDIDATE_KEYS = ("mark", "confidence", "nearest", "relation", "quotes", "flags")


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that stand in a source. `grade` is empty until they were looked up."""

    source: str
    text: str
    sha256: str = ""
    grade: str = ""
    context: str = ""

    def as_meta(self) -> dict[str, str]:
        return {
            "source": self.source,
            "sha256": self.sha256,
            "text": self.text,
            "grade": self.grade,
            "context": self.context,
        }


@dataclass(frozen=True, slots=True)
class Relation:
    """How the candidate stands to what is known. `unjudged` is for a person to settle."""

    kind: str = "unjudged"
    target: str = ""
    nearest: str = ""
    because: str = ""

    def as_meta(self) -> dict[str, str]:
        pairs = (("kind", self.kind), ("target", self.target), ("nearest", self.nearest), ("because", self.because))
        return {key: value for key, value in pairs if value}


@dataclass(frozen=True, slots=True)
class Change:
    """A proposed change of a card that is there: the status that it shall have, the card that is the cause, the status
    that it had when this was proposed, and the reason."""

    card: str
    status: str
    by: str = ""
    was: str = ""
    why: str = ""

    def __str__(self) -> str:
        return f"{self.card} {self.status}" + (f" by {self.by}" if self.by else "")

    def as_meta(self) -> dict[str, str]:
        return {"card": self.card, "was": self.was, "status": self.status, "by": self.by, "why": self.why}


@dataclass(frozen=True, slots=True)
class Candidate:
    """`meta` holds every key of the file in its order, the card's own and the six of a candidate; `text` is the whole
    file (or the block of a single-file unit), from its first `---`. One with a `change` proposes no new card."""

    label: str
    meta: Mapping[str, Any]
    body: str
    path: str = ""
    body_line: int = 1
    text: str = ""

    @property
    def title(self) -> str:
        return as_text(self.meta.get("title"))

    @property
    def mark(self) -> str:
        return as_text(self.meta.get("mark"))

    @property
    def flags(self) -> tuple[str, ...]:
        return as_list(self.meta.get("flags"))

    @property
    def nearest(self) -> tuple[str, ...]:
        return as_list(self.meta.get("nearest"))

    @property
    def relation(self) -> Relation:
        """What the file says of the relation; a file that says nothing is unjudged. A change is about its card."""
        if (change := self.change) is not None:
            return Relation("change", change.card, "", change.why)
        value = self.meta.get("relation")
        if not isinstance(value, Mapping):
            return Relation()
        fields = {key: as_text(value.get(key)) for key in ("kind", "target", "nearest", "because")}
        return Relation(**{**fields, "kind": fields["kind"] or "unjudged"})

    @property
    def change(self) -> Change | None:
        value = self.meta.get("change")
        if not isinstance(value, Mapping):
            return Change("", "") if "change" in self.meta else None
        return Change(**{key: as_text(value.get(key)) for key in ("card", "status", "by", "was", "why")})

    @property
    def says(self) -> str:
        """What a refusal remembers of it: the change, whatever words stand around it, else the body."""
        change = self.change
        return self.body if change is None else str(change)

    @property
    def quotes(self) -> tuple[Quote, ...]:
        value = self.meta.get("quotes")
        if not isinstance(value, list):
            return ()
        keys = ("source", "text", "sha256", "grade", "context")
        return tuple(Quote(**{k: as_text(item.get(k)) for k in keys}) for item in value if isinstance(item, Mapping))
