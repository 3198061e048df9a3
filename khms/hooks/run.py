"""The way in: one event of a host as bytes, at most one answer on standard output, exit code 0, whatever happens.

The shipped client (hooks/client.py) calls `main` with what it read and `late` when the time is over; it silences
standard error and ends the process at the deadline. `command` is the same by hand.
"""

import os
import sys
import time

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from khms.config import Config
    from khms.hooks.budget import SessionState
    from khms.hooks.handlers import Decision
    from khms.hooks.places import Place
    from khms.hooks.sessions import Session
    from khms.hosts.base import Event, Host
    from khms.store.layout import Base

LARGEST = 1024 * 1024  # bytes of an event; the client stops keeping it shortly after that
USAGE = "usage: khms hook run --host HOST < EVENT"

deadline_ms: int  # the base's own figure, there once it is known; the client looks for it
_base: "Base | None" = None  # where to log, once that is known


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one event: the bytes for standard output and the line for the log, and whose they are, as far as
    that was found out. `starts` says that it was the beginning of a session, `session` holds what was remembered."""

    answer: bytes
    record: dict[str, object]
    base: "Base | None" = None
    config: "Config | None" = None
    starts: bool = False
    session: "Session | None" = None


class Elsewhere(Exception):
    """The event is about another base than the one that this process answers for."""


class Late(Exception):
    """Whoever asked waits no longer."""


class Asker:
    """Who asked, as `respond` sees it. This one is the process itself, which hears whatever is answered.

    `at` is when the event happened. Whoever asks about it again, because the first answer did not come, gives the same
    time: then nothing that the first left in the session's memory counts, for nobody was told it."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at or time.time()

    def placed(self, place: "Place") -> None:
        """The base and its settings are known. May raise Elsewhere, as `respond` then does."""

    def ready(self) -> None:
        """The index may be asked next."""

    def listens(self) -> bool:
        """Whether the answer will still be heard."""
        return True


def respond(
    host: str,
    raw: bytes,
    *,
    env: "Mapping[str, str]",
    cwd: str,
    asker: Asker,
    by_meaning: bool = False,
) -> Outcome:
    """Answers one event for a client with this environment and folder; writes nothing but the session's state. Nothing
    is raised but Elsewhere."""
    started = time.monotonic()
    record: dict[str, object] = {"host": host}
    base = config = session = None
    answer, idle, starts = "", "", False
    try:
        from khms.hooks import places, sessions
        from khms.hosts import registry

        module = registry.host(host)
        idle = getattr(module, "IDLE", "")
        event, reason = _event(module, raw)
        place = places.choose(event.cwd if event else cwd, env)
        base, config = place.base, place.config
        asker.placed(place)
        if event is not None:
            record.update(moment=event.moment, event=event.name, session=sessions.key(event.session))
            if place.config["experiment.name"]:
                from khms.model import experiment

                record.update(experiment.stamp(place.config, sessions.key(event.session)))
            reason = _switched_off(event, env)
            starts = event.moment == "session-start" and reason != "off"
        if event is None or reason:
            record.update(decision="silent", reason=reason)
        else:
            asker.ready()
            session = sessions.Session(base, event.session) if base else None
            answer = _decided(module, place, event, by_meaning, _Timely(session, asker) if session else None, record)
    except Elsewhere:
        raise
    except Late:
        record.update(decision="silent", reason="late")
    except BaseException as error:  # a panic in a library is none of Exception's
        record.update(decision="silent", reason="error", error=_told(error))
    record["ms"] = round((time.monotonic() - started) * 1000, 1)
    said = answer or idle
    data = f"{said}\n".encode("utf-8", "replace") if said else b""
    return Outcome(data, record, base, config, starts, session)


class _Alone(Asker):
    def placed(self, place: "Place") -> None:
        global _base, deadline_ms
        _base = place.base
        deadline_ms = place.config["hooks.deadline_ms"]


def main(host: str, raw: bytes, why: str = "", at: float = 0.0) -> str:
    """Answers one event in this process; prints nothing or one answer. Every decision is logged, a failure too. `why`
    is the word for what kept a server from answering, `at` when that was asked. Returns the folder of the base whose
    server should be there the next time, empty where there should be none."""
    record: dict[str, object] = {"host": host}
    try:
        outcome = respond(host, raw, env=os.environ, cwd=_here(), asker=_Alone(at))
        record = {**outcome.record, "server": False, "without": why or "by hand"}
        _print(outcome.answer)
        _log(record)
        if outcome.base is None or outcome.config is None:
            return ""
        if outcome.starts:
            record = {"host": host, "moment": "upkeep"}
            from khms.hooks import upkeep

            upkeep.at_start(outcome.base)
        wanted = outcome.config["server.enabled"] != "off" and record.get("reason") != "off"
        return str(outcome.base.root) if wanted else ""
    except BaseException as error:
        _log({**record, "decision": "silent", "reason": "error", "error": _told(error)})
        return ""


def late(host: str, why: str) -> None:
    """Writes down that an event was not answered in time, and why."""
    _alone({"host": host, "decision": "silent", "reason": "deadline", "error": why})


def unwritten(host: str, answer: bytes, cwd: str) -> None:
    """Writes down what a server answered to an event in the folder `cwd`, because it ended before it did so itself."""
    said = answer.strip() not in (b"", b"{}")
    _alone({"host": host, "decision": "inject" if said else "silent", "reason": "cut-off", "server": True}, cwd)


def _alone(record: dict[str, object], cwd: str = "") -> None:
    base = _base
    if base is None:
        try:
            from khms.hooks import places

            base = places.choose(cwd or _here()).base
        except BaseException:
            base = None
    _log(record, base)


def command(argv: "Sequence[str]") -> int:
    """`khms hook run --host HOST`: what the host's own settings run, typed by hand. Says how it is used only to a
    person at a terminal; a host that gets its options wrong must not be disturbed. Plugins put `--plugin` behind it:
    where khms stands in the host's settings too, these answer, and nothing is said twice."""
    words = list(argv)
    plugin = words[-1:] == ["--plugin"]
    host = _host(words[:-1] if plugin else words)
    if not host:
        if sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty():
            print(f"{USAGE}\n  khms hook run --help says more", file=sys.stderr)
            return 2
        _log({"host": "", "decision": "silent", "reason": "usage"})
        return 0
    if plugin and _in_settings(host):
        _log({"host": host, "decision": "silent", "reason": "settings"})
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


def _in_settings(host: str) -> bool:
    """Whether the host's settings, the user's or this folder's, run khms's client."""
    try:
        from pathlib import Path

        from khms.hosts import registry

        module = registry.host(host)
        for path in (module.settings_path("user", Path.cwd()), module.settings_path("project", Path.cwd())):
            if path.is_file() and f"/hooks/client.py {host} ".encode() in path.read_bytes():
                return True
    except Exception:
        pass
    return False


def _host(argv: "Sequence[str]") -> str:
    """The host that the options name, or nothing where they name none or say more than that."""
    words = list(argv)
    if len(words) == 2 and words[0] == "--host":
        return "" if words[1].startswith("-") else words[1]
    if len(words) == 1 and words[0].startswith("--host="):
        return words[0].removeprefix("--host=")
    return ""


def _decided(
    module: "Host",
    place: "Place",
    event: "Event",
    by_meaning: bool,
    memory: "_Timely | None",
    record: dict[str, object],
) -> str:
    """The answer in the host's form, or nothing; `record` is told what was decided."""
    from khms.hooks.handlers import decide
    from khms.hooks.sessions import Unkept

    decision = decide(place, event, memory or Unkept(), by_meaning=by_meaning)
    answer = module.answer(event, decision.text) if decision.text else ""
    record.update(_logged(decision, answer))
    if "arm" in record:
        from khms.model import experiment

        return experiment.heard(record, answer)
    return answer


class _Timely:
    """A session's memory for one event: it takes in nothing which nobody will hear, and holds nothing of an earlier
    answer to the event, which nobody heard."""

    def __init__(self, session: "Session", asker: Asker) -> None:
        self._session, self._asker = session, asker
        self.at = asker.at

    def load(self) -> "SessionState":
        from khms.hooks.budget import without

        held = self._session.load()
        heard = without(held, self.at)
        if heard != held:
            self._session.forget(self.at)
        return heard

    def remember(self, step: "Callable[[SessionState], SessionState | None]") -> None:
        from khms.hooks.budget import without

        def in_time(state: "SessionState") -> "SessionState | None":
            if not self._asker.listens():
                raise Late
            return step(without(state, self.at))

        self._session.remember(in_time)


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


def _switched_off(event: "Event", env: "Mapping[str, str]") -> str:
    """Why this session is to be left alone; nothing where it is not. A session that was once incognito stays so, and
    what keeps transcripts can tell it by the mark."""
    from khms.hooks import sessions

    if _set(env, "KHMS_INCOGNITO"):  # looked at first: the mark must stand whatever else is switched off
        if event.session:
            sessions.switch(False, event.session)
        return "incognito"
    if _set(env, "KHMS_HOOKS_OFF") or sessions.is_off():
        return "off"
    if event.session and sessions.is_off(event.session):
        return "session-off"
    return ""


def _here() -> str:
    from pathlib import Path

    try:
        return str(Path.cwd())
    except OSError:  # the folder is gone
        return ""


def _set(env: "Mapping[str, str]", name: str) -> bool:
    return env.get(name, "") not in ("", "0")


def _logged(decision: "Decision", answer: str) -> dict[str, object]:
    from khms.hooks.injectlog import digest

    reason = "no-form" if decision.text and not answer else decision.reason
    known: dict[str, object] = {"decision": "inject" if answer else "silent", "reason": reason}
    if decision.query:
        known["query"] = digest(decision.query)
    if decision.found:
        known.update(channel=decision.channel, score=round(decision.score, 3))
        known["hits"] = [[pointer.id[:120], round(pointer.score, 3)] for pointer in decision.found[:5]]
    if decision.classes:
        known["classes"] = list(decision.classes)
    if answer and decision.text:
        known.update(cards=[card[:120] for card in decision.cards], chars=len(decision.text))
    return known


def _print(data: bytes) -> None:
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
