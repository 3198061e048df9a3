"""A host's own settings file on disk: read whole or refused, written under the mode it has, links followed once."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from khms.errors import Refused, Unavailable, Usage
from khms.hosts import jsonc
from khms.store import files

if TYPE_CHECKING:
    from khms.hosts.base import Scope

LARGEST = 4 * 1024 * 1024


def real(named: Path, scope: Scope, project: Path) -> Path:
    """The file itself, behind any link. A project's own link must not lead out of the project."""
    if scope not in ("user", "project"):
        raise Usage(f"unknown scope: {scope}", hint="known scopes: user, project")
    try:
        if scope == "user":
            return named.resolve()
        if not project.is_dir():
            raise Refused("there is no such folder", where=str(project), hint="name the project's folder")
        return files.inside(project, named)
    except (OSError, RuntimeError) as error:
        raise Unavailable("the settings' path leads nowhere", where=str(named), hint=str(error)) from error


def read(path: Path) -> bytes | None:
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


def writable(path: Path) -> None:
    """A file that is marked read-only stays so, though a rename could replace it."""
    if path.exists() and (not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK)):
        hint = "make it writable, or change it where it is made"
        raise Unavailable("the settings file is read-only", where=str(path), hint=hint)


def text(path: Path, data: bytes | None) -> str:
    """The file's text, empty where there is none. Raises Refused with the line."""
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Refused("the file is not UTF-8", where=f"{path}:{line}", hint="save it as UTF-8") from error


def parse(path: Path, data: bytes | None) -> jsonc.Document:
    """The settings as JSON; no file and an empty one are an empty object. Raises Refused with the line."""
    written = text(path, data)
    if not written.removeprefix("\ufeff").strip():
        written = written.rstrip() + "{}\n"
    try:
        document = jsonc.parse(written)
    except jsonc.Broken as error:
        message, hint = f"the settings are not JSON: {error.message}", "mend that line, then run the command again"
        raise Refused(message, where=f"{path}:{error.line}", hint=hint) from error
    if document.root.kind != "object":
        raise Refused("the settings are not a JSON object", where=f"{path}:1", hint="the file must hold { … }")
    return document


def put(path: Path, data: bytes | None, folders: tuple[str, ...]) -> None:
    """Writes the file; without bytes removes it, and of the folders made for it those that are empty."""
    writable(path)
    if data is not None:
        write(path, data)
        return
    files.unlink(path)
    for made in folders:
        files.remove_empty(Path(made), Path(made).parent)


def write(path: Path, data: bytes) -> None:
    """Writes the file under the mode it has. What a killed run left beside it, a copy of the settings, goes."""
    if path.parent.is_dir():
        for left in path.parent.iterdir():
            if left.name.startswith(files.TEMPORARY) and left.name.endswith(path.name):
                files.unlink(left)
    files.write_atomic(path, data, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666)
