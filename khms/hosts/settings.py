"""khms's entries in a host's settings file: put in, taken out, looked at.

The file belongs to the host and its user. Only khms's own entries change; every other byte stays, and where
nothing else was changed since, uninstalling gives back the very file that was there.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from khms.errors import KhmsError, Refused, Unavailable, Usage
from khms.hosts import backup, entries, jsonc
from khms.hosts.entries import Entry
from khms.resources import folder
from khms.store import files

if TYPE_CHECKING:
    from khms.hosts.base import Host, Scope

LARGEST = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What was done to the settings file `path`; `backup` holds its earlier bytes, None where none are kept."""

    changed: bool
    path: Path
    backup: Path | None
    note: str


@dataclass(frozen=True, slots=True)
class Status:
    """How things stand; each problem is one line that a person can act on. `events` are those of the host at which khms
    runs."""

    installed: bool
    path: Path
    command: str
    problems: tuple[str, ...]
    events: tuple[str, ...] = ()


def hook_command(host: Host) -> str:
    """What the host runs: this interpreter without `site`, the client, the host's id, the folders to import from."""
    from importlib.util import find_spec

    engine = find_spec("tantivy")
    homes = [Path(__file__).absolute().parents[2]]
    if engine and engine.origin:
        homes.append(Path(engine.origin).absolute().parents[1])
    places = list(dict.fromkeys(str(home) for home in homes))
    client = str(folder("hooks").absolute() / "client.py")
    hint = "install khms under a path of plain characters"
    if not sys.executable:
        raise Unavailable("this Python does not know its own path", hint="run khms by the full path of its Python")
    for place in places:
        if os.pathsep in place:
            raise Refused(f"a folder of khms has {os.pathsep} in its path", where=place, hint=hint)
    command = shlex.join([sys.executable, "-IS", client, host.ID, os.pathsep.join(places)])
    try:
        command.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refused("a path of khms is not UTF-8", where=ascii(command), hint=hint) from error
    return command


def install(host: Host, scope: Scope, project: Path) -> Report:
    """Puts khms's entries in; a second time changes nothing. What cannot be read whole is refused untouched."""
    path = _path(host, scope, project)
    data = _read(path)
    document = _parse(path, data)
    if host.STRICT and document.loose:
        raise Refused(
            f"{host.TITLE} ignores this file: it takes no comment and no comma after the last item",
            where=f"{path}:{document.loose}",
            hint="take it out, then install again",
        )
    try:
        entries.check(host, document)
    except entries.Misshapen as error:
        hint = f"mend it as {host.TITLE}'s manual says, then install again"
        raise Refused(error.message, where=f"{path}:{error.line}", hint=hint) from error
    command = hook_command(host)
    if entries.complete(host, document, command):
        return Report(False, path, _kept(path), "already installed")
    _writable(path)
    record = backup.load(path)
    before = _before(host, path, data, document, record)
    after, made = entries.add(host, _parse(path, before), command)
    written = after.text.encode("utf-8")
    missing = tuple(str(parent) for parent in path.parents if not parent.exists())
    new = backup.Record(
        host=host.ID,
        path=str(path),
        command=command,
        before="" if before is None else backup.sha256(before),
        installed=backup.sha256(written),
        made=made,
        folders=record.folders if record and data is not None else missing,
    )
    backup.save(path, new, before)
    try:
        _write(path, written)
    except KhmsError:
        if record is None:
            backup.forget(path)
        raise
    note = f"{host.TITLE} runs khms from its next session on"
    if scope == "project":
        note += "; the entries name this machine's Python, so do not share the file with other machines"
    return Report(True, path, _kept(path), note)


def uninstall(host: Host, scope: Scope, project: Path) -> Report:
    """Takes khms's entries out: by the earlier bytes where the file is as installed, else one by one."""
    path = _path(host, scope, project)
    data = _read(path)
    record = backup.load(path)
    if data is None:
        backup.forget(path)
        return Report(False, path, None, "there is no settings file")
    folders = record.folders if record else ()
    if record and backup.sha256(data) == record.installed:
        before = backup.before(path, record)
        if before is not None or not record.before:
            _put(path, before, folders)
            backup.forget(path)
            return Report(True, path, None, "the settings are as they were")
    document = _parse(path, data)
    if not entries.find(host, document):
        backup.forget(path)
        return Report(False, path, None, "nothing of khms was in it")
    left = entries.remove(host, document, record.made if record else ())
    ours = record is not None and not record.before and not left.root.members and not left.root.comment
    _put(path, None if ours else left.text.encode("utf-8"), folders)
    backup.forget(path)
    return Report(True, path, None, "khms's entries were taken out; what else had changed stays")


def status(host: Host, scope: Scope, project: Path) -> Status:
    """What is installed and what keeps it from working. What is wrong with the file is a problem, not an error."""
    path = host.settings_path(scope, project)
    try:
        path = _path(host, scope, project)
        document = _parse(path, _read(path))
    except (Refused, Unavailable) as error:
        return Status(False, path, "", (str(error).replace("\n", "; "),))
    found = entries.find(host, document)
    command = found[0].command if found else ""
    problems = tuple(_problems(host, document, found)) if found else ()
    return Status(bool(found), path, command, problems, tuple(dict.fromkeys(entry.event for entry in found)))


def _problems(host: Host, document: jsonc.Document, found: list[Entry]) -> Iterator[str]:
    if host.STRICT and document.loose:
        yield f"{host.TITLE} ignores the file: line {document.loose} is not plain JSON"
    off = document.root.get("disableAllHooks")
    if off and off.value == "true":
        yield f"line {jsonc.line_of(document.text, off.start)} switches all hooks off: disableAllHooks"
    events = [entry.event for entry in found]
    missing = [watch.event for watch in host.WATCHES if watch.event not in events]
    if missing:
        yield f"no entry for {', '.join(missing)}: install again"
    if len(events) > len(set(events)):
        yield "more than one entry for an event: install again"
    for command in dict.fromkeys(entry.command for entry in found):
        words = entries.command_words(command)
        if words and not os.access(words[0], os.X_OK):
            yield f"the interpreter is missing: {words[0]}: install again"
        if words and not Path(words[1]).is_file():
            yield f"the client is missing: {words[1]}: install again"
        if command != hook_command(host):
            yield "the command is not that of the khms you run now: install again"


def _before(
    host: Host, path: Path, data: bytes | None, document: jsonc.Document, record: backup.Record | None
) -> bytes | None:
    """What the file would be without khms: the kept bytes if it is as installed, else itself less the entries."""
    if data is None or not entries.find(host, document):
        return data
    if record and backup.sha256(data) == record.installed:
        before = backup.before(path, record)
        if before is not None or not record.before:
            return before
    return entries.remove(host, document, record.made if record else ()).text.encode("utf-8")


def _path(host: Host, scope: Scope, project: Path) -> Path:
    """The file itself, behind any link. A project's own link must not lead out of the project."""
    if scope not in ("user", "project"):
        raise Usage(f"unknown scope: {scope}", hint="known scopes: user, project")
    named = host.settings_path(scope, project)
    try:
        if scope == "user":
            return named.resolve()
        if not project.is_dir():
            raise Refused("there is no such folder", where=str(project), hint="name the project's folder")
        return files.inside(project, named)
    except (OSError, RuntimeError) as error:
        raise Unavailable("the settings' path leads nowhere", where=str(named), hint=str(error)) from error


def _read(path: Path) -> bytes | None:
    """The file's bytes, None where there is none; raises for what is no file of settings."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Refused("this is not a file", where=str(path), hint="move away what stands where settings belong")
        if found.st_size > LARGEST:
            raise Refused("the settings file is too large", where=str(path), hint="see whether it is the right file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "give yourself access to it, or move away what stands there"
        raise Unavailable(f"cannot read: {error.strerror}", where=str(path), hint=hint) from error


def _writable(path: Path) -> None:
    """A file that is marked read-only stays so, though a rename could replace it."""
    if path.exists() and (not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK)):
        hint = "make it writable, or change it where it is made"
        raise Unavailable("the settings file is read-only", where=str(path), hint=hint)


def _parse(path: Path, data: bytes | None) -> jsonc.Document:
    """The settings as JSON; no file and an empty one are an empty object. Raises Refused with the line."""
    try:
        text = (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Refused("the settings are not UTF-8", where=f"{path}:{line}", hint="save the file as UTF-8") from error
    if not text.removeprefix("\ufeff").strip():
        text = text.rstrip() + "{}\n"
    try:
        document = jsonc.parse(text)
    except jsonc.Broken as error:
        message, hint = f"the settings are not JSON: {error.message}", "mend that line, then run the command again"
        raise Refused(message, where=f"{path}:{error.line}", hint=hint) from error
    if document.root.kind != "object":
        raise Refused("the settings are not a JSON object", where=f"{path}:1", hint="the file must hold { … }")
    return document


def _put(path: Path, data: bytes | None, folders: tuple[str, ...]) -> None:
    """Writes the file; without bytes removes it, and of the folders made for it those that are empty."""
    _writable(path)
    if data is not None:
        _write(path, data)
        return
    files.unlink(path)
    for made in folders:
        files.remove_empty(Path(made), Path(made).parent)


def _write(path: Path, data: bytes) -> None:
    """Writes the file under the mode it has. What a killed run left beside it, a copy of the settings, goes."""
    if path.parent.is_dir():
        for left in path.parent.iterdir():
            if left.name.startswith(files.TEMPORARY) and left.name.endswith(path.name):
                files.unlink(left)
    files.write_atomic(path, data, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666)


def _kept(path: Path) -> Path | None:
    kept = backup.place(path)
    return kept if kept.is_file() else None
