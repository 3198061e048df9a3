"""The verdict as a value and as a document: one and the same, and valid under the schema."""

import pytest

from khms.model.candidate import Quote, Relation
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome, merged
from khms.model.ulid import new_ulid, ulid_milliseconds
from khms.model.verdict import Proposal, Verdict, verdict_from
from khms.store import schema

QUOTES = (Quote("journal", "the vendor throttles every caller"),)
VERDICTS = [
    Verdict("new", Proposal("Cache it", "DECIDED: cache it.\n", "decision-rationale", ("cache",)), QUOTES, Relation()),
    Verdict("attach", quotes=QUOTES, to="C3", text="It throttles by address."),
    Verdict(
        "correct",
        Proposal("Cache it", "RULE: cache it.\n"),
        QUOTES,
        corrects="K-00001",
        how="supersedes",
        because="new",
    ),
    Verdict("already-carded", card="K-00001"),
    Verdict("not-carded", reason="small talk"),
]


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: str(verdict.kind))
def test_a_verdict_survives_its_document_and_is_valid(verdict: Verdict) -> None:
    document = verdict.as_json()
    assert schema.problems("verdict", document) == []
    assert verdict_from(document) == verdict


def test_the_gravest_state_of_a_check_counts_and_keeps_its_words() -> None:
    outcomes = [
        Outcome("quotes", "C1", PASS),
        Outcome("quotes", "C1", FAIL, "one is absent"),
        Outcome("quotes", "C1", NOT_RUN, "a page on the web"),
        Outcome("quotes", "C1", FAIL, "two is absent", waivable=False),
        Outcome("specifics", "C1", NOT_RUN, "no quote"),
    ]
    found = merged(outcomes)
    assert found["quotes"] == Outcome("quotes", "C1", FAIL, "one is absent; two is absent", waivable=False)
    assert found["specifics"].state == NOT_RUN


def test_a_ulid_tells_when_it_was_made() -> None:
    assert ulid_milliseconds(new_ulid(1_796_057_034_945)) == 1_796_057_034_945
