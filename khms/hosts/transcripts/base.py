"""What a reader of transcripts offers (`Reader`) and yields (`Record`). How files are read stands in `lines`.

A transcript is somebody else's file: of any size, of any content, and often still being written. Nothing in it is
trusted, nothing is written to it, and every line of it is either told or counted with the reason why it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Protocol

    class Reader(Protocol):
        """A module for one host. Adding a host is such a module and one row of `READERS`."""

        def sessions(self) -> Iterator[Session]:
            """Every session that the host keeps for this user, sub-agents' own files left out. No transcript is
            opened for it, so `cwd` is empty where only the transcript knows it."""

        def cwd(self, session: Session) -> str:
            """The folder that the session began in, read from its head where need be; empty where nothing tells."""

        def threads(self, path: Path) -> list[Path]:
            """The session's own path, then those of the sub-agents that it started. In theirs nobody is USER."""

        def records(self, path: Path, since: str, tally: Counter[str]) -> Iterator[Record]:
            """What stands in one transcript after the position `since` (from the start where it is empty), in its
            order, in bounded memory. A `since` that does not fit the file, because another one took its place or it
            was cut or written anew, reads from the start and counts `anew`.

            `tally` accounts for every line, or row of a database: `lines` is the sum of `used`, `skipped:<reason>`,
            `garbage`, `long` (passed over unread) and `torn` (a last line that is still being written: it is not
            consumed, and comes whole in a later reading). Raises OSError, whose text says why, where nothing of it
            can be read."""


USER, AGENT, CALL, OUTCOME, INJECTED = "user", "agent", "call", "outcome", "injected"
OK, FAILED = "ok", "failed"


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a host. `path` is what `records` wants: the transcript's file, or, where one database holds all
    sessions, that file with the session's id below it. `modified` is seconds since the epoch, 0 where it cannot be
    told."""

    host: str
    id: str
    path: Path
    cwd: str = ""
    modified: float = 0.0


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of a conversation.

    `role` is USER for a person's own words; AGENT for what the model said, never what it thought; CALL for what it gave
    to a tool: `tool` is its name, `text` the texts of its input; OUTCOME for how a tool ended: `state` is "ok",
    "failed" or "exit N", `text` the lines that tell an error and nothing else of what the tool put out; INJECTED for
    what hooks put before the model. Pieces of one message share an `id`. `at` is seconds since the epoch, 0 where the
    host wrote no time. From `position` reading goes on after this record.
    """

    role: str
    id: str
    at: float
    text: str
    tool: str = ""
    state: str = ""
    position: str = ""


def modified(path: Path) -> float:
    """When the file was last changed; 0 for one that cannot be looked at: reading it will say why."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
