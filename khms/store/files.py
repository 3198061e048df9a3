"""The reading of files, and the writing primitives. Each of these counts, and a test can kill the process right after
the n-th (KHMS_KILL_AT=n).

A write is atomic: a temporary file in the same folder, fsync, rename; a reader never sees half a file.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path

from khms.errors import Refused, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEMPORARY = ".khms-tmp-"
_count = 0


def tick() -> None:
    """One writing primitive was done. KHMS_KILL_AT=n ends the process by SIGKILL after the n-th, for tests."""
    global _count
    _count += 1
    if os.environ.get("KHMS_KILL_AT") == str(_count):
        import signal

        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def naming(path: Path):  # type: ignore[no-untyped-def]
    """Turns the operating system's refusal into one clear error that names the file."""
    try:
        yield
    except OSError as error:
        raise _clear(error, path) from error


def _clear(error: OSError, path: Path) -> Unavailable:
    hints = {
        errno.ENOSPC: "free some room on the disk, then run the command again",
        errno.EROFS: "the file system is read-only: remount it or use another base",
        errno.EACCES: "give yourself write permission to this folder",
        errno.EPERM: "give yourself write permission to this folder",
        errno.ENOTDIR: "a file stands where a folder is needed: move it away",
        errno.EISDIR: "a folder stands where a file is needed: move it away",
    }
    what = os.strerror(error.errno) if error.errno else str(error)
    return Unavailable(f"cannot write: {what}", where=str(path), hint=hints.get(error.errno or 0, ""))


def read(path: Path | str, flags: int = 0) -> bytes:
    """The bytes of a regular file. Raises OSError for anything else: a pipe would be waited for, for ever."""
    fd = os.open(path, flags | os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(fd, "rb") as file:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read()


def read_inside(root: Path | str, path: str) -> bytes:
    """The bytes of the regular file at `path` below `root`. A link is followed only to a file that lies in `root` too;
    else OSError, as for everything that `read` does not take."""
    place = f"{root}/{path}"
    try:
        return read(place, getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            raise
    try:
        return read(inside(Path(root), Path(place)))
    except Refused as refused:
        raise OSError(errno.ELOOP, "it is a link that leads out of the base, or nowhere", place) from refused


def read_json(path: Path) -> "Any":
    """The JSON value in a file. Raises OSError where it cannot be read, ValueError where it is no JSON or nested so
    deeply that Python's reader gives up (which it says by a RecursionError)."""
    return parse_json(read(path).decode("utf-8"))


def parse_json(text: str | bytes) -> "Any":
    """As `read_json`, for a text at hand."""
    import json

    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def make_folder(path: Path, mode: int = 0o777) -> None:
    if not path.is_dir():
        with naming(path):
            path.mkdir(parents=True, exist_ok=True, mode=mode)
            tick()


def sync_folder(path: Path) -> None:
    """Makes a rename or a new name in `path` durable."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    tick()


def write_new(path: Path, data: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Writes `data` to a file that must not exist yet, durably; FileExistsError where it does."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with open(fd, "wb", closefd=True) as file:
        file.write(data)
        tick()
        if durable:
            file.flush()
            os.fsync(file.fileno())
            tick()


def write_atomic(path: Path, data: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Puts `data` at `path` whole or not at all. A new file gets `mode`, less the umask; an existing file's permission
    bits stay. What is not `durable` may be empty after a loss of power, and is not waited for."""
    with naming(path):
        make_folder(path.parent)
        temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}"[:200])
        temporary.unlink(missing_ok=True)
        try:
            write_new(temporary, data, mode, durable=durable)
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(path.stat().st_mode & 0o7777)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        tick()
        if durable:
            sync_folder(path.parent)


def append(path: Path, data: bytes) -> None:
    """Adds `data` to the end in one write, durably; what stands there is never rewritten."""
    with naming(path):
        make_folder(path.parent)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        try:
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, data[written:])
            tick()
            os.fsync(fd)
            tick()
        finally:
            os.close(fd)


def write_at(path: Path, offset: int, data: bytes) -> None:
    """Writes `data` from `offset` on, into a file that is made where there is none. Not durable before `sync_file`; for
    derived files, of which only what stands before `offset` is known to any reader."""
    with naming(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            os.lseek(fd, offset, os.SEEK_SET)
            written = 0
            while written < len(data):
                written += os.write(fd, data[written:])
            tick()
        finally:
            os.close(fd)


def sync_file(path: Path) -> None:
    """Makes what was written into a file durable."""
    with naming(path):
        fd = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        tick()


def rename(old: Path, new: Path) -> None:
    with naming(new):
        os.replace(old, new)
        tick()


def unlink(path: Path) -> None:
    """Removes a file; one that is already gone is fine."""
    with naming(path):
        path.unlink(missing_ok=True)
        tick()


def remove_tree(path: Path) -> None:
    """Removes a folder of ours and all in it; what is already gone is fine."""
    if path.is_symlink() or path.is_file():
        unlink(path)
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            remove_tree(child)
        with naming(path), contextlib.suppress(FileNotFoundError):
            path.rmdir()
            tick()


def remove_empty(path: Path, stop: Path) -> None:
    """Removes `path` and its parents below `stop` as long as they are empty folders; one that is gone already is passed
    over."""
    while path != stop and stop in path.parents:
        try:
            path.rmdir()
            tick()
        except FileNotFoundError:
            pass
        except OSError:
            return
        path = path.parent


def inside(root: Path, path: Path) -> Path:
    """`path` resolved, if it lies in `root` (links followed); raises Refused else."""
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11 tells a loop of links by a RuntimeError
        raise Refused("this path is a link that leads nowhere", where=str(path), hint="remove the link") from error
    base = root.resolve()
    if resolved != base and base not in resolved.parents:
        raise Refused(
            "this path leads out of the base", where=str(path), hint="use a path inside the base, not through a link"
        )
    return resolved
