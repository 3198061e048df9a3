"""What awaits review, by unit."""

from collections.abc import Sequence
from typing import Any

from khms.errors import Refused
from khms.model.candidate import Candidate
from khms.model.card import as_text
from khms.pipeline.approve import pending
from khms.pipeline.reviewing import flagged
from khms.store import branches, cards
from khms.store.inbox import Unit, units
from khms.store.layout import Base
from khms.store.repo import Repo


def rows(base: Base) -> list[tuple[Unit, list[Candidate]]]:
    """Every unit of the work tree with those of its candidates that nobody decided."""
    records = cards.approvals(base)
    return [(unit, pending(base, unit, records)) for unit in units(base)]


def on_branches(base: Base, repo: Repo) -> tuple[list[tuple[Unit, str]], list[str]]:
    """The units that are on a branch of their own only, each with the branch; and what is wrong with a branch that does
    not hold its unit, which hides no other."""
    found, problems = [], []
    for branch in branches.unmerged(base).values():
        try:
            found.append((branches.unit(repo, branch), branch.name))
        except Refused as error:
            problems.append(error.message)
    return found, problems


def row(unit: Unit, waiting: Sequence[Candidate], branch: str = "") -> dict[str, Any]:
    """A unit as JSON shows it in a list."""
    return {
        "unit": unit.name,
        "created": as_text(unit.meta.get("created")) or unit.name[:10],
        "pending": len(waiting),
        "flagged": sum(flagged(candidate, candidate.quotes) for candidate in waiting),
        "deferred": len(unit.deferred),
        "dropped": len(unit.dropped),
        "branch": branch or None,
    }
