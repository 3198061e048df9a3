"""What a run may spend, and what it has spent: calls, dollars, time. The first bound that is reached ends it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from khms.config import Config
from khms.errors import Usage
from khms.hosts.headless.base import Reply

CALLS, BUDGET, DEADLINE, LIMIT = "calls", "budget", "deadline", "usage limit"
_UNITS = {"s": 1, "m": 60, "h": 3600}


class Stopped(Exception):
    """No further call is made in this run; `bound` is one of the four above, the message says more."""

    def __init__(self, bound: str, why: str) -> None:
        super().__init__(why)
        self.bound = bound


def seconds(text: str) -> float:
    """`90m`, `2h`, `45s` or plain seconds; raises Usage for anything else."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        found = float(number) * _UNITS[unit]
    except ValueError:
        found = -1.0
    if not 0 < found < 1e9:
        raise Usage(f"{text!r} is no length of time", hint="--deadline 90m, 2h or 45s")
    return found


@dataclass
class Meter:
    """Counts calls over all threads of a run, those of its earlier, killed processes included, and says when to stop.
    A limit of 0 is none; `deadline` is a moment of `clock`."""

    calls: int = 0
    budget_usd: float = 0.0
    deadline: float = 0.0
    clock: Callable[[], float] = time.monotonic
    made: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    models: set[str] = field(default_factory=set)
    stopped: Stopped | None = None
    _lock: Lock = field(default_factory=Lock)

    def allow(self) -> float:
        """Seconds that are left for one more call (infinite where there is no deadline); raises Stopped."""
        with self._lock:
            if self.stopped:
                raise self.stopped
            left = self.deadline - self.clock() if self.deadline else float("inf")
            if self.calls and self.made >= self.calls:
                self._stop(CALLS, f"{self.made} calls are made, which is the limit")
            if self.budget_usd and self.cost_usd >= self.budget_usd:
                self._stop(BUDGET, f"{self.cost_usd:.2f} of {self.budget_usd:.2f} dollars are spent")
            if left <= 0:
                self._stop(DEADLINE, "the time for this run is over")
            return left

    def add(self, reply: Reply) -> None:
        with self._lock:
            self.made += 1
            self.cost_usd += reply.cost_usd or 0.0
            self.unpriced += reply.cost_usd is None
            if reply.model:
                self.models.add(reply.model)

    def limit(self, why: str) -> Stopped:
        """The host's own limit is reached: nothing more is asked in this run."""
        with self._lock:
            self.stopped = self.stopped or Stopped(LIMIT, why)
            return self.stopped

    @property
    def unbounded(self) -> str:
        """What a person should hear of a budget that bounds nothing; empty where it does."""
        if not self.budget_usd or not self.unpriced:
            return ""
        return f"the host told no cost of {self.unpriced} calls, which the budget cannot bound: nightly.max_calls can"

    def _stop(self, bound: str, why: str) -> None:
        self.stopped = Stopped(bound, why)
        raise self.stopped


def meter(config: Config, deadline: str | None, budget_usd: float | None) -> Meter:
    """The bounds of a run: those of the command line, else the configuration's. Raises Usage for one that is none."""
    if budget_usd is not None and not 0 < budget_usd < float("inf"):  # NaN is neither
        raise Usage(f"{budget_usd} is no sum that can be spent", hint="--budget-usd 2.50; without it there is no limit")
    length = config["nightly.deadline"] if deadline is None else deadline
    end = time.monotonic() + seconds(length) if length else 0.0
    budget = float(config["nightly.budget_usd"]) if budget_usd is None else budget_usd
    return Meter(calls=config["nightly.max_calls"], budget_usd=budget, deadline=end)
