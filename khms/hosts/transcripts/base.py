"""What a reader of transcripts offers (`Reader`), what it yields (`Message`), and the reading of JSON lines, which most
hosts write."""

from __future__ import annotations

import os
import stat
from datetime import datetime

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any, Protocol

    class Reader(Protocol):
        """A module for one host. Adding a host is such a module and one row of `READERS`."""

        def sessions(self) -> Iterator[tuple[str, Path]]:
            """Every transcript that the host keeps for this user, as (session id, file). No file is opened."""

        def threads(self, path: Path) -> list[Path]:
            """The session's own file, then those of the sub-agents that it started."""

        def messages(self, path: Path, tally: Counter[str]) -> Iterator[Message]:
            """What was said in one file, in its order. `tally` counts `lines`, and of these the ones that could not be
            used: `garbage`, `long`, and `torn` for a last line that is still being written. Raises OSError."""


AGENT, INJECTED = "agent", "injected"
LONGEST = 8 * 1024 * 1024  # bytes of a line; a longer one is passed over, so that memory stays bounded
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Message:
    """One piece of a conversation. `role` is AGENT for what the model said or had done (its texts and what it gave to
    tools, never what tools answered), INJECTED for what hooks put before the model. Pieces of one message share an
    `id`. `at` is seconds since the epoch, 0 where the host wrote no time."""

    role: str
    id: str
    at: float
    text: str


def json_lines(path: Path, marks: tuple[bytes, ...], tally: Counter[str]) -> Iterator[dict[str, Any]]:
    """The objects of those lines that hold one of the `marks`, which are looked for as bytes: most of a transcript is
    what tools answered, and is never parsed."""
    import json

    for line in _lines(path, tally):
        text = line.strip()
        if not text:
            continue
        whole = text.startswith(b"{") and text.endswith(b"}")
        if whole and not any(mark in text for mark in marks):
            continue
        try:
            value = json.loads(text) if whole else None
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            yield value
        else:
            tally["garbage" if line.endswith(b"\n") else "torn"] += 1


def _lines(path: Path, tally: Counter[str]) -> Iterator[bytes]:
    """Each line with its end; one that is longer than LONGEST is counted and left out."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(fd, "rb", buffering=_CHUNK) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):  # a pipe would be waited for, for ever
            raise OSError(f"not a regular file: {path}")
        while line := file.readline(LONGEST):
            tally["lines"] += 1
            if len(line) < LONGEST or line.endswith(b"\n"):
                yield line
                continue
            tally["long"] += 1
            while line and not line.endswith(b"\n"):
                line = file.readline(_CHUNK)


def seconds(stamp: object) -> float:
    """An ISO 8601 time as seconds since the epoch; 0 for anything else."""
    try:
        return datetime.fromisoformat(stamp).timestamp() if isinstance(stamp, str) else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def texts(value: object, depth: int = 8) -> Iterator[str]:
    """Every text in a JSON value, as deep as a tool's input goes."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from texts(part, depth - 1)
    elif depth and isinstance(value, list):
        for part in value:
            yield from texts(part, depth - 1)
