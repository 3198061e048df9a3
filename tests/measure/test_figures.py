"""The figures of an evaluation, against examples worked by hand."""

from itertools import permutations
from math import log2

import pytest

from khms.measure.figures import METRICS, figures, ndcg, rank, recall_at, reciprocal

FOUND = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]


def test_one_answer_at_the_third_place() -> None:
    held = figures([(FOUND, ["c"])])
    # 1/3; log2(3 + 1) is 2, so its gain is a half of what the first place would have brought
    assert held == {
        "recall@1": 0,
        "recall@5": 1,
        "recall@10": 1,
        "mrr@10": pytest.approx(1 / 3, abs=1e-6),
        "ndcg@10": 0.5,
    }


def test_two_answers_of_which_one_is_beyond_the_cut() -> None:
    held = figures([(FOUND, ["b", "k"])])
    assert held["recall@1"] == 0 and held["recall@5"] == held["recall@10"] == 0.5
    assert held["mrr@10"] == 0.5
    # gain 1/log2(3) = 0.630930; the best would be 1 + 0.630930
    assert held["ndcg@10"] == pytest.approx(0.386853, abs=1e-6)


def test_three_answers_worked_by_hand() -> None:
    # places 1, 4 and 6: 1 + 1/2.321928 + 1/2.807355 = 1.786883; at best 1 + 0.630930 + 0.5 = 2.130930
    assert ndcg(FOUND, ["a", "d", "f"]) == pytest.approx(1.786883 / 2.130930, abs=1e-6)
    assert recall_at(FOUND, ["a", "d", "f"], 5) == pytest.approx(2 / 3)
    assert (rank(FOUND, ["d", "f"]), reciprocal(FOUND, ["d", "f"])) == (4, 0.25)


def test_the_mean_is_over_questions_that_have_an_answer() -> None:
    held = figures([(["a"], ["a"]), (["b"], ["a"]), ([], ["z"]), (["a"], [])])
    assert held == dict.fromkeys(METRICS, pytest.approx(1 / 3, abs=1e-6))
    assert figures([(["a"], [])]) == dict.fromkeys(METRICS, 0.0) == figures([])


def test_nothing_found_and_nothing_beyond_ten() -> None:
    assert (rank([], ["a"]), reciprocal([], ["a"]), ndcg([], ["a"]), recall_at([], ["a"], 5)) == (None, 0, 0, 0)
    assert (rank(FOUND, ["k"]), reciprocal(FOUND, ["k"]), ndcg(FOUND, ["k"])) == (11, 0, 0)


def test_more_answers_than_places() -> None:
    gold = [f"x{n}" for n in range(20)]
    assert ndcg(gold[:10], gold) == 1 and recall_at(gold, gold, 10) == 0.5


def test_ndcg_is_what_its_definition_counts_over_all_orders() -> None:
    """Beside a second, plain computation: each gain over its discount, and the best order found by trying all."""
    names, gold = ["a", "b", "c", "d"], ["b", "d"]

    def plain(order: tuple[str, ...]) -> float:
        return sum((order[i] in gold) / log2(i + 2) for i in range(len(order)))

    best = max(plain(order) for order in permutations(names))
    for order in permutations(names):
        assert ndcg(order, gold) == pytest.approx(plain(order) / best)
