"""Becoming a base's server: its lock, its socket, its end.

The socket is removed at the end if it is still this process's own; one that a killed server left behind is removed by
the next one, which holds the lock and so knows that nobody listens there.
"""

import contextlib
import os
import signal
import socket

from khms.config import load
from khms.errors import Unavailable
from khms.index import current
from khms.server import address, launch
from khms.server.service import Command, Server
from khms.store.layout import Base

BACKLOG = 128


def run(base: Base, command: Command, lock: int | None = None) -> bool:
    """Is the base's server until it ends; False at once where there is one. `lock` is an open file on which whoever
    started this process holds the lock already. Raises Unavailable where no socket can be made."""
    place, why = launch.made()
    if why:
        raise Unavailable(f"the folder of sockets cannot be used: {why}", where=os.fsdecode(place), hint="remove it")
    seat = launch.lock_path(place, str(base.root))
    held = _inherited(lock, seat) or launch.claim(seat)
    if held is None:
        return False
    path = seat.removesuffix(launch.LOCK) + address.SOCKET
    with contextlib.suppress(OSError):
        os.unlink(path)  # of a server that was killed: the lock was free
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        own = os.lstat(path).st_ino
        link = _as_default(base, place, path)
        listener.listen(BACKLOG)
        try:
            server = Server(base, command)
            current.keep(server.look.vouch)
            _on_signal(server)
            server.serve(listener)
        finally:
            for name in (link, path):
                with contextlib.suppress(OSError):
                    if name and (name != path or os.lstat(path).st_ino == own):
                        os.unlink(name)
    os.close(held)
    return True


def _on_signal(server: Server) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: server.stop())


def _inherited(lock: int | None, path: bytes) -> int | None:
    """The descriptor `lock`, if it is an open file of the lock at `path`."""
    if lock is None:
        return None
    try:
        if os.path.samestat(os.fstat(lock), os.lstat(path)):
            os.set_inheritable(lock, False)
            launch.take(lock)
            return lock
    except OSError:
        return None
    return None


def _as_default(base: Base, place: bytes, path: bytes) -> bytes:
    """A second name for the server of the user's own base, for clients that stand in no base; empty for others."""
    own = load(None)["base.default"]
    if not own or os.path.realpath(own) != os.path.realpath(base.root):
        return b""
    link = place + b"/" + address.name(os.environb, b"") + address.SOCKET
    with contextlib.suppress(OSError):
        os.unlink(link)
    os.symlink(os.path.basename(path), link)
    return link
