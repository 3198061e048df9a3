"""What waits for a person is counted; a decision about it, wherever recorded, takes it out."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.hooks import waiting
from khms.store.layout import Base

Write = Callable[..., Path]
UNIT = "memory/inbox/2026-11-30-nightly"
SINGLE = "memory/inbox/2026-11-29.md"


def approval(unit: str, *labels: str) -> str:
    return json.dumps({"unit": unit, "cards": [{"label": label, "id": "K-00001"} for label in labels]})


def test_an_empty_inbox_holds_nothing(base: Base) -> None:
    assert waiting.unreviewed(base) == (0, 0)
    (base.root / "memory" / "inbox").rmdir()
    assert waiting.unreviewed(base) == (0, 0)


def test_candidates_are_counted_until_they_are_decided(base: Base, write: Write) -> None:
    for name in ("C1", "C2", "C3", "REPORT"):
        write(base, f"{UNIT}/{name}.md", "---\nid: x\n---\n")
    write(base, f"{UNIT}/deferred/C9.md", "x")
    write(base, f"{UNIT}/unit.json", "{}")
    write(base, "memory/inbox/.khms-tmp-1/C1.md", "x")
    write(base, "memory/inbox/note.txt", "x")
    assert waiting.unreviewed(base) == (1, 3)
    write(base, "memory/approvals/a.json", approval(UNIT, "C1"))
    write(base, "memory/approvals/b.json", approval("memory/inbox/another", "C2"))
    assert waiting.unreviewed(base) == (1, 2)
    write(base, "memory/approvals/c.json", approval(UNIT, "C2", "C3"))
    assert waiting.unreviewed(base) == (0, 0)


def test_the_older_single_file_counts_too(base: Base, write: Write) -> None:
    write(base, SINGLE, "# Inbox\n\n### C1: one\n```yaml\n```\n### C2: two\n```yaml\n```\n### C3\n")
    write(base, "memory/approvals/a.json", approval(SINGLE, "C1"))
    receipt = {"stage": "review", "verdict": "rejected", "unit": SINGLE, "label": "C2"}
    write(base, "memory/receipts/r.jsonl", json.dumps(receipt) + "\n")
    assert waiting.unreviewed(base) == (1, 1)


def stamp(hours: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - hours * 3600))


@pytest.mark.parametrize(
    ("state", "late"),
    [
        (None, False),
        ({"success": stamp(2)}, False),
        ({"success": stamp(30)}, True),
        ({"success": stamp(30).replace("+00:00", "Z")}, True),
        ({"success": stamp(30), "at": stamp(1), "ok": False, "error": "it was stopped"}, True),
        ({"success": "yesterday"}, False),
        ({"success": None}, False),
        ([], False),
        ({}, False),
    ],
)
def test_a_job_is_overdue_by_its_last_success(base: Base, write: Write, state: object, late: bool) -> None:
    if state is not None:
        write(base, ".khms/state/nightly.json", json.dumps(state))
    hours = waiting.overdue(base, 24)
    assert (29 < hours < 31) if late else hours == 0
