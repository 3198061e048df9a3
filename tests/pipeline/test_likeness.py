"""What is like another text in meaning: told, and never taken for the same."""

from collections.abc import Callable
from pathlib import Path

from khms.config import Config
from khms.pipeline import nightly as pipeline
from khms.pipeline.likeness import Likeness
from khms.store import inbox
from khms.store.layout import Base
from khms.store.repo import Repo

TEXTS = [
    ("K-00001", "The pump needs forty seconds before it starts, because the valve opens slowly."),
    ("K-00002", "The vendor throttles after forty calls an hour."),
]
TURNED = "Because the valve opens slowly, the pump takes forty seconds to start."
AGAIN = "The valve opens slowly, and so forty seconds pass before the pump starts."


def test_the_same_in_other_words_is_found_and_something_else_is_not(base: Base) -> None:
    asked = [("C1", TURNED), ("C2", "The log is reopened by its name.")]
    more = [(f"K-1{n:04d}", f"Filler number {n} is of no account.") for n in range(600)]
    known = Likeness(base, Config([]), [*TEXTS, *more, *asked])
    assert [name for name, _ in known.like("C1", 0.92)] == ["K-00001"]
    assert [name for name, _ in known.like("K-00001", 0.92)] == ["C1"]
    assert known.like("C2", 0.92) == []
    assert known.like("C9", 0.0) == []
    assert known.why == ""


def test_without_a_model_nothing_is_like_anything_and_it_says_why(base: Base) -> None:
    known = Likeness(base, Config([("test", {"recall.model": "none"})]), TEXTS)
    assert known.like("K-00001", 0.1) == []
    assert known.why


def test_a_candidate_that_turns_a_cards_words_is_flagged_for_the_reviewer(
    base: Base, add_card: Callable[..., Path], write: Callable[..., Path]
) -> None:
    add_card(base, "K-00001", body=TEXTS[0][1] + "\n")
    write(base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[fact] {TURNED}\n\nMARK[fact] {AGAIN}\n")
    found = pipeline.nightly(base, Repo(base.root), Config([]))
    first, second = inbox.find(base, found.unit).candidates
    assert found.verdicts == {"new": 2}
    assert "like:K-00001" in first.flags
    assert "like:C1" in second.flags
    assert "like:C2" in first.flags
    report = base.path(f"memory/inbox/{found.unit}/REPORT.md").read_text(encoding="utf-8")
    assert "- C1 says something like K-00001, C2, in other words\n" in report
