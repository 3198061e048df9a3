"""Keeping the index up to date in a server: never more than a few seconds behind what anybody wrote.

Before every answer a handful of stats tells whether git moved or a file was replaced; then the index is brought up to
date first, as long as the client has patience. They do not see a file that was edited in place, so a few seconds after
an answer git is asked. Nobody asks it while nobody asks the server. What must not miss such an edit (khms.recall) is
told by `vouch` whether that look still counts.
"""

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import replace
from subprocess import Popen
from time import monotonic
from typing import Any

from khms.config import Config, load
from khms.errors import KhmsError, Unavailable
from khms.index import current, freshness
from khms.index.sync import Report
from khms.server.watch import Watch
from khms.store import layout
from khms.store.layout import Base

AFTER = 2.0  # seconds after an answer at which git is asked
PATIENCE = 0.3  # seconds of a hook's time that bringing the index up to date may take
AGAIN = 1.0  # seconds after which it is tried again where another process was at it


class Look:
    """One base's index, looked after by one thread."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._change = threading.Condition()
        self._due: float | None = None
        self._rounds = 0
        self._ended = False
        self._watch = Watch()
        self._guard = threading.Lock()
        self._seen = threading.local()  # what `before` found, for this thread's question
        self._last: tuple[Report, dict[str, Any]] | None = None  # the last look and its settings, while it counts
        self._graph_of = 0  # the vectors that a graph was last to be built over
        self._builder: Popen[bytes] | None = None
        self.failed = ""
        self._thread = threading.Thread(target=self._run, name="look", daemon=True)
        self._thread.start()

    def before(self, until: float) -> None:
        """Brings the index up to date where it is seen to be behind; gives up at the monotonic time `until`, or
        sooner."""
        self._seen.held = self._unwritten()
        if self._seen.held or not self._behind():
            return
        with self._change:
            wanted = self._rounds + 1
            self._wake(0.0)
            limit = min(until, monotonic() + PATIENCE)
            self._change.wait_for(lambda: self._rounds >= wanted or self._ended, max(0.0, limit - monotonic()))

    def after(self, seconds: float = AFTER) -> None:
        """An answer was given: have git asked soon."""
        self._seen.held = None
        with self._change:
            self._wake(seconds)

    def vouch(self, base: Base, config: Mapping[str, Any]) -> Report | None:
        """The report of the last look, if nothing was written since; None where that is not known."""
        held = getattr(self._seen, "held", None) or self._unwritten()
        return held[0] if held and base.root == self._base.root and held[1] == dict(config) else None

    def _unwritten(self) -> tuple[Report, dict[str, Any]] | None:
        """The last look, if neither a file was written nor git moved since."""
        with self._guard:
            if self._last is not None and not self._watch.still():
                self._last = None
            held = self._last
        if held is None:
            return None
        try:
            _, known = current.opened(self._base)
        except Unavailable:
            return None
        return held if freshness.unmoved(self._base, known) else None

    def end(self) -> None:
        with self._change:
            self._ended = True
            self._change.notify_all()
        self._thread.join(1.0)
        with self._guard:
            self._last = None
            self._watch.close()

    def _wake(self, seconds: float) -> None:
        due = monotonic() + seconds
        if self._due is None or due < self._due:
            self._due = due
            self._change.notify_all()

    def _behind(self) -> bool:
        try:
            _, known = current.opened(self._base)
        except Unavailable:
            return True
        return freshness.compare(self._base, known).behind

    def _run(self) -> None:
        self._warm()
        while True:
            with self._change:
                while not self._ended and (self._due is None or monotonic() < self._due):
                    self._change.wait(None if self._due is None else self._due - monotonic())
                if self._ended:
                    return
                self._due = None
            done = self._refresh()
            with self._change:
                self._rounds += 1
                self._change.notify_all()
                if not done:
                    self._wake(AGAIN)

    def _warm(self) -> None:
        """Has a question answered that nobody asked, so that the first one finds all in place."""
        from khms.recall.search import recall

        with contextlib.suppress(Exception):
            recall(self._base, "khms", config=self._settings(), as_text=True, snippets=False)

    def _refresh(self) -> bool:
        """One look; whether it need not be repeated soon."""
        from khms.errors import Busy
        from khms.hooks import upkeep
        from khms.index import sync
        from khms.index.catchup import NEW

        try:
            current.opened(self._base)
        except Unavailable:
            # Built by a process of its own: that takes memory which this one would keep.
            if layout.is_base(self._base.root) or layout.is_older_base(self._base.root):
                with contextlib.suppress(OSError):
                    upkeep.refresh(self._base).wait()
            return True
        try:
            config = self._settings()
            whole = self._watched(config)
            report = sync.refresh(self._base, config=config, wait=0.0, vectors=NEW)
            with self._guard:
                self._last = (replace(report, rebuilt=None), dict(config)) if whole and self._watch.still() else None
            self.failed = ""
            if report.vast:
                self._have_graph_built(config)
            return True
        except Busy:
            return False
        except KhmsError as error:
            self.failed = error.message
        except Exception as error:
            self.failed = type(error).__name__
        return True

    def _have_graph_built(self, config: Config) -> None:
        """By a process of its own, where a graph over the vectors is due; once for so many of them."""
        from khms.hooks import upkeep
        from khms.index import graph

        _, known = current.opened(self._base)
        rows = known.vectors.rows if known.vectors else 0
        if rows != self._graph_of and graph.due(self._base, known, config):
            self._graph_of = rows
            self._builder = upkeep.refresh(self._base)

    def _watched(self, config: Config) -> bool:
        """Watches all that a look goes through, from before it begins; whether every write will be told."""
        from khms.index import sources

        rules = sources.rules(self._base, config)
        with self._guard:
            self._last = None
            whole = self._watch.over(
                self._base.root, (*sources.FOLDERS, *sources.folders(rules), *sources.outside(rules)), sources.NEVER
            )
            self._watch.still()
        return whole

    def _settings(self) -> Config:
        return load(self._base.root)
