"""Thresholds from evidence: the curve worked by hand, the proposal, and what keeps one from being made."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from khms.config import load as config_of
from khms.measure import calibrate as measure
from khms.measure.calibrate import FLOOR, GRID, Found, Setting, Ways, calibrate, changed
from khms.measure.golden import Golden
from khms.store.layout import Base

Add = Callable[..., Path]


def first(found: Found, threshold: float) -> Sequence[str]:
    return [name for name, score in sorted(found, key=lambda pair: -pair[1]) if score >= threshold][:1]


def tried(*rows: tuple[str, str, float]) -> list[measure._Tried]:
    """Lines given as (gold or nothing, id that was found, its score)."""
    return [measure._Tried((gold,) if gold else (), ((name, score),)) for gold, name, score in rows]


def setting(rows: list[measure._Tried], silences: Sequence[float] = (), current: float = 0.5) -> Setting:
    return measure._threshold("hooks.prompt_threshold", current, rows, silences, first)


def test_a_curve_worked_by_hand() -> None:
    rows = tried(("a", "a", 0.9), ("b", "b", 0.6), ("c", "x", 0.7), ("", "y", 0.4), ("", "z", 0.65))
    found = {point.threshold: point for point in setting(rows, [0.2, 0.62, 0.0]).curve}
    assert list(found) == list(GRID) and len(GRID) == 21
    low, middle, high = found[0.05], found[0.6], found[0.8]
    assert (low.precision, low.recall, low.unrelated, low.silences) == (0.4, 0.6667, 1.0, 0.6667)
    # at 0.6: a, b, x and z are said, two of the four are right
    assert (middle.precision, middle.recall, middle.unrelated, middle.silences) == (0.5, 0.6667, 0.5, 0.3333)
    # F0.5 of 0.5 and 2/3: 1.25 * (1/3) / (0.125 + 2/3)
    assert middle.value == pytest.approx(0.5263, abs=1e-4)
    assert (high.precision, high.recall, high.unrelated, high.silences) == (1.0, 0.3333, 0.0, 0.0)
    assert (found[1.0].precision, found[1.0].value) == (None, 0.0)


def test_pointers_are_counted_beside_the_times() -> None:
    rows = [measure._Tried(("a",), (("a", 0.9), ("x", 0.8)))]
    point = measure._threshold("n", 0.5, rows, (), lambda found, t: [n for n, s in found if s >= t]).current
    assert (point.precision, point.pointers) == (1.0, 0.5)


def test_the_middle_of_the_plateau_is_proposed() -> None:
    rows = tried(*[("a", "a", 0.8)] * 30, *[("", "x", 0.3)] * 30)
    found = setting(rows)
    assert found.proposed and found.proposed.threshold == 0.6, "all is right from 0.35 to 0.8"
    assert found.current.value == 1.0 and not found.better
    low = setting(rows, current=0.2)
    assert low.better and low.current.precision == 0.5 and (low.related, low.unrelated) == (30, 30)


def test_too_little_evidence_proposes_nothing() -> None:
    for rows, silences in (
        (tried(*[("a", "a", 0.8)] * 19, *[("", "x", 0.3)] * 40), ()),
        (tried(*[("a", "a", 0.8)] * 40, *[("", "x", 0.3)] * 19), ()),
        (tried(*[("a", "a", 0.8)] * 40), [0.1] * 19),
        ([], [0.1] * 500),
    ):
        found = setting(rows, silences, current=0.0)
        assert found.proposed is None and not found.better and "too little" in found.why


def test_logged_silences_stand_in_for_the_unrelated() -> None:
    rows = tried(*[("a", "a", 0.8)] * 30)
    found = setting(rows, [0.3] * 30, current=0.1)
    assert found.better and found.proposed and found.proposed.threshold == 0.6 and "silences stand" in found.why
    assert found.current.precision == 0.5 and found.current.unrelated is None
    marked = setting([*rows, *tried(*[("", "x", 0.0)] * 30)], [0.3] * 30, current=0.1)
    assert marked.current.precision == 1.0 and not marked.better, "not where a person marked some"


def test_what_is_better_is_written_and_nothing_else() -> None:
    rows = tried(*[("a", "a", 0.8)] * 30, *[("", "x", 0.3)] * 30)
    text = "# mine\n[hooks]\nprompt_threshold = 0.2  # a guess\n"
    new, done = changed(text, [setting(rows, current=0.2), setting([], current=0.1)], "khms.toml")
    assert new == text.replace("= 0.2", "= 0.6") and done == {"hooks.prompt_threshold": 0.6}
    assert changed(text, [setting(rows)], "khms.toml") == (text, {})


@pytest.fixture
def stocked(base: Base, add_card: Add, write: Callable[..., Path], commit: Callable[..., str]) -> Base:
    words = ("pump", "valve", "gauge", "relay", "boiler", "sensor")
    for number, word in enumerate(words, 1):
        add_card(
            base,
            f"K-{number:05d}",
            title=f"The {word} of line {number} stalls at night",
            body=f"FIX: warm the {word}\n",
        )
    write(
        base,
        ".khms/log/inject.jsonl",
        '{"at":"2026-03-04T12:00:00Z","moment":"prompt","decision":"silent","reason":"threshold","hits":[["K-00001",0.4]]}\n'
        '{"at":"2026-03-04T12:00:00Z","moment":"pre-shell","decision":"silent","reason":"nothing-found"}\n'
        '{"at":"2026-03-04T12:00:00Z","moment":"prompt","decision":"silent","reason":"window","hits":[["K-00001",0.9]]}\n',
    )
    commit(base)
    return base


def ways(asked: list[tuple[str, str]]) -> Ways:
    def questions(moment: str, text: str) -> Sequence[str]:
        asked.append((moment, text))
        return [text]

    return Ways(questions, first, True)


def test_a_base_is_asked_as_hooks_ask(stocked: Base) -> None:
    asked: list[tuple[str, str]] = []
    lines = [
        Golden("1", 1, "why does the relay stall at night", ("K-00004",)),
        Golden("2", 2, "restart boiler", ("K-00005",), kind="shell"),
        Golden("3", 3, "recipe for sourdough bread with rye", ()),
        Golden("4", 4, "cold gauge", ("K-00003",), kind="identifier"),
    ]
    found = {s.name: s for s in calibrate(stocked, config_of(stocked.root), lines, ways(asked))}
    assert [moment for moment, _ in asked] == ["prompt", "shell", "prompt", "prompt"]
    assert set(found) == {"hooks.prompt_threshold", "hooks.shell_threshold", FLOOR}
    prompt, shell, floor = (found[name] for name in ("hooks.prompt_threshold", "hooks.shell_threshold", FLOOR))
    assert (prompt.related, prompt.unrelated, prompt.silences) == (2, 1, 1)
    assert (shell.related, shell.unrelated, shell.silences) == (1, 0, 1)
    assert prompt.curve[0].recall == 1.0 and shell.curve[0].recall == 1.0
    assert prompt.curve[8].silences == 1.0 and prompt.curve[9].silences == 0.0
    assert (floor.related, floor.unrelated) == (2, 1)
    assert floor.curve[0].recall == 1.0 and floor.curve[0].unrelated == 1.0 and floor.curve[-1].unrelated == 0.0


def test_a_floor_s_curve_is_what_recall_answers_at_each_floor(stocked: Base) -> None:
    from khms.recall.search import recall

    config = config_of(stocked.root)
    lines = [
        Golden(text, 1, text, ("K-00001",)) for text in ("warm pump", "a cold machine after dark", "bread", "K-00001")
    ]
    found = calibrate(stocked, config, lines, ways([]))[-1]
    assert found.name == FLOOR
    for point in found.curve:
        held = {**config, FLOOR: point.threshold}
        right = sum("K-00001" in [hit.id for hit in recall(stocked, one.query, config=held)] for one in lines)
        assert point.recall == right / len(lines), point.threshold
