"""opencode: its plugin, a file of khms's own, and the events that the plugin sends.

What was seen with 1.18.33: a part pushed onto a message's parts in `chat.message`, and what is appended to a tool's
output in `tool.execute.after`, reach the model, and stay in every request from then on; parts are ordered by their
ids. Before a tool runs a plugin can only change its arguments or stop it. A tool that failed, other than a command
with an exit code, comes to no hook. Both the user's folder and the project's are loaded, `plugin` and `plugins`.
opencode waits at its start for a package from npm's registry where it has a plugin and that package is not there yet.
"""

from __future__ import annotations

import json

from khms.hosts.base import Event, Watch, home, put_in, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from khms.hosts.base import Moment, Scope
    from khms.hosts.textfile import Form

ID = "opencode"
TITLE = "opencode"
STRICT = False
ANSWERS = frozenset({"session.created", "chat.message", "tool.execute.after", "tool.failed"})
WATCHES: tuple[Watch, ...] = (
    Watch("session.created", "", 5),
    Watch("chat.message", "", 5),
    Watch("tool.execute.after", "bash|edit|write", 5),
    Watch("tool.failed", "bash", 5),
)
NOTES = (
    "opencode cannot tell the model anything before a tool runs: what khms has on a command or an edit comes with its"
    " result",
    "what is said at a session's start comes with the first prompt",
    "with a plugin, opencode waits at its first start for a package from npm's registry; without a network that takes"
    " a minute at every start: put fetch-retries=0 into ~/.npmrc",
)

_MOMENTS: dict[str, Moment] = {
    "session.created": "session-start",
    "chat.message": "prompt",
    "tool.failed": "after-failure",
}
_EDITS = ("edit", "write", "multiedit", "patch", "apply_patch")


def event(payload: object) -> Event | None:
    """The event that the plugin sent; None for anything else."""
    if not isinstance(payload, dict):
        return None
    name = string(payload.get("hook_event_name"))
    if name not in ANSWERS:
        return None
    moment = _MOMENTS.get(name, "other")
    given = payload.get("tool_input")
    tool = given if isinstance(given, dict) else {}
    command = path = text = ""
    if name == "session.created" and string(payload.get("parent_id")):
        moment = "subagent-start"
    elif name == "tool.execute.after":
        used = payload.get("tool_name")
        if used == "bash":
            moment, command = "pre-shell", string(tool.get("command"))
        elif used in _EDITS:
            moment, path = "pre-edit", string(tool.get("filePath"))
            text = put_in(tool, "newString", "content", "patchText")
    error = string(payload.get("error"))
    return told(payload, ID, name, moment, command=command, path=path, text=text, error=error)


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, whose `text` the plugin puts before the model."""
    return json.dumps({"text": text}) if text and event.name in ANSWERS else ""


def settings_path(scope: Scope, project: Path) -> Path:
    """The plugin's file: `~/.config/opencode/plugin/khms.js` (XDG_CONFIG_HOME moves it), or that of `project`."""
    folder = project / ".opencode" if scope == "project" else home("XDG_CONFIG_HOME", ".config") / "opencode"
    return folder / "plugin" / "khms.js"


def form() -> Form:
    """The whole file is khms's."""
    from khms.hosts.textfile import script

    return script("opencode.js", WATCHES)
