"""A process that does again and again what a server does, and prints how long each took.

    python -m khms.measure.probe refresh|query BASE RUNS

What it needs is loaded before the first that counts.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from khms.config import load
from khms.index import current
from khms.index.sync import refresh
from khms.measure import synthetic
from khms.recall.search import HYBRID, recall
from khms.store.layout import Base

STATUS = ("git", "status", "--porcelain=v2", "--branch", "-z")
CHANGED = 10


def queries(base: Base, runs: int) -> dict[str, list[float]]:
    """Milliseconds of questions by both channels, as a server answers a hook: {"query": […]}, empty where one of them
    could not be asked by both."""
    config = load(base.root)
    current.keep()
    took = []
    for number in range(2 * runs):
        began = time.perf_counter()
        answer = recall(base, synthetic.question(number), config=config, as_text=True, snippets=False)
        took.append((time.perf_counter() - began) * 1000)
        if answer.channel != HYBRID:
            return {"query": []}
    return {"query": took[runs:]}


def refreshes(base: Base, runs: int) -> dict[str, list[float]]:
    """Milliseconds of a refresh with nothing changed and of `git status`, one after the other, then of a refresh with
    ten changed cards: {"nothing": […], "status": […], "ten": […]}."""
    config = load(base.root)

    def look() -> None:
        refresh(base, config=config)

    def status() -> None:
        subprocess.run(STATUS, cwd=base.root, capture_output=True, check=True)

    cards = sorted((base.root / "memory" / "know").glob("*.md"))[:CHANGED]
    before = [card.read_bytes() for card in cards]
    look()
    status()
    pairs = [(_timed(look), _timed(status)) for _ in range(runs)]
    ten = []
    for run in range(runs + 1):
        for card, text in zip(cards, before, strict=True):
            card.write_bytes(text + b"Seen again, run %d.\n" % run)
        ten.append(_timed(look))
    for card, text in zip(cards, before, strict=True):
        card.write_bytes(text)
    look()
    return {"nothing": [one for one, _ in pairs], "status": [git for _, git in pairs], "ten": ten[1:]}


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


PROBES = {"refresh": refreshes, "query": queries}

if __name__ == "__main__":
    print(json.dumps(PROBES[sys.argv[1]](Base(Path(sys.argv[2])), int(sys.argv[3]))))
