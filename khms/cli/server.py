"""`khms server`: the process that keeps a base's index and model at hand, for hooks and for `khms recall`."""

import json
import os
import time
from typing import TYPE_CHECKING, Any

import click

from khms.cli.output import one_line, print_json
from khms.cli.session import Session
from khms.errors import No, Refused, Unavailable

if TYPE_CHECKING:
    from khms.store.layout import Base

SCHEMA = "khms.server/1"
SECONDS = 20.0  # that a start or an end is waited for
ASKING = 3.0  # in which a server that does not hang says something
GRACE = 2.0  # in which one that was asked to end has ended
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@click.group()
def server() -> None:
    """Keep the index and the embedding model at hand, so that hooks and recall answer at once and by meaning.

    Hooks and recall start it by themselves, one a base, and it ends itself after server.idle_minutes. KHMS_SERVER_OFF=1
    does without it, server.enabled = "off" no longer starts it.

    \b
    khms server status
    khms server stop
    """


@server.command()
@_json
@click.pass_obj
def start(session: Session, as_json: bool) -> None:
    """Start the server of this base, unless it runs.

    \b
    khms server start
    khms --root ~/notes server start --json
    """
    from khms.server import launch

    base = _trusted(session)
    found, hangs = _status(base)
    started = False
    if found is None and not hangs:
        started = launch.start(str(base.root), pause=0.0)
        found, _ = _wait_for(lambda: _said(_status(base))) or (None, False)
    if found is None:
        if number := _holder(base):
            raise _hanging(base, number)
        raise Unavailable("the server did not start", where=str(base.root), hint="see why: khms server run")
    if as_json:
        print_json({"schema": SCHEMA, "running": True, "started": started, **found})
        return
    session.say(one_line(f"{'started' if started else 'already running'}: process {found['pid']}, for {base.root}"))


@server.command()
@_json
@click.pass_obj
def stop(session: Session, as_json: bool) -> None:
    """End the server of this base, if there is one; one that hangs is killed.

    \b
    khms server stop
    """
    from khms.server import asking, launch

    base = session.base
    path = launch.lock_path(_place(), str(base.root))
    answer, why = _ask(base, b"stop")
    was = answer is not None or launch.claimed(path)
    if was:
        number = 0 if answer is not None else _holder(base)
        if why == asking.LATE and launch.end(number, path, GRACE):
            session.note(f"process {number} did not answer, and was ended")
        if not _wait_for(lambda: not launch.claimed(path), GRACE if why == asking.LATE else SECONDS):
            raise _hanging(base, _holder(base))
    if as_json:
        print_json({"schema": SCHEMA, "running": False, "stopped": was, "base": str(base.root)})
        return
    session.say(one_line(f"stopped: {base.root}" if was else f"there was no server for {base.root}"))


@server.command()
@_json
@click.pass_obj
def status(session: Session, as_json: bool) -> None:
    """Show whether the server of this base runs. Exit 1 where it does not, 4 where it runs but does not answer.

    \b
    khms server status
    khms server status --json
    """
    base = session.base
    found, _ = _status(base)
    number = _holder(base) if found is None else 0
    if as_json:
        held = {"answers": False, "pid": number} if number else {}
        running = found is not None or bool(number)
        print_json({"schema": SCHEMA, "running": running, "base": str(base.root), **held, **(found or {})})
        if found is None:
            raise click.exceptions.Exit(Unavailable.exit_code if number else 1)
        return
    if number:
        raise _hanging(base, number)
    if found is None:
        raise No(f"no server runs for {base.root}", hint="start it: khms server start")
    minutes = f"{found['idle_minutes']:g} minutes"
    session.say(one_line(f"process {found['pid']}, khms {found['version']}, for {base.root}"))
    session.say(f"since {found['since']}, {found['answered']} answers; ends after {minutes} without a question")
    if found["failed"]:
        session.say(one_line(f"problem: the index could not be brought up to date: {found['failed']}"))


@server.command()
@click.option("--lock", type=int, hidden=True, help="An open file that holds the lock already.")
@click.pass_obj
def run(session: Session, lock: int | None) -> None:
    """Be the server of this base, until Ctrl-C or until nobody asks any more. Exit 1 where it has one already.

    \b
    khms server run
    """
    import contextlib

    from khms.cli import far
    from khms.server import process
    from khms.store import local

    base = _trusted(session)
    if lock is not None:  # started by another process, which it outlives
        with contextlib.suppress(OSError):
            os.setsid()
        os.chdir("/")
    with contextlib.suppress(Unavailable):
        local.make(base)
    session.note(one_line(f"serving {base.root}; Ctrl-C ends it"))
    with far.installed():
        served = process.run(base, far.runner(base), lock)
    if not served:
        raise No(f"another process is the server of {base.root}", hint="khms server status")


def _trusted(session: Session) -> "Base":
    from khms.store import trust

    base = session.base
    if why := trust.why_not(base):
        raise Refused(f"no server for this base: {why}", where=str(base.root), hint="khms trust")
    return base


def _place() -> bytes:
    from khms.server import address

    if address.switched_off(os.environb):
        raise Refused("servers are switched off: KHMS_SERVER_OFF is set", hint="unset KHMS_SERVER_OFF")
    return address.folder(os.environb)


def _ask(base: "Base", kind: bytes) -> tuple[list[bytes] | None, str]:
    from khms.server import asking

    _place()
    root = os.fsencode(base.root)
    return asking.ask(os.environb, root, kind, (), time.monotonic() + ASKING, default=False)


def _status(base: "Base") -> tuple[dict[str, Any] | None, bool]:
    """What the server says of itself, None where none answers; and whether there is one that takes questions and says
    nothing. One that is only being started takes none yet."""
    from khms.server import asking

    answer, why = _ask(base, b"status")
    return (json.loads(answer[0]) if answer else None), why == asking.LATE


def _said(status: tuple[dict[str, Any] | None, bool]) -> tuple[dict[str, Any] | None, bool] | None:
    return status if any(status) else None


def _holder(base: "Base") -> int:
    """The process that is the base's server or about to be, whether it answers or not; 0 where there is none."""
    from khms.server import launch

    path = launch.lock_path(_place(), str(base.root))
    if not launch.claimed(path):
        return 0
    with open(path, "rb") as lock:
        said = lock.read(20).strip()
    return int(said) if said.isdigit() else 0


def _hanging(base: "Base", number: int) -> Unavailable:
    """Named by its process: one that is only being started answers a moment later, one that hangs never does."""
    end = f"try again in a moment, then end it: khms server stop, or kill -9 {number}"
    hint = end if number else "khms server status"
    return Unavailable(f"the server does not answer: process {number}", where=str(base.root), hint=hint)


def _wait_for(look: Any, seconds: float = SECONDS) -> Any:
    """What `look` finds, asked again and again until it finds something or the time is over."""
    until = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.02)
    return found
