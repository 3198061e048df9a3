"""The way in: one event of a host as bytes, at most one answer on standard output, exit code 0, whatever happens.

The shipped client (hooks/client.py) calls `main` with what it read and `late` when the time is over; it silences
standard error and ends the process at the deadline. `command` is the same by hand.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from khms.hooks.handlers import Decision
    from khms.hosts.base import Event, Host
    from khms.store.layout import Base

LARGEST = 1024 * 1024  # bytes of an event; the client stops keeping it shortly after that
USAGE = "usage: khms hook run --host HOST < EVENT"

deadline_ms: int  # the base's own figure, there once it is known; the client looks for it
_base: "Base | None" = None  # where to log, once that is known


def main(host: str, raw: bytes) -> int:
    """Answers one event; prints nothing or one answer. Every decision is logged, a failure too."""
    started = time.monotonic()
    record: dict[str, object] = {"host": host}
    try:
        event, answer = _answer(host, raw, record)
        _print(answer)
        _log({**record, "ms": round((time.monotonic() - started) * 1000, 1)})
        if event is not None and event.moment == "session-start" and _base is not None:
            record = {"host": host, "moment": "upkeep"}
            from khms.hooks import upkeep

            upkeep.at_start(_base)
    except BaseException as error:  # a panic in a library is none of Exception's
        _log({**record, "decision": "silent", "reason": "error", "error": _told(error)})
    return 0


def late(host: str, why: str) -> None:
    """Writes down that an event was not answered in time, and why."""
    base = _base
    if base is None:
        try:
            from khms.hooks import places

            base = places.choose(_here()).base
        except BaseException:
            base = None
    _log({"host": host, "decision": "silent", "reason": "deadline", "error": why}, base)


def command(argv: "Sequence[str]") -> int:
    """`khms hook run --host HOST`: what the host's own settings run, typed by hand. Says how it is used only to a
    person at a terminal; a host that gets its options wrong must not be disturbed."""
    host = _host(argv)
    if not host:
        if sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty():
            print(f"{USAGE}\n  khms hook run --help says more", file=sys.stderr)
            return 2
        _log({"host": "", "decision": "silent", "reason": "usage"})
        return 0
    try:
        from pathlib import Path

        from khms.resources import folder

        client = folder("hooks") / "client.py"
        sys.argv = [str(client), host, str(Path(__file__).parents[2])]
        program = compile(client.read_bytes(), str(client), "exec")
    except Exception as error:
        _log({"host": host, "decision": "silent", "reason": "error", "error": _told(error)})
        return 0
    exec(program, {"__name__": "__main__"})  # ends the process
    return 0


def _host(argv: "Sequence[str]") -> str:
    """The host that the options name, or nothing where they name none or say more than that."""
    words = list(argv)
    if len(words) == 2 and words[0] == "--host":
        return "" if words[1].startswith("-") else words[1]
    if len(words) == 1 and words[0].startswith("--host="):
        return words[0].removeprefix("--host=")
    return ""


def _answer(host: str, raw: bytes, record: dict[str, object]) -> "tuple[Event | None, str]":
    """The event and the answer in the host's form, or nothing; `record` becomes the line for the log."""
    global _base, deadline_ms
    from khms.hooks import places, sessions
    from khms.hosts import registry

    module = registry.host(host)
    event, reason = _event(module, raw)
    place = places.choose(event.cwd if event else _here())
    _base = place.base
    deadline_ms = place.config["hooks.deadline_ms"]
    if event is not None:
        record.update(moment=event.moment, event=event.name, session=sessions.key(event.session))
        reason = _switched_off(event)
    if event is None or reason:
        record.update(decision="silent", reason=reason)
        return event, ""
    from khms.hooks.handlers import decide

    decision = decide(place, event, sessions.Session(place.base, event.session) if place.base else sessions.Unkept())
    answer = module.answer(event, decision.text) if decision.text else ""
    record.update(_logged(decision, answer))
    return event, answer


def _event(module: "Host", raw: bytes) -> "tuple[Event | None, str]":
    """The event, or why there is none."""
    if not raw.strip():
        return None, "no-event"
    if len(raw) > LARGEST:
        return None, "too-large"
    import json

    try:
        event = module.event(json.loads(raw))
    except (ValueError, RecursionError):
        return None, "unreadable"
    return event, "" if event else "other-host"


def _switched_off(event: "Event") -> str:
    """Why this session is to be left alone; nothing where it is not. A session that was once incognito stays so, and
    what keeps transcripts can tell it by the mark."""
    from khms.hooks import sessions

    if _set("KHMS_HOOKS_OFF") or sessions.is_off():
        return "off"
    if event.session and sessions.is_off(event.session):
        return "session-off"
    if _set("KHMS_INCOGNITO"):
        if event.session:
            sessions.switch(False, event.session)
        return "incognito"
    return ""


def _here() -> str:
    from pathlib import Path

    try:
        return str(Path.cwd())
    except OSError:  # the folder is gone
        return ""


def _set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def _logged(decision: "Decision", answer: str) -> dict[str, object]:
    from khms.hooks.injectlog import digest

    reason = "no-form" if decision.text and not answer else decision.reason
    known: dict[str, object] = {"decision": "inject" if answer else "silent", "reason": reason}
    if decision.query:
        known["query"] = digest(decision.query)
    if decision.found:
        known.update(channel="lexical", score=round(decision.score, 3))
        known["hits"] = [[pointer.id[:120], round(pointer.score, 3)] for pointer in decision.found[:5]]
    if answer and decision.text:
        known.update(cards=[card[:120] for card in decision.cards], chars=len(decision.text))
    return known


def _print(answer: str) -> None:
    data = f"{answer}\n".encode("utf-8", "replace") if answer else b""
    while data:
        data = data[os.write(1, data) :]


def _log(record: dict[str, object], base: "Base | None" = None) -> None:
    try:
        from khms.hooks import injectlog

        injectlog.write(base or _base, record)
    except BaseException:
        pass


def _told(error: BaseException) -> str:
    """What went wrong, without what somebody wrote: khms's own words, else the kind of error and its place."""
    from khms.errors import KhmsError

    if isinstance(error, KhmsError):
        return f"{error.message} ({error.where})"[:300] if error.where else error.message[:300]
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    place = f" at {at.tb_frame.f_code.co_filename.rpartition('/')[2]}:{at.tb_lineno}" if at else ""
    return type(error).__name__ + place
