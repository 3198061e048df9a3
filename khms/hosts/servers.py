"""Which hosts can be given khms's tools, where they look for servers, and the entry that each one reads.

The entries are as the hosts' own `mcp add` wrote them (Claude Code 2.1.332, Codex 0.171, Gemini CLI 0.61, Copilot CLI
1.0.102, opencode 1.18.33); Cursor's is as its manual has it.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from khms.errors import KhmsError, Refused, Unavailable, Usage
from khms.hosts import backup, userfile
from khms.hosts.servertext import NAME, Form, Json, Toml
from khms.hosts.settings import Report

if TYPE_CHECKING:
    from khms.hosts.base import Scope

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a host looks: its user's file, a project's file (relative), the form of both, and the entry that starts a
    server by these words."""

    title: str
    user: Callable[[], Path]
    project: Callable[[Path], Path]
    form: Form
    entry: Callable[[list[str]], Entry]


@dataclass(frozen=True, slots=True)
class Configured:
    """An entry that stands in a host's settings. Where there is a `problem` it is not to be started: a project's file
    came with a repository, perhaps a stranger's."""

    host: str
    scope: str
    path: Path
    words: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    problem: str = ""


def _home(variable: str, *default: str) -> Path:
    moved = os.environ.get(variable)
    return Path(moved) if moved else Path.home().joinpath(*default)


def _claude() -> Path:
    return _home("CLAUDE_CONFIG_DIR") / ".claude.json"


def _opencode(folder: Path) -> Path:
    """Of the two names that opencode reads, the one that is there."""
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


def _stdio(words: list[str]) -> Entry:
    return {"type": "stdio", **_plain(words)}


def _plain(words: list[str]) -> Entry:
    return {"command": words[0], "args": words[1:]}


PLACES: dict[str, Place] = {
    "claude-code": Place(
        "Claude Code", _claude, lambda at: at / ".mcp.json", Json("mcpServers", "Claude Code", True), _stdio
    ),
    "codex": Place(
        "Codex", lambda: _home("CODEX_HOME", ".codex") / "config.toml", lambda at: at / ".codex" / "config.toml",
        Toml("Codex"), _plain,
    ),
    "gemini": Place(
        "Gemini CLI", lambda: Path.home() / ".gemini" / "settings.json", lambda at: at / ".gemini" / "settings.json",
        Json("mcpServers", "Gemini CLI"), _plain,
    ),
    "cursor": Place(
        "Cursor", lambda: Path.home() / ".cursor" / "mcp.json", lambda at: at / ".cursor" / "mcp.json",
        Json("mcpServers", "Cursor"), _plain,
    ),
    "copilot": Place(
        "Copilot CLI", lambda: _home("COPILOT_HOME", ".copilot") / "mcp-config.json",
        lambda at: at / ".github" / "mcp.json",
        Json("mcpServers", "Copilot CLI"), lambda words: {"tools": ["*"], "type": "local", **_plain(words)},
    ),
    "opencode": Place(
        "opencode", lambda: _opencode(_home("XDG_CONFIG_HOME", ".config") / "opencode"), _opencode,
        Json("mcp", "opencode"), lambda words: {"type": "local", "command": words, "enabled": True},
    ),
}  # fmt: skip


def place_of(host: str) -> Place:
    """Raises Usage for a host that is not known, naming those that are."""
    if host not in PLACES:
        raise Usage(f"no way is known to give {host} a server", hint="hosts: " + ", ".join(PLACES))
    return PLACES[host]


def words(root: str) -> list[str]:
    """What a host runs: this interpreter, so that a host which was not started from a shell finds it too. `root` names
    the base, where it is to be that one wherever the host starts it."""
    if not sys.executable:
        raise Unavailable("this Python does not know its own path", hint="run khms by the full path of its Python")
    return [sys.executable, "-I", "-m", "khms", *(("--root", root) if root else ()), "mcp"]


def install(host: str, scope: "Scope", project: Path, root: str = "") -> Report:
    """Puts the entry in; a second time changes nothing. What cannot be read whole, and a server of somebody else's
    under the same name, are refused untouched."""
    place, path = _located(host, scope, project)
    data = userfile.read(path)
    entry = place.entry(words(root))
    text = userfile.text(path, data)
    held = place.form.entry(text, path)
    if held == entry:
        return Report(False, path, backup.held(_key(path)), "already installed")
    if held is not None and not ours(held):
        raise Refused(
            f"a server named {NAME} stands there that is not this one", where=str(path), hint="rename it or take it out"
        )
    userfile.writable(path)
    if held is not None:  # another interpreter, another base: as if it had been taken out first
        uninstall(host, scope, project)
        data = userfile.read(path)
        text = userfile.text(path, data)
    after, made = place.form.put(text, path, entry)
    command = " ".join(words(root))
    backup.replace(path, data, after.encode("utf-8"), None, host=host, command=command, made=made, key=_key(path))
    note = f"{place.title} has khms's tools from its next session on"
    if scope == "project":
        note += "; the entry names this machine's Python, so do not share the file with other machines"
    return Report(True, path, backup.held(_key(path)), note)


def uninstall(host: str, scope: "Scope", project: Path) -> Report:
    """Takes the entry out: by the earlier bytes where the file is as installed, else by itself."""
    place, path = _located(host, scope, project)
    data = userfile.read(path)
    record = backup.load(_key(path))
    if data is None:
        backup.forget(_key(path))
        return Report(False, path, None, "there is no settings file")
    folders = record.folders if record else ()
    if record and backup.sha256(data) == record.installed:
        before = backup.before(_key(path), record)
        if before is not None or not record.before:
            userfile.put(path, before, folders)
            backup.forget(_key(path))
            return Report(True, path, None, "the settings are as they were")
    text = userfile.text(path, data)
    held = place.form.entry(text, path)
    if held is None or not ours(held):
        backup.forget(_key(path))
        return Report(False, path, None, "nothing of khms was in it")
    left = place.form.drop(text, path, record.made if record else ())
    gone = record is not None and not record.before and place.form.empty(left)
    userfile.put(path, None if gone else left.encode("utf-8"), folders)
    backup.forget(_key(path))
    return Report(True, path, None, "khms's entry was taken out; what else had changed stays")


def configured(project: Path) -> list[Configured]:
    """Every entry of khms's in the settings of every host, of the user and of the folder `project`; and each file in
    which one cannot be looked for."""
    found = []
    for host, place in PLACES.items():
        for scope, named in (("user", place.user()), ("project", place.project(project))):
            try:
                data = userfile.read(named)
                entry = place.form.entry(userfile.text(named, data), named) if data is not None else None
            except (KhmsError, OSError) as error:
                found.append(Configured(host, scope, named, problem=str(error).replace("\n", "; ")))
                continue
            if entry is not None:
                found.append(_configured(host, scope, named, entry))
    return found


def ours(entry: Entry) -> bool:
    """Whether the entry starts `khms mcp`, by whatever interpreter and for whatever base."""
    said = _words(entry)
    if len(said) < 2 or said[-1] != "mcp":
        return False
    return Path(said[0].replace("\\", "/")).stem == NAME or NAME in said[1:-1]


def _words(entry: Entry) -> list[str]:
    command = entry.get("command")
    said = command if isinstance(command, list) else [command, *_list(entry.get("args"))]
    return [word for word in said if isinstance(word, str)]


def _configured(host: str, scope: str, path: Path, entry: Entry) -> Configured:
    said = _words(entry)
    given = entry.get("env") or entry.get("environment")
    env = tuple((str(k), str(v)) for k, v in given.items()) if isinstance(given, dict) else ()
    problem = ""
    if entry.get("enabled") is False or entry.get("disabled") is True:
        problem = "it is switched off there"
    elif not ours(entry):
        problem = f"the server named {NAME} there is not this one"
    elif scope == "project" and (env or said[0] not in (sys.executable, NAME)):
        problem = "it is not run from here: a project's settings name another program, or set its environment"
    return Configured(host, scope, path, tuple(said), env, problem)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _located(host: str, scope: "Scope", project: Path) -> tuple[Place, Path]:
    place = place_of(host)
    named = place.user() if scope == "user" else place.project(project)
    return place, userfile.real(named, scope, project)


def _key(path: Path) -> Path:
    """What the backup is kept under: hooks keep their own of the same file."""
    return path.with_name(f"{path.name}#{NAME}-server")
