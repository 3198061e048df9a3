"""khms's section in a project's AGENTS.md: put in, brought up to date in place, taken out.

It stands between two lines of its own. A blank line goes before it where there is text before it, and where that text
does not end in a line end neither does the section: so taking it out gives back the bytes that were there.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from khms.errors import Refused
from khms.hosts import userfile
from khms.hosts.plugins import contents
from khms.store import files

T = TypeVar("T")
NAME = "AGENTS.md"
OWN = b"<!-- khms:"  # how the file begins that a base has at its top, which says all of this and more
BEGIN = b"<!-- begin khms: written by `khms hook install agents-md`, which replaces what stands here -->"
END = b"<!-- end khms -->"
_LINES = re.compile(rb"^<!-- (begin|end) khms\b[^\r\n]*-->[ \t]*(?=\r?$)", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the file: written, updated, unchanged, taken out, absent, or own (it is khms's, and says it)."""

    path: Path
    done: str


class Misplaced(Exception):
    """The lines around the section are not one pair."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def install(project: Path) -> Report:
    """Puts the section into the AGENTS.md of the folder `project`, or brings the one there up to date."""
    path, data = _located(project)
    if data is not None and data.removeprefix(_BOM).startswith(OWN):
        return Report(path, "own")
    before = data or b""
    after = _mended(path, lambda: put(before, contents.section()))
    if after == data:
        return Report(path, "unchanged")
    userfile.writable(path)
    files.write_atomic(path, after)
    return Report(path, "written" if data is None or _span(data) is None else "updated")


def uninstall(project: Path) -> Report:
    """Takes the section out; a file that held nothing else goes with it."""
    path, data = _located(project)
    after = _mended(path, lambda: take(data)) if data is not None else None
    if data is None or after is None or after == data:
        return Report(path, "absent")
    userfile.writable(path)
    if after.removeprefix(_BOM):
        files.write_atomic(path, after)
    else:
        files.unlink(path)
    return Report(path, "taken out")


def status(project: Path) -> Report:
    """How the file stands: unchanged, updated (it would be), absent, or own."""
    path, data = _located(project)
    if data is not None and data.removeprefix(_BOM).startswith(OWN):
        return Report(path, "own")
    if data is None or _mended(path, lambda: _span(data)) is None:
        return Report(path, "absent")
    return Report(path, "unchanged" if put(data, contents.section()) == data else "updated")


def put(data: bytes, text: bytes) -> bytes:
    """`data` with the section, which says `text`; where it has one already, in its place. Raises Misplaced."""
    span = _span(data)
    newline = _newline(data[span[0] :] if span else data)
    block = newline.join([BEGIN, *text.rstrip(b"\n").split(b"\n"), END])
    if span:
        return data[: span[0]] + block + data[span[1] :]
    if not data.removeprefix(_BOM):
        return data + block + newline
    return data + newline + block + newline if data.endswith(b"\n") else data + newline * 2 + block


def take(data: bytes) -> bytes:
    """`data` without the section. Raises Misplaced."""
    span = _span(data)
    if span is None:
        return data
    before, after, newline = data[: span[0]], data[span[1] :], _newline(data[span[0] :])
    if not after:  # the text before it had no line end, or somebody cut ours
        return before.removesuffix(newline).removesuffix(newline)
    return before.removesuffix(newline) + after.removeprefix(newline)


def _newline(data: bytes) -> bytes:
    """How the first line ends."""
    return b"\r\n" if data.partition(b"\n")[0].endswith(b"\r") else b"\n"


def _span(data: bytes) -> tuple[int, int] | None:
    """From where to where the section stands, both lines in it, without the last line end."""
    shift = len(_BOM) if data.startswith(_BOM) else 0
    found = list(_LINES.finditer(data[shift:]))
    if not found:
        return None
    kinds = [line[1] for line in found]
    if kinds != [b"begin", b"end"]:
        odd = next((at for at, (is_, due) in enumerate(zip(kinds, (b"begin", b"end"), strict=False)) if is_ != due), 2)
        raise Misplaced(data.count(b"\n", 0, found[min(odd, len(found) - 1)].start() + shift) + 1)
    return found[0].start() + shift, found[1].end() + shift


def _located(project: Path) -> tuple[Path, bytes | None]:
    """The file behind any link inside the project, and its bytes."""
    path = userfile.real(project / NAME, "project", project)
    data = userfile.read(path)
    if data is not None:
        userfile.text(path, data)  # raises where it is none
    return path, data


def _mended(path: Path, step: Callable[[], T]) -> T:
    """What `step` gives; lines out of place are refused with theirs."""
    try:
        return step()
    except Misplaced as error:
        hint = "leave one line that begins the section and one that ends it, or neither"
        raise Refused(
            "the lines around khms's section are not one pair", where=f"{path}:{error.line}", hint=hint
        ) from error
