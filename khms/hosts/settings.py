"""khms's entries in a host's settings file: put in, taken out, looked at.

The file belongs to the host and its user. Only khms's own entries change; every other byte stays, and where
nothing else was changed since, uninstalling gives back the very file that was there.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from khms.errors import Refused, Unavailable, Usage
from khms.hosts import backup, entries, jsonc, textfile, userfile
from khms.hosts.entries import Entry
from khms.resources import folder

if TYPE_CHECKING:
    from khms.hosts.base import Host, Scope


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


def scopes(host: Host) -> tuple[Scope, ...]:
    """Whose settings the host reads."""
    known: tuple[Scope, ...] = getattr(host, "SCOPES", ("user", "project"))
    return known


def install(host: Host, scope: Scope, project: Path) -> Report:
    """Puts khms's entries in; a second time changes nothing. What cannot be read whole is refused untouched."""
    if scope not in scopes(host):
        raise Usage(f"{host.TITLE} has no settings of a {scope}", hint=f"--scope {' or '.join(scopes(host))}")
    beside = textfile.beside(host, scope, project)
    for named, form in beside:
        textfile.install(host, form, named, "", dry=True)
    report = _install(host, scope, project)
    changed = [named for named, form in beside if textfile.install(host, form, named, "")]
    return replace(report, changed=True, note="; ".join([report.note, *map(str, changed)])) if changed else report


def _install(host: Host, scope: Scope, project: Path) -> Report:
    path = userfile.real(host.settings_path(scope, project), scope, project)
    if own := textfile.form_of(host):
        changed = textfile.install(host, own, path, hook_command(host))
        return Report(changed, path, backup.held(path), _installed(host, scope) if changed else "already installed")
    data = userfile.read(path)
    document = userfile.parse(path, data)
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
        return Report(False, path, backup.held(path), "already installed")
    userfile.writable(path)
    record = backup.load(path)
    before = _before(host, path, data, document, record)
    after, made = entries.add(host, userfile.parse(path, before), command)
    backup.replace(path, before, after.text.encode("utf-8"), record, host=host.ID, command=command, made=made)
    return Report(True, path, backup.held(path), _installed(host, scope))


def _installed(host: Host, scope: Scope) -> str:
    note = f"{host.TITLE} runs khms from its next session on"
    if scope == "project":
        note += "; the entries name this machine's Python, so do not share the file with other machines"
    return note


def uninstall(host: Host, scope: Scope, project: Path) -> Report:
    """Takes khms's entries out: by the earlier bytes where the file is as installed, else one by one."""
    gone = [named for named, form in textfile.beside(host, scope, project) if textfile.uninstall(form, named)[0]]
    report = _uninstall(host, scope, project)
    return replace(report, changed=True, note="; ".join([report.note, *map(str, gone)])) if gone else report


def _uninstall(host: Host, scope: Scope, project: Path) -> Report:
    path = userfile.real(host.settings_path(scope, project), scope, project)
    if own := textfile.form_of(host):
        changed, note = textfile.uninstall(own, path)
        return Report(changed, path, None, note)
    data = userfile.read(path)
    record = backup.load(path)
    if data is None:
        backup.forget(path)
        return Report(False, path, None, "there is no settings file")
    folders = record.folders if record else ()
    if record and backup.sha256(data) == record.installed:
        before = backup.before(path, record)
        if before is not None or not record.before:
            userfile.put(path, before, folders)
            backup.forget(path)
            return Report(True, path, None, "the settings are as they were")
    document = userfile.parse(path, data)
    if not entries.find(host, document):
        backup.forget(path)
        return Report(False, path, None, "nothing of khms was in it")
    left = entries.remove(host, document, record.made if record else ())
    ours = record is not None and not record.before and not left.root.members and not left.root.comment
    userfile.put(path, None if ours else left.text.encode("utf-8"), folders)
    backup.forget(path)
    return Report(True, path, None, "khms's entries were taken out; what else had changed stays")


def status(host: Host, scope: Scope, project: Path) -> Status:
    """What is installed and what keeps it from working. What is wrong with the file is a problem, not an error."""
    path = host.settings_path(scope, project)
    try:
        path = userfile.real(path, scope, project)
        own = textfile.form_of(host)
        if own:
            found = textfile.find(own, path)
        else:
            document = userfile.parse(path, userfile.read(path))
            found = entries.find(host, document)
        beside = [named for named, form in textfile.beside(host, scope, project) if not textfile.whole(form, named, "")]
    except (Refused, Unavailable) as error:
        return Status(False, path, "", (str(error).replace("\n", "; "),))
    command = found[0].command if found else ""
    problems: list[str] = []
    if found:
        problems += () if own else _of_document(host, document, found)
        problems += _problems(host, path, found)
        problems += [f"{named} is not there, or not as it should be: install again" for named in beside]
        if own and not problems and not textfile.whole(own, path, command):
            problems.append("the file is not what khms writes today: install again")
    return Status(bool(found), path, command, tuple(problems), tuple(dict.fromkeys(entry.event for entry in found)))


def _of_document(host: Host, document: jsonc.Document, found: list[Entry]) -> Iterator[str]:
    if host.STRICT and document.loose:
        yield f"{host.TITLE} ignores the file: line {document.loose} is not plain JSON"
    off = document.root.get("disableAllHooks")
    if off and off.value == "true":
        yield f"line {jsonc.line_of(document.text, off.start)} switches all hooks off: disableAllHooks"


def _problems(host: Host, path: Path, found: list[Entry]) -> Iterator[str]:
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
    pending: Callable[[Path, list[Entry]], Iterator[str]] | None = getattr(host, "pending", None)
    if pending:
        yield from pending(path, found)


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
