"""GitHub Copilot: the hooks file that its CLI and VS Code share, and the payloads and answers of each.

What was seen with the CLI 1.0.102: an event spelled like `SessionStart` is told as Claude Code tells it, with Claude's
names for tools, and a matcher may use either name; an event spelled like `sessionStart` is told without its name. Both
take an answer at the top level of the object only. VS Code (as documented in July 2026, not run) reads the same files,
tells `hookEventName` and a transcript's path, and takes its answer where Claude Code does, but none to a prompt. So one
file serves both, and each answer has the form of the program that asks.
"""

from __future__ import annotations

import json

from khms.hosts.base import Event, Watch, added, first, home, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from khms.hosts.base import Moment, Scope

ID = "copilot"
TITLE = "GitHub Copilot"
STRICT = True
FLAT = True
HEAD = {"version": 1}
ANSWERS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse"})
WATCHES: tuple[Watch, ...] = (
    Watch("SessionStart", "", 5),
    Watch("UserPromptSubmit", "", 5),
    Watch("SubagentStart", "", 5),
    Watch("PreToolUse", "Bash|powershell|Edit|Write|apply_patch", 5),  # VS Code heeds no matcher
    Watch("PreCompact", "", 5),
    Watch("SessionEnd", "", 5),
)
NOTES = (
    "VS Code runs the same hooks; it takes no answer to a prompt, so cards come before commands and edits only",
    "a command that fails is no failure to Copilot: nothing is said after failures",
)

VSCODE = "vscode"  # the host of its events
_UNHEARD = ("UserPromptSubmit",)  # by VS Code
_MOMENTS: dict[str, Moment] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "SubagentStart": "subagent-start",
    "PreCompact": "pre-compact",
    "SessionEnd": "session-end",
}
_SHELLS = ("Bash", "bash", "powershell", "run_in_terminal")
_EDITS = (
    *("Write", "Edit", "create", "edit", "str_replace_editor", "apply_patch"),
    *("create_file", "insert_edit_into_file", "replace_string_in_file"),
)
_PATHS = ("path", "file_path", "filePath")
_NEW = ("file_text", "new_str", "content", "newString", "code", "new_string")
_PATCHES = ("input", "patch", "command")


def event(payload: object) -> Event | None:
    """The event in a hook's payload; None for anything that neither Copilot CLI nor VS Code sends: each gives the time,
    and Gemini, which does so too, names its events otherwise."""
    if not isinstance(payload, dict) or "timestamp" not in payload or "conversation_id" in payload:
        return None
    name = first(payload, "hook_event_name", "hookEventName") or _name(payload)
    if not name or name.startswith(("Before", "After")) or name == "PreCompress":
        return None
    transcript = first(payload, "transcript_path", "transcriptPath")
    session = first(payload, "session_id", "sessionId")
    vscode = "hookEventName" in payload or (transcript != "" and not transcript.endswith("events.jsonl"))
    moment = _MOMENTS.get(name, "other")
    if moment == "session-end" and not transcript and not vscode:
        transcript = _events(session)
    command = path = text = ""
    if name == "PreToolUse":
        used = payload.get("tool_name") or payload.get("toolName")
        given = payload.get("tool_input") if "tool_input" in payload else payload.get("toolArgs")
        tool = given if isinstance(given, dict) else {}
        if used in _SHELLS:
            moment, command = "pre-shell", string(tool.get("command"))
        elif used in _EDITS:
            moment, (path, text) = "pre-edit", _edited(given, tool)
    found = told(payload, VSCODE if vscode else ID, name, moment, command=command, path=path, text=text)
    return found._replace(session=session, transcript=transcript)


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, that adds `text` to the model's context; "" where it cannot or need not."""
    if not text or event.name not in ANSWERS:
        return ""
    if event.host != VSCODE:
        return json.dumps({"additionalContext": text})
    if event.name in _UNHEARD:
        return ""
    return added(event, text)


def settings_path(scope: Scope, project: Path) -> Path:
    """A file of khms's own among the hooks: of the user (COPILOT_HOME moves them), or of the folder `project`."""
    folder = project / ".github" if scope == "project" else _home()
    return folder / "hooks" / "khms.json"


def handler(watch: Watch, command: str) -> dict[str, str | int]:
    """The limit under Copilot's name for it and under VS Code's, both in seconds."""
    matched: dict[str, str | int] = {"matcher": watch.matcher} if watch.matcher else {}  # an empty one matches nothing
    limits: dict[str, str | int] = {"timeoutSec": watch.timeout, "timeout": watch.timeout}
    return {"type": "command", **matched, "command": command, **limits}


def _name(payload: dict[str, object]) -> str:
    """Which event a payload without a name is of, in the spelling of those with one, as far as khms listens."""
    if "toolName" in payload:
        return "" if "toolResult" in payload or "error" in payload else "PreToolUse"
    for key, name in (("source", "SessionStart"), ("prompt", "UserPromptSubmit"), ("trigger", "PreCompact"),
                      ("reason", "SessionEnd")):  # fmt: skip
        if key in payload:
            return name
    return ""


def _edited(given: object, tool: dict[str, object]) -> tuple[str, str]:
    """The file and what is put into it; a patch holds both."""
    patch = given if isinstance(given, str) else first(tool, *_PATCHES)
    if "*** Begin Patch" in patch:
        from khms.hosts.codex import patched

        return patched(patch)
    return first(tool, *_PATHS), first(tool, *_NEW)


def _events(session: str) -> str:
    """The CLI tells a session's end without the path of its transcript, which is in a folder named after it."""
    if not session.replace("-", "").isalnum():
        return ""
    return str(_home() / "session-state" / session / "events.jsonl")


def _home() -> Path:
    return home("COPILOT_HOME", ".copilot")
