"""Kiro, its CLI 3 and its IDE 1: a file of hooks that is khms's own, and its payloads and answers.

Not run here. As documented, and as reports of July 2026 have it: the files in `.kiro/hooks` are of schema v1, events
are spelled like `UserPromptSubmit` and told with a session id; in CLI 2 hooks stand in the file of each agent, events
are spelled like `userPromptSubmit` and told without one. What a hook prints at a session's start and at a prompt is
added to the context as it is; before and after a tool it is not. Early builds of CLI 3 passed an empty prompt on, and
the IDE 1.0.138 dropped what was printed.
"""

from __future__ import annotations

from khms.hosts.base import Event, Watch, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from khms.hosts.base import Moment, Scope
    from khms.hosts.textfile import Form

ID = "kiro"
TITLE = "Kiro"
STRICT = True
ANSWERS = frozenset({"SessionStart", "UserPromptSubmit", "agentSpawn", "userPromptSubmit"})
WATCHES: tuple[Watch, ...] = (Watch("SessionStart", "", 5), Watch("UserPromptSubmit", "", 5))
NOTES = (
    "Kiro takes nothing for the model before a tool runs: ask khms precheck before a risky command",
    "Kiro CLI 2 reads no such file, only hooks in an agent's own one; version 3 does",
)

_MOMENTS: dict[str, Moment] = {
    "SessionStart": "session-start",
    "agentSpawn": "session-start",
    "UserPromptSubmit": "prompt",
    "userPromptSubmit": "prompt",
}


def event(payload: object) -> Event | None:
    """The event in a hook's payload, of either version; None for what has no name."""
    if not isinstance(payload, dict):
        return None
    name = string(payload.get("hook_event_name"))
    if not name:
        return None
    moment = _MOMENTS.get(name, "other")
    return told(payload, ID, name, moment)._replace(source="startup" if moment == "session-start" else "")


def answer(event: Event, text: str) -> str:
    """The text as it is; "" where it would not reach the model."""
    return text if event.name in ANSWERS else ""


def settings_path(scope: Scope, project: Path) -> Path:
    """khms's own file in `~/.kiro/hooks`, or in that of the folder `project`."""
    from pathlib import Path

    return (project if scope == "project" else Path.home()) / ".kiro" / "hooks" / "khms.json"


def form() -> Form:
    """The whole file is khms's."""
    import json

    from khms.hosts.textfile import Whole

    def make(command: str) -> str:
        hooks = [
            {
                "name": f"khms-{_MOMENTS[watch.event]}",
                "trigger": watch.event,
                "action": {"type": "command", "command": command},
                "timeout": watch.timeout,
                "enabled": True,
            }
            for watch in WATCHES
        ]
        return json.dumps({"version": "v1", "hooks": hooks}, indent=2) + "\n"

    def command(text: str) -> str:
        try:
            return str(json.loads(text)["hooks"][0]["action"]["command"])
        except (ValueError, LookupError, TypeError):
            return ""

    return Whole('"name": "khms-', make, command, tuple(watch.event for watch in WATCHES))
