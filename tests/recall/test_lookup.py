"""One document by its id, read from the files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import No, Refused
from khms.index import sync
from khms.recall.lookup import look_up
from khms.recall.search import recall
from khms.store.layout import Base
from khms.store.markdown import Unreadable

RECORD = {
    "schema": "khms.approval/1",
    "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "unit": "memory/inbox/2026-03-04-nightly",
    "reviewer": "Ada Tester <ada@example.org>",
    "at": "2026-03-05T08:00:00+01:00",
    "parent": None,
    "cards": [
        {"id": "K-00002", "label": "C1", "candidate_sha256": "a", "card_sha256": "b", "was": ["K-00001"]},
    ],
    "transitions": [{"id": "K-00002", "field": "status", "old": "active", "new": "challenged", "why": "doubt"}],
    "waivers": [{"check": "quotes", "label": "C1", "why": "heard it myself"}],
    "signature": None,
}


def test_a_card_with_its_history_answers_for_its_earlier_id(
    base: Base, add_card: Callable[..., Path], write: Callable[..., Path]
) -> None:
    add_card(base, "K-00002", status="challenged", links={"contradicts": ["K-00003"]})
    add_card(base, "K-00003", links={"contradicts": ["K-00002"], "supports": ["K-00002"]})
    write(base, f"memory/approvals/{RECORD['id']}.json", json.dumps(RECORD))
    found = look_up(base, "K-00001")
    assert found.id == "K-00002" and "K-00001 became K-00002" in found.notes[0]
    assert [event.what for event in found.history] == [
        "approved from memory/inbox/2026-03-04-nightly C1; quotes waived: heard it myself",
        "status: active -> challenged (doubt)",
    ]
    assert [(link.rel, link.id) for link in found.correctors] == [("contradicts", "K-00003")]
    assert ("supports", "K-00003") in [(link.rel, link.id) for link in found.named_by]


def test_a_broken_record_hides_the_history_and_not_the_card(
    base: Base, add_card: Callable[..., Path], write: Callable[..., Path]
) -> None:
    add_card(base, "K-00002")
    write(base, f"memory/approvals/{RECORD['id']}.json", "{")
    found = look_up(base, "K-00002")
    assert found.history == () and "the history is not known" in found.notes[0]


def test_what_is_not_there_or_not_readable(base: Base, write: Callable[..., Path], tmp_path: Path) -> None:
    write(base, "memory/know/K-00009.md", "---\nid: [\n---\n")
    with pytest.raises(Unreadable):
        look_up(base, "K-00009")
    (tmp_path / "outside.md").write_text("x", encoding="utf-8")
    base.path("link.md").symlink_to(tmp_path / "outside.md")
    for name in ("../outside", "link", str(tmp_path / "outside.md")):
        with pytest.raises((No, Refused)):
            look_up(base, name)
    with pytest.raises(No):
        look_up(base, "K-00077")


def test_every_id_that_recall_prints_opens(
    base: Base, add_card: Callable[..., Path], write: Callable[..., Path], tmp_path: Path
) -> None:
    """A document of every kind and place, each found by one word and then opened by the id of its hit."""
    write(base, "khms.toml", f'[index]\nnotes = true\ninclude = {{ docs = "docs", far = "{tmp_path / "far"}" }}\n')
    add_card(base, "K-00001", body="lampdrift in force\n")
    add_card(base, "K-00002", body="lampdrift in a sub-folder\n", path="memory/know/sub/K-00002.md")
    add_card(base, "K-00003", body="lampdrift long past\n", status="condensed")
    candidate = "---\nid: {}\ntype: fact\ntitle: lampdrift\n---\nlampdrift\n"
    for path, text in {
        "memory/lessons/L-01.md": "Lampdrift teaches patience\n",
        "memory/inbox/u1/C1.md": candidate.format("C1"),
        "memory/inbox/u1/deferred/C2.md": candidate.format("C2"),
        "memory/inbox/u1/dropped/C3.md": candidate.format("C3"),
        "memory/inbox/single.md": "# Single\n\n### C1: lampdrift once\n\nlampdrift\n",
        "journal/2026-03-04.abcd.md": "MARK[fact] lampdrift at noon\n",
        "docs/how/to.md": "# To\n\nlampdrift\n",
        "docs/v1.2.markdown": "# Versions\n\nlampdrift\n",
        "plain note.md": "# Plain\n\nlampdrift\n",
        "memory/know/Stray.md": candidate.format("K-00077"),
    }.items():
        write(base, path, text)
    write(tmp_path / "far", "away/Loud.MD", "# Loud\n\nlampdrift\n")
    sync.refresh(base, vectors="later")
    hits = recall(base, "lampdrift", limit=100, include_fog=True, unreviewed=True, by_meaning=False).hits
    assert {hit.kind for hit in hits} == {"card", "lesson", "inbox", "journal", "note"}
    assert len(hits) == 14
    for hit in hits:
        found = look_up(base, hit.id)
        assert (found.path, found.id) == (hit.path, hit.id)
        assert hit.kind == found.kind or hit.kind == "journal", hit
        for path in (hit.path, f"{hit.path}:{hit.line}", base.path(hit.path)):
            shown = look_up(base, str(path))
            assert shown.path == hit.path
            assert shown == found or hit.id in ("K-00077", "single/C1"), (
                "a file named otherwise, and one of several ids"
            )
    assert look_up(base, "k-00001") == look_up(base, "K-00001.md") == look_up(base, "K-00001")
