"""A session's arm follows from its name: the same for ever, drawn evenly, anew with another salt."""

import hashlib
from typing import Any

import pytest

from khms.config import Config
from khms.model import experiment
from khms.model.digest import session_key
from khms.model.experiment import CONTROL, INJECTION, arm, heard, stamp

SESSIONS = [session_key(f"session {number}") for number in range(2000)]


def settings(**more: Any) -> Config:
    return Config([("test", {"experiment.name": "e1", **{f"experiment.{key}": value for key, value in more.items()}})])


def test_without_an_experiment_there_are_no_arms() -> None:
    assert arm(Config([]), SESSIONS[0]) == "" and stamp(Config([]), SESSIONS[0]) == {}
    assert arm(settings(), "") == "" == arm(settings(), session_key("")), "who is nobody is in no arm"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_share_is_kept(share: float) -> None:
    drawn = [arm(settings(control=share), session) for session in SESSIONS]
    # four standard deviations of 2000 draws at a half are 0.045
    assert abs(drawn.count(CONTROL) / len(SESSIONS) - share) < 0.045
    assert set(drawn) == {CONTROL, INJECTION}


def test_none_and_all_of_them() -> None:
    assert {arm(settings(control=0.0), session) for session in SESSIONS} == {INJECTION}
    assert {arm(settings(control=1.0), session) for session in SESSIONS} == {CONTROL}


def test_an_arm_is_for_ever_and_another_draw_is_another() -> None:
    """Beside a second computation: the first 52 bits of a hash over name, salt and session, as a share of all."""
    first = [arm(settings(control=0.3), session) for session in SESSIONS]
    for session, drawn in zip(SESSIONS, first, strict=True):
        bits = int(hashlib.sha256(f"e1\0\0{session}".encode()).hexdigest(), 16) >> (256 - 52)
        assert drawn == (CONTROL if bits / 2**52 < 0.3 else INJECTION)
    first = [arm(settings(), session) for session in SESSIONS]
    for other in (settings(salt="x"), settings(name="e2")):
        moved = sum(a != arm(other, session) for a, session in zip(first, SESSIONS, strict=True))
        assert 0.4 < moved / len(SESSIONS) < 0.6


def test_more_control_takes_none_out_of_it() -> None:
    few = {session for session in SESSIONS if arm(settings(control=0.2), session) == CONTROL}
    assert few < {session for session in SESSIONS if arm(settings(control=0.3), session) == CONTROL}


def test_what_a_control_session_hears() -> None:
    record: dict[str, object] = {"decision": "inject", "reason": "", "cards": ["K-00001"], "arm": CONTROL}
    assert heard(record, "words") == ""
    assert record == {"decision": "silent", "reason": experiment.WITHHELD, "withheld": ["K-00001"], "arm": CONTROL}
    for held in ({"decision": "inject", "arm": INJECTION}, {"decision": "inject"}):
        before = dict(held)
        assert heard(held, "words") == "words" and held == before
    warned: dict[str, object] = {"decision": "inject", "cards": ["K-00001"], "arm": CONTROL, "classes": ["delete"]}
    assert heard(warned, "words") == "words" and warned["decision"] == "inject"
    silent: dict[str, object] = {"decision": "silent", "reason": "empty", "arm": CONTROL}
    assert heard(silent, "") == "" and silent["reason"] == "empty"
