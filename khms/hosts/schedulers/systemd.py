"""systemd's manager of the user: a service and a timer a job, in the user's own folder of units."""

import getpass
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from khms.errors import Unavailable
from khms.hosts.schedulers import units
from khms.hosts.schedulers.base import DAYS, Entry, call

ID = "systemd"
MISSED = "a run whose time passed while the machine was off is made up for when it is on again"
KEYS = "give them in a file of ~/.config/environment.d"
LINGER = Path("/var/lib/systemd/linger")
_HEAD = "# Written by khms schedule install; khms schedule uninstall removes it.\n"
_BUS = "log in as this user, or: export XDG_RUNTIME_DIR=/run/user/$(id -u)"


def why_not() -> str:
    if not shutil.which("systemctl"):
        return "systemctl is not on PATH"
    try:
        code, _, said = call("systemctl", "--user", "show-environment")
    except Unavailable as error:
        return error.message
    return "" if code == 0 else f"systemd does not run for this user: {said or f'systemctl ended with {code}'}"


def jobs(name: str) -> frozenset[str]:
    """Those whose timers are there and enabled: systemd keeps that as a link."""
    return frozenset(_job(path, name) for path in _files(name) if path.suffix == ".timer" and _link(path).is_symlink())


def install(name: str, entries: Sequence[Entry]) -> bool:
    wanted: dict[Path, bytes | None] = {folder() / unit: text for e in entries for unit, text in contents(e).items()}
    left = [path for path in _files(name) if path not in wanted]
    timers = [path for path in wanted if path.suffix == ".timer"]
    same = not left and all(units.held(path) == text for path, text in wanted.items())
    if same and all(_link(timer).is_symlink() for timer in timers):
        return False
    _demand_bus()
    new = [timer.name for timer in timers if not timer.exists()]
    try:
        with units.changed(wanted):
            try:
                _do("daemon-reload")
                _do("enable", *(timer.name for timer in timers))
                _do("restart", *(timer.name for timer in timers))  # a running timer keeps to its old time
                _remove(left)
            except BaseException:
                _quietly("disable", "--now", *new)
                raise
    except BaseException:
        _quietly("daemon-reload")
        raise
    return True


def uninstall(name: str) -> bool:
    left = _files(name)
    if not left:
        return False
    _demand_bus()
    _remove(left)
    return True


def notes() -> list[str]:
    user = getpass.getuser()
    if (LINGER / user).exists():
        return []
    return [f"timers run only while {user} is logged in; on a machine where you log out: loginctl enable-linger {user}"]


def folder() -> Path:
    """Where the units of the user stand."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(home) if home.startswith("/") else Path.home() / ".config") / "systemd" / "user"


def contents(entry: Entry) -> dict[str, bytes]:
    """The service and the timer of an entry, by file name."""
    unit = f"khms-{entry.job}-{entry.name}"
    when = entry.when
    day = "" if when.weekday is None else f"{DAYS[when.weekday]} "
    told = f"khms {entry.job} ({entry.root})".replace("%", "%%")
    start = " ".join([_word(entry.argv[0]), *(_word(word).replace("$", "$$") for word in entry.argv[1:])])
    service = (
        f"{_HEAD}[Unit]\nDescription={told}\n\n"
        # 75: another run is at work, which is no failure
        f"[Service]\nType=oneshot\nExecStart={start}\nSuccessExitStatus=75\n"
    )
    timer = (
        f"{_HEAD}[Unit]\nDescription={told}, by the clock\n\n"
        f"[Timer]\nOnCalendar={day}*-*-* {when.hour:02}:{when.minute:02}:00\nPersistent=true\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    return {f"{unit}.service": service.encode(), f"{unit}.timer": timer.encode()}


def _word(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{quoted}"'


def _files(name: str) -> list[Path]:
    return sorted(path for kind in ("service", "timer") for path in folder().glob(f"khms-*-{name}.{kind}"))


def _job(path: Path, name: str) -> str:
    return path.stem.removeprefix("khms-").removesuffix(f"-{name}")


def _link(timer: Path) -> Path:
    return timer.parent / "timers.target.wants" / timer.name


def _remove(paths: Sequence[Path]) -> None:
    timers = [path.name for path in paths if path.suffix == ".timer"]
    if timers:
        _do("disable", "--now", *timers)
    with units.changed(dict.fromkeys(paths)):
        if paths:
            _do("daemon-reload")


def _do(*words: str) -> None:
    code, _, said = call("systemctl", "--user", *words)
    if code:
        what = f"systemctl --user {words[0]} failed: {said or f'it ended with {code}'}"
        raise Unavailable(what, where=str(folder()), hint="nothing was changed; or: khms schedule install cron")


def _quietly(*words: str) -> None:
    """On the way back from a failure, which is the one to be told."""
    with suppress(Unavailable):
        call("systemctl", "--user", *words)


def _demand_bus() -> None:
    if why := why_not():
        raise Unavailable(why, hint=_BUS)
