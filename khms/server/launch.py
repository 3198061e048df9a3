"""Starting a base's server, at most one, and without waiting for it.

Whoever holds the lock beside the socket is the server, or is about to be: the lock is taken before the process is
started, and goes over to it with the open file. So of many hooks at once one starts a server, and the kernel drops the
lock when that ends, however it ends.
"""

import contextlib
import fcntl
import os
import select
import signal
import sys
import time

from khms.server import address

# What the server's environment is made of; all else is of the one session that happened to start it.
KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_", "TZ", "TMPDIR", "XDG_", "LD_", "DYLD_", "NIX_", "GIT_CONFIG",
    "GIT_CEILING", "GIT_DISCOVERY", "HF_", "OPENBLAS_", "OMP_", "KHMS_CONFIG_HOME", "KHMS_DATA_HOME",
)  # fmt: skip
LOCK = b".lock"
PAUSE = 10.0  # seconds after a start before which the next is not tried: one that ends at once is not started for ever


def start(root: str, *, pause: float = PAUSE) -> bool:
    """Starts the server of the base at `root` where there is none; says whether it did."""
    if address.switched_off(os.environb) or not sys.executable:
        return False
    place, why = made()
    if why:
        return False
    lock = claim(lock_path(place, root), pause)
    if lock is None:
        return False
    try:
        os.set_inheritable(lock, True)
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        words = [sys.executable, "-I", "-m", "khms", "--root", root, "server", "run", "--lock", str(lock)]
        environment = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        os.posix_spawn(sys.executable, words, environment, file_actions=nowhere)
    finally:
        os.close(lock)
    return True


def made() -> tuple[bytes, str]:
    """The folder of this user's sockets, made where it was missing, and why it cannot be used, if so."""
    place = address.folder(os.environb)
    with contextlib.suppress(OSError):
        os.mkdir(place, 0o700)
    return place, address.why_not(place)


def lock_path(place: bytes, root: str) -> bytes:
    return place + b"/" + address.name(os.environb, os.path.realpath(os.fsencode(root))) + LOCK


def claim(path: bytes, pause: float = 0.0) -> int | None:
    """An open file that holds the lock, None where another process does, or did begin less than `pause` seconds ago."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(lock)  # the lock was free: this is when the last server began
        if found.st_size and 0 <= time.time() - found.st_mtime < pause:
            os.close(lock)
            return None
        take(lock)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def take(lock: int) -> None:
    """Takes the lock on an open file, and writes the process's number into it. Raises BlockingIOError."""
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)


def claimed(path: bytes) -> bool:
    """Whether a server holds the lock at this moment."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def end(number: int, path: bytes, grace: float) -> bool:
    """Ends the process `number` if it is the one that has the lock's file at `path` open: first asked to, and woken for
    it if it was stopped, after `grace` seconds by force. Says whether it did; never where the system does not tell what
    a process has open, or offers no hold on a process but its number, which another one may have by now."""
    if sys.platform != "linux" or number <= 0:
        return False
    try:
        process = os.pidfd_open(number)
    except OSError:
        return False
    try:
        if not _has_open(number, path):
            return False
        signal.pidfd_send_signal(process, signal.SIGTERM)
        signal.pidfd_send_signal(process, signal.SIGCONT)
        if not select.select([process], [], [], grace)[0]:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        return bool(select.select([process], [], [], grace)[0])
    except OSError:
        return False
    finally:
        os.close(process)


def _has_open(number: int, path: bytes) -> bool:
    seat = os.stat(path)
    for name in os.listdir(f"/proc/{number}/fd"):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{number}/fd/{name}"), seat):
                return True
    return False
