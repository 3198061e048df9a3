"""What a scheduler's module offers (`Scheduler`), and the values that pass between it and its users."""

import datetime
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from khms.errors import Unavailable, Usage
from khms.store import files

SECONDS = 30.0  # that a scheduler's own program is waited for
DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")  # cron and launchd count from Sunday, which is 0


@dataclass(frozen=True, slots=True)
class When:
    """A time of day by the machine's own clock, on every day or on one of the week (0 is Sunday)."""

    hour: int
    minute: int
    weekday: int | None = None

    def __str__(self) -> str:
        day = "" if self.weekday is None else f"{DAYS[self.weekday]} "
        return f"{day}{self.hour:02}:{self.minute:02}"

    def after(self, moment: datetime.datetime) -> datetime.datetime:
        """The first such time after `moment`, with the zone of that day."""
        local = moment.astimezone()
        for ahead in range(9):
            day = (local + datetime.timedelta(days=ahead)).date()
            found = datetime.datetime.combine(day, datetime.time(self.hour, self.minute)).astimezone()
            if found > moment and self.weekday in (None, day.isoweekday() % 7):
                return found
        raise AssertionError("a week has every weekday")


def daily(text: str) -> When:
    """`03:15`; raises Usage for anything else."""
    return _when(text, r"(?P<hour>\d{1,2}):(?P<minute>\d\d)", "a time of day such as 03:15")


def weekly(text: str) -> When:
    """`Sun 04:00`, the day's English name in full or its first three letters; raises Usage for anything else."""
    return _when(
        text,
        r"(?P<day>(sun|mon|tues|wednes|thurs|fri|satur)day|sun|mon|tue|wed|thu|fri|sat)\s+(?P<hour>\d{1,2}):(?P<minute>\d\d)",
        'a day and a time such as "Sun 04:00"',
    )


def _when(text: str, form: str, like: str) -> When:
    found = re.fullmatch(form, text.strip(), re.ASCII | re.IGNORECASE)
    if found is None or int(found["hour"]) > 23 or int(found["minute"]) > 59:
        raise Usage(f"{text!r} is not {like}", hint="it is read by this machine's clock; off leaves the job out")
    day = found.groupdict().get("day")
    weekday = None if day is None else DAYS.index(day[:3].capitalize())
    return When(int(found["hour"]), int(found["minute"]), weekday)


@dataclass(frozen=True, slots=True)
class Entry:
    """One job of one base: `name` tells the base, `argv` is what is to be run, an absolute path first."""

    job: str
    when: When
    name: str
    root: str
    argv: tuple[str, ...]


class Scheduler(Protocol):
    """A scheduler's module. Adding one is such a module and one row of the registry. What fails raises Unavailable and
    leaves everything as it was."""

    ID: str
    MISSED: str  # what becomes of a run whose time went by while the machine was off
    KEYS: str  # where a person can put a key so that the jobs have it

    def why_not(self) -> str:
        """Why this machine cannot use it; empty where it can."""

    def jobs(self, name: str) -> frozenset[str]:
        """The jobs that it will start for the base `name`. Starts no program where it can do without."""

    def install(self, name: str, entries: Sequence[Entry]) -> bool:
        """Makes `entries` all that it holds for the base `name`; says whether that changed anything."""

    def uninstall(self, name: str) -> bool:
        """Removes what it holds for the base `name`; says whether there was anything."""

    def notes(self) -> list[str]:
        """What a person should know about it on this machine."""


def call(*words: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> tuple[int, bytes, str]:
    """(exit code, standard output, what it said on standard error, in one line) of a program on PATH. Raises
    Unavailable where it is not there, cannot be run or does not end."""
    program = shutil.which(words[0])
    if program is None:
        raise Unavailable(f"{words[0]} is not on PATH")
    try:
        done = subprocess.run(
            [program, *words[1:]],
            input=given,
            capture_output=True,
            timeout=SECONDS,
            env={**os.environ, "LC_ALL": "C", **(env or {})},  # what it says is looked at
            check=False,
        )
    except OSError as error:
        raise Unavailable(f"{words[0]} cannot be run: {error.strerror}", where=program) from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{words[0]} did not end within {SECONDS:.0f} seconds", where=program) from error
    files.tick()
    said = (line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines())
    return done.returncode, done.stdout, "; ".join(filter(None, said))[:500]
