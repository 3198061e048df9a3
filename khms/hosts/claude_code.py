"""Claude Code: its hook payloads and answers, and its settings file.

What was seen with 2.1.332: the answer's text arrives in every request from then on, inside a message of role
`system`, as `<Event>[:<Tool>] hook additional context: <text>`. A settings file with a comment or a trailing
comma is ignored whole; a byte order mark, an empty file and empty lists of hooks are accepted.
"""

from __future__ import annotations

from khms.hosts.base import Event, Watch, added, first, home, put_in, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from khms.hosts.base import Moment, Scope

ID = "claude-code"
TITLE = "Claude Code"
STRICT = True
ANSWERS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUseFailure"})
WATCHES: tuple[Watch, ...] = (
    Watch("SessionStart", "startup|resume|clear|compact|fork", 5),
    Watch("UserPromptSubmit", "", 5),
    Watch("SubagentStart", "", 5),
    Watch("PreToolUse", "Bash|Edit|Write|MultiEdit|NotebookEdit", 5),
    Watch("PostToolUseFailure", "Bash", 5),
    Watch("PreCompact", "", 5),
    Watch("SessionEnd", "", 5),
)

_MOMENTS: dict[str, Moment] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "SubagentStart": "subagent-start",
    "PostToolUseFailure": "after-failure",
    "PreCompact": "pre-compact",
    "SessionEnd": "session-end",
}
_EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
# Prompts that the host made itself: nobody's sentence.
_CHROME = ("system", "poll_event")


def event(payload: object) -> Event | None:
    """The event in a hook's payload; None for anything that Claude Code does not send.

    Cursor, Copilot and VS Code read Claude's settings too and run the same command. Their payloads differ, and so
    does what they take for an answer: none of them gets one from here.
    """
    if not isinstance(payload, dict):
        return None
    name = string(payload.get("hook_event_name"))
    if not name or "conversation_id" in payload or "timestamp" in payload:
        return None
    moment = _MOMENTS.get(name, "other")
    given = payload.get("tool_input")
    tool = given if isinstance(given, dict) else {}
    command = path = text = ""
    if name == "PreToolUse":
        used = payload.get("tool_name")
        if used == "Bash":
            moment, command = "pre-shell", string(tool.get("command"))
        elif used in _EDITS:
            moment, path = "pre-edit", first(tool, "file_path", "notebook_path")
            text = put_in(tool, "new_string", "content", "new_source")
    elif moment == "after-failure":
        failed = payload.get("tool_name") == "Bash" and payload.get("is_interrupt") is not True
        moment = moment if failed else "other"
    elif moment == "prompt" and payload.get("source") in _CHROME:
        moment = "other"
    error = string(payload.get("error"))
    return told(payload, ID, name, moment, command=command, path=path, text=text, error=error)


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, that adds `text` to the model's context; "" where it cannot or need not."""
    return added(event, text) if text and event.name in ANSWERS else ""


def settings_path(scope: Scope, project: Path) -> Path:
    """`~/.claude/settings.json` (CLAUDE_CONFIG_DIR moves it), or that of the folder `project`."""
    return (project / ".claude" if scope == "project" else home("CLAUDE_CONFIG_DIR", ".claude")) / "settings.json"
