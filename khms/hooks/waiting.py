"""What a person has not looked at yet: inbox candidates without a decision, and jobs that are overdue. Read cheaply,
and leniently: this is a reminder, and `khms inbox list` has the last word."""

import time
from typing import Any

from khms.store import files, receipts
from khms.store.layout import Base

_LABEL = "### C"  # heads a candidate in the older single-file units


def unreviewed(base: Base) -> tuple[int, int]:
    """(units, candidates) that await a decision: no approval names them, nor, in a single file, a review receipt."""
    if not base.inbox.is_dir():
        return 0, 0
    held = {}
    for path in base.inbox.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            labels = {file.stem for file in path.glob("*.md")} - {"REPORT"}
        elif path.suffix == ".md":
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            labels = {line[4:].split(":")[0].strip() for line in lines if line.startswith(_LABEL)}
        else:
            continue
        if labels:
            held[base.relative(path)] = labels
    if held:
        for unit, label in _decided(base, any(path.endswith(".md") for path in held)):
            held.get(unit, set()).discard(label)
    return sum(map(bool, held.values())), sum(map(len, held.values()))


def _decided(base: Base, single: bool) -> list[tuple[str, str]]:
    found = []
    if base.approvals.is_dir():
        for path in base.approvals.glob("*.json"):
            record = files.read_json(path)
            found += [(record["unit"], card["label"]) for card in record["cards"]]
    if single:
        found += list(receipts.ledger(base).reviewed())
    return found


def overdue(base: Base, hours: float, name: str = "nightly") -> float:
    """Hours since the job last succeeded where that is more than `hours`, else 0. One that never ran is not overdue."""
    try:
        state: Any = files.read_json(base.state / f"{name}.json")
        last = _seconds(state["success"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0.0
    since = (time.time() - last) / 3600
    return since if since > hours else 0.0


def _seconds(stamp: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(stamp).timestamp()
