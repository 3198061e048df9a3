"""The score of a hit: from 0 to 1, more for more evidence, and the same question whichever channel answers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.index.lexical import BY_ID, BY_NAME, Found, Scored
from khms.index.meaning import Felt
from khms.model.document import Document
from khms.recall.relevance import by_both, by_words

DOCUMENT = Document("K-00001", "card", "memory/know/K-00001.md", 1, "a title")
FOUND = Found((), {}, 1.0, 10.0)
SHARE = st.floats(0, 1)


def titled(share: float) -> Found:
    """What was found, where titles cover so much of the question."""
    return replace(FOUND, in_title=lambda _: share)


def hit(coverage: float = 0.5, strength: float = 5.0, exact: int = 0) -> Scored:
    return Scored(DOCUMENT, coverage, strength, exact)


def felt(apart: float = 0.2, met: float = 0.5, out: float = 1.0) -> Felt:
    return Felt(0, 1.0, 1.0, out, apart, met, 0.4, 30)


@given(SHARE, st.floats(0, 100), st.sampled_from([0, BY_NAME]), SHARE, st.integers(0, 10**6))
def test_a_score_is_a_share_and_no_evidence_lowers_it(
    coverage: float, strength: float, exact: int, title: float, rows: int
) -> None:
    one, named = hit(coverage, strength, exact), hit(coverage, strength, BY_NAME)
    half, whole = titled(title / 2), titled(title)
    for found, more in ((half, named), (whole, one)):
        for less, greater in (
            (by_words(half, one), by_words(found, more)),
            (by_both(half, one, felt(), rows), by_both(found, more, felt(), rows)),
        ):
            assert 0 <= less <= greater <= 1


def test_what_the_question_names_is_sure_and_filters_are_met_or_not() -> None:
    assert by_words(FOUND, hit(1.0, exact=BY_ID)) == by_both(FOUND, hit(1.0, exact=BY_ID), felt(), 9) == 1.0
    assert by_words(Found((), {}), hit(1.0, 0.0)) == 1.0


def test_a_title_that_says_it_is_enough_and_a_body_that_holds_half_of_the_words_is_not() -> None:
    assert by_words(titled(0.5), hit(0.6, 6.0)) > 0.8
    assert by_words(FOUND, hit(0.5, 3.0)) < 0.1
    assert by_both(titled(0.5), hit(0.6, 6.0), felt(0.5, 0.8, 3.0), 60) > 0.8


@pytest.mark.parametrize("one", [felt(0.3, 0.4, 1.0), felt(0.1, 0.2, 0.0)])
def test_nearness_alone_proves_nothing_and_counts_less_among_many(one: Felt) -> None:
    few, many = by_both(FOUND, None, one, 20), by_both(FOUND, None, one, 100_000)
    assert many < few < 0.5
