"""What a session is told stays within its budget, whatever it asks and however often."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.config import Config
from khms.hooks import budget
from khms.hooks.budget import Pointer, SessionState

CONFIG: Mapping[str, Any] = Config([])
NOW = 1_800_000_000.0
MINUTE, HOUR = 60.0, 3600.0
FRESH = SessionState()


def pointer(card: str = "K-00001", score: float = 0.9, **more: Any) -> Pointer:
    return Pointer(card, score, more.pop("line", f"{card} a title ({card}.md)"), **more)


def chosen(state: SessionState, *found: Pointer, room: int = 800, threshold: float = 0.4) -> tuple[list[str], str]:
    choice = budget.choose(state, CONFIG, threshold, found, room, NOW)
    return [p.id for p in choice.pointers], choice.reason


@pytest.mark.parametrize(
    ("query", "state", "reason"),
    [
        ("", FRESH, "empty"),
        (" \n ", FRESH, "empty"),
        ("ok", FRESH, "short"),
        ("why", FRESH, ""),
        ("why", SessionState(queries=(("d", NOW - 14 * MINUTE),)), "same-query"),
        ("why", SessionState(queries=(("d", NOW - 16 * MINUTE),)), ""),
        ("why", SessionState(queries=(("other", NOW),)), ""),
        ("why", SessionState(injections=(NOW - 1, NOW - 2, NOW - 3)), ""),
        ("why", SessionState(injections=(NOW - 1, NOW - 2, NOW - 3, NOW - 4)), "window"),
        ("why", SessionState(injections=(NOW - 1, NOW - 2, NOW - 3, NOW - 11 * MINUTE)), ""),
    ],
)
def test_what_is_decided_before_any_search(query: str, state: SessionState, reason: str) -> None:
    assert budget.gate(state, CONFIG, query, "d", NOW) == reason


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (FRESH, True),
        (SessionState(queries=(("d", NOW - 50),)), False),
        (SessionState(queries=(("d", NOW - 70),)), True),
        (SessionState(queries=(("e", NOW),)), True),
        (SessionState((NOW,) * 9, (("K-00001", NOW),)), True),
    ],
)
def test_a_warning_comes_each_time_but_for_a_retry_at_once(state: SessionState, said: bool) -> None:
    assert [p.id for p in budget.warn(state, CONFIG, [pointer()], "d", NOW).pointers] == ["K-00001"] * said


def test_what_nobody_heard_is_taken_back_and_nothing_else() -> None:
    held = SessionState((NOW - 1, NOW), (("K-1", NOW), ("K-2", NOW - 1)), (("d", NOW), ("e", NOW - 1)))
    assert budget.without(held, NOW) == SessionState((NOW - 1,), (("K-2", NOW - 1),), (("e", NOW - 1),))
    assert budget.without(held, NOW - 2) == held


def test_a_score_at_the_threshold_passes_and_one_below_does_not() -> None:
    assert chosen(FRESH, pointer(score=0.4)) == (["K-00001"], "")
    assert chosen(FRESH, pointer(score=0.39)) == ([], "threshold")
    assert chosen(FRESH) == ([], "nothing-found")


def test_a_second_card_needs_its_own_minimum_and_there_is_no_third() -> None:
    assert chosen(FRESH, pointer("K-1", 0.9), pointer("K-2", 0.45))[0] == ["K-1"]
    assert chosen(FRESH, pointer("K-1", 0.6), pointer("K-2", 0.9), pointer("K-3", 0.7))[0] == ["K-2", "K-3"]


def test_of_two_equal_hits_the_newer_card_comes_first() -> None:
    assert chosen(FRESH, pointer("K-99999"), pointer("K-100000"), pointer("K-00002"))[0] == ["K-100000", "K-99999"]


def test_a_card_is_told_once_in_twelve_hours() -> None:
    told = SessionState(cards=(("K-00001", NOW - 11 * HOUR),))
    assert chosen(told, pointer()) == ([], "card-told")
    assert chosen(told, pointer(), pointer("K-00002", 0.5))[0] == ["K-00002"]
    assert chosen(SessionState(cards=(("K-00001", NOW - 13 * HOUR),)), pointer())[0] == ["K-00001"]


def test_a_full_window_lets_one_strong_hit_through() -> None:
    full = SessionState(injections=(NOW - 1, NOW - 2, NOW - 3))
    assert chosen(full, pointer(score=0.89)) == ([], "window")
    assert chosen(full, pointer(score=0.9))[0] == ["K-00001"]
    fuller = budget.after(full, CONFIG, ["K-00001"], "d", NOW)
    assert chosen(fuller, pointer("K-00002", 1.0)) == ([], "window")


def test_what_does_not_fit_is_left_out_but_never_a_corrector() -> None:
    long = pointer("K-1", 0.9, line="x" * 700, correctors=("newest " * 15, "older " * 15, "oldest " * 15))
    assert chosen(FRESH, long, pointer("K-2", 0.8, line="y" * 200))[0] == ["K-1"]
    assert chosen(FRESH, long, pointer("K-2", 0.8, line="y" * 90))[0] == ["K-1", "K-2"]
    assert chosen(FRESH, long, room=500) == ([], "no-room")
    kept = budget.choose(FRESH, CONFIG, 0.4, [long], 800, NOW).pointers[0]
    assert kept.correctors == long.correctors[:2]


def test_a_clock_that_was_set_back_keeps_what_was_told() -> None:
    ahead = SessionState((NOW + 60,) * 4, (("K-00001", NOW + HOUR),), (("d", NOW + 60),))
    assert budget.gate(ahead, CONFIG, "why", "d", NOW) == "same-query"
    assert budget.gate(ahead, CONFIG, "why", "e", NOW) == "window"
    assert chosen(SessionState(cards=ahead.cards), pointer()) == ([], "card-told")


STEPS = st.lists(
    st.tuples(
        st.floats(0, 40 * MINUTE),  # how long after the one before
        st.sampled_from("abcdef"),  # the question
        st.lists(
            st.tuples(st.integers(1, 9), st.floats(0, 1), st.integers(10, 600), st.integers(0, 4)), max_size=8
        ),  # (card, score, length of its line, correctors)
    ),
    max_size=60,
)


@given(STEPS, st.integers(100, 900))
def test_no_session_gets_more_than_its_budget(
    steps: list[tuple[float, str, list[tuple[int, float, int, int]]]], room: int
) -> None:
    state, now = FRESH, NOW
    injections: list[float] = []
    cards: dict[str, float] = {}
    queries: dict[str, float] = {}
    for pause, query, hits in steps:
        now += pause
        if budget.gate(state, CONFIG, "a question", query, now):
            continue
        found = [
            Pointer(f"K-{n:05}", score, "x" * length, tuple(f"c{i}" for i in range(correctors)))
            for n, score, length, correctors in hits
        ]
        choice = budget.choose(state, CONFIG, 0.4, found, room, now)
        assert bool(choice.pointers) is not bool(choice.reason)
        if not choice.pointers:
            continue
        state = budget.after(state, CONFIG, [p.id for p in choice.pointers], query, now)
        scores = [p.score for p in choice.pointers]
        assert len(scores) <= 2 and scores == sorted(scores, reverse=True) and scores[0] >= 0.4
        assert all(score >= CONFIG["hooks.second_min"] for score in scores[1:])
        assert sum(len(p.line) + 1 for p in choice.pointers) <= room
        for p in choice.pointers:
            same = [f for f in found if (f.id, f.score, f.line) == (p.id, p.score, p.line)]
            assert p.correctors in [f.correctors[:2] for f in same]
            assert now - cards.get(p.id, float("-inf")) >= 12 * HOUR
            cards[p.id] = now
        assert now - queries.get(query, float("-inf")) >= 15 * MINUTE
        queries[query] = now
        recent = [at for at in injections if now - at < 10 * MINUTE]
        assert len(recent) < 3 or (len(recent) == 3 and scores[0] >= CONFIG["hooks.strong"])
        injections.append(now)
        assert len(state.injections) <= 5 and len(state.queries) <= 6
