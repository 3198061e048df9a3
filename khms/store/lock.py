"""A lock that dies with its process: an flock on a small file that names its holder.

The kernel drops it when the last process that holds the descriptor ends, so `kill -9` never leaves a stale one. The
descriptor is handed to git children (`fd`), so that a git process which outlives a killed khms still keeps others out.
The filelock library offers neither that nor an import below 80 ms (it loads asyncio), which `mark` would pay.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from khms.errors import Busy
from khms.store.files import naming

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def _try(fd: int) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except OSError:
        return False
    return True


def holder(path: Path) -> str:
    """What the lock's last holder wrote of itself (`pid 41, nightly, since …`), or nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


@contextlib.contextmanager
def hold(path: Path, what: str, *, wait: float = 0.0) -> Iterator[int]:
    """Holds the lock at `path` for the block and yields its descriptor. `wait` is in seconds; raises Busy after it,
    naming the holder."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        until = time.monotonic() + wait
        while not _try(fd):
            if time.monotonic() >= until:
                raise Busy(
                    f"another khms command holds the lock ({holder(path) or 'holder unknown'})",
                    where=str(path),
                    hint="wait until it has ended, then run the command again",
                )
            time.sleep(0.02)
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        since = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        os.write(fd, f"pid {os.getpid()}, {what}, since {since}\n".encode())
        yield fd
    finally:
        with contextlib.suppress(OSError):
            if fcntl is None:
                import msvcrt

                os.lseek(fd, 0, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        os.close(fd)


def held(path: Path) -> bool:
    """Whether some process holds the lock at this moment."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try(fd)
    finally:
        os.close(fd)
