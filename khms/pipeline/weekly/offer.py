"""What a step of the weekly run comes to: things to decide, and words for the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from khms.model.candidate import Change, Quote


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing to decide: a new card (`meta` are its keys without label and quotes) or, with `change`, a change of one
    that is there. `key` names it the same in every run; `near` are ids of cards that a reviewer should see beside
    it."""

    key: str
    title: str
    body: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    change: Change | None = None
    quotes: tuple[Quote, ...] = ()
    near: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def moves(self) -> frozenset[str]:
        """The cards that get another status by it."""
        if self.change is not None:
            return frozenset({self.change.card})
        links, relation = self.meta.get("links", {}), self.meta.get("relation", {})
        replaced = relation.get("target") if relation.get("kind") == "supersedes" else None
        return frozenset([*(links.get("supersedes") or ()), *([replaced] if replaced else [])])

    @property
    def needs(self) -> frozenset[str]:
        """The cards that must stand for it."""
        if self.change is not None:
            return frozenset({self.change.by})
        return frozenset(self.meta.get("links", {}).get("derived_from") or ())


@dataclass(frozen=True, slots=True)
class Told:
    """Something that the report shows and nobody can approve: `key` names it the same in every run."""

    key: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What one step found. `missing` says why the step could not be done, or not whole."""

    offers: tuple[Offer, ...] = ()
    told: tuple[Told, ...] = ()
    missing: tuple[str, ...] = ()
