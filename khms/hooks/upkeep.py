"""What is done at a session's start once the host has its answer: old session files go, a stale index is renewed."""

import os
import sys

from khms.hooks import sessions
from khms.store.layout import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen


def at_start(base: Base) -> None:
    sessions.sweep(base)
    if stale(base):
        refresh(base)


def stale(base: Base) -> bool:
    """Whether the index is missing, damaged or behind the base, as far as a few stats tell."""
    from khms.errors import Unavailable
    from khms.index import current, freshness

    try:
        _, known = current.opened(base)
    except Unavailable:
        return True
    return freshness.compare(base, known).behind


def refresh(base: Base) -> "Popen[bytes]":
    """Starts `khms index` as a process of its own, which outlives this one; a hook never waits for it. The interpreter
    runs isolated: nothing in the base's folder or in PYTHONPATH is imported."""
    import subprocess

    return subprocess.Popen(
        [sys.executable, "-I", "-m", "khms", "--root", str(base.root), "--quiet", "index"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=base.root,
        env={**os.environ, "KHMS_HOOKS_OFF": "1"},
        start_new_session=True,
    )
