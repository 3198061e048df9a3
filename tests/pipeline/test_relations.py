"""Exactly one relation, whose target is there."""

from collections.abc import Mapping
from typing import Any

import pytest

from khms.model.candidate import Candidate, Relation
from khms.model.card import Card
from khms.model.outcome import FAIL, NOT_RUN, PASS
from khms.pipeline import relations

CARDS: Mapping[str, Card] = {
    "K-00001": Card("K-00001", "fact", path="memory/know/K-00001.md"),
    "K-00002": Card("K-00002", "fact", status="challenged", path="memory/know/K-00002.md"),
    "K-00003": Card("K-00003", "fact", status="superseded", path="memory/archive/know/K-00003.md"),
    "K-00004": Card("K-00004", "fact", status="refuted", path="memory/know/K-00004.md"),
}
NEAR = ["K-00001", "K-00002"]


def state(relation: Relation, cards: Mapping[str, Card] = CARDS, near: list[str] = NEAR, **more: Any) -> str:
    made = Candidate("C1", {"nearest": near, "relation": relation.as_meta()}, "body")
    return relations.check(made, relation, cards, **more).state


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (Relation("supersedes", "K-00001", because="it was measured again"), PASS),
        (Relation("supersedes", "K-00002", because="it was measured again"), PASS),
        (Relation("supersedes", "K-00001"), FAIL),
        (Relation("supersedes", "K-00003", because="it was measured again"), FAIL),
        (Relation("supersedes", "K-00004", because="it was measured again"), FAIL),
        (Relation("supersedes", "K-00099", because="it was measured again"), FAIL),
        (Relation("supports", "K-00001"), PASS),
        (Relation("supports", ""), FAIL),
        (Relation("supports", "K-00099"), FAIL),
        (Relation("contradicts", "K-00001"), PASS),
        (Relation("contradicts", "K-00099"), FAIL),
        (Relation("new", nearest="K-00001", because="another device"), PASS),
        (Relation("new", nearest="K-00001"), FAIL),
        (Relation("new", nearest="K-00004", because="another device"), FAIL),
        (Relation("new"), FAIL),
        (Relation("new", "K-00001", "K-00001", "another device"), FAIL),
        (Relation("unjudged"), NOT_RUN),
        (Relation("refines", "K-00001"), FAIL),
    ],
)
def test_relations(relation: Relation, expected: str) -> None:
    assert state(relation) == expected


def test_in_a_base_without_cards_new_names_no_nearest() -> None:
    assert state(Relation("new"), {}, []) == PASS


def test_a_reviewer_who_says_new_needs_to_give_no_reason() -> None:
    assert state(Relation("new"), settled=True) == PASS
    assert state(Relation("supports", "K-00099"), settled=True) == FAIL


def test_a_candidate_of_the_same_unit_may_be_supported_and_never_itself() -> None:
    assert state(Relation("supports", "C2"), labels={"C1", "C2"}) == PASS
    assert state(Relation("supports", "C1"), labels={"C1", "C2"}) == FAIL
    assert state(Relation("supersedes", "C2", because="x"), labels={"C1", "C2"}) == FAIL


def test_two_relations_are_a_failure() -> None:
    both = [{"kind": "supports", "target": "K-00001"}, {"kind": "contradicts", "target": "K-00002"}]
    made = Candidate("C1", {"relation": both}, "body")
    outcome = relations.check(made, made.relation, CARDS)
    assert (outcome.state, outcome.message) == (FAIL, "2 relations; there must be exactly one")
