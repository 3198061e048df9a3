"""Receipts and events: one JSONL file a run, never appended to by another."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from khms.errors import Refused
from khms.model.receipt import UNREJECTED, Receipt, receipt_from
from khms.store import branches, files
from khms.store.layout import EVENTS, RECEIPTS, Base


def receipts_path(run: str) -> str:
    return f"{RECEIPTS}/{run}.jsonl"


def events_path(run: str) -> str:
    return f"{EVENTS}/{run}.jsonl"


def receipts_bytes(receipts: Iterable[Receipt]) -> bytes:
    return "".join(receipt.line() + "\n" for receipt in receipts).encode("utf-8")


def _text(path: Path) -> str:
    try:
        return files.read(path).decode("utf-8", "replace")
    except OSError as error:
        hint = f"restore the file: git checkout -- {path}"
        raise Refused(f"these receipts cannot be read: {error.strerror}", where=str(path), hint=hint) from error


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every receipt of the base."""

    receipts: tuple[Receipt, ...]

    def reviewed(self) -> dict[tuple[str, str], Receipt]:
        """The last review receipt of each (unit, label), unless it took back what was said before. Runs are ULIDs, so
        receipts of other clones fall into their place in time."""
        said = sorted((r for r in self.receipts if r.stage == "review"), key=lambda receipt: receipt.run)
        last = {(r.unit, r.label): r for r in said}
        return {place: receipt for place, receipt in last.items() if receipt.verdict != UNREJECTED}


def ledger(base: Base) -> Ledger:
    """All receipts: those of the work tree in the order of their files, then those that stand only on a branch of a
    unit (`store.branches`), local or remote-tracking. Raises Refused for a broken line, because a lost receipt would
    decide its MARK twice."""
    found = []
    held = set()
    for path in sorted(base.receipts.glob("*.jsonl")):
        shown = base.relative(path)
        held.add(path.name)
        found += _parsed(_text(path), shown, f"restore the file: git checkout -- {shown}")
    for shown, data in branches.receipts(base, held):
        mend = "mend it on that branch; or, if nobody needs it, delete the branch"
        found += _parsed(data.decode("utf-8", "replace"), shown, mend)
    return Ledger(tuple(found))


def _parsed(text: str, shown: str, mend: str) -> list[Receipt]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = files.parse_json(line)
            if not isinstance(value, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise Refused(f"this receipt cannot be read: {error}", where=f"{shown}:{number}", hint=mend) from error
        found.append(receipt_from(value))
    return found
