"""Nightly from the journal to the commit: what a unit holds, what a receipt says, which claims are told apart."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.errors import Usage
from khms.model.candidate import Candidate
from khms.model.card import KEYS
from khms.pipeline import nightly as pipeline
from khms.pipeline.night import Result
from khms.store import inbox, schema
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import ledger
from khms.store.repo import Repo

Write = Callable[..., Path]
Git = Callable[..., str]


def run(base: Base, settings: Mapping[str, Any] | None = None, **options: Any) -> Result:
    return pipeline.nightly(base, Repo(base.root), Config([("test", settings or {})]), **options)


def unit(base: Base, found: Result) -> Unit:
    return inbox.find(base, found.unit)


def candidates(base: Base, found: Result) -> dict[str, Candidate]:
    return {candidate.label: candidate for candidate in unit(base, found).candidates}


def report(base: Base, found: Result) -> str:
    return base.path(f"memory/inbox/{found.unit}/REPORT.md").read_text(encoding="utf-8")


def journal(base: Base, write: Write, *lines: str) -> None:
    write(base, "journal/2026-03-04.md", "# 2026-03-04\n\n" + "".join(f"{line}\n\n" for line in lines))


def test_one_mark_becomes_one_candidate_with_all_that_a_reviewer_needs(base: Base, git: Git) -> None:
    found = run(base)
    assert found.verdicts == {"new": 1}
    assert found.candidates == {"published": 1, "deferred": 0, "dropped": 0}
    made = candidates(base, found)["C1"]
    assert list(made.meta) == [*KEYS, "mark", "confidence", "nearest", "relation", "quotes", "flags"]
    assert made.body == "FIX: frames failed because a ground was loose\n"
    assert made.title == "frames failed because a ground was loose"
    assert made.meta["source"] == 'journal/2026-03-04.md line 3: "frames failed because a ground was loose"'
    assert made.meta["date"] == "2026-03-04"
    assert (made.meta["evidence"], made.meta["scope"], made.meta["level"]) == ("reported", "universal", "observation")
    assert made.flags == ("thin",)
    assert made.relation.kind == "unjudged"
    (quote,) = made.quotes
    data = base.path("journal/2026-03-04.md").read_bytes()
    assert (quote.grade, quote.sha256) == ("EXACT", hashlib.sha256(data).hexdigest())
    assert "MARK[solved]" in quote.context
    assert schema.problems("candidate", schema.convert(made.meta, "candidate")) == []


def test_the_commit_holds_unit_receipts_history_and_the_journal_as_it_was_read(
    base: Base, write: Write, git: Git
) -> None:
    write(base, "journal/2026-03-05.md", "MARK[req] the operator wants the battery shown\n")
    write(base, "journal/2026-03-06.md", "no mark at all\n")
    write(base, "notes.txt", "not ours\n")
    found = run(base)
    assert git(base, "rev-parse", "HEAD") == found.commit
    changed = git(base, "show", "--name-only", "--format=", "HEAD").split("\n")
    name = f"memory/inbox/{found.unit}"
    day = found.unit.removesuffix("-nightly")
    assert changed == [
        "journal/2026-03-05.md",
        "journal/2026-03-06.md",
        f"memory/history/{day}.md",
        f"{name}/C1.md",
        f"{name}/C2.md",
        f"{name}/REPORT.md",
        f"{name}/unit.json",
        f"memory/receipts/{found.run}.jsonl",
    ]
    assert git(base, "status", "--porcelain") == "?? notes.txt"
    message = git(base, "log", "-1", "--format=%B")
    assert message.startswith("Propose 2 candidates from 2 MARKs\n")
    assert f"Khms-Unit: {name}\nKhms-Run: {found.run}" in message


def test_unit_json_and_receipts_are_valid_and_name_every_file_and_check(base: Base) -> None:
    found = run(base)
    about = unit(base, found).meta
    assert schema.problems("unit", about) == []
    folder = base.path(f"memory/inbox/{found.unit}")
    for name, digest in about["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert set(about["checks"]["C1"]) == {"quotes", "specifics", "relations", "duplicates", "refused", "screening"}
    assert about["checks"]["C1"]["relations"]["outcome"] == "not-run"
    assert about["checks"]["C1"]["quotes"] == {"outcome": "pass"}
    lines = base.path(f"memory/receipts/{found.run}.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    assert schema.problems("receipt", json.loads(lines[0])) == []
    assert json.loads(lines[0])["unit"] == f"memory/inbox/{found.unit}"


def test_every_mark_of_the_window_stands_in_the_coverage_table(base: Base, write: Write, add_card: Write) -> None:
    add_card(base, "K-00001", body="the price list is cached for one hour\n")
    journal(
        base,
        write,
        "MARK[decision] the price list is cached for one hour",
        "MARK[note] it is so",
        "MARK[failed] polling once a second lost 214 of 600 frames",
        "MARK[note] Polling once a second lost 214 of 600 frames.",
    )
    found = run(base)
    assert found.verdicts == {"already-carded": 1, "not-carded": 1, "new": 1, "attach": 1}
    text = report(base, found)
    rows = [line.split(" | ") for line in text.split("\n") if line.startswith("| M-")]
    assert [(row[3], row[4]) for row in rows] == [
        ("already-carded", "`K-00001`"),
        ("not-carded", "`it has no words of its own`"),
        ("new", "C1"),
        ("attach", "C1"),
    ]
    (made,) = unit(base, found).candidates
    assert [quote.text for quote in made.quotes] == [
        "polling once a second lost 214 of 600 frames",
        "Polling once a second lost 214 of 600 frames.",
    ]
    assert {quote.grade for quote in made.quotes} == {"EXACT"}
    assert "C1 was marked 2 times" in text


def test_nothing_open_makes_no_commit_and_no_unit_but_says_when_it_was(base: Base, git: Git) -> None:
    first = run(base)
    head = git(base, "rev-parse", "HEAD")
    second = run(base)
    assert (second.unit, second.commit, second.decided, second.open) == ("", "", 0, 0)
    assert second.run != first.run
    assert git(base, "rev-parse", "HEAD") == head
    state = json.loads((base.state / "nightly.json").read_text(encoding="utf-8"))
    assert (state["run"], state["ok"], state["success"]) == (second.run, True, state["at"])
    assert not base.carry.exists() or list(base.carry.iterdir()) == []


def test_without_a_candidate_there_is_no_unit_but_the_decision_stands(base: Base, write: Write) -> None:
    journal(base, write, "MARK[note] it is so")
    found = run(base)
    assert (found.unit, found.verdicts) == ("", {"not-carded": 1})
    assert found.commit
    assert list(base.inbox.iterdir()) == []
    assert run(base).decided == 0


def test_a_second_run_of_the_day_takes_the_next_name_and_foreign_content_is_kept(base: Base, write: Write) -> None:
    first = run(base)
    journal(base, write, "MARK[solved] frames failed because a ground was loose", "MARK[note] a second thing came up")
    second = run(base)
    assert second.unit == f"{first.unit}-2"
    write(base, f"memory/inbox/{first.unit}-3/C1.md", "someone else's\n")
    journal(base, write, "MARK[note] a third thing came up, and a fourth")
    third = run(base)
    assert third.unit == f"{first.unit}-4"
    assert f"memory/inbox/{first.unit}-3 was there already" in report(base, third)
    assert base.path(f"memory/inbox/{first.unit}-3/C1.md").read_text(encoding="utf-8") == "someone else's\n"
    shutil.rmtree(base.path(f"memory/inbox/{first.unit}-2"))
    journal(base, write, "MARK[note] a fifth thing came up, after a unit was removed")
    assert run(base).unit == f"{first.unit}-5"


def test_a_shared_base_puts_the_clone_into_the_names(base: Base, write: Write, git: Git, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(base, "remote", "add", "origin", str(tmp_path / "remote.git"))
    found = run(base)
    clone = (base.root / ".git" / "khms" / "clone").read_text(encoding="utf-8").strip()
    assert found.unit.endswith(f"-nightly.{clone}")
    assert [path.name.split(".")[1] for path in base.path("memory/history").iterdir()] == [clone]


def test_beyond_the_cap_candidates_wait_and_those_that_say_most_come_first(base: Base, write: Write) -> None:
    journal(
        base,
        write,
        "MARK[note] the first thing that was seen today",
        "MARK[solved] the second matter was a broken cable",
        "MARK[note] the third thing that somebody saw",
        "MARK[decision] the fourth point is settled for good",
    )
    found = run(base, max_cards=2)
    assert found.candidates == {"published": 2, "deferred": 2, "dropped": 0}
    held = unit(base, found)
    assert [candidate.label for candidate in held.candidates] == ["C2", "C4"]
    assert held.deferred == ("C1", "C3")
    assert "C1 in `deferred/`: `beyond the 2 that one unit publishes`" in report(base, found)
    assert found.decided == 4
    assert run(base).decided == 0
    with pytest.raises(Usage):
        run(base, max_cards=-1)


def test_what_a_reviewer_refused_is_withheld_with_a_pointer(base: Base, write: Write) -> None:
    from khms.pipeline.withhold import withhold

    first = run(base)
    withhold(base, Repo(base.root), Config([]), first.unit, ["C1"], "rejected", "it was the cable")
    journal(base, write, "MARK[note] Frames failed because a ground was loose.")
    second = run(base)
    assert second.candidates == {"published": 0, "deferred": 0, "dropped": 1}
    assert f"{first.unit}/C1 said this and was refused: it was the cable" in report(base, second)
    assert unit(base, second).dropped == ("C1",)


def test_what_awaits_review_already_is_flagged(base: Base, write: Write) -> None:
    first = run(base)
    journal(base, write, "MARK[note] Frames failed because a ground was loose.")
    second = run(base)
    assert candidates(base, second)["C1"].flags == (f"awaits-review:{first.unit}/C1",)


def test_a_card_that_says_so_no_longer_is_named(base: Base, add_card: Write) -> None:
    add_card(base, "K-00001", body="frames failed because a ground was loose\n", status="refuted")
    found = run(base)
    assert "same-as:K-00001" in candidates(base, found)["C1"].flags
    assert "`K-00001 (refuted) says nearly the same`" in report(base, found)


def test_a_card_that_quotes_the_mark_is_named(base: Base, add_card: Write) -> None:
    body = "CAUSE: bad wiring\n\n**QUOTES:**\n- src=journal :: MARK[solved] frames failed because a ground was loose\n"
    add_card(base, "K-00001", body=body)
    assert "quoted-by:K-00001" in candidates(base, run(base))["C1"].flags


def test_only_the_mark_that_was_asked_for(base: Base, write: Write) -> None:
    journal(base, write, "MARK[note] the first thing that was seen", "MARK[note] the second thing that was seen")
    text = base.path("journal/2026-03-04.md").read_text(encoding="utf-8")
    from khms.model.mark import parse_marks

    second = parse_marks(text, "journal/2026-03-04.md")[1]
    found = run(base, only_mark=second.id)
    assert [receipt.mark for receipt in ledger(base).receipts] == [second.id]
    again = run(base, only_mark=second.id)
    assert again.decided == 0
    assert again.notes == (f"{second.id} is decided already: new C1 memory/inbox/{found.unit}",)
