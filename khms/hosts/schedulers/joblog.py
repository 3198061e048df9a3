"""What a scheduled job leaves to read: a log a job, `.khms/log/<job>.log`, and one older one beside it.

A line of khms's own begins and ends each run: `[time] nightly started`, `[time] nightly ended: 0`, with the reason
behind the exit code where there is one. Between them stands what the job said.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from khms.hosts.schedulers.record import now
from khms.store import files
from khms.store.layout import Base

LIMIT = 262_144  # bytes from which a log is put aside, where the next run begins
_TAIL = 65_536
_REASON = 300
_LINE = re.compile(
    r"^\[(?P<at>[^\]]+)\] [\w-]+ (?P<what>started|ended)(: (?P<code>\d+)(: (?P<said>.*))?)?$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Run:
    """The last run that the log tells of: when it began, when it ended, how. `code` is None where no end of it was
    written down; then `at` is when it began, too."""

    began: str
    at: str
    code: int | None
    said: str = ""


def path(base: Base, job: str) -> Path:
    return base.log / f"{job}.log"


@contextlib.contextmanager
def opened(log: Path) -> Iterator[int]:
    """A descriptor that adds to the log; one that has grown long is put aside first. Raises Unavailable."""
    with files.naming(log):
        files.make_folder(log.parent)
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > LIMIT:
                files.rename(log, log.with_name(f"{log.name}.1"))
        fd = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def tell(fd: int, job: str, what: str) -> None:
    """Adds one line of khms's own."""
    os.write(fd, f"[{now()}] {job} {' '.join(what.split())}\n".encode("utf-8", "replace"))


def ended(code: int, said: str = "") -> str:
    return f"ended: {code}" + (f": {said[:_REASON]}" if said else "")


def reason(fd: int, start: int) -> str:
    """The last thing that khms itself said since the byte `start`, without its name before it."""
    size = os.fstat(fd).st_size
    start = max(start, size - _TAIL)
    text = os.pread(fd, size - start, start).decode("utf-8", "replace")
    told = [line.removeprefix("khms: ") for line in text.splitlines() if line.startswith("khms: ")]
    return told[-1][:_REASON] if told else ""


def last(base: Base, job: str) -> Run | None:
    """The last run, None where there was none or the log cannot be read."""
    try:
        with open(path(base, job), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    lines = list(_LINE.finditer(text))
    if not lines:
        return None
    last = lines[-1]
    began = next((line["at"] for line in reversed(lines) if line["what"] == "started"), last["at"])
    return Run(began, last["at"], None if last["code"] is None else int(last["code"]), last["said"] or "")
