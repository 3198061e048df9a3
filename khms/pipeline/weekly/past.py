"""What earlier weekly runs offered and told, so that nobody is asked the same twice.

Each unit names its offers by their keys. One that awaits review, was put off or was refused is not offered again; one
that was approved may come up again, should the cards ever say so anew.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from khms.errors import KhmsError
from khms.model.receipt import APPROVED
from khms.pipeline.approve import approved_labels
from khms.store import branches, cards, inbox
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import Ledger
from khms.store.repo import Repo

OFFERS, TOLD = "offers", "told"


@dataclass(frozen=True, slots=True)
class Past:
    """`offers` maps the key of what is not to be offered again to where it is; `told` are the keys that some report
    holds, `runs` the runs whose unit is here or on a branch."""

    offers: Mapping[str, str] = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    runs: Mapping[str, Unit] = field(default_factory=dict)


def past(base: Base, repo: Repo, ledger: Ledger) -> Past:
    records = cards.approvals(base)
    reviewed = ledger.reviewed()
    offers: dict[str, str] = {}
    told: set[str] = set()
    runs: dict[str, Unit] = {}
    for unit in _units(base, repo):
        runs[str(unit.meta.get("run"))] = unit
        told.update(key for key in _list(unit.meta.get(TOLD)) if isinstance(key, str))
        held = unit.meta.get(OFFERS)
        done = approved_labels(records, unit.path)
        for label, key in held.items() if isinstance(held, Mapping) else ():
            receipt = reviewed.get((unit.path, label))
            if label in done or (receipt is not None and receipt.verdict == APPROVED):
                continue
            offers.setdefault(str(key), _where(unit, str(label), receipt.verdict if receipt else ""))
    return Past(offers, frozenset(told), runs)


def _where(unit: Unit, label: str, verdict: str) -> str:
    if verdict:
        return f"{unit.name}/{label} was {verdict}"
    if label in unit.dropped:
        return f"{unit.name}/{label} was withheld"
    return f"{unit.name}/{label} awaits review"


def _units(base: Base, repo: Repo) -> Iterator[Unit]:
    """Every unit, those on branches of their own too. What cannot be read has offered nothing."""
    yield from inbox.units(base)
    for branch in branches.unmerged(base).values():
        try:
            yield branches.unit(repo, branch)
        except KhmsError:
            continue


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
