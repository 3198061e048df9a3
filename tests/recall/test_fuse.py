"""How the channels' evidence becomes one order."""

from dataclasses import replace

import pytest

from khms.index.lexical import BY_ID, Found, Scored
from khms.index.meaning import Feeling, Felt
from khms.model.document import Document
from khms.recall.fuse import FIGURES, certainty, fuse

of_each_model = pytest.mark.parametrize("kind", FIGURES)
FELT = Felt(slot=0, near=1.0, aside=1.0, out=1.0, apart=0.3, met=0.4, well=0.2, pieces=60)


def card(slot: int) -> Document:
    return Document(f"K-{slot}", "card", f"memory/know/K-{slot}.md", 1, f"card {slot}")


def word(slot: int, coverage: float, strength: float, exact: int = 0) -> Scored:
    return Scored(card(slot), coverage, strength, exact, slot)


def felt(slot: int, rank: int | None = None, **values: float) -> Felt:
    return replace(FELT, slot=slot, rank=rank, **values)


def order(words: list[Scored], nearness: list[Felt], kind: str, rows: int = 100) -> list[str]:
    documents = {one.slot: card(one.slot) for one in nearness}
    return [hit.document.id for hit in fuse(Found(tuple(words), {}), Feeling(tuple(nearness), rows, kind), documents)]


@of_each_model
def test_where_no_words_meet_nearness_decides(kind: str) -> None:
    by_chance = word(1, 0.2, 4.0)
    assert order([by_chance], [felt(2, 1, aside=4.0, out=4.0), felt(1, 40, aside=0.0, out=0.0)], kind) == ["K-2", "K-1"]


@of_each_model
def test_where_words_meet_they_decide(kind: str) -> None:
    meant = word(1, 0.9, 20.0)
    near = felt(2, 1, aside=4.0, out=4.0, near=3.0)
    assert order([meant], [near, felt(1, 40, aside=0.0, out=0.0, met=0.95, well=0.9)], kind) == ["K-1", "K-2"]


@of_each_model
def test_an_exact_match_is_first_whatever_is_near(kind: str) -> None:
    near = felt(2, 1, near=9.0, aside=9.0, out=9.0, apart=0.9, met=1.0, well=1.0)
    assert order([word(1, 0.1, 0.1, BY_ID)], [near, felt(1)], kind) == ["K-1", "K-2"]


def test_each_hit_says_which_channel_found_it() -> None:
    found = fuse(
        Found((word(1, 0.9, 5.0), word(2, 0.5, 3.0)), {}),
        Feeling((felt(3, 1), felt(2, 2), felt(1)), 10),
        {3: card(3)},
    )
    ranks = {hit.document.id: (hit.lexical_rank, hit.dense_rank) for hit in found}
    assert ranks == {"K-1": (1, None), "K-2": (2, 2), "K-3": (None, 1)}
    assert all(0 <= hit.score <= 1 and hit.strength >= 0 for hit in found)


@of_each_model
def test_a_document_without_a_vector_is_found_by_its_words(kind: str) -> None:
    assert order([word(1, 0.9, 10.0)], [felt(2, 1, aside=-1.0, out=-1.0)], kind) == ["K-1", "K-2"]


@of_each_model
def test_the_one_word_of_a_question_outweighs_nearness_before_its_vector_is_there(kind: str) -> None:
    """A short question reaches little of what a score is a share of; the document covers all of it."""
    near = [felt(slot, slot, near=2.5, aside=2.5, out=2.5, met=0.5) for slot in (2, 3, 4)]
    documents = {one.slot: card(one.slot) for one in near}
    hits = fuse(Found((word(1, 0.33, 2.0),), {}, reach=0.33), Feeling(tuple(near), 100, kind), documents)
    assert [hit.document.id for hit in hits][:1] == ["K-1"]


def test_a_model_that_knows_sentences_outweighs_more_words_that_meet_by_chance() -> None:
    """What each document's pieces meet of the question counts less than what the whole sentence says."""
    near, chance = felt(2, 1, aside=3.5, out=3.5, met=0.35), felt(1, 40, aside=1.0, out=1.0, met=0.6)
    assert order([word(1, 0.3, 5.0)], [near, chance], "words") == ["K-1", "K-2"]
    assert order([word(1, 0.3, 5.0)], [near, chance], "minilm") == ["K-2", "K-1"]


def test_one_that_is_gone_since_is_left_out() -> None:
    assert fuse(Found((), {}), Feeling((felt(3, 1),), 10), {}) == []


@of_each_model
@pytest.mark.parametrize("rows", [0, 1, 100, 1_000_000])
def test_certainty_is_a_score_that_rises_with_nearness_and_falls_with_chance(rows: int, kind: str) -> None:
    by = FIGURES[kind][1]
    values = [certainty(apart / 10, rows, by) for apart in range(-10, 11)]
    assert values == sorted(values) and 0 <= values[0] < 0.01 and 0.9 < values[-1] <= 1
    assert certainty(0.4, rows, by) >= certainty(0.4, rows * 10, by)
