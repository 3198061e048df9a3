"""What a session was told is remembered under a name that no host can choose, and never by halves."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Busy, Unavailable
from khms.hooks import sessions
from khms.hooks.budget import SessionState
from khms.hooks.sessions import Session
from khms.store import lock
from khms.store.layout import Base

TOLD = SessionState((1.5, 2.5), (("K-00001", 1.5),), (("abc", 2.5),))
HOSTILE = ["../../x", "/etc/passwd", "..", "", "a\0b", "x" * 100_000, "\ud800", "a\nb", "日本", "CON", "~root"]


def test_a_state_is_kept_and_read_again(base: Base) -> None:
    session = Session(base, "s1")
    assert session.load() == SessionState()
    session.remember(lambda held: TOLD if held == SessionState() else None)
    assert session.load() == TOLD
    assert Session(base, "s2").load() == SessionState()
    session.remember(lambda held: None)
    assert session.load() == TOLD


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_id_is_never_a_path(base: Base, name: str) -> None:
    session = Session(base, name)
    session.remember(lambda held: TOLD)
    assert session.load() == TOLD
    assert [path.name for path in (base.state / "sessions").iterdir()] == [sessions.key(name) + ".json"]
    assert len(sessions.key(name)) == 32 and set(sessions.key(name)) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b'{"injections": 5}',
        b'{"injections": ["x"], "cards": {}, "queries": {}}',
        b'{"injections": [], "cards": [], "queries": {}}',
        b'{"injections": [], "cards": {"a": null}, "queries": {}}',
        b'{"injections": [' + b"9" * 5000 + b'], "cards": {}, "queries": {}}',
        b"[" * 100_000,
    ],
)
def test_a_file_that_holds_nonsense_is_a_new_session(base: Base, write: Callable[..., Path], content: bytes) -> None:
    write(base, f".khms/state/sessions/{sessions.key('s1')}.json", content)
    assert Session(base, "s1").load() == SessionState()
    Session(base, "s1").remember(lambda held: TOLD)
    assert Session(base, "s1").load() == TOLD


def test_another_hook_at_work_is_waited_for_and_then_given_up(base: Base) -> None:
    with lock.hold(Session(base, "s1").lock, "a hook"), pytest.raises(Busy):
        Session(base, "s1").remember(lambda held: TOLD)
    assert Session(base, "s1").load() == SessionState()


def test_where_nothing_can_be_written_it_says_so(base: Base, write: Callable[..., Path]) -> None:
    write(base, ".khms", "a file")
    with pytest.raises(Unavailable):
        Session(base, "s1").remember(lambda held: TOLD)


def test_a_base_that_does_not_ignore_khms_gets_no_untracked_file(base: Base, git: Callable[..., str]) -> None:
    (base.root / ".gitignore").unlink()
    git(base, "commit", "--quiet", "-am", "no ignore file")
    Session(base, "s1").remember(lambda held: TOLD)
    assert git(base, "status", "--porcelain") == ""


def test_old_states_go_and_others_stay(base: Base) -> None:
    for name in ("old", "new"):
        Session(base, name).remember(lambda held: TOLD)
    before = time.time() - (sessions.KEPT_DAYS + 1) * 86400
    os.utime(Session(base, "old").path, (before, before))
    sessions.sweep(base)
    assert Session(base, "old").load() == SessionState()
    assert Session(base, "new").load() == TOLD


def test_sweeping_an_empty_base_is_fine(base: Base) -> None:
    sessions.sweep(base)


def test_the_switches_are_apart_and_in_the_users_own_folder(own_environment: Path) -> None:
    assert not sessions.is_off() and not sessions.is_off("s1")
    assert sessions.switch(False, "s1") and not sessions.switch(False, "s1")
    assert sessions.is_off("s1") and not sessions.is_off("s2") and not sessions.is_off()
    assert sessions.switch(False) and sessions.is_off()
    assert sessions.switch(True, "s1") and not sessions.switch(True, "s1")
    assert not sessions.is_off("s1") and sessions.is_off()
    assert sessions.switch(True) and not sessions.is_off()
    assert sorted(p.name for p in (own_environment / "data" / "hooks").iterdir()) == []


def test_the_file_holds_only_hashes_ids_and_times(base: Base) -> None:
    Session(base, "s1").remember(lambda held: TOLD)
    held = json.loads(Session(base, "s1").path.read_bytes())
    assert held == {"injections": [1.5, 2.5], "cards": {"K-00001": 1.5}, "queries": {"abc": 2.5}}
