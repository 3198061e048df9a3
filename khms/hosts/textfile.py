"""Settings that are no JSON of Claude's shape: a file of khms's own, or text in which khms has its lines.

A host whose module offers `form` is installed this way. The promise is that of `settings`: only what is khms's changes,
a second time changes nothing, and where nothing else was changed since, uninstalling gives back the bytes there were.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from khms.errors import Refused
from khms.hosts import backup, userfile
from khms.hosts.entries import Entry, Misshapen
from khms.resources import folder

if TYPE_CHECKING:
    from typing import Protocol

    from khms.hosts.base import Host, Scope, Watch

    class Form(Protocol):
        """How khms stands in a text. Where the text is of a shape that cannot be edited, all raise Misshapen."""

        def find(self, text: str) -> list[Entry]:
            """What khms has in it."""

        def add(self, text: str, command: str) -> str:
            """The text, which holds nothing of khms, with it."""

        def remove(self, text: str) -> str:
            """The text without khms; empty where it is khms's alone."""


T = TypeVar("T")
_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)
HOLE = '["@COMMAND@"]'


@dataclass(frozen=True, slots=True)
class Whole:
    """A file that is khms's alone: `mark` stands in every one that khms wrote, and in no other."""

    mark: str
    make: Callable[[str], str]
    command: Callable[[str], str]
    events: tuple[str, ...]

    def find(self, text: str) -> list[Entry]:
        events = self.events if self.mark in text else ()
        return [Entry(event, "", self.command(text), True, ()) for event in events]

    def add(self, text: str, command: str) -> str:
        if text.strip():
            raise Misshapen("a file that is not khms's stands where khms's own would", 1)
        return self.make(command)

    def remove(self, text: str) -> str:
        return "" if self.mark in text else text


def script(name: str, watches: tuple[Watch, ...]) -> Whole:
    """The program `name` of the shipped hooks, below the one that starts the client."""

    def make(command: str) -> str:
        text = "\n".join((folder("hooks") / part).read_text(encoding="utf-8") for part in ("ask.js", name))
        return text.replace(HOLE, json.dumps(shlex.split(command)))

    def command(text: str) -> str:
        found = _COMMAND.search(text)
        try:
            words = json.loads(found[1]) if found else []
        except ValueError:
            words = []
        return shlex.join(word for word in words if isinstance(word, str))

    return Whole("// Written by khms: ", make, command, tuple(watch.event for watch in watches))


def page(name: str) -> Whole:
    """The text `name` of the shipped templates, which starts nothing."""

    def make(command: str) -> str:
        return (folder("templates") / name).read_text(encoding="utf-8")

    return Whole("Written by khms: ", make, lambda text: "", ("",))


def form_of(host: Host) -> Form | None:
    """How the host's settings hold khms, where they are not JSON of Claude's shape."""
    made: Callable[[], Form] | None = getattr(host, "form", None)
    return made() if made else None


def beside(host: Host, scope: Scope, project: Path) -> list[tuple[Path, Form]]:
    """The files, besides its settings, that this host needs or can make use of."""
    named: Callable[[Scope, Path], list[tuple[Path, Form]]] | None = getattr(host, "beside", None)
    found = named(scope, project) if named else []
    return [(userfile.real(path, scope, project), form) for path, form in found]


def find(form: Form, path: Path) -> list[Entry]:
    return _mending(path, "", lambda: form.find(userfile.text(path, userfile.read(path))))


def whole(form: Form, path: Path, command: str) -> bool:
    """Whether what khms has in the file is what it would write today."""
    text = userfile.text(path, userfile.read(path))
    try:
        return form.add(form.remove(text), command) == text
    except Misshapen:
        return False


def install(host: Host, form: Form, path: Path, command: str, *, dry: bool = False) -> bool:
    """Puts khms in; whether anything changed. A dry run changes nothing: it raises what would be raised."""
    data = userfile.read(path)
    record = backup.load(path)

    def edited() -> tuple[bytes | None, bytes]:
        before = _before(form, path, data, record)
        return before, form.add(userfile.text(path, before), command).encode("utf-8")

    before, written = _mending(path, host.TITLE, edited)
    if data == written:
        return False
    userfile.writable(path)
    if dry:
        return True
    backup.replace(path, before, written, record, host=host.ID, command=command)
    return True


def uninstall(form: Form, path: Path) -> tuple[bool, str]:
    """Takes khms out; whether anything changed, and a word on it for a person."""
    data = userfile.read(path)
    record = backup.load(path)
    if data is None:
        backup.forget(path)
        return False, "there is no such file"
    if not find(form, path):
        backup.forget(path)
        return False, "nothing of khms was in it"
    as_installed = record is not None and backup.sha256(data) == record.installed
    before = _mending(path, "", lambda: _before(form, path, data, record))
    userfile.put(path, before, record.folders if record else ())
    backup.forget(path)
    if as_installed or before is None:
        return True, "it is as it was"
    return True, "khms was taken out; what else had changed stays"


def _before(form: Form, path: Path, data: bytes | None, record: backup.Record | None) -> bytes | None:
    """What the file would be without khms: the kept bytes if it is as installed, else itself less khms."""
    if data is None or not form.find(userfile.text(path, data)):
        return data
    if record and backup.sha256(data) == record.installed:
        before = backup.before(path, record)
        if before is not None or not record.before:
            return before
    rest = form.remove(userfile.text(path, data)).encode("utf-8")
    return None if not rest.strip() and (isinstance(form, Whole) or (record and not record.before)) else rest


def _mending(path: Path, title: str, step: Callable[[], T]) -> T:
    """What `step` gives; a text of another shape is refused with its place."""
    try:
        return step()
    except Misshapen as error:
        hint = f"mend it as {title}'s manual says, or move it away" if title else "mend that line, then try again"
        raise Refused(error.message, where=f"{path}:{error.line}", hint=hint) from error
