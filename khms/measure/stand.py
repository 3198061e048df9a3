"""The stand: a made-up base in a folder of its own, and whole processes timed there beside a bare interpreter.

P is the wall time of `python -I -S -c pass` with the interpreter that runs khms. Machines are shared and noisy, so a
figure is a median after a warm-up, and short commands are given as a ratio to P, each run back to back with one.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from khms.errors import Refused
from khms.hosts.environment import VARIABLES
from khms.measure import synthetic

BARE = (sys.executable, "-I", "-S", "-c", "pass")
KHMS = (str(Path(sys.executable).with_name("khms")),)
LINE = "frames failed because a ground was loose"  # in the journal, for the candidates to quote
UNITS_CARDS = 12


@dataclass(frozen=True)
class Stand:
    """A folder with a base, and how commands run in it: as a user of its own, without a server unless one is asked
    for."""

    folder: Path
    runs: int
    cards: int = 0

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self, server: bool = False) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in VARIABLES and not k.startswith(("KHMS_", "GIT_"))}
        return {
            **kept,
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "KHMS_CONFIG_HOME": str(self.home / "config"),
            "KHMS_DATA_HOME": str(self.home / "data"),
            "XDG_RUNTIME_DIR": str(self.home),
            **({} if server else {"KHMS_SERVER_OFF": "1"}),
        }

    def run(
        self, command: Sequence[str], stdin: str = "", ok: Sequence[int] = (0,), server: bool = False
    ) -> tuple[float, str]:
        """Wall seconds of one whole process and what it printed; raises Refused where it did not do its work."""
        env, data = self.environment(server), stdin.encode()
        began = time.perf_counter()
        done = subprocess.run(command, cwd=self.base, env=env, input=data, capture_output=True, check=False)
        took = time.perf_counter() - began
        if done.returncode not in ok:
            raise Refused(f"`{' '.join(command)}` ended with {done.returncode}", where=done.stderr.decode()[-500:])
        return took, done.stdout.decode()

    def time(self, command: Sequence[str], stdin: str = "", ok: Sequence[int] = (0,), server: bool = False) -> float:
        return self.run(command, stdin, ok, server)[0]

    def answer(self, command: Sequence[str], ok: Sequence[int] = (0,), server: bool = False) -> dict[str, Any]:
        """The JSON document that a command prints."""
        held: dict[str, Any] = json.loads(self.run(command, "", ok, server)[1])
        return held

    def median(self, make: Callable[[int], float]) -> float:
        make(0)
        return statistics.median(make(n) for n in range(1, self.runs + 1))

    def pairs(self, make: Callable[[int], float], count: int) -> list[tuple[float, float]]:
        """(seconds, seconds of a bare interpreter), run one after the other, after a warm-up."""
        self.time(BARE)
        make(0)
        return [(make(n), self.time(BARE)) for n in range(1, count + 1)]

    def ratio(self, make: Callable[[int], float]) -> float:
        """The median of pairwise ratios to a bare interpreter."""
        return ratio(self.pairs(make, 2 * self.runs))

    @contextmanager
    def server(self) -> Iterator[Mapping[str, Any]]:
        """With the base's server running and warm; what it says of itself."""
        told = self.answer([*KHMS, "server", "start", "--json"], server=True)
        try:
            for n in range(5):
                self.time(recall(n), ok=(0, 1), server=True)
            yield told
        finally:
            self.time([*KHMS, "server", "stop"], server=True)


def ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(one / bare for one, bare in pairs)


def recall(n: int, *options: str) -> list[str]:
    """The n-th question, as a command."""
    return [*KHMS, "recall", *options, synthetic.question(n)]


def prepare(stand: Stand) -> None:
    """Makes the base: cards, one journal, a unit to approve for each run; committed and indexed."""
    stand.home.mkdir(parents=True, mode=0o700)
    (stand.home / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.org\n", encoding="utf-8")
    stand.base.mkdir()
    stand.time([*KHMS, "init", "."])
    synthetic.fill(stand.base, stand.cards)
    (stand.base / "journal").mkdir(exist_ok=True)
    day = f"# 2026-03-04\n\nMARK[solved] {LINE}\n"
    (stand.base / "journal" / "2026-03-04.md").write_text(day, encoding="utf-8")
    for n in range(stand.runs + 1):
        synthetic.fill_unit(stand.base, f"2026-03-05-bench-{n}", UNITS_CARDS, LINE)
    for command in (("add", "--all"), ("commit", "--quiet", "-m", "bench")):
        stand.time(["git", "-c", "core.safecrlf=false", *command])
    stand.time([*KHMS, "index"])
