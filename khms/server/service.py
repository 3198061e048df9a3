"""The process itself: takes questions on the socket and answers each in a thread of its own, until nobody asks."""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import khms
from khms.config import load
from khms.errors import KhmsError
from khms.hooks import injectlog, run, sessions
from khms.hooks.places import Place
from khms.server import address, wire
from khms.server.look import Look
from khms.store.layout import Base

MOST = 32  # questions at once; more are told to go on without
TICK = 1.0  # seconds between two looks at whether there is still a reason to be here
READING = 2.0  # seconds in which a question must have arrived whole
SENDING = 5.0
ENDING = 2.0  # in which what was begun may be finished
FAREWELL = 1.0  # after a client's patience is over, in which it says so
LATE = "late"


@dataclass(frozen=True, slots=True)
class Asked:
    """A command of the command line that a client wants run: its folder, the variables that it told, its words, and
    what it knows of its own streams (see khms.cli.far)."""

    cwd: bytes
    env: Mapping[str, str]
    words: tuple[str, ...]
    streams: tuple[bytes, ...]


# Runs a command: (standard output, standard error, exit code as text), or None where the client must do it itself.
Command = Callable[[Asked], tuple[bytes, bytes, bytes] | None]


@dataclass(slots=True)
class Server:
    """One base's server. `serve` returns when it has ended; the lock and the socket are the caller's."""

    base: Base
    command: Command
    build: bytes = field(default_factory=lambda: address.build(khms.__file__))
    since: float = field(default_factory=time.time)
    answered: int = 0
    _heard: float = field(default_factory=monotonic)
    _active: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _count: threading.Lock = field(default_factory=threading.Lock)
    look: Look = field(init=False)
    _idle: float = field(init=False)
    _real: str = field(init=False)
    _at: tuple[int, int] = field(init=False)
    _seat: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self._real = os.path.realpath(self.base.root)
        self._at = _identity(self.base.root)
        self._idle = load(self.base.root)["server.idle_minutes"] * 60.0
        self.look = Look(self.base)

    def serve(self, listener: socket.socket) -> None:
        self.look.after(0.0)
        self._seat = os.fsdecode(listener.getsockname())
        listener.settimeout(TICK)
        try:
            while not self._over.is_set() and not self._pointless():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                except OSError:  # no more open files, for example
                    self._over.wait(0.1)
                    continue
                self._take(connection)
        finally:
            until = monotonic() + ENDING
            while self._active and monotonic() < until:  # what a client was told is still to be written down
                time.sleep(0.01)
            self.look.end()

    def stop(self) -> None:
        self._over.set()

    def _pointless(self) -> bool:
        """Whether nobody asks any more or can, the base is gone, or another version of khms was put in place of this
        one."""
        if monotonic() - self._heard > self._idle or _identity(self.base.root) != self._at:
            return True
        if not os.path.lexists(self._seat):
            return True
        with contextlib.suppress(OSError):
            return address.build(khms.__file__) != self.build
        return True

    def _take(self, connection: socket.socket) -> None:
        with self._count:
            full = self._active >= MOST
            self._active += not full
        if full:
            with contextlib.suppress(OSError), connection:
                wire.send(connection, wire.message((wire.BUSY, self.build)), monotonic() + 0.1)
            return
        try:
            threading.Thread(target=self._handle, args=(connection,), daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            self._handle(connection)

    def _handle(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError, ValueError, wire.Garbled):
                if address.peer(connection) != os.geteuid():
                    return
                self._answer(connection)
        finally:
            with self._count:
                self._active -= 1

    def _answer(self, connection: socket.socket) -> None:
        began = monotonic()
        (kind, build, patience), blocks = wire.receive(connection, 3, began + READING, wire.LARGEST)
        if build != self.build:
            self.stop()
            self._say(connection, wire.OLD)
            return
        if kind != b"status":
            self._heard = monotonic()
            self.answered += 1
        if kind == b"hook" and len(blocks) == 5:
            self._hook(_Listener(self, connection, began + int(patience) / 1000, float(blocks[4])), *blocks[:4])
            return
        wire.send(connection, wire.ALIVE, began + READING)
        if kind == b"run" and len(blocks) == 4:
            self._run(connection, *blocks)
        elif kind == b"status":
            self._say(connection, wire.OK, self._status())
        elif kind == b"stop":
            self.stop()
            self._say(connection, wire.OK)

    def _say(self, connection: socket.socket, status: bytes, *blocks: bytes) -> None:
        wire.send(connection, wire.message((status, self.build), blocks), monotonic() + SENDING)

    def _hook(self, listener: "_Listener", host: bytes, cwd: bytes, told: bytes, raw: bytes) -> None:
        try:
            outcome = run.respond(
                host.decode("utf-8", "replace"),
                raw,
                env=environment(told, cwd),
                cwd=os.fsdecode(cwd),
                asker=listener,
                by_meaning=True,
            )
        except run.Elsewhere:
            outcome = None
        if outcome is None or outcome.base is None:  # what went wrong before the base was known is the client's to tell
            self._say(listener.connection, wire.ELSEWHERE)
            return
        record = {**outcome.record, "server": True}
        said = listener.hear(wire.message((wire.OK, self.build), (outcome.answer,)), late=record.get("reason") == LATE)
        if said != wire.ALONE:
            if said != wire.TAKEN and outcome.answer:
                record.update(decision="silent", reason="unheard")
                if outcome.session is not None:
                    with contextlib.suppress(KhmsError, OSError):
                        outcome.session.forget(listener.at)
            injectlog.write(outcome.base, record)
            listener.done()
        self.look.after()
        if outcome.starts:
            with contextlib.suppress(OSError):
                sessions.sweep(outcome.base)

    def _run(self, connection: socket.socket, cwd: bytes, told: bytes, words: bytes, streams: bytes) -> None:
        env = environment(told, cwd)
        asked = Asked(
            cwd, env, tuple(os.fsdecode(word) for word in wire.unpacked(words)), tuple(wire.unpacked(streams))
        )
        done = self.command(asked)
        self.look.after()
        if done is None:
            self._say(connection, wire.ELSEWHERE)
        else:
            self._say(connection, wire.OK, *done)

    def kept_for(self, minutes: float) -> None:
        self._idle = minutes * 60.0

    def mine(self, base: Base | None) -> bool:
        return base is not None and os.path.realpath(base.root) == self._real

    def _status(self) -> bytes:
        value = {
            "pid": os.getpid(),
            "version": khms.__version__,
            "base": str(self.base.root),
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.since)),
            "answered": self.answered,
            "idle_minutes": self._idle / 60,
            "failed": self.look.failed,
        }
        return json.dumps(value).encode("ascii")


class _Listener(run.Asker):
    """The client of a hook. It listens until its patience is over, or until it says or shows that it went on alone."""

    def __init__(self, server: Server, connection: socket.socket, until: float, at: float) -> None:
        super().__init__(at)
        self._server, self.connection, self._until = server, connection, until

    def placed(self, place: Place) -> None:
        if not self._server.mine(place.base):
            raise run.Elsewhere
        self._server.kept_for(place.config["server.idle_minutes"])
        self._until = min(self._until, monotonic() + float(place.config["hooks.deadline_ms"]) / 1000)

    def ready(self) -> None:
        self._server.look.before(self._until)

    def listens(self) -> bool:
        """Looked at anew each time: a server that stood still finds a client's patience as it was."""
        if monotonic() > self._until:
            return False
        self.connection.setblocking(False)
        try:
            self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False  # before the answer it sends nothing else than its farewell

    def hear(self, message: bytes, *, late: bool) -> bytes:
        """Gives the answer, unless it is late, and returns what the client says to it; nothing where it is gone."""
        try:
            if not late:
                wire.send(self.connection, message, monotonic() + SENDING)
            return wire.word(self.connection, max(self._until, monotonic()) + FAREWELL)
        except OSError:
            return b""

    def done(self) -> None:
        with contextlib.suppress(OSError):
            wire.send(self.connection, wire.DONE, monotonic() + SENDING)


def environment(told: bytes, cwd: bytes) -> dict[str, str]:
    """The variables that a client told. A base named by a relative path is one below the client's folder."""
    pairs = (os.fsdecode(pair).partition("=") for pair in wire.unpacked(told))
    env = {name: value for name, _, value in pairs}
    if env.get("KHMS_ROOT"):
        env["KHMS_ROOT"] = os.fsdecode(address.joined(cwd, os.fsencode(env["KHMS_ROOT"])))
    return env


def _identity(root: Path) -> tuple[int, int]:
    try:
        found = root.stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino
