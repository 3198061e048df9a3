"""Candidates that left the front of their unit: where each is, and what brings it back."""

from collections.abc import Iterable, Iterator, Mapping

from khms.model.receipt import DEFERRED, REJECTED, Receipt
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import ledger


def whereabouts(base: Base, unit: Unit, labels: Iterable[str]) -> list[str]:
    """One sentence for each of the labels that a reviewer or a run put aside; nothing is said of the others."""
    reviewed = {label: receipt for (path, label), receipt in ledger(base).reviewed().items() if path == unit.path}
    return list(_told(unit, labels, reviewed))


def aside(unit: Unit) -> tuple[str, ...]:
    """The labels of a folder unit's candidates that stand in deferred/ and dropped/ only."""
    front = {candidate.label for candidate in unit.candidates}
    return tuple(label for label in dict.fromkeys((*unit.deferred, *unit.dropped)) if label not in front)


def _told(unit: Unit, labels: Iterable[str], reviewed: Mapping[str, Receipt]) -> Iterator[str]:
    for label in labels:
        receipt = reviewed.get(label)
        folder = "deferred" if label in unit.deferred else "dropped" if label in unit.dropped else ""
        if receipt is not None and receipt.verdict == REJECTED and folder != "deferred":
            yield f"{label} was refused; khms unreject {unit.name} {label} brings it back"
        elif folder:
            was = "put off" if folder == "deferred" else "withheld by the run that proposed it"
            move = f"git mv {unit.path}/{folder}/{label}.md {unit.path}/{label}.md"
            yield f"{label} was {was}; to bring it back: {move}"
        elif receipt is not None and receipt.verdict == DEFERRED:
            yield f"{label} was put off; the text stands in {unit.path}, to be proposed again"
