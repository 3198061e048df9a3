"""The receipt: the recorded decision about one MARK, one JSON line."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

APPROVED, REJECTED, DEFERRED, UNREJECTED = "approved", "rejected", "deferred", "unrejected"


@dataclass(frozen=True, slots=True)
class Receipt:
    """`stage` is propose or review. A propose receipt decides its MARK; a review receipt its candidate. `claim` is what
    a refused candidate said, in the form in which claims are compared: it outlives the candidate's file."""

    mark: str
    stage: str
    verdict: str
    run: str
    unit: str
    label: str
    reason: str
    at: str
    sources: tuple[tuple[str, str], ...] = ()
    claim: str = ""

    def line(self) -> str:
        value = {**asdict(self), "sources": dict(self.sources)}
        if not self.claim:
            del value["claim"]
        return json.dumps(value, ensure_ascii=False)


def receipt_from(value: Mapping[str, Any]) -> Receipt:
    """The receipt that one parsed line holds; missing keys read as empty."""
    keys = ("mark", "stage", "verdict", "run", "unit", "label", "reason", "at", "claim")
    sources = value.get("sources")
    pairs = tuple((str(k), str(v)) for k, v in sources.items()) if isinstance(sources, Mapping) else ()
    return Receipt(**{key: str(value.get(key) or "") for key in keys}, sources=pairs)


def decided(receipts: Iterable[Receipt]) -> dict[str, Receipt]:
    """The receipt that counts for each MARK: of several proposals the smallest (at, run)."""
    chosen: dict[str, Receipt] = {}
    for receipt in receipts:
        if receipt.stage != "propose" or not receipt.mark:
            continue
        held = chosen.get(receipt.mark)
        if held is None or (receipt.at, receipt.run) < (held.at, held.run):
            chosen[receipt.mark] = receipt
    return chosen
