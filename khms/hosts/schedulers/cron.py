"""The user's crontab: one line a job, told from all others by the record that it names.

The table is someone else's file. It is handled as bytes, read and put back by the `crontab` program alone, and every
line that is not ours stays as it is, where it is.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from khms.errors import Unavailable
from khms.hosts.schedulers.base import Entry, call

ID = "cron"
MISSED = "cron does not catch up: a run whose time passes while the machine is off or asleep is left out"
KEYS = "give them in a line NAME=value at the top of your crontab (crontab -e)"
# Stands after a last line that had no line break, and is what lets the break be taken away again.
GLUE = b"# khms: the line above had no line break at its end\n"
_NONE = ("no crontab for", "no such file or directory")  # Vixie's word and its heirs', BusyBox's
_OURS = re.compile(rb"^[^#\n].* schedule run ([\w-]+) --record ")
_ESCAPE = re.compile(rb"\\[a-z0-9^]")
_DAEMONS = ("cron", "crond", "fcron", "bcron", "dcron", "busybox", "mcron", "systemd-cron")


def why_not() -> str:
    return "" if shutil.which("crontab") else "crontab is not on PATH"


def jobs(name: str) -> frozenset[str]:
    return frozenset(_job(line) for line in _lines(_listed()) if _is_own(line, name))


def install(name: str, entries: Sequence[Entry]) -> bool:
    before = _read()
    after = with_entries(before, name, [line(entry) for entry in entries])
    if after == before:
        return False
    _write(after)
    return True


def uninstall(name: str) -> bool:
    before = _read()
    after = with_entries(before, name, [])
    if after == before:
        return False
    if after:
        try:
            _write(after)
        except Unavailable:
            if after.endswith(b"\n"):
                raise
            _write(after + b"\n")  # a program that takes no table without it; the line is there, and works for once
    else:
        _demand(*call("crontab", "-r"))
    return True


def notes() -> list[str]:
    if _runs():
        return []
    return ["no cron daemon is running on this machine: nothing starts before one does"]


def line(entry: Entry) -> bytes:
    """The entry as a line of a crontab. A `%` would be a line break to cron, in quotes too."""
    when = entry.when
    day = "*" if when.weekday is None else str(when.weekday)
    command = shlex.join(entry.argv).replace("%", "\\%")
    return os.fsencode(f"{when.minute} {when.hour} * * {day} {command}\n")


def with_entries(content: bytes, name: str, wanted: Sequence[bytes]) -> bytes:
    """The table with `wanted` as the lines of the base `name`: where its lines stood, or else at the end."""
    lines = _lines(content)
    own = [at for at, held in enumerate(lines) if _is_own(held, name)]
    if not own and not wanted:
        return content
    rest = [held for at, held in enumerate(lines) if at not in own]
    if not own and lines and not lines[-1].endswith(b"\n"):
        rest = [*rest[:-1], rest[-1] + b"\n", GLUE]
    place = own[0] if own else len(rest)
    after = b"".join([*rest[:place], *wanted, *rest[place:]])
    if any(_OURS.match(held) for held in _lines(after)):
        return after
    cut = after.removesuffix(b"\n" + GLUE)
    return cut if cut != after else after.replace(GLUE, b"")


def _lines(content: bytes) -> list[bytes]:
    """The lines with their ends; a line ends with a line feed and nothing else."""
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def _is_own(line: bytes, name: str) -> bool:
    return bool(_OURS.match(line)) and f"/{name}.json".encode() in line


def _job(line: bytes) -> str:
    found = _OURS.match(line)
    return found[1].decode("ascii", "replace") if found else ""


def _read() -> bytes:
    listed = _listed()
    return _true(listed) if _ESCAPE.search(listed) else listed


def _listed() -> bytes:
    """The user's table as the program shows it, empty where there is none. What cannot be read is not empty: it raises
    Unavailable."""
    code, content, said = call("crontab", "-l")
    if code == 0:
        return content
    if any(word in said.lower() for word in _NONE):
        return b""
    raise Unavailable(f"the crontab cannot be read: {said or f'crontab -l ended with {code}'}", hint="crontab -l")


def _true(listed: bytes) -> bytes:
    """The table's own bytes. Debian's `crontab -l` (3.0pl1-162) shows a carriage return as a backslash and an r, which
    put back would be just that. An editor is given the table as it is, and `cat` is one that changes nothing."""
    code, content, said = call("crontab", "-e", env={"VISUAL": "cat", "EDITOR": "cat"})
    shown = _lines(content)
    alike = len(shown) == len(_lines(listed)) and all(
        line == other for line, other in zip(_lines(listed), shown, strict=True) if b"\\" not in line
    )
    if code or not alike:
        what = "the crontab's own bytes cannot be told from what crontab shows of them"
        raise Unavailable(f"{what}: {said}", hint="take control characters out of it: crontab -e")
    return content


def _write(content: bytes) -> None:
    _demand(*call("crontab", "-", given=content))
    if _read() != content:
        raise Unavailable("the crontab is not what was put there", hint="see what it holds: crontab -l")


def _demand(code: int, _out: bytes, said: str) -> None:
    if code:
        why = said or f"it ended with {code}"
        raise Unavailable(f"crontab refused the change, so the old table stays: {why}", hint="see it: crontab -l")


def _runs() -> bool:
    """Whether a cron daemon runs; where that cannot be told, it does."""
    if sys.platform != "linux":
        return True
    for place in Path("/proc").glob("[0-9]*/comm"):
        try:
            if place.read_text(encoding="utf-8", errors="replace").strip() in _DAEMONS:
                return True
        except OSError:
            continue
    return False
