"""The card: one approved claim, one file.

Reading is lenient: a card that a schema would refuse is still a value, so that the index can hold it and lint can
name what is wrong with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CardType:
    """A type's stored name, its level and the body labels that belong to it (none: the body is free)."""

    name: str
    level: str
    labels: tuple[str, ...] = ()


TYPES: dict[str, CardType] = {
    t.name: t
    for t in (
        CardType("action-outcome", "observation", ("WHEN", "THEN")),
        CardType("problem-solution", "observation", ("SYMPTOM", "CAUSE", "FIX", "VERIFIED")),
        CardType("fact", "observation"),
        CardType("requirement", "observation", ("WHO", "WHAT", "WHY", "DONE-CRITERIA")),
        CardType("decision-rationale", "observation", ("DECIDED", "WHY", "REJECTED")),
        CardType("principle", "derived", ("HOLDS", "LIMITS", "IMPLICATIONS")),
        CardType("policy", "derived", ("RULE", "LIMITS", "IMPLICATIONS")),
        CardType("goal-method", "derived", ("GOAL", "METHOD", "PREREQUISITES", "COST")),
        CardType("overview", "derived"),
    )
}

LEVELS = ("observation", "derived", "assumption")
STATUSES = ("active", "challenged", "refuted", "superseded", "condensed")
IN_FORCE = ("active", "challenged")
ARCHIVED = ("superseded", "condensed")
EVIDENCE = ("measured", "observed", "reported")
KEYS = ("id", "type", "level", "status", "title", "tags", "scope", "evidence", "source", "date", "links")
RELATIONS = ("derived_from", "supports", "contradicts", "supersedes", "refuted_by")


def card_types(more: Mapping[str, Any]) -> dict[str, CardType]:
    """The built-in types and `more` ones: the configuration's name -> {level, labels}. Without a level one is an
    observation."""
    added = {
        name: CardType(name, str(about.get("level") or "observation"), tuple(map(str, about.get("labels", ()))))
        for name, about in more.items()
        if isinstance(about, Mapping)
    }
    return {**TYPES, **added}


def canonical_type(name: str) -> str:
    """The stored slug of a type name; older bases write arrows (`problem→solution`, `action->outcome`)."""
    return name.replace("→", "-").replace("->", "-")


def is_card_id(text: str) -> bool:
    """Whether `text` is a card id: `K-` and at least five ASCII digits."""
    return text.startswith("K-") and len(text) >= 7 and text.isascii() and text[2:].isdigit()


def id_number(card_id: str) -> int:
    return int(card_id[2:])


def id_text(number: int) -> str:
    return f"K-{number:05d}"


@dataclass(frozen=True, slots=True)
class Links:
    derived_from: tuple[str, ...] = ()
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    refuted_by: tuple[str, ...] = ()

    def edges(self) -> tuple[tuple[str, str], ...]:
        """Every edge as (relation, target), in the relations' fixed order."""
        return tuple((name, target) for name in RELATIONS for target in getattr(self, name))


@dataclass(frozen=True, slots=True)
class Card:
    """A card as its file says it; `path` is relative to the base, `body_line` the body's first line in the file."""

    id: str
    type: str
    level: str = ""
    status: str = "active"
    title: str = ""
    tags: tuple[str, ...] = ()
    scope: str = ""
    evidence: str = ""
    source: str = ""
    date: str = ""
    links: Links = Links()
    body: str = ""
    path: str = ""
    body_line: int = 1
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def archived(self) -> bool:
        return self.path.startswith("memory/archive/")


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_list(value: object) -> tuple[str, ...]:
    """A list of texts, however it was written: a list, one text, or nothing."""
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list) and value:
        return tuple(item for item in value if isinstance(item, str) and item)
    return ()


def links_of(value: object) -> Links:
    if not isinstance(value, Mapping):
        return Links()
    return Links(**{name: as_list(value.get(name)) for name in RELATIONS})


def _label(line: str) -> tuple[str, str]:
    """(label, text) of a line such as `FIX: tighten it`; both empty where it has no label."""
    label, sep, rest = line.partition(":")
    is_label = bool(sep) and label.isascii() and label.replace("-", "").isupper() and label.replace("-", "").isalpha()
    return (label, rest.strip()) if is_label else ("", "")


def first_label(body: str) -> str:
    """The text of the body's first label or line: what stands for a title where a card has none. A SUPERSEDES line,
    which may run over several lines, says what the card replaces and not what it is about."""
    passing_over = False
    for line in body.splitlines():
        text = line.strip()
        label, said = _label(text)
        if text.startswith("SUPERSEDES "):
            passing_over = True
        elif not text or label:
            passing_over = False
        if not text or passing_over or (label and not said) or text.startswith("```"):
            continue
        return said or text.lstrip("# ")
    return ""


def card_from(meta: Mapping[str, Any], body: str, path: str, body_line: int = 1) -> Card:
    """The card that a parsed page holds; wrong-typed keys read as empty."""
    return Card(
        id=as_text(meta.get("id")) or path.rpartition("/")[2].removesuffix(".md"),
        type=canonical_type(as_text(meta.get("type"))),
        level=as_text(meta.get("level")),
        status=as_text(meta.get("status")) or "active",
        title=as_text(meta.get("title")) or first_label(body),
        tags=as_list(meta.get("tags")),
        scope=as_text(meta.get("scope")),
        evidence=as_text(meta.get("evidence")),
        source=as_text(meta.get("source")),
        date=as_text(meta.get("date")),
        links=links_of(meta.get("links")),
        body=body,
        path=path,
        body_line=body_line,
        meta=meta,
    )
