"""What a document is worth before anybody asks: by its status, by the project at hand, by what it stands on.

Each is a factor near 1 on a hit's strength, so that it decides among hits that match nearly alike and nothing else. An
exact match comes first whatever they say (`rank.weighed`).
"""

from __future__ import annotations

from math import exp

from khms.index.text import fold
from khms.model.document import Document
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# How far a card's grade is from the middle one, in shares of the figure: what was measured and what was only supposed
# lie two figures apart. What has no grade stands in the middle.
GRADES = {"measured": 1.0, "observed": 0.33, "reported": -0.33}
ASSUMED = -1.0
EVERYWHERE = frozenset(("", "universal"))
ARCHIVED = frozenset(("superseded", "condensed"))
PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Figures:
    """What each prior is worth, from the settings recall.prior_…: the status as a factor, the others as the share by
    which they raise or lower."""

    challenged: float
    refuted: float
    archived: float
    scope: float
    evidence: float
    belief: float


def figures(config: Mapping[str, Any]) -> Figures:
    return Figures(*(config[f"recall.prior_{name}"] for name in Figures.__match_args__))


def worth(document: Document, by: Figures, here: frozenset[str] = frozenset()) -> float:
    """The factor on a hit's strength that its document tells by itself."""
    return (
        of_status(document.status, by) * of_scope(document.scope, here, by.scope) * of_evidence(document, by.evidence)
    )


def of_belief(value: float, share: float) -> float:
    """By the cards around it, for a derived card; `value` is its belief, -1 to 1."""
    return 1 + share * value


def of_status(status: str, by: Figures) -> float:
    """Active before challenged before refuted; what lies in the archive last."""
    if status == "challenged":
        return by.challenged
    if status == "refuted":
        return by.refuted
    return by.archived if status in ARCHIVED else 1.0


def of_scope(scope: str, here: frozenset[str], share: float) -> float:
    """More for what holds for the project at hand, less for what holds for another project. A scope of another sort (a
    device, a host) is neither, unless the project has its name; nor is any where no project is known."""
    if not here or scope in EVERYWHERE:
        return 1.0
    said = fold(scope.strip())
    sort, colon, name = said.partition(":")
    if said in here or (colon and name in here):
        return 1 + share
    return 1 - share if sort == PROJECT and colon else 1.0


def of_evidence(document: Document, share: float) -> float:
    """By how a card's observation was made; a derived card has its belief for that."""
    grade = ASSUMED if document.level == "assumption" else GRADES.get(document.evidence, 0.0)
    return 1 + share * grade


def of_age(importance: float, days: float, *, floor: float = 0.7, decay: float = 0.03) -> float:
    """The factor on an episode's nearness: by its importance (0-1), and halved every 23 days. One from tomorrow, by
    another machine's clock, is of today. What is let in at all is decided before, by the nearness itself, so that an
    old exact match is never pushed out by what is new."""
    weight = floor + (1 - floor) * min(1.0, max(0.0, importance))
    return weight * exp(-decay * max(0.0, days))
