"""Codex CLI: its hook payloads and answers, its hooks file, and whether it was told to trust what stands there.

What was seen with 0.171: the answer's text arrives as a message of role `developer` with exactly that text. An answer
with a key that Codex does not know fails whole. A hook runs only once its hash stands in the user's `config.toml`;
`codex exec` passes over one that does not, without a word. The hash is that of the entry as canonical JSON, compared
with what `codex app-server` says of its hooks.
"""

from __future__ import annotations

import json

from khms.hosts.base import Event, Watch, added, home, string, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from khms.hosts.base import Moment, Scope
    from khms.hosts.entries import Entry

ID = "codex"
TITLE = "Codex"
STRICT = True
ANSWERS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse"})
WATCHES: tuple[Watch, ...] = (
    Watch("SessionStart", "startup|resume|clear|compact", 5),
    Watch("UserPromptSubmit", "", 5),
    Watch("SubagentStart", "", 5),
    Watch("PreToolUse", "^(Bash|apply_patch)$", 5),
    Watch("PreCompact", "", 5),
    Watch("SessionEnd", "", 3),  # more is cut down to that
)
NOTES = (
    "Codex runs a new or changed hook only after you trusted it: start codex, type /hooks",
    "Codex does not tell hooks whether a command failed: nothing is said after failures",
)

_MOMENTS: dict[str, Moment] = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "SubagentStart": "subagent-start",
    "PreCompact": "pre-compact",
    "SessionEnd": "session-end",
}
# The event's name in the key under which trust is kept, and in what is hashed.
_KEYS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "user_prompt_submit",
    "SubagentStart": "subagent_start",
    "PreToolUse": "pre_tool_use",
    "PreCompact": "pre_compact",
    "SessionEnd": "session_end",
}
_FILES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")


def event(payload: object) -> Event | None:
    """The event in a hook's payload; None for anything that Codex does not send: it gives neither the time nor a
    conversation's id, which Gemini, Copilot, VS Code and Cursor do."""
    if not isinstance(payload, dict):
        return None
    name = string(payload.get("hook_event_name"))
    if not name or "timestamp" in payload or "conversation_id" in payload:
        return None
    moment = _MOMENTS.get(name, "other")
    command = path = text = ""
    if name == "PreToolUse":
        given = payload.get("tool_input")
        said = string(given.get("command")) if isinstance(given, dict) else ""
        if payload.get("tool_name") == "Bash":  # whatever shell tool the model was offered
            moment, command = "pre-shell", said
        elif payload.get("tool_name") == "apply_patch":
            moment, (path, text) = "pre-edit", patched(said)
    return told(payload, ID, name, moment, command=command, path=path, text=text)


def answer(event: Event, text: str) -> str:
    """One JSON object, ASCII only, that adds `text` to the model's context; "" where it cannot or need not."""
    return added(event, text) if text and event.name in ANSWERS else ""


def patched(patch: str) -> tuple[str, str]:
    """The first file that a patch names, and all the lines that it puts in."""
    path, lines = "", []
    for line in patch.split("\n"):
        if line.startswith("+"):
            lines.append(line[1:])
        elif not path:
            path = next((line.removeprefix(mark).strip() for mark in _FILES if line.startswith(mark)), "")
    return path, "\n".join(lines)


def settings_path(scope: Scope, project: Path) -> Path:
    """`~/.codex/hooks.json` (CODEX_HOME moves it), or that of the folder `project`."""
    return (project / ".codex" if scope == "project" else _home()) / "hooks.json"


def pending(path: Path, found: list[Entry]) -> Iterator[str]:
    """What Codex was not told yet, as its configuration has it: that hooks run, that the folder and each entry are
    trusted."""
    import tomllib
    from pathlib import Path

    named = _home() / "config.toml"
    try:
        with named.open("rb") as file:
            config = tomllib.load(file)
    except FileNotFoundError:
        config = {}
    except (OSError, ValueError) as error:
        yield f"cannot read {named}, where Codex keeps what it trusts: {error}"
        return
    features = _table(config, "features")
    if features.get("hooks", features.get("codex_hooks")) is False:
        yield f"Codex runs no hooks: [features] in {named} switches them off"
    if path.parent != _home().resolve():
        folders = {str(Path(folder).resolve()): value for folder, value in _table(config, "projects").items()}
        trusted = folders.get(str(path.parent.parent))
        if not isinstance(trusted, dict) or trusted.get("trust_level") != "trusted":
            yield f"Codex runs hooks of this folder once you trust it: start codex in {path.parent.parent}"
    kept = {}
    for key, value in _table(_table(config, "hooks"), "state").items():
        place, _, rest = key.partition(".json:")
        if isinstance(value, dict) and str(Path(f"{place}.json").resolve()) == str(path):
            kept[rest] = value
    states = [(entry, kept.get(f"{_KEYS.get(entry.event, '')}:{entry.place[0]}:{entry.place[1]}")) for entry in found]
    if off := [entry.event for entry, state in states if state and state.get("enabled") is False]:
        yield f"Codex was told not to run {', '.join(off)}: start codex, type /hooks, switch them on"
    if new := [entry.event for entry, state in states if not state or state.get("trusted_hash") != trust_hash(entry)]:
        yield f"Codex does not run {', '.join(new)} yet: start codex, type /hooks, trust the entries of khms"


def trust_hash(entry: Entry) -> str:
    """What Codex knows an entry by: any change of the command, the matcher or the limit changes it."""
    from hashlib import sha256

    timeout = next((watch.timeout for watch in WATCHES if watch.event == entry.event), 0)
    known: dict[str, object] = {"event_name": _KEYS.get(entry.event, entry.event)}
    known["hooks"] = [{"type": "command", "command": entry.command, "timeout": timeout, "async": False}]
    if entry.matcher:
        known["matcher"] = entry.matcher
    canonical = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _home() -> Path:
    return home("CODEX_HOME", ".codex")


def _table(value: dict[str, object], key: str) -> dict[str, object]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
