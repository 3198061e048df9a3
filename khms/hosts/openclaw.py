"""OpenClaw: a hook folder of khms's own, and the event that its program sends.

Not run here. As documented (stored pages of 2026) and as other hooks do it: a folder in `~/.openclaw/hooks` holds
HOOK.md, which names the events, and handler.ts, whose default export is called with each. At `agent:bootstrap` it may
add to the files that are put before the model; no event lets it add to a prompt or to a tool's result. A hook is off
until the user switches it on.
"""

from __future__ import annotations

import json

from khms.hosts.base import Event, Watch, home, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from khms.hosts.base import Scope
    from khms.hosts.entries import Entry
    from khms.hosts.textfile import Form

ID = "openclaw"
TITLE = "OpenClaw"
STRICT = False
SCOPES = ("user",)
ANSWERS = frozenset({"agent:bootstrap"})
WATCHES: tuple[Watch, ...] = (Watch("agent:bootstrap", "", 5),)
NOTES = (
    "OpenClaw lets a hook speak at a session's start only: for cards about a prompt or a command an agent has to ask,"
    " with khms recall and khms precheck",
)


def event(payload: object) -> Event | None:
    """The event that the hook's program sent; None for anything else."""
    if not isinstance(payload, dict) or payload.get("hook_event_name") != "agent:bootstrap":
        return None
    child = bool(string(payload.get("parent_id")))
    return Event(
        moment="subagent-start" if child else "session-start",
        session=string(payload.get("session_id")),
        cwd=string(payload.get("cwd")),
        name="agent:bootstrap",
        host=ID,
        source="" if child else "startup",
    )


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, whose `text` the program puts before the model."""
    return json.dumps({"text": text}) if text and event.name in ANSWERS else ""


def settings_path(scope: Scope, project: Path) -> Path:
    return _home() / "hooks" / "khms" / "handler.ts"


def form() -> Form:
    """The whole file is khms's."""
    from khms.hosts.textfile import script

    return script("openclaw.ts", WATCHES)


def beside(scope: Scope, project: Path) -> list[tuple[Path, Form]]:
    """What makes the program a hook."""
    from khms.hosts.textfile import page

    return [(_home() / "hooks" / "khms" / "HOOK.md", page("openclaw.md"))]


def pending(path: Path, found: list[Entry]) -> Iterator[str]:
    """The switch is the user's."""
    from khms.errors import KhmsError
    from khms.hosts import userfile

    try:
        settings = _home() / "openclaw.json"
        node = userfile.parse(settings, userfile.read(settings)).root
        for key in ("hooks", "internal", "entries", "khms", "enabled"):
            inner = node.get(key)
            if inner is None:
                break
            node = inner
        on = node.kind == "plain" and node.value == "true"
    except KhmsError:  # it may be JSON5, which is not read here
        on = False
    if not on:
        yield "OpenClaw may not run it yet: openclaw hooks enable khms, then restart its gateway"


def _home() -> Path:
    return home("OPENCLAW_STATE_DIR", ".openclaw")
