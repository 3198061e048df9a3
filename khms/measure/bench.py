"""`khms bench`: every figure of speed and size over a made-up base, with the machine that they were measured on."""

import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from khms import __version__
from khms.errors import KhmsError, Usage
from khms.measure import loop_rows, recall_rows
from khms.measure.row import Measure, Row
from khms.measure.stand import BARE, Stand, prepare

SCHEMA = "khms.bench/1"
MEASURES = (*recall_rows.MEASURES, *loop_rows.MEASURES)
LIBRARIES = ("tantivy", "numkong", "numpy")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a figure depends on besides khms. `load` is the number of busy processes over the last minute."""

    cores: int
    processor: str
    system: str
    versions: dict[str, str]
    load: tuple[float, float]  # before, after

    def __str__(self) -> str:
        told = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        load = f"load {self.load[0]:.1f} before, {self.load[1]:.1f} after"
        return f"{self.cores} cores, {self.processor}; {self.system}; {told}; {load}"


@dataclass(frozen=True, slots=True)
class Report:
    cards: int
    runs: int
    bare_ms: float
    machine: Machine
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "name": row.name,
                "what": row.what,
                "value": None if row.value is None else round(row.value, 3),
                "limit": row.limit,
                "unit": row.unit,
                "reached": row.reached,
                "note": row.note or None,
            }
            for row in self.rows
        ]
        machine = self.machine
        return {
            "schema": SCHEMA,
            "machine": str(machine),
            "load": list(machine.load),
            "versions": machine.versions,
            "cards": self.cards,
            "runs": self.runs,
            "bare_ms": round(self.bare_ms, 2),
            "rows": rows,
        }


def chosen(names: Sequence[str]) -> tuple[Measure, ...]:
    """The measures with a figure of one of the `names`, or of a name that goes on from one (`hook`: all of the hook's);
    all where no name is given. Raises Usage."""
    known = [figure.name for measure in MEASURES for figure in measure.figures]
    for name in names:
        if not any(_goes_on(one, name) for one in known):
            raise Usage(f"there is no row {name!r}", hint=f"rows: {', '.join(known)}")
    if not names:
        return MEASURES
    return tuple(
        measure
        for measure in MEASURES
        if any(_goes_on(figure.name, name) for figure in measure.figures for name in names)
    )


def _goes_on(known: str, name: str) -> bool:
    return known == name or known.startswith(f"{name}-")


def bench(measures: Sequence[Measure], cards: int, runs: int, say: Callable[[str], None]) -> Report:
    """Measures over a made-up base of `cards` cards, in a temporary folder. What cannot be measured here is a row that
    says so."""
    before = _load()
    with tempfile.TemporaryDirectory(prefix="khms-bench-") as name:
        stand = Stand(Path(name), runs, cards)
        say(f"making a base of {cards} cards")
        prepare(stand)
        bare = stand.median(lambda n: stand.time(BARE))
        rows: list[Row] = []
        for measure in measures:
            say(f"measuring: {measure.figures[0].what}")
            rows.extend(_rows(measure, stand))
    return Report(cards, runs, bare * 1000, _machine(before), tuple(rows))


def _rows(measure: Measure, stand: Stand) -> Iterator[Row]:
    values: Sequence[float | None]
    try:
        values, note = measure.run(stand), ""
    except KhmsError as error:
        values, note = [None] * len(measure.figures), " ".join(str(error).split())[:300]
    for figure, value in zip(measure.figures, values, strict=True):
        yield Row(figure.name, figure.what, value, figure.limit_for(stand.cards), figure.unit, note)


def _machine(before: float) -> Machine:
    found = {"khms": __version__, "Python": platform.python_version(), "git": _git()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    system = f"{platform.system()} {platform.release()}"
    return Machine(os.cpu_count() or 0, _processor(), system, found, (before, _load()))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _git() -> str:
    done = subprocess.run(["git", "--version"], capture_output=True, encoding="utf-8", check=False)
    return done.stdout.removeprefix("git version ").strip()


def _load() -> float:
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0
