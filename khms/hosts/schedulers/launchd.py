"""launchd on macOS: an agent of the user a job, in the user's Library."""

import os
import plistlib
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from khms.errors import KhmsError, Unavailable
from khms.hosts.schedulers import units
from khms.hosts.schedulers.base import Entry, call

ID = "launchd"
MISSED = (
    "a run whose time passed while the machine slept is made up for when it wakes; one while it was off is left out"
)
KEYS = "give them with launchctl setenv"
_BUSY = 5  # launchctl's word while the agent that was booted out is still going
_TRIES = 5


def why_not() -> str:
    return "" if shutil.which("launchctl") else "launchctl is not on PATH"


def jobs(name: str) -> frozenset[str]:
    return frozenset(path.name.split(".")[2] for path in _files(name))


def install(name: str, entries: Sequence[Entry]) -> bool:
    wanted: dict[Path, bytes | None] = {folder() / f"{label(entry)}.plist": content(entry) for entry in entries}
    left: dict[Path, bytes | None] = {path: None for path in _files(name) if path not in wanted}
    fresh = {path: text for path, text in wanted.items() if units.held(path) != text}
    return _change(fresh | left)


def uninstall(name: str) -> bool:
    return _change(dict.fromkeys(_files(name)))


def notes() -> list[str]:
    return []


def folder() -> Path:
    return Path.home() / "Library" / "LaunchAgents"


def label(entry: Entry) -> str:
    return f"dev.khms.{entry.job}.{entry.name}"


def content(entry: Entry) -> bytes:
    """The agent as a property list. Its output goes nowhere: a job keeps its own log."""
    when = {"Hour": entry.when.hour, "Minute": entry.when.minute}
    if entry.when.weekday is not None:
        when["Weekday"] = entry.when.weekday
    return plistlib.dumps(
        {"Label": label(entry), "ProgramArguments": list(entry.argv), "StartCalendarInterval": when}, sort_keys=False
    )


def _files(name: str) -> list[Path]:
    return sorted(folder().glob(f"dev.khms.*.{name}.plist"))


def _change(contents: Mapping[Path, bytes | None]) -> bool:
    if not contents:
        return False
    before: Mapping[Path, bytes | None] = {}
    try:
        with units.changed(contents) as before:
            for path, text in contents.items():
                _boot(path, load=text is not None)
    except BaseException:
        with suppress(KhmsError):
            for path, text in before.items():
                _boot(path, load=text is not None)
        raise
    return True


def _boot(path: Path, *, load: bool) -> None:
    """Has launchd forget the agent, and take it as it is now where it is to `load`."""
    domain = f"gui/{os.getuid()}"
    call("launchctl", "bootout", f"{domain}/{path.stem}")  # fails where it is not loaded, which is as well
    for again in range(_TRIES if load else 0):
        code, _, said = call("launchctl", "bootstrap", domain, str(path))
        if code == 0:
            return
        if code != _BUSY or again == _TRIES - 1:
            what = f"launchctl refused the agent: {said or f'it ended with {code}'}"
            raise Unavailable(what, where=str(path), hint="nothing was changed; log in at the screen, then try again")
        time.sleep(0.2)
