"""A review as values: what each act makes of where a reviewer stands. No file, no terminal."""

import json
from typing import Any

import pytest

from khms.errors import Usage
from khms.model.candidate import Candidate, Quote, Relation
from khms.model.finding import Finding
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome
from khms.pipeline import reviewing
from khms.pipeline.reviewing import Act, Decision, Entry, Review, View

FOUND = [("C1", "one"), ("C2", "two"), ("C3", "three")]


def view(label: str = "C1", sha256: str = "one", **keys: Any) -> View:
    values: dict[str, Any] = {
        "candidate": Candidate(label, {}, ""),
        "sha256": sha256,
        "single": False,
        "places": (),
        "near": (),
        "relation": Relation("new"),
        "target": None,
        "outcomes": (),
        "faults": (),
    }
    return View(**{**values, **keys})


def start(**kept: Decision) -> Review:
    return reviewing.begin("memory/inbox/u", FOUND, kept)


def labels(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.label for entry in entries]


def test_a_decision_goes_on_to_the_next_open_candidate() -> None:
    review = start(C2=Decision("drop", "not so"))
    review = reviewing.step(review, Act("approve"), view())
    assert review.current == Entry("C3", "three")
    review = reviewing.step(review, Act("defer", why=" later "), view("C3", "three"))
    assert review.current is None
    assert labels(review.decided("approve")) == ["C1"] and review.entries[2].decision == Decision("defer", "later")


def test_a_review_goes_on_where_it_stopped() -> None:
    assert start(C1=Decision("approve")).current == Entry("C2", "two")
    assert start(**dict.fromkeys(("C1", "C2", "C3"), Decision("drop", "no"))).current is None


def test_skipping_opens_what_was_decided_and_goes_by_once() -> None:
    review = reviewing.step(start(), Act("drop", why="no"), view())
    review = reviewing.step(review, Act("back"), view("C2", "two"))
    assert review.current == Entry("C1", "one", Decision("drop", "no"))
    review = reviewing.step(review, Act("skip"), view())
    assert review.current == Entry("C2", "two") and labels(review.left) == ["C1", "C2", "C3"]
    for label, sha256 in FOUND[1:]:
        review = reviewing.step(review, Act("skip"), view(label, sha256))
    assert review.current is None


def test_keep_goes_by_what_is_decided_and_by_nothing_else() -> None:
    review = reviewing.step(start(), Act("approve"), view())
    review = reviewing.step(review, Act("back"), view("C2", "two"))
    assert reviewing.step(review, Act("keep"), view()).current == Entry("C2", "two")
    with pytest.raises(Usage, match="nothing is decided"):
        reviewing.step(start(), Act("keep"), view())
    with pytest.raises(Usage, match="first candidate"):
        reviewing.step(start(), Act("back"), view())


def test_what_has_a_fault_cannot_be_approved() -> None:
    fault = Finding("C1 quotes:", "error", "C1.md", 3, "it stands nowhere", "")
    with pytest.raises(Usage, match="it stands nowhere"):
        reviewing.step(start(), Act("approve"), view(faults=(fault,)))


def test_approving_what_nobody_judged_says_that_it_is_new() -> None:
    review = reviewing.step(start(), Act("approve"), view(relation=Relation()))
    assert review.entries[0].decision == Decision("approve", relation="new")
    review = reviewing.step(start(), Act("approve"), view(relation=Relation(), single=True))
    assert review.entries[0].decision == Decision("approve")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (Act("relate", "supersedes:K-00001"), "a correction needs its reason"),
        (Act("relate", "contradicts:K-00001", "  "), "a correction needs its reason"),
        (Act("relate", "supports:"), "supports what"),
        (Act("relate", "supports:K-1"), "is no card's id"),
        (Act("relate", "unjudged"), "'unjudged' is no relation"),
        (Act("relate", "refutes:K-00001", "so"), "'refutes' is no relation"),
        (Act("drop", why=" "), "a drop needs its reason"),
        (Act("waive", "quotes"), "a waiver needs its reason"),
        (Act("waive", "screening", "a dead key"), "screening cannot be waived"),
        (Act("waive", "specifics", "so"), "specifics did not fail"),
        (Act("accept", "quotes"), "quotes was run"),
        (Act("crown"), "no act 'crown'"),
    ],
)
def test_what_cannot_be_decided_like_that_decides_nothing(act: Act, words: str) -> None:
    outcomes = (
        Outcome("quotes", "C1", FAIL, "it stands nowhere"),
        Outcome("screening", "C1", FAIL, "an address", waivable=True),
        Outcome("screening", "C1", FAIL, "a key", waivable=False),
        Outcome("specifics", "C1", PASS),
        Outcome("relations", "C1", NOT_RUN, "nobody looked"),
    )
    with pytest.raises(Usage, match=words):
        reviewing.step(start(), act, view(outcomes=outcomes))


def test_each_reason_stands_at_its_own_place() -> None:
    failing = (Outcome("quotes", "C1", FAIL), Outcome("specifics", "C1", FAIL), Outcome("duplicates", "C1", NOT_RUN))
    review = start()
    for act in (
        Act("waive", "quotes", "first"),
        Act("waive", "specifics", "second"),
        Act("waive", "quotes", "third"),
        Act("accept", "duplicates"),
        Act("relate", "supersedes:K-00001", "measured"),
        Act("approve"),
    ):
        review = reviewing.step(review, act, view(outcomes=failing))
    review = reviewing.step(review, Act("relate", "contradicts:K-00002", "counted"), view("C2", "two"))
    review = reviewing.step(review, Act("approve"), view("C2", "two"))
    review = reviewing.step(review, Act("drop", why="no"), view("C3", "three"))
    wish = reviewing.wish(review, labels(review.decided("approve")))
    assert wish.labels == ("C1", "C2") and wish.why == ""
    assert wish.waived == {("quotes", "C1"): "third", ("specifics", "C1"): "second"}
    assert wish.relations == {"C1": "supersedes:K-00001", "C2": "contradicts:K-00002"}
    assert wish.because == {"C1": "measured", "C2": "counted"}
    assert wish.accepts("duplicates", "C1") and not wish.accepts("duplicates", "C2")
    assert wish.seen == {"C1": "one", "C2": "two"}
    assert [(w.verdict, w.why, w.labels) for w in reviewing.withheld(review)] == [("drop", "no", ("C3",))]


def test_a_changed_relation_opens_the_verdict_again() -> None:
    review = reviewing.step(start(), Act("approve"), view())
    review = reviewing.step(review, Act("back"), view("C2", "two"))
    review = reviewing.step(review, Act("relate", "supports:K-00001"), view())
    assert review.current == Entry("C1", "one", Decision(relation="supports:K-00001"))


def test_other_bytes_are_asked_again() -> None:
    review = reviewing.step(start(), Act("relate", "supports:K-00001", "so"), view())
    review = reviewing.step(review, Act("approve"), view())
    found = reviewing.renewed(review, [("C1", "other"), ("C3", "three"), ("C4", "four")])
    assert (found.gone, found.changed) == (("C2",), ("C1",))
    assert found.review.entries == (Entry("C1", "other"), Entry("C3", "three"), Entry("C4", "four"))
    own = reviewing.renewed(review, [("C1", "other"), *FOUND[1:]], own="C1").review.entries[0]
    assert own == Entry("C1", "other", Decision(relation="supports:K-00001", because="so"))
    with pytest.raises(Usage, match="changed in between"):
        reviewing.step(start(), Act("approve"), view(sha256="other"))


def test_the_reviewer_stays_at_their_candidate_when_others_go() -> None:
    review = start(C1=Decision("approve"), C2=Decision("approve"))
    assert review.at == 2
    found = reviewing.renewed(review, [("C2", "two"), ("C3", "three")]).review
    assert found.current == Entry("C3", "three")
    assert reviewing.renewed(found, []).review.current is None


def test_a_fault_brings_the_reviewer_back() -> None:
    review = start(**dict.fromkeys(("C1", "C2", "C3"), Decision("approve", relation="new")))
    back = reviewing.at(review, "C2")
    assert back.current == Entry("C2", "two", Decision(relation="new")) and labels(back.left) == ["C2"]


def test_a_decision_survives_its_json() -> None:
    held = Decision("approve", "", "supports:K-00001", "so", (("quotes", "I saw it"),), ("specifics",))
    assert reviewing.decision_from(json.loads(json.dumps(held.as_json()))) == held
    for damaged in ({"verdict": "crown"}, {"waived": []}, {"accepted": [1]}, {"why": None}, {"waived": {"a": 1}}):
        assert reviewing.decision_from(damaged) == Decision()


def test_flagged_is_who_says_so_and_whose_quote_stands_nowhere() -> None:
    plain = Candidate("C1", {}, "")
    assert not reviewing.flagged(plain, [Quote("journal", "words", grade="EXACT")])
    assert reviewing.flagged(plain, [Quote("journal", "words", grade="ABSENT")])
    assert reviewing.flagged(Candidate("C1", {"flags": ["thin"]}, ""), [])
