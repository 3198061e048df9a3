"""What hooks wrote down of their decisions: the base's own log, and those that it replaced, oldest first."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from khms.errors import Usage
from khms.store import files
from khms.store.layout import Base

NAME = "inject.jsonl"
INJECT = "inject"


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the log. `began` is when the hook began, in seconds since the epoch, `day` the day in this machine's
    own time. `cards` were named; `withheld` would have been, had the session not been a control session. `hits` are
    the best that recall found, with their scores. A `warning` came before a risky command."""

    began: float
    day: str
    host: str
    moment: str
    session: str
    decision: str
    reason: str
    cards: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    hits: tuple[tuple[str, float], ...] = ()
    experiment: str = ""
    arm: str = ""
    warning: bool = False

    @property
    def injected(self) -> bool:
        return self.decision == INJECT


@dataclass(frozen=True, slots=True)
class Log:
    """`first` is the day that the log reaches back to, empty where there is none; `unreadable` counts lines that make
    no sense."""

    decisions: tuple[Decision, ...]
    first: str = ""
    unreadable: int = 0


def read(base: Base, since: str = "") -> Log:
    """The decisions from the day `since` on, all where it is empty. `first` and `unreadable` are of the whole log."""
    found: list[Decision] = []
    first, unreadable = "", 0
    for line in _lines(base.log):
        try:
            held = _decision(files.parse_json(line))
        except (ValueError, TypeError, KeyError, OverflowError, OSError):
            held, unreadable = None, unreadable + 1
        if held is not None:
            first = min(first or held.day, held.day)
            if held.day >= since:
                found.append(held)
    return Log(tuple(found), first, unreadable)


def since_day(text: str) -> str:
    """A day as a person gives it, `2026-03-04`; raises Usage for anything else."""
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise Usage(f"{text!r} is no day", hint="write it as 2026-03-04") from None


def _lines(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.glob(f"{NAME}*"), key=_age, reverse=True):
        try:
            data = files.read(path)
        except OSError:
            continue
        yield from (line for line in data.splitlines() if line.strip())


def _age(path: Path) -> int:
    """How often the log was replaced since this one."""
    number = path.name.removeprefix(NAME).removeprefix(".")
    return int(number) if number.isdigit() else 0


def _decision(line: Any) -> Decision | None:
    """None for a line that tells of no decision. Raises ValueError or TypeError for one that makes no sense."""
    if not isinstance(line, dict):
        raise TypeError("no object")
    if "decision" not in line:
        return None
    took = line.get("ms", 0.0)
    began = datetime.fromisoformat(line["at"]).timestamp() - (took / 1000 if isinstance(took, int | float) else 0.0)
    return Decision(
        began=began,
        day=time.strftime("%Y-%m-%d", time.localtime(began)),
        host=_text(line, "host"),
        moment=_text(line, "moment") or _text(line, "event"),
        session=_text(line, "session"),
        decision=_text(line, "decision"),
        reason=_text(line, "reason"),
        cards=_texts(line.get("cards")),
        withheld=_texts(line.get("withheld")),
        hits=tuple((str(name), float(score)) for name, score in line.get("hits", ())),
        experiment=_text(line, "experiment"),
        arm=_text(line, "arm"),
        warning=bool(line.get("classes")),
    )


def _text(line: dict[str, Any], key: str) -> str:
    value = line.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
