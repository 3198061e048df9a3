"""What each session was told, one small file a session, and which sessions are to be left alone.

A session's id comes from the host and is never part of a path: its hash is. Hooks of one session run at the same time;
`remember` reads, decides and writes under one lock. A file that holds nonsense counts as a new session.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from khms.config import user_data
from khms.hooks import budget
from khms.hooks.budget import SessionState
from khms.model.digest import session_key
from khms.store import files, local, lock
from khms.store.layout import Base
from khms.values import dataclass

WAIT = 0.25  # seconds for the lock: it is held for a few milliseconds
KEPT_DAYS = 30
LARGEST = 1024 * 1024


def key(session: str) -> str:
    """The name of a session in file names and in the log."""
    return session_key(session)


@dataclass(frozen=True, slots=True)
class Session:
    """One session's state in one base. `id` is the host's; hooks without one share the state of the empty id."""

    base: Base
    id: str

    @property
    def at(self) -> float:
        return time.time()

    @property
    def path(self) -> Path:
        return self.base.state / "sessions" / f"{key(self.id)}.json"

    @property
    def lock(self) -> Path:
        """One of sixteen, so that sessions seldom wait for each other and no lock is left behind by each of them."""
        return self.base.locks / f"hooks-{key(self.id)[0]}.lock"

    def load(self) -> SessionState:
        """The state as it stands, an empty one where there is none that makes sense. Raises OSError for a file that is
        there and cannot be read: what was said cannot be known then."""
        try:
            with self.path.open("rb") as file:
                return _state(file.read(LARGEST))
        except FileNotFoundError:
            return SessionState()

    def remember(self, step: Callable[[SessionState], SessionState | None]) -> None:
        """Replaces the state by what `step` makes of it, which may be nothing (None). Raises Busy or Unavailable, with
        the state as it was."""
        local.make(self.base)
        with lock.hold(self.lock, "hook", wait=WAIT):
            new = step(self.load())
            if new is not None:  # not durable: a session does not outlive the loss of power that would undo it
                files.write_atomic(self.path, _bytes(new), durable=False)

    def forget(self, at: float) -> None:
        """Takes back what was remembered of the event of that very time: nobody heard it."""
        self.remember(lambda state: budget.without(state, at))


class Unkept:
    """A session that was told nothing and of which nothing is kept: for a look at what would be said."""

    @property
    def at(self) -> float:
        return time.time()

    def load(self) -> SessionState:
        return SessionState()

    def remember(self, step: Callable[[SessionState], SessionState | None]) -> None:
        step(SessionState())


def sweep(base: Base) -> None:
    """Removes the states of sessions that ended long ago, and what points to their records."""
    oldest = time.time() - KEPT_DAYS * 86400
    for folder in (base.state / "sessions", base.local / "run"):
        if folder.is_dir():
            for path in folder.glob("*.json"):
                if path.stat().st_mtime < oldest:
                    files.unlink(path)


def _state(data: bytes) -> SessionState:
    try:
        value = json.loads(data)
        if not isinstance(value, dict):
            return SessionState()
        return SessionState(
            tuple(float(at) for at in value["injections"]),
            tuple((str(card), float(at)) for card, at in value["cards"].items()),
            tuple((str(query), float(at)) for query, at in value["queries"].items()),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return SessionState()


def _bytes(state: SessionState) -> bytes:
    value = {"injections": state.injections, "cards": dict(state.cards), "queries": dict(state.queries)}
    return json.dumps(value).encode("ascii")


def _switch(session: str) -> Path:
    """The mark that switches hooks off: for one session, or without an id for all. It stands in the user's data folder,
    because a session can move from base to base."""
    return user_data() / "hooks" / (f"{key(session)}.off" if session else "all.off")


def is_off(session: str = "") -> bool:
    return _switch(session).exists()


def switch(on: bool, session: str = "") -> bool:
    """Switches hooks on or off for one session, or for all; says whether that was a change."""
    path = _switch(session)
    if on is not path.exists():
        return False
    if on:
        files.unlink(path)
    else:
        files.make_folder(path.parent, 0o700)
        files.write_atomic(path, b"")
    return True
