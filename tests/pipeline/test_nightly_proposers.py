"""What nightly makes of a proposer's answers: ones that do not count, corrections, bad headers, own card types."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.errors import Refused
from khms.model.candidate import Candidate
from khms.model.verdict import Verdict
from khms.pipeline import nightly as pipeline
from khms.pipeline import propose
from khms.pipeline.night import Result
from khms.pipeline.packet import Packet
from khms.store import inbox
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.repo import Repo

Write = Callable[..., Path]


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


def test_an_unknown_proposer_is_refused_with_the_known_ones(base: Base) -> None:
    with pytest.raises(Refused, match="oracle") as error:
        run(base, {"nightly.proposer": "oracle"})
    assert "rules" in error.value.hint


def test_an_answer_that_does_not_count_leaves_its_mark_open(
    base: Base, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wild:
        name = "wild"

        def propose(self, packet: Packet) -> Verdict:
            return Verdict("attach", to="C99") if "first" in packet.mark.text else Verdict("not-carded", reason="no")

    monkeypatch.setitem(propose.PROPOSERS, "wild", lambda config: Wild())
    journal(base, write, "MARK[note] the first thing", "MARK[note] the second thing")
    found = run(base, {"nightly.proposer": "wild"})
    assert (found.open, found.verdicts) == (1, {"not-carded": 1})
    assert run(base).verdicts == {"new": 1}


def test_a_correction_names_its_card_and_a_broken_one_is_dropped(
    base: Base, write: Write, add_card: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from khms.model.candidate import Quote
    from khms.model.verdict import Proposal

    class Corrector:
        name = "corrector"

        def propose(self, packet: Packet) -> Verdict:
            target = "K-00001" if "first" in packet.mark.text else "K-00002"
            proposal = Proposal("It was the cable", "FIX: the cable\n", "Problem→Solution", ("Some Tag", "#some-tag"))
            quotes = (Quote("journal", packet.words),)
            return Verdict("correct", proposal, quotes, corrects=target, how="supersedes", because="measured again")

    add_card(base, "K-00001")
    add_card(base, "K-00002", status="superseded")
    monkeypatch.setitem(propose.PROPOSERS, "corrector", lambda config: Corrector())
    journal(base, write, "MARK[solved] the first thing was a cable", "MARK[solved] the second thing was a cable")
    found = run(base, {"nightly.proposer": "corrector"})
    assert found.verdicts == {"correct": 2}
    (made,) = unit(base, found).candidates
    assert made.relation.as_meta() == {"kind": "supersedes", "target": "K-00001", "because": "measured again"}
    assert (made.meta["type"], made.meta["tags"]) == ("problem-solution", ["some-tag"])
    assert unit(base, found).dropped == ("C2",)
    assert "it supersedes K-00002, which is superseded" in report(base, found)


def test_a_header_that_cannot_be_put_right_is_withheld_whole_and_a_loud_gate_says_so_first(
    base: Base, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from khms.model.candidate import Quote, Relation
    from khms.model.verdict import Proposal

    class Inventor:
        name = "inventor"

        def propose(self, packet: Packet) -> Verdict:
            proposal = Proposal("A title", "a body with 41 degrees\n", "hunch")
            return Verdict("new", proposal, (Quote("journal", "words that stand nowhere"),), Relation("unjudged"))

    monkeypatch.setitem(propose.PROPOSERS, "inventor", lambda config: Inventor())
    found = run(base, {"nightly.proposer": "inventor"})
    assert found.candidates == {"published": 0, "deferred": 0, "dropped": 1}
    text = report(base, found)
    first = text.split("## What to look at first\n\n")[1]
    assert first.startswith("- **The check `quotes` failed for 1 of 1 candidates: look at the check itself first.**")
    assert "C1 in `dropped/`: `there is no type 'hunch'`" in text
    assert "C1 ABSENT in `journal`: `words that stand nowhere`" in text


def test_other_kinds_of_cards_come_from_the_configuration(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    from khms.model.candidate import Quote
    from khms.model.verdict import Proposal

    class Measurer:
        name = "measurer"

        def propose(self, packet: Packet) -> Verdict:
            return Verdict("new", Proposal("Ground", "READ: loose\n", "measurement"), (Quote("journal", packet.words),))

    monkeypatch.setitem(propose.PROPOSERS, "measurer", lambda config: Measurer())
    types = {"measurement": {"level": "observation", "labels": ["READ", "UNIT"]}}
    found = run(base, {"nightly.proposer": "measurer", "cards.types": types})
    made = candidates(base, found)["C1"]
    assert (made.meta["type"], made.flags) == ("measurement", ("thin",))
