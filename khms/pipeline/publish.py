"""The unit's bytes, its receipts, events and history, and the one commit that brings all of it in or nothing.

Every date and time comes from the run's recorded start: a run that was killed and resumed publishes the same bytes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from khms.check.screening import screen
from khms.model.receipt import Receipt
from khms.pipeline.carry import Run
from khms.pipeline.checks import SECRET
from khms.pipeline.draft import DEFERRED, DROPPED, PUBLISHED, outcomes_json
from khms.pipeline.night import Night, utc
from khms.pipeline.report import report
from khms.pipeline.sources import Page, is_day
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


def named(base: Base, night: Night, ledger: Ledger, clone: str, taken: frozenset[str] = frozenset()) -> Night:
    """The night with the name of its unit: `<day>-nightly`, then -2 and so on, in a shared base with the clone's name.
    A name is taken if anything in the inbox has it, if any receipt speaks of it, or if `taken` holds it."""
    night = replace(night, clone=clone)
    if not night.has_candidates:
        return night
    ours = {receipt.unit for receipt in ledger.receipts}
    there = {path.name.removesuffix(".md") for path in base.inbox.iterdir()} if base.inbox.is_dir() else set()
    there |= taken
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
    return {**proposal(night), **diary(base, night)}


def proposal(night: Night) -> dict[str, bytes | None]:
    """What a reviewer decides about, and what decides the MARKs: the unit, its receipts, its events."""
    found: dict[str, bytes | None] = {}
    if night.unit:
        unit = unit_path(night.unit)
        found |= {f"{unit}/{name}": data for name, data in unit_files(night).items()}
    found[receipts_path(night.run.id)] = receipts_bytes(night.receipts())
    if events := list(_events(night)):
        lines = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
        found[events_path(night.run.id)] = lines.encode("utf-8")
    return found


def diary(base: Base, night: Night) -> dict[str, bytes | None]:
    """What is nobody's to decide: the day's history, and the journal as it was read."""
    line = told(night.run, night.receipts(), {fate: len(night.of(fate)) for fate in FOLDERS}, night.branch)
    return {**history(base, night.run, night.clone, line), **night.journal}


def unit_files(night: Night) -> dict[str, bytes]:
    """The unit's files by their path in it, unit.json last, with the hash of every other."""
    found = {f"{FOLDERS[made.fate]}{made.label}.md": made.data for made in night.drafts if made.fate in FOLDERS}
    found["REPORT.md"] = report(night).encode("utf-8")
    found["unit.json"] = (json.dumps(_unit(night, found), ensure_ascii=False, indent=2) + "\n").encode("utf-8")
    return found


def _unit(night: Night, files: Mapping[str, bytes]) -> dict[str, Any]:
    verdicts = Counter(night.outcome(decision)[0].replace("-", "_") for decision in night.decisions.values())
    spent = night.spending
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
        "models": [{"name": name, "prompts": dict(spent.prompts)} for name in spent.models],
        "counts": {
            "marks": len(night.decisions),
            "open": len(night.left),
            **verdicts,
            **{fate: len(night.of(fate)) for fate in FOLDERS},
        },
        "calls": spent.calls,
        "cost_usd": spent.cost_usd,
        "stopped_by": spent.stopped_by,
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


def history(base: Base, run: Run, clone: str, line: str) -> dict[str, bytes]:
    """The day's history with what happened added to its end; what stands there is kept byte for byte."""
    path = history_path(run, clone)
    try:
        held = files.read(base.path(path))
    except FileNotFoundError:
        held = f"# {run.day}\n".encode()
    lead = b"" if held.endswith(b"\n") else b"\n"
    return {path: held + lead + f"\n{line}\n".encode()}


def history_path(run: Run, clone: str) -> str:
    return f"{HISTORY}/{run.day}{f'.{clone}' if clone else ''}.md"


def told(run: Run, receipts: Sequence[Receipt], fates: Mapping[str, int], branch: str = "") -> str:
    """What the run did, in one line: facts, no advice, no words of the journal. `branch` is the unit's own, if it has
    one."""
    verdicts = Counter(receipt.verdict for receipt in receipts)
    named = {path.rpartition("/")[2][:10] for receipt in receipts for path, _ in receipt.sources}
    days = sorted(filter(is_day, named))
    of = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "no day"
    decided = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    count = len(receipts)
    line = f"- {run.started[11:16]} nightly decided {count} MARK{'' if count == 1 else 's'} of {of}: {decided}"
    unit = next((receipt.unit for receipt in receipts if receipt.unit), "")
    if unit:
        line += f"; {', '.join(f'{fates.get(fate, 0)} {fate}' for fate in FOLDERS)} in {unit}"
        line += f" on branch {branch}" if branch else ""
    return f"{line} (run {run.id})"


def message(night: Night) -> str:
    count, marks = len(night.of(PUBLISHED)), len(night.decisions)
    title = f"Propose {count} candidate{'' if count == 1 else 's'} from {marks} MARK{'' if marks == 1 else 's'}"
    lines = [title, "", f"Proposer: {night.proposer}. Nothing of this is knowledge before a reviewer approves it.", ""]
    lines += [f"Khms-Unit: {unit_path(night.unit)}"] if night.unit else []
    return "\n".join([*lines, f"Khms-Run: {night.run.id}"]) + "\n"


def take_along(repo: Repo, night: Night) -> Night:
    """The night with the journal files that its commit takes along."""
    taken, kept_back = along(repo, night.collected.pages)
    return replace(night, journal=taken, kept_back=kept_back)


def along(repo: Repo, pages: Mapping[str, Page]) -> tuple[dict[str, bytes], dict[str, str]]:
    """Of the journal files that were read, the bytes of those that git does not hold so; and those that stay out, each
    with the reason: screening finds a secret there, and git keeps what it once held."""
    differing = set(repo.dirty(JOURNAL))
    taken, kept_back = {}, {}
    for path, page in pages.items():
        if path in differing:
            secret = next((hit for hit in screen("\n".join(page.lines)) if hit.kind == SECRET), None)
            if secret is None:
                taken[path] = page.data
            else:
                kept_back[path] = (
                    f"line {secret.line} looks like a secret ({secret.id}); take it out or commit it yourself"
                )
    return taken, kept_back


def commit(tx: Transaction, base: Base, night: Night) -> str:
    """Commits the unit with its receipts and the journal as it was read; returns the commit's id."""
    what = f"nightly {night.run.id}"
    return tx.commit(changes(base, night), message(night), what=what, as_read=frozenset(night.journal))


def note(tx: Transaction, run: Run, diary: Mapping[str, bytes | None], as_read: frozenset[str]) -> str:
    """Commits a night's journal and history on the current branch, where the unit has a branch of its own."""
    said = f"Note what nightly read\n\nIts unit is on a branch of its own.\n\nKhms-Run: {run.id}\n"
    return tx.commit(diary, said, what=f"nightly {run.id}", as_read=as_read)
