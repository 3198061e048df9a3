"""What a host's module offers (`Host`), and the values that pass between it and its users.

A hook process loads this at every event of the host, so neither `typing` nor `dataclasses` is imported at run
time: beside `json` they cost 0.8 and 1.3 times a bare interpreter start, `collections.namedtuple` nothing. So
`Host`, `Moment` and `Scope` are for type checkers only.
"""

from __future__ import annotations

import json
from collections import namedtuple

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Literal, NamedTuple, Protocol

    from khms.hosts.entries import Entry
    from khms.hosts.textfile import Form

    Moment = Literal[
        "session-start", "prompt", "subagent-start", "pre-shell", "pre-edit", "after-failure", "pre-compact",
        "session-end", "other",
    ]  # fmt: skip
    Scope = Literal["user", "project"]

    class Event(NamedTuple):
        """One event of a host. A field that the payload lacks, or has in another type, is an empty string. `source`
        says how a session started; `compact` is after its conversation was cut down to a summary."""

        moment: Moment
        session: str = ""
        cwd: str = ""
        prompt: str = ""
        command: str = ""
        path: str = ""
        text: str = ""
        name: str = ""
        error: str = ""
        host: str = ""
        transcript: str = ""
        source: str = ""

    class Watch(NamedTuple):
        """An entry for a host's settings: its event, the matcher ("" for none), the limit in seconds."""

        event: str
        matcher: str
        timeout: int

    class Host(Protocol):
        """A host's module. Adding a host is such a module and one row of the registry."""

        ID: str
        TITLE: str
        STRICT: bool  # its settings file must be plain JSON, without comments or trailing commas
        ANSWERS: frozenset[str]  # its events whose answer reaches the model
        WATCHES: tuple[Watch, ...]

        def event(self, payload: object) -> Event | None:
            """The payload of one hook call; None where it is not this host's."""

        def answer(self, event: Event, text: str) -> str:
            """`text` in the form that adds it to the model's context; "" where the event has no such form."""

        def settings_path(self, scope: Scope, project: Path) -> Path:
            """The settings file of the user, or of the folder `project`."""

    class More(Protocol):
        """What a host's module may offer besides, each by itself, where its settings or its ways are not Claude's."""

        SCOPES: tuple[Scope, ...]  # whose settings it reads, where not both
        FLAT: bool  # an event's entries stand in its list, not in groups
        IDLE: str  # what is printed where there is nothing to say
        HEAD: dict[str, int]  # what the settings file must hold beside `hooks`
        NOTES: tuple[str, ...]  # what this host cannot do, one line each, for a person

        def handler(self, watch: Watch, command: str) -> dict[str, str | int]:
            """The entry as it stands in the settings."""

        def form(self) -> Form:
            """How khms stands in the settings, where they are not JSON with `hooks`."""

        def beside(self, scope: Scope, project: Path) -> list[tuple[Path, Form]]:
            """Further files that khms writes for this host."""

        def pending(self, path: Path, found: list[Entry]) -> Iterator[str]:
            """What keeps the host from running the entries `found` in the file `path`, each with the step to take."""

else:
    Event = namedtuple(
        "Event",
        "moment session cwd prompt command path text name error host transcript source",
        defaults=("",) * 11,
    )
    Watch = namedtuple("Watch", "event matcher timeout")


def told(
    payload: dict[str, object], host: str, name: str, moment: Moment, *,
    command: str = "", path: str = "", text: str = "", error: str = "",
) -> Event:  # fmt: skip
    """The event `name` of this host, with what most of them tell under the same keys."""
    return Event(
        moment=moment,
        session=string(payload.get("session_id")),
        cwd=string(payload.get("cwd")),
        prompt=string(payload.get("prompt")),
        command=command,
        path=path,
        text=text,
        name=name,
        error=error,
        host=host,
        transcript=string(payload.get("transcript_path")),
        source=string(payload.get("source")) if moment == "session-start" else "",
    )


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def first(tool: dict[str, object], *keys: str) -> str:
    """The first text that stands under one of these keys."""
    return next((found for key in keys if (found := string(tool.get(key)))), "")


def put_in(tool: dict[str, object], new: str, *others: str) -> str:
    """What an edit puts in: the text under `new`, or else under one of the others, or `new` of each of many edits."""
    edits = tool.get("edits")
    many = [string(edit.get(new)) for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    return first(tool, new, *others) or "\n".join(many)


def added(event: Event, text: str) -> str:
    """The answer, ASCII only, that adds `text` to the model's context in the form of Claude Code."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})


def home(variable: str, *default: str) -> Path:
    """The user's folder that the environment variable names, else that one below the user's own."""
    import os
    from pathlib import Path

    moved = os.environ.get(variable)
    return Path(moved) if moved else Path.home().joinpath(*default)
