"""Which mentions of an id are renewed, and which words stay byte for byte."""

import json

import pytest

from khms.model.approval import Transition
from khms.pipeline.renumber import mentions, renumbered, transition

IDS = {"K-00011": "K-00012", "K-00012": "K-00013"}
FORM = """---
id: {first}
title: As K-00011 says
tags: [a]
source: 'journal/2026-03-04.md line 3: "K-00011 it was"'
links:
  derived_from: [{second}, K-00001]
  supports:
    - {first}  # a remark
  contradicts: []
  supersedes: null
note: K-00011
---
SUPERSEDES {first} BECAUSE: {second} was measured
FIX: see [[{first}]], [[{second}|that]] and [[{second}#part]], not K-00011 nor `[[K-00011]]`
**LINKS:** {second}

> [[K-00011]] is what it said

```
[[K-00011]]
SUPERSEDES K-00011
```
K-000119 and xK-00011 and K-00011-a are other words: [[K-000119]]
"""
CARD = FORM.format(first="K-00011", second="K-00012")
RENEWED = FORM.format(first="K-00012", second="K-00013")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_card(ends: str) -> None:
    given, wanted = (text.replace("\n", ends).encode() for text in (CARD, RENEWED))
    assert renumbered("memory/know/K-00011.md", given, IDS) == wanted
    assert renumbered("memory/archive/know/K-00011.md", b"\xef\xbb\xbf" + given, IDS) == b"\xef\xbb\xbf" + wanted


def test_a_candidate_keeps_its_quotes_and_reasons() -> None:
    text = """---
id: C1
mark: M-0123456789ab
nearest: [K-00011, K-00001]
relation:
  kind: supports
  target: K-00011
  because: >-
    as K-00011
    target: K-00011 in words
  nearest: 'K-00012'
quotes:
  - source: K-00011
    text: K-00011 and [[K-00011]]
    context: "source: K-00011"
---
FIX: it
"""
    found = renumbered("memory/inbox/u/dropped/C1.md", text.encode(), IDS).decode()
    assert "nearest: [K-00012, K-00001]" in found and "  target: K-00012\n" in found and "'K-00013'" in found
    assert "source: K-00012\n    text: K-00011 and [[K-00011]]\n" in found
    assert "    as K-00011\n" in found and "target: K-00011 in words" in found and '"source: K-00011"' in found


def test_the_older_inbox_file_of_several() -> None:
    text = (
        "## Cards\n\n### C1: one\n\n```yaml\n---\nid: C1\nlinks:\n  supports: [K-00011]\n---\nsee [[K-00011]]\n```\n\n"
        "### C2: two\n\n```yaml\n---\nid: C2\nlinks:\n  supports: [K-00012]\n---\nsee [[K-00012]]\n```\n"
    )
    found = renumbered("memory/inbox/2026-03-05.md", text.encode(), IDS).decode()
    assert found == text.replace("K-00012", "K-00013").replace("K-00011", "K-00012")


def test_a_report_and_receipts_say_ids_alone() -> None:
    report = "- C1 `supports K-00011`, because `as K-00011 says` (nearest: `K-00011, K-00001`)\n| `K-00012` |\n"
    assert renumbered("memory/inbox/u/REPORT.md", report.encode(), IDS).decode() == (
        "- C1 `supports K-00012`, because `as K-00011 says` (nearest: `K-00012, K-00001`)\n| `K-00013` |\n"
    )
    rows = [{"mark": "M-1", "reason": "K-00011"}, {"mark": "M-2", "reason": "as K-00011 says"}]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    found = renumbered("memory/receipts/r.jsonl", data, IDS).decode().splitlines()
    assert [json.loads(line)["reason"] for line in found] == ["K-00012", "as K-00011 says"]


@pytest.mark.parametrize("path", ["journal/2026-03-04.md", "notes.md", "memory/history/2026-03-04.md", "khms.toml"])
def test_what_is_no_card_nor_candidate_stays(path: str) -> None:
    assert renumbered(path, CARD.encode(), IDS) == CARD.encode()


def test_what_is_mentioned_and_transitions() -> None:
    assert mentions("memory/know/K-00011.md", b"see [[K-00011]], not K-00012\n", IDS) == {"K-00011"}
    change = Transition("K-00003", "links.contradicts", ["K-00001"], ["K-00001", "K-00011"], "K-00011 says so")
    assert transition(change, IDS).new == ["K-00001", "K-00012"] and transition(change, IDS).why == "K-00011 says so"


def test_bytes_that_are_no_text_stay() -> None:
    data = b"\xff\xfe [[K-00011]]\n"
    assert renumbered("memory/inbox/u/C1.md", data, IDS) == b"\xff\xfe [[K-00012]]\n"
