"""The unit's bytes, what else its commit holds, and its name."""

import hashlib
import json
from dataclasses import replace
from typing import Any

from khms.pipeline import publish
from khms.pipeline.draft import DROPPED, PUBLISHED, outcomes_json
from khms.pipeline.night import utc
from khms.pipeline.weekly.past import OFFERS, TOLD
from khms.pipeline.weekly.report import report
from khms.pipeline.weekly.week import Week
from khms.store.inbox import unit_path
from khms.store.layout import Base
from khms.store.receipts import Ledger, events_path

FOLDERS = {PUBLISHED: "", DROPPED: "dropped/"}


def named(base: Base, week: Week, ledger: Ledger, clone: str, taken: frozenset[str] = frozenset()) -> Week:
    """The week with the name of its unit, `<day>-weekly`, then -2 and so on; in a shared base with the clone's name."""
    week = replace(week, clone=clone)
    if not week.worth:
        return week
    spoken_of = {receipt.unit for receipt in ledger.receipts}
    there = {path.name.removesuffix(".md") for path in base.inbox.iterdir()} if base.inbox.is_dir() else set()
    n = 1
    while True:
        name = f"{week.run.day}-weekly{f'-{n}' if n > 1 else ''}{f'.{clone}' if clone else ''}"
        if name not in there | taken and unit_path(name) not in spoken_of:
            return replace(week, unit=name)
        n += 1


def proposal(week: Week) -> dict[str, bytes | None]:
    """The unit, and the events of what screening stopped."""
    path = unit_path(week.unit)
    found: dict[str, bytes | None] = {f"{path}/{name}": data for name, data in _files(week).items()}
    rows = [
        {"run": week.run.id, "at": utc(week.run.started), "event": "screening", "mark": "", "label": made.label,
         "found": made.checks()["screening"].message}
        for made in week.of(DROPPED)
        if made.why.startswith("screening")
    ]  # fmt: skip
    if rows:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        found[events_path(week.run.id)] = lines.encode("utf-8")
    return found


def _files(week: Week) -> dict[str, bytes]:
    """By path in the unit, unit.json last, with the hash of every other."""
    found = {f"{FOLDERS[made.fate]}{made.label}.md": made.data for made in week.written}
    found["REPORT.md"] = report(week).encode("utf-8")
    about: dict[str, Any] = {
        "schema": "khms.unit/1",
        "run": week.run.id,
        "created": week.run.started,
        "proposer": week.proposer,
        "sources": [],
        "models": [
            {"name": name, "prompt_sha256": sha256} for name in week.cost.models for _, sha256 in week.cost.prompts
        ],
        "counts": {
            "cards": week.cards,
            **{fate: len(week.of(fate)) for fate in FOLDERS},
            **{step: sum(made.step == step for made in week.written) for step in week.found},
        },
        "calls": week.cost.calls,
        "cost_usd": week.cost.cost_usd,
        "stopped_by": week.cost.stopped_by,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(found.items())},
        "checks": {made.label: outcomes_json(made.checks()) for made in week.written},
        OFFERS: {made.label: made.offer.key for made in week.written},
        TOLD: [told.key for held in week.found.values() for told in held.told],
    }
    found["unit.json"] = (json.dumps(about, ensure_ascii=False, indent=2) + "\n").encode("utf-8")
    return found


def diary(base: Base, week: Week, branch: str = "") -> dict[str, bytes | None]:
    """The day's history with one line of what the run did."""
    offers = ", ".join(f"{len(week.of(fate))} {fate}" for fate in FOLDERS)
    where = f" on branch {branch}" if branch else ""
    said = f"weekly looked at {week.cards} cards: {offers} in {unit_path(week.unit)}{where}"
    line = f"- {week.run.started[11:16]} {said} (run {week.run.id})"
    return {**publish.history(base, week.run, week.clone, line)}


def message(week: Week) -> str:
    count = len(week.of(PUBLISHED))
    title = f"Propose {count} offer{'' if count == 1 else 's'} from {week.cards} cards"
    lines = [title, "", f"Proposer: {week.proposer}. Nothing of this counts before a reviewer approves it.", ""]
    return "\n".join([*lines, f"Khms-Unit: {unit_path(week.unit)}", f"Khms-Run: {week.run.id}"]) + "\n"
