"""Whole processes, timed beside a bare interpreter (P) in the same run.

Machines are shared and noisy, so a figure is a median after a warm-up, and short commands are given as a ratio to P:
the wall time of `python -I -S -c pass` with the interpreter that runs khms.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from khms import __version__
from khms.errors import Refused
from khms.hosts.environment import VARIABLES
from khms.measure import chronicle, synthetic
from khms.store import cleared
from khms.store.layout import Base

LINE = "frames failed because a ground was loose"
PROMPT = "why does the gateway stall the ledger at midnight under load"


@dataclass(frozen=True, slots=True)
class Row:
    """`value` is the median, `limit` the figure to reach, both in `unit` (P, s)."""

    what: str
    value: float
    limit: float
    unit: str

    @property
    def reached(self) -> bool:
        return self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Report:
    cards: int
    bare_ms: float
    rows: tuple[Row, ...]

    def machine(self) -> str:
        return f"khms {__version__}, Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores"


@dataclass(frozen=True)
class Stand:
    """The measuring stand: a folder of its own with a base, and how commands run in it."""

    folder: Path
    runs: int

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def environment(self) -> Mapping[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in VARIABLES and not k.startswith(("KHMS_", "GIT_"))}
        home = self.folder / "home"
        return {
            **kept,
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "KHMS_CONFIG_HOME": str(home / "config"),
            "KHMS_DATA_HOME": str(home / "data"),
        }

    def time(self, command: Sequence[str], stdin: str = "", ok: Sequence[int] = (0,)) -> float:
        """Wall seconds of one whole process; raises Refused where it did not do its work."""
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=self.base, env=self.environment, input=stdin.encode(), capture_output=True, check=False
        )
        took = time.perf_counter() - began
        if done.returncode not in ok:
            raise Refused(f"`{' '.join(command)}` ended with {done.returncode}", where=done.stderr.decode()[-500:])
        return took

    def median(self, make: Callable[[int], float]) -> float:
        make(0)
        return statistics.median(make(n) for n in range(1, self.runs + 1))

    def ratio(self, make: Callable[[int], float]) -> float:
        """The median of pairwise ratios to a bare interpreter, each pair run back to back."""
        self.time(BARE)
        make(0)
        return statistics.median(make(n) / self.time(BARE) for n in range(1, 2 * self.runs + 1))


BARE = (sys.executable, "-I", "-S", "-c", "pass")
KHMS = (str(Path(sys.executable).with_name("khms")),)


def bench(cards: int, runs: int, say: Callable[[str], None]) -> Report:
    """Measures the loop over a made-up base of `cards` cards, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="khms-bench-") as name:
        stand = Stand(Path(name), runs)
        say(f"making a base of {cards} cards")
        _prepare(stand, cards)
        bare = stand.median(lambda n: stand.time(BARE))
        rows = []
        for what, limit, unit, measure in _ROWS:
            say(f"measuring: {what}")
            rows.append(Row(what, measure(stand), limit, unit))
    return Report(cards, bare * 1000, tuple(rows))


def _prepare(stand: Stand, cards: int) -> None:
    home = stand.folder / "home"
    home.mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.org\n", encoding="utf-8")
    stand.base.mkdir()
    stand.time([*KHMS, "init", "."])
    synthetic.fill(stand.base, cards)
    (stand.base / "journal").mkdir(exist_ok=True)
    day = f"# 2026-03-04\n\nMARK[solved] {LINE}\n"
    (stand.base / "journal" / "2026-03-04.md").write_text(day, encoding="utf-8")
    for n in range(stand.runs + 1):
        synthetic.fill_unit(stand.base, f"2026-03-05-bench-{n}", 12, LINE)
    for command in (("add", "--all"), ("commit", "--quiet", "-m", "bench")):
        stand.time(["git", "-c", "core.safecrlf=false", *command])
    stand.time([*KHMS, "index"])


def _mark(stand: Stand) -> float:
    return stand.ratio(lambda n: stand.time([*KHMS, "mark", "note", f"line {n}"]))


def _hook(stand: Stand) -> float:
    """The hook as installed; each run is another session, so that none is held back by the one before."""
    from khms.hosts import registry, settings

    command = ["sh", "-c", f"exec {settings.hook_command(registry.host('claude-code'))}"]

    def once(n: int) -> float:
        event = {
            "session_id": f"bench-{n}-{time.time_ns()}",
            "cwd": str(stand.base),
            "hook_event_name": "UserPromptSubmit",
            "prompt": PROMPT,
        }
        return stand.time(command, stdin=json.dumps(event))

    return stand.ratio(once)


def _lint(stand: Stand) -> float:
    return stand.median(lambda n: stand.time([*KHMS, "lint", "--json"]))


def _lint_first(stand: Stand) -> float:
    """As in a fresh clone, where nothing is known of the files."""

    def once(_: int) -> float:
        cleared.place(Base(stand.base)).unlink(missing_ok=True)
        return stand.time([*KHMS, "lint", "--json"])

    return stand.median(once)


def _lint_staged(stand: Stand) -> float:
    for path in sorted((stand.base / "memory" / "know").glob("*.md"))[:10]:
        path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    stand.time(["git", "add", "--all"])
    took = stand.median(lambda n: stand.time([*KHMS, "lint", "--staged", "--json"], ok=(0, 1)))
    stand.time(["git", "reset", "--quiet", "--hard"])
    return took


def _approve(stand: Stand) -> float:
    return stand.median(lambda n: stand.time([*KHMS, "approve", f"2026-03-05-bench-{n}", "--all"]))


def _audited(stand: Stand, signed: bool) -> Stand:
    """A stand of its own, with a base whose every commit approved something; made once."""
    own = Stand(stand.folder / ("signed" if signed else "unsigned"), stand.runs)
    if own.base.exists():
        return own
    own.base.mkdir(parents=True)
    home = own.folder / "home"
    home.mkdir()
    cards = max(len(list((stand.base / "memory" / "know").glob("*.md"))), 50)
    held = list(chronicle.approvals(cards, max(cards // 5, 1)))
    signers = settings = ""
    if signed:
        key = own.folder / "key"
        own.time(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
        signers = "bench@example.org " + Path(f"{key}.pub").read_text(encoding="utf-8")
        settings = "[review]\nrequire_signed = true\n"
        held = chronicle.sealed(held, key)
    own.time(["git", "init", "--quiet", "--initial-branch=main"])
    story = own.folder / "story"
    story.write_bytes(b"".join(chronicle.stream(held, signers, settings)))
    own.time(["sh", "-c", 'git fast-import --quiet --done < "$0"', str(story)])
    own.time(["git", "reset", "--quiet", "--hard"])
    return own


def _audit(stand: Stand) -> float:
    own = _audited(stand, signed=False)
    return own.median(lambda n: own.time([*KHMS, "audit", "--json"]))


def _audit_signed(stand: Stand) -> float:
    """The signatures were verified by the run that warms up."""
    own = _audited(stand, signed=True)
    return own.median(lambda n: own.time([*KHMS, "audit", "--json"]))


def _audit_range(stand: Stand) -> float:
    own = _audited(stand, signed=False)
    return own.median(lambda n: own.time([*KHMS, "audit", "--range", "HEAD~1..HEAD", "--json"]))


_ROWS: tuple[tuple[str, float, str, Callable[[Stand], float]], ...] = (
    ("khms mark", 6.0, "P", _mark),
    ("hook as installed, no server", 10.0, "P", _hook),
    ("lint of all cards", 3.0, "s", _lint),
    ("lint of all cards, the first", 3.0, "s", _lint_first),
    ("lint --staged of ten", 0.5, "s", _lint_staged),
    ("approve of a 12-card unit", 1.2, "s", _approve),
    ("audit of all, 5 cards a commit", 3.0, "s", _audit),
    ("audit of all, signed, seen before", 3.0, "s", _audit_signed),
    ("audit --range of one commit", 0.5, "s", _audit_range),
)
