"""Gemini CLI: its hook payloads and answers, and its settings file.

What was seen with 0.61: a session's start is answered into the first prompt, between `<hook_context>` marks and with
angle brackets escaped; a prompt's answer is one more part of the user's message; a tool's is put behind the tool's own
output, unless the tool itself failed. What is answered before a tool runs goes nowhere, so what belongs to a command or
an edit is said right after it. `PreCompress` comes before every call of the model, whether anything is cut down or not.
"""

from __future__ import annotations

from khms.hosts.base import Event, Watch, added, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from khms.hosts.base import Moment, Scope
    from khms.hosts.entries import Entry
    from khms.hosts.jsonc import Node

ID = "gemini"
TITLE = "Gemini CLI"
STRICT = False
ANSWERS = frozenset({"SessionStart", "BeforeAgent", "AfterTool"})
WATCHES: tuple[Watch, ...] = (
    Watch("SessionStart", "", 5),
    Watch("BeforeAgent", "", 5),
    Watch("AfterTool", "^(run_shell_command|write_file|replace)$", 5),
    Watch("SessionEnd", "", 5),
)
NOTES = (
    "Gemini CLI lets no hook speak before a tool runs: what is known of a command or an edit comes right after it",
    "Gemini CLI has no event for sub-agents, and none that comes only when a conversation is cut down",
)

_NAME = "khms"
_MOMENTS: dict[str, Moment] = {"SessionStart": "session-start", "BeforeAgent": "prompt", "SessionEnd": "session-end"}
_EDITS = ("write_file", "replace")
_STARTED, _ENDED = "<hook_context>", "</hook_context>"


def event(payload: object) -> Event | None:
    """The event in a hook's payload; None for anything that Gemini CLI does not send: each has a time, the path of a
    transcript and the name of an event in Gemini's way."""
    if not isinstance(payload, dict):
        return None
    name = string(payload.get("hook_event_name"))
    if not name or "timestamp" not in payload or "conversation_id" in payload:
        return None
    moment = _MOMENTS.get(name, "other")
    given = payload.get("tool_input")
    tool = given if isinstance(given, dict) else {}
    response = payload.get("tool_response")
    said = response if isinstance(response, dict) else {}
    command = path = text = error = ""
    if name == "AfterTool" and not said.get("error"):  # what is added to a tool's error is dropped
        used = payload.get("tool_name")
        if used == "run_shell_command":
            output = string(said.get("llmContent"))
            moment, command = "pre-shell", string(tool.get("command"))
            error = output if _failed(output) else ""
        elif used in _EDITS:
            moment, path = "pre-edit", string(tool.get("file_path"))
            text = string(tool.get("content" if used == "write_file" else "new_string"))
    found = told(payload, ID, name, moment, command=command, path=path, text=text, error=error)
    return found._replace(prompt=_own(found.prompt) if moment == "prompt" else "")


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, that adds `text` to the model's context; "" where it cannot or need not."""
    return added(event, text) if text and event.name in ANSWERS else ""


def settings_path(scope: Scope, project: Path) -> Path:
    """`~/.gemini/settings.json`, or that of the folder `project`."""
    from pathlib import Path

    return (project if scope == "project" else Path.home()) / ".gemini" / "settings.json"


def handler(watch: Watch, command: str) -> dict[str, str | int]:
    """The limit is in milliseconds; the name is what `/hooks` shows and switches off."""
    return {"name": _NAME, "type": "command", "command": command, "timeout": watch.timeout * 1000}


def pending(path: Path, found: list[Entry]) -> Iterator[str]:
    """Hooks that are switched off in the file, and a folder that is not trusted."""
    from pathlib import Path

    config = _read(path).get("hooksConfig")
    enabled, off = (config.get("enabled"), config.get("disabled")) if config else (None, None)
    if enabled and enabled.value == "false":
        yield "the settings switch all hooks off: hooksConfig.enabled"
    if off and any(item.node.value == _NAME for item in off.members):
        yield f"the settings switch khms's hooks off: start gemini, /hooks enable {_NAME}"
    home = Path.home() / ".gemini"
    if path.parent == home.resolve():
        return
    project = path.parent.parent
    folders = _read(home / "trustedFolders.json").members
    trusted = [str(Path(folder.key).resolve()) for folder in folders if folder.node.value == "TRUST_FOLDER"]
    if not any(str(folder) in trusted for folder in (project, *project.parents)):
        yield f"Gemini CLI runs hooks of this folder once you trust it: start gemini in {project}"


def _failed(output: str) -> bool:
    """Whether the output of a shell command tells its exit code, which it does where that is not zero."""
    return any(line.startswith("Exit Code: ") for line in output.split("\n"))


def _own(prompt: str) -> str:
    """The prompt without what a hook said at the session's start, which comes before it where nobody types."""
    before, start, rest = prompt.partition(_STARTED)
    _, end, after = rest.rpartition(_ENDED)
    return before + after if start and end else prompt


def _read(path: Path) -> Node:
    """What a file of Gemini's holds, nothing where there is no such file or it makes no sense."""
    from khms.hosts import jsonc

    try:
        return jsonc.parse(path.read_text(encoding="utf-8")).root
    except (OSError, ValueError, jsonc.Broken):
        return jsonc.Node("object", 0)
