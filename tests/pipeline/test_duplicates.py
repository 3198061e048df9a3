"""When two texts say the same, and what is near a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.index.text import terms
from khms.model.candidate import Candidate, Relation
from khms.model.card import Card
from khms.model.claim import claim, normalised
from khms.model.outcome import FAIL, PASS
from khms.pipeline import duplicates
from khms.pipeline.duplicates import Bodies
from khms.pipeline.nearest import Document, Nearby

TWENTY = (
    "the summary job reads each rotated file once more after waiting longer "
    "than its writer needs to flush buffered rows"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("DECIDED: cache it for an hour", "cache it for an hour"),
        ("FIX: reopen\nVERIFIED: by hand", "reopen VERIFIED: by hand"),
        ("**Cache** it for an `hour`.", "cache it for an hour"),
        ("- cache it\n  for an hour", "Cache it for an hour"),
        ("> # Cache it for an hour", "cache it for an hour"),
        ("ﬁle the report", "File the report"),
        ("see [[K-00001]]", "see K-00001"),
    ],
)
def test_labels_markdown_case_and_blanks_make_no_difference(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (TWENTY, True),
        (TWENTY.replace("longer", "more"), True),
        (TWENTY + " today", True),
        (TWENTY.replace("buffered rows", "old tables now"), False),
        (TWENTY.replace("needs", "never needs"), False),
        (TWENTY + " 3", False),
        ("a wholly different matter", False),
    ],
)
def test_nearly_the_same_words_are_the_same_but_for_numbers_and_negations(changed: str, same: bool) -> None:
    assert bool(Bodies([("K-00001", TWENTY)]).same(changed, 0.9)) is same


def test_a_changed_number_or_name_is_another_claim() -> None:
    held = Bodies([("K-00001", f"{TWENTY} with poll_interval 10")])
    assert held.same(f"{TWENTY} with poll_interval 10", 0.9)
    assert not held.same(f"{TWENTY} with poll_interval 60", 0.9)
    assert not held.same(f"{TWENTY} with poll_period 10", 0.9)


def test_equal_ones_come_first() -> None:
    held = Bodies([("K-00001", TWENTY + " today"), ("K-00002", TWENTY), ("K-00003", "other words")])
    found = held.same(f"DECIDED: {TWENTY}.", 0.9)
    assert [(same.id, same.equal) for same in found] == [("K-00002", True), ("K-00001", False)]
    assert held.same("", 0.9) == []
    assert Bodies().same(TWENTY, 0.9) == []


WORDS = st.lists(st.sampled_from([a + b for a in "abcd" for b in "xyz"]), max_size=14).map(" ".join)


@given(st.lists(WORDS, max_size=12), WORDS, st.sampled_from([0.5, 0.7, 0.9]))
def test_the_index_finds_what_comparing_all_with_all_finds(bodies: list[str], asked: str, least: float) -> None:
    named = [(f"K-{at:05d}", body) for at, body in enumerate(bodies)]
    found = {same.id for same in Bodies(named).same(asked, least)}
    mine = set(terms(normalised(asked)).words)
    expected = set()
    for name, body in named:
        other = set(terms(normalised(body)).words)
        if mine and other and len(mine & other) / len(mine | other) >= least:
            expected.add(name)
    assert found == expected


CARDS = {
    "K-00001": Card("K-00001", "fact", body=f"{TWENTY}\n"),
    "K-00002": Card(
        "K-00002", "fact", status="superseded", body="cards are small\n", path="memory/archive/know/K-00002.md"
    ),
}
HELD = Bodies((card.id, claim(card.body)) for card in CARDS.values())


@pytest.mark.parametrize(
    ("body", "relation", "state"),
    [
        (f"FIX: {TWENTY}", Relation(), FAIL),
        (f"FIX: {TWENTY}", Relation("supersedes", "K-00001", because="wording"), PASS),
        (f"FIX: {TWENTY} today", Relation(), PASS),
        ("cards are small", Relation(), PASS),
        ("nothing of the kind", Relation(), PASS),
    ],
)
def test_saying_what_a_card_in_force_says_fails(body: str, relation: Relation, state: str) -> None:
    outcome = duplicates.check(Candidate("C1", {}, body), relation, CARDS, HELD, 0.9)
    assert outcome.state == state
    if state == PASS and relation.kind == "unjudged" and "nothing" not in body:
        assert "says nearly the same" in outcome.message


def test_a_cards_own_quotes_are_no_part_of_its_claim() -> None:
    body = "SUPERSEDES K-00008 BECAUSE: it failed\nRULE: poll slowly\n\n**QUOTES:**\n- src=K-00005 :: 214 of 600\n"
    assert normalised(claim(body)) == "it failed poll slowly"


def test_the_nearest_share_the_rarest_words() -> None:
    held = Nearby(
        [
            Document("K-00001", "Log rotation", "the writer keeps its handle open over a rotation"),
            Document("K-00002", "Battery", "the summary states the battery percentage"),
            Document("K-00003", "Rotation of crops", "wheat follows clover"),
        ]
    )
    found = held.nearest("log rotation lost the writer's rows", 2)
    assert [near.document.id for near in found] == ["K-00001", "K-00003"]
    assert 0 < found[1].score < found[0].score <= 1
    assert held.nearest("zebra", 5) == []
    assert held.nearest("", 5) == []
    assert Nearby().nearest("anything", 5) == []


def test_a_word_that_everything_shares_is_followed_only_where_there_is_no_other() -> None:
    held = Nearby(Document(f"K-{at:05d}", "station", "weather") for at in range(700))
    held.add(Document("K-00999", "station", "quibblewick"))
    assert held.nearest("station quibblewick", 1)[0].document.id == "K-00999"
    assert len(held.nearest("station", 5)) == 5
