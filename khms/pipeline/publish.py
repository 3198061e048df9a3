"""The unit's bytes, its receipts, events and history, and the one commit that brings all of it in or nothing.

Every date and time comes from the run's recorded start: a run that was killed and resumed publishes the same bytes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from khms.check.screening import screen
from khms.model.receipt import Receipt
from khms.pipeline.carry import Run
from khms.pipeline.checks import SECRET
from khms.pipeline.draft import DEFERRED, DROPPED, PUBLISHED, outcomes_json
from khms.pipeline.night import Night, utc
from khms.pipeline.report import report
from khms.store import files
from khms.store.commit import Transaction
from khms.store.inbox import unit_path
from khms.store.layout import HISTORY, INBOX, JOURNAL, Base
from khms.store.receipts import Ledger, events_path, receipts_bytes, receipts_path
from khms.store.repo import Repo

FOLDERS = {PUBLISHED: "", DEFERRED: "deferred/", DROPPED: "dropped/"}


def published(ledger: Ledger, run: Run) -> list[Receipt]:
    """The receipts of a run, if its commit stands already."""
    return [receipt for receipt in ledger.receipts if receipt.run == run.id and receipt.stage == "propose"]


def named(base: Base, night: Night, ledger: Ledger, clone: str) -> Night:
    """The night with the name of its unit: `<day>-nightly`, then -2 and so on, in a shared base with the clone's name.
    A name is taken if anything in the inbox has it, or if any receipt speaks of it."""
    night = replace(night, clone=clone)
    if not night.has_candidates:
        return night
    ours = {receipt.unit for receipt in ledger.receipts}
    there = {path.name.removesuffix(".md") for path in base.inbox.iterdir()} if base.inbox.is_dir() else set()
    n, foreign = 1, ""
    while True:
        name = f"{night.run.day}-nightly{f'-{n}' if n > 1 else ''}{f'.{clone}' if clone else ''}"
        if name not in there and unit_path(name) not in ours:
            return replace(night, unit=name, taken=foreign)
        if unit_path(name) not in ours:
            foreign = f"{INBOX}/{name}"
        n += 1


def changes(base: Base, night: Night) -> dict[str, bytes | None]:
    """Everything that the commit holds, by base path."""
    found: dict[str, bytes | None] = {}
    if night.unit:
        unit = unit_path(night.unit)
        found |= {f"{unit}/{name}": data for name, data in unit_files(night).items()}
    found[receipts_path(night.run.id)] = receipts_bytes(night.receipts())
    if events := list(_events(night)):
        lines = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
        found[events_path(night.run.id)] = lines.encode("utf-8")
    path = f"{HISTORY}/{night.run.day}{f'.{night.clone}' if night.clone else ''}.md"
    found[path] = _history(base, path, night)
    return {**found, **night.journal}


def unit_files(night: Night) -> dict[str, bytes]:
    """The unit's files by their path in it, unit.json last, with the hash of every other."""
    found = {f"{FOLDERS[made.fate]}{made.label}.md": made.data for made in night.drafts if made.fate in FOLDERS}
    found["REPORT.md"] = report(night).encode("utf-8")
    found["unit.json"] = (json.dumps(_unit(night, found), ensure_ascii=False, indent=2) + "\n").encode("utf-8")
    return found


def _unit(night: Night, files: Mapping[str, bytes]) -> dict[str, Any]:
    verdicts = Counter(night.outcome(decision)[0].replace("-", "_") for decision in night.decisions.values())
    read: dict[str, list[int]] = {}
    for mark in night.collected.open:
        read.setdefault(mark.path, []).append(mark.line)
    return {
        "schema": "khms.unit/1",
        "run": night.run.id,
        "created": night.run.started,
        "proposer": night.proposer,
        "window": {"since": night.collected.window.since, "only_mark": night.collected.window.only_mark},
        "sources": [
            {"path": path, "sha256": night.collected.pages[path].sha256, "from": min(lines), "to": max(lines)}
            for path, lines in sorted(read.items())
        ],
        "models": [],
        "counts": {
            "marks": len(night.decisions),
            "open": len(night.left),
            **verdicts,
            **{fate: len(night.of(fate)) for fate in FOLDERS},
        },
        "calls": 0,
        "cost_usd": 0,
        "stopped_by": None,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
        "checks": {made.label: outcomes_json(made.checks()) for made in night.drafts if made.fate in FOLDERS},
    }


def _events(night: Night) -> Iterator[dict[str, str]]:
    """What screening stopped, without the words that it stopped."""
    common = {"run": night.run.id, "at": utc(night.run.started), "event": "screening"}
    for decision in night.decisions.values():
        for held in decision.held_back:
            yield {**common, "mark": decision.mark, "label": "", "found": held}
    for made in night.drafts:
        if outcome := made.failed("screening"):
            yield {**common, "mark": made.mark.id, "label": made.label, "found": outcome.message}


def _history(base: Base, path: str, night: Night) -> bytes:
    """The day's history with what happened added to its end; what stands there is kept byte for byte."""
    try:
        held = files.read(base.path(path))
    except FileNotFoundError:
        held = f"# {night.run.day}\n".encode()
    lead = b"" if held.endswith(b"\n") else b"\n"
    return held + lead + f"\n{told(night)}\n".encode()


def told(night: Night) -> str:
    """What the run did, in one line: facts, no advice, no words of the journal."""
    verdicts = Counter(night.outcome(decision)[0] for decision in night.decisions.values())
    days = sorted({mark.date for mark in night.collected.open if mark.id in night.decisions})
    of = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "no day"
    decided = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    count = len(night.decisions)
    line = f"- {night.run.started[11:16]} nightly decided {count} MARK{'' if count == 1 else 's'} of {of}: {decided}"
    if night.unit:
        fates = ", ".join(f"{len(night.of(fate))} {fate}" for fate in FOLDERS)
        line += f"; {fates} in {unit_path(night.unit)}"
    return f"{line} (run {night.run.id})"


def message(night: Night) -> str:
    count, marks = len(night.of(PUBLISHED)), len(night.decisions)
    title = f"Propose {count} candidate{'' if count == 1 else 's'} from {marks} MARK{'' if marks == 1 else 's'}"
    lines = [title, "", f"Proposer: {night.proposer}. Nothing of this is knowledge before a reviewer approves it.", ""]
    lines += [f"Khms-Unit: {unit_path(night.unit)}"] if night.unit else []
    return "\n".join([*lines, f"Khms-Run: {night.run.id}"]) + "\n"


def take_along(repo: Repo, night: Night) -> Night:
    """The night with the journal files that its commit takes along: those it read that git does not hold as they were
    read. One in which screening finds a secret stays out, since git keeps what it once held."""
    differing = set(repo.dirty(JOURNAL))
    taken, kept_back = {}, {}
    for path, page in night.collected.pages.items():
        if path in differing:
            secret = next((hit for hit in screen("\n".join(page.lines)) if hit.kind == SECRET), None)
            if secret is None:
                taken[path] = page.data
            else:
                kept_back[path] = (
                    f"line {secret.line} looks like a secret ({secret.id}); take it out or commit it yourself"
                )
    return replace(night, journal=taken, kept_back=kept_back)


def commit(tx: Transaction, base: Base, night: Night) -> str:
    """Commits the unit with its receipts and the journal as it was read; returns the commit's id."""
    what = f"nightly {night.run.id}"
    return tx.commit(changes(base, night), message(night), what=what, as_read=frozenset(night.journal))
