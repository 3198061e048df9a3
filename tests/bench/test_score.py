"""The scorer: it knows ids and nothing else."""

import pytest

from bench import score
from bench.score import Asked


def asked(gold: str, found: str, kind: str = "") -> Asked:
    return Asked(kind, frozenset(gold), tuple(found))


def test_recall_is_the_share_of_the_relevant_among_the_first() -> None:
    one = asked("ab", "xaxxxb")
    assert one.recall(1) == 0
    assert one.recall(2) == 0.5
    assert one.recall(3) == 1  # x counts once, so b is the third


def test_a_document_found_by_several_of_its_pieces_takes_one_place() -> None:
    assert asked("b", "aaaaab").recall(2) == 1
    assert asked("b", "aaaaab").reciprocal == 0.5


def test_the_reciprocal_rank_is_that_of_the_first_relevant_one_within_ten() -> None:
    assert asked("ab", "xba").reciprocal == 0.5
    assert asked("z", "abcdefghijz").reciprocal == 0
    assert asked("j", "abcdefghij").reciprocal == 0.1
    assert asked("a", "").reciprocal == 0


def test_figures_are_means_in_percent() -> None:
    both = [asked("a", "a"), asked("a", "xa"), asked("a", "")]
    assert score.reciprocal(both) == pytest.approx(50)
    assert score.recall(both, 1) == pytest.approx(100 / 3)
    assert score.answered(both) == pytest.approx(200 / 3)
    assert score.recall([], 5) == 0


def test_questions_are_scored_by_their_kind() -> None:
    both = [asked("a", "a", "1"), asked("a", "x", "5")]
    assert score.recall(score.of_kinds(both, ("1", "2")), 5) == 100
    assert score.recall(score.of_kinds(both, ("5",)), 5) == 0
