"""An experiment through the client that a host runs: a control session hears nothing, its log says what it missed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hooks import sessions
from khms.measure.usage import usage
from khms.model.experiment import CONTROL, INJECTION, arm
from khms.store.layout import Base

Hook = Callable[..., str | None]
Prompt = Callable[..., dict[str, Any]]
Logged = Callable[[Base | None], list[dict[str, Any]]]

SETTINGS = {"experiment.name": "e1", "experiment.control": 0.5, "experiment.salt": ""}
NAMES = [f"session {number}" for number in range(100)]


def member(of: str) -> str:
    return next(name for name in NAMES if arm(SETTINGS, sessions.key(name)) == of)


@pytest.fixture
def split(indexed: Base, write: Callable[..., Path]) -> Base:
    write(indexed, "khms.toml", '[hooks]\ndeadline_ms = 30000\n[experiment]\nname = "e1"\n')
    return indexed


def test_a_control_session_hears_nothing_and_its_log_says_what(
    hook: Hook, prompt: Prompt, logged: Logged, split: Base
) -> None:
    said = hook(prompt(session=member(INJECTION)), split)
    assert said is not None and "K-00001" in said
    assert hook(prompt(session=member(CONTROL)), split) is None
    told, held = logged(split)
    assert (told["experiment"], told["arm"], told["decision"], told["cards"]) == (
        "e1",
        INJECTION,
        "inject",
        ["K-00001"],
    )
    assert (held["experiment"], held["arm"], held["decision"], held["reason"]) == ("e1", CONTROL, "silent", "control")
    assert held["withheld"] == ["K-00001"] and "cards" not in held and held["hits"] == told["hits"]


def test_the_budget_goes_on_as_if_it_had_been_said(hook: Hook, prompt: Prompt, logged: Logged, split: Base) -> None:
    for _ in range(2):
        assert hook(prompt(session=member(CONTROL)), split) is None
    assert [line["reason"] for line in logged(split)] == ["control", "same-query"]
    assert [line["arm"] for line in logged(split)] == [CONTROL, CONTROL], "every line has its stamp"


def test_without_an_experiment_no_line_has_an_arm(hook: Hook, prompt: Prompt, logged: Logged, indexed: Base) -> None:
    assert hook(prompt(session=member(CONTROL)), indexed)
    (line,) = logged(indexed)
    assert not {"arm", "experiment", "withheld"} & line.keys()


def test_an_event_of_no_session_is_in_no_arm(hook: Hook, prompt: Prompt, logged: Logged, split: Base) -> None:
    assert hook(prompt(session=None), split)
    assert "arm" not in logged(split)[0]


def test_usage_compares_the_arms_of_what_was_logged(hook: Hook, prompt: Prompt, split: Base) -> None:
    for name in NAMES[:6]:
        hook(prompt(session=name), split)
    controls = sum(arm(SETTINGS, sessions.key(name)) == CONTROL for name in NAMES[:6])
    found = {a.arm: a for a in usage(split, left_alone=lambda _: False).arms}
    assert found[CONTROL].sessions == found[CONTROL].count.pointers == controls
    assert found[INJECTION].sessions == found[INJECTION].count.pointers == 6 - controls


def test_a_warning_before_a_risky_command_reaches_a_control_session(
    hook: Hook, prompt: Prompt, logged: Logged, split: Base, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    from khms.index import sync

    add_card(split, "K-00009", type="policy", tags=["deletion"], title="Nothing below data is deleted by hand")
    commit(split)
    sync.refresh(split)
    event = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "rm -rf data/old"},
        "session_id": member(CONTROL),
        "cwd": "/",
    }
    said = hook(event, split)
    assert said is not None and "K-00009" in said
    (line,) = logged(split)
    assert (line["arm"], line["decision"], line["cards"]) == (CONTROL, "inject", ["K-00009"])
