"""Cursor: its hook payloads and answers, its hooks file, and a rule for what its hooks cannot do.

Not run here. As documented, and as others read it from the client 3.20 and saw it arrive (September 2026): context is
taken from the answers to sessionStart, beforeSubmitPrompt (undocumented there, with `continue` beside it), preToolUse,
postToolUse and postToolUseFailure; a sub-agent takes none. What is printed must be one JSON object: text that is none
may stop the action. Cursor runs the hooks of Claude's settings too; those get no answer (see claude_code), so there is
one answer a moment. Rules of a user stand in the cloud, those of a project in its folder.
"""

from __future__ import annotations

import json

from khms.hosts.base import Event, Watch, first, put_in, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from khms.hosts.base import Moment, Scope
    from khms.hosts.textfile import Form

ID = "cursor"
TITLE = "Cursor"
STRICT = True
FLAT = True
HEAD = {"version": 1}
IDLE = "{}"  # printed where there is nothing to say
ANSWERS = frozenset({"sessionStart", "beforeSubmitPrompt", "preToolUse", "postToolUseFailure"})
WATCHES: tuple[Watch, ...] = (
    Watch("sessionStart", "", 5),
    Watch("beforeSubmitPrompt", "", 5),
    Watch("preToolUse", "Shell|Write", 5),
    Watch("postToolUseFailure", "Shell", 5),
    Watch("preCompact", "", 5),
    Watch("sessionEnd", "", 5),
)
NOTES = (
    "Cursor versions before mid-2026 drop what is said at a prompt or a tool; --scope project writes a rule besides,"
    " .cursor/rules/khms.mdc, that tells every session to ask khms",
    "Cursor tells a sub-agent nothing from hooks, and its cloud agents run no hook at a session's start",
)

_MOMENTS: dict[str, Moment] = {
    "sessionStart": "session-start",
    "beforeSubmitPrompt": "prompt",
    "preCompact": "pre-compact",
    "sessionEnd": "session-end",
}
_EDITS = ("Write", "Edit", "StrReplace", "MultiEdit")


def event(payload: object) -> Event | None:
    """The event in a hook's payload; None for anything that Cursor does not send."""
    if not isinstance(payload, dict):
        return None
    name = string(payload.get("hook_event_name"))
    session = first(payload, "conversation_id", "session_id")
    if not name or "conversation_id" not in payload:
        return None
    moment = _MOMENTS.get(name, "other")
    given = payload.get("tool_input")
    tool = given if isinstance(given, dict) else {}
    used = payload.get("tool_name")
    command = path = text = ""
    if name == "preToolUse" and used == "Shell":
        moment, command = "pre-shell", string(tool.get("command"))
    elif name == "preToolUse" and used in _EDITS:
        moment, path = "pre-edit", first(tool, "file_path", "path", "target_file")
        text = put_in(tool, "new_string", "content", "contents")
    elif name == "postToolUseFailure" and used == "Shell" and payload.get("is_interrupt") is not True:
        moment = "after-failure"
    error = string(payload.get("error_message"))
    found = told(payload, ID, name, moment, command=command, path=path, text=text, error=error)
    source = "startup" if moment == "session-start" else ""
    return found._replace(session=session, cwd=_cwd(payload, tool), source=source)


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, that adds `text` to the model's context; "" where it cannot or need not."""
    if not text or event.name not in ANSWERS:
        return ""
    going = {"continue": True} if event.name == "beforeSubmitPrompt" else {}
    return json.dumps({**going, "additional_context": text})


def handler(watch: Watch, command: str) -> dict[str, str | int]:
    """An entry as Cursor's schema has it; the schema knows no further key."""
    matcher = {"matcher": watch.matcher} if watch.matcher else {}
    return {"type": "command", "command": command, "timeout": watch.timeout, **matcher}


def settings_path(scope: Scope, project: Path) -> Path:
    """`~/.cursor/hooks.json`, or that of the folder `project`."""
    from pathlib import Path

    return (project if scope == "project" else Path.home()) / ".cursor" / "hooks.json"


def beside(scope: Scope, project: Path) -> list[tuple[Path, Form]]:
    """A project's rule, which stands in every request whatever becomes of the hooks' answers."""
    from khms.hosts.textfile import page

    if scope != "project":
        return []
    return [(project / ".cursor" / "rules" / "khms.mdc", page("cursor.mdc"))]


def _cwd(payload: dict[str, object], tool: dict[str, object]) -> str:
    """Where the session works: only tools are told a folder, the rest the roots of the workspace."""
    roots = payload.get("workspace_roots")
    root = string(roots[0]) if isinstance(roots, list) and roots else ""
    return string(payload.get("cwd")) or root or string(tool.get("working_directory"))
