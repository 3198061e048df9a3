"""Carry: a decision that was made stays made, and a broken file says so."""

import json

import pytest

from khms.model.candidate import Quote, Relation
from khms.model.verdict import Proposal, Verdict
from khms.pipeline import carry
from khms.pipeline.carry import Decision
from khms.pipeline.sources import Window
from khms.store.layout import Base

QUOTES = (Quote("journal", "the vendor throttles"),)
VERDICT = Verdict("new", Proposal("Cache it", "DECIDED: cache it\n", "fact"), QUOTES, Relation("unjudged"))
ONE = Decision("M-0123456789ab", VERDICT, "C1", "rules", ("K-00001",), ("K-00001", "C1"), over=True)
TWO = Decision("M-ba9876543210", Verdict("not-carded", reason="no"), held_back=("secret openai-key: [redacted]",))


def test_a_kept_decision_is_read_back_as_it_was(base: Base) -> None:
    assert carry.unfinished(base) is None
    run = carry.begin(base, Window(since="2026-03-04"), "rules")
    for decision in (ONE, TWO):
        carry.keep(base, run, decision)
    found = carry.unfinished(base)
    assert found is not None
    assert (found.run.id, found.run.started, found.run.resumed) == (run.id, run.started, True)
    assert found.decisions == {ONE.mark: ONE, TWO.mark: TWO}
    assert found.broken == ()
    about = json.loads((base.carry / run.id / "run.json").read_text(encoding="utf-8"))
    assert about["since"] == "2026-03-04"
    carry.finish(base, run)
    assert carry.unfinished(base) is None
    assert list(base.carry.iterdir()) == []


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"schema": "khms.carry/9"}',
        json.dumps(ONE.as_json() | {"verdict": {"verdict": "maybe"}}).encode(),
        json.dumps(ONE.as_json() | {"mark": "M-ffffffffffff"}).encode(),
    ],
)
def test_a_broken_file_is_named_and_hides_no_other(base: Base, broken: bytes) -> None:
    run = carry.begin(base, Window(), "rules")
    carry.keep(base, run, ONE)
    carry.keep(base, run, TWO)
    path = base.carry / run.id / f"{ONE.mark}.json"
    path.write_bytes(broken)
    found = carry.unfinished(base)
    assert found is not None
    assert found.decisions == {TWO.mark: TWO}
    assert [(f.path, "decided anew" in f.message) for f in found.broken] == [(base.relative(path), True)]


@pytest.mark.parametrize("broken", [b"", b"{}", b'{"started": "soon"}', None])
def test_a_run_whose_description_is_broken_began_when_its_id_was_made(base: Base, broken: bytes | None) -> None:
    run = carry.begin(base, Window(), "rules")
    carry.keep(base, run, ONE)
    path = base.carry / run.id / "run.json"
    path.unlink()
    if broken is not None:
        path.write_bytes(broken)
    found = carry.unfinished(base)
    assert found is not None
    assert found.run.id == run.id
    assert found.run.started[:16] in (run.started[:16], found.run.started[:16])
    assert found.decisions == {ONE.mark: ONE}
    assert len(found.broken) == (broken is not None)


def test_the_oldest_run_comes_first_and_what_is_no_run_is_left_alone(base: Base) -> None:
    first = carry.begin(base, Window(), "rules")
    second = carry.begin(base, Window(), "rules")
    (base.carry / "notes").mkdir()
    found = carry.unfinished(base)
    assert found is not None
    assert found.run.id == min(first.id, second.id)
