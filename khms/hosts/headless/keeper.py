"""Runs one command and sees to it that nothing of it outlives the call. A program of its own, without imports of khms:

    python -I -S keeper.py CONTROL FOLDER COMMAND…

Standard streams are the command's. CONTROL is a file descriptor; when its other end is closed, or the process that
holds that end dies by whatever way, the command is ended, SIGTERM first, and FOLDER removed. When
the command has ended, by itself or not, so is every process that came from it: on Linux also those that left its group
and session or emptied their environment, because orphans become children of this process. The exit code is the
command's, 128 and the signal where one ended it, 127 where it cannot be run.
"""

import contextlib
import os
import select
import signal
import sys
import time

GRACE = 2.0  # seconds between SIGTERM and SIGKILL
PATIENCE = 10.0  # seconds of SIGKILL: what hangs in the kernel, or belongs to another user, is left then
LINUX = sys.platform.startswith("linux")
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_codes: dict[int, int] = {}


def main(control: int, folder: str, command: list[str]) -> int:
    adopt_orphans()
    waker, wakes = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    told: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda number, _: told.append(number))
    os.set_inheritable(control, False)
    child = start(command)
    alone = False
    while child not in _codes and not told:
        ready, _, _ = select.select([control, waker], [], [])
        if control in ready:
            alone = True
            break
        with contextlib.suppress(BlockingIOError):
            os.read(waker, 4096)
        reap()
    end(child)
    if alone:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    return _codes.get(child, 128 + signal.SIGKILL)


def start(command: list[str]) -> int:
    """The command as the leader of a session of its own."""
    child = os.fork()
    if child == 0:
        try:
            for name in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(name, signal.SIG_DFL)
            os.setsid()
            os.execv(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode("utf-8", "replace"))
        finally:
            os._exit(127)
    return child


def reap() -> None:
    """Notes the exit code of every process that has ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            _codes[pid] = 128 - code if code < 0 else code


def end(child: int) -> None:
    """Ends whatever is left of the command; comes back when nothing is."""
    kill(living(child), signal.SIGTERM)
    until = time.monotonic() + GRACE
    while living(child) and time.monotonic() < until:
        time.sleep(0.01)
    until += PATIENCE
    while (left := living(child)) and time.monotonic() < until:
        kill(left, signal.SIGKILL)  # again and again, for what was born meanwhile
        time.sleep(0.005)


def living(child: int) -> list[int]:
    """What can be signalled: every process below this one, or the command's group where these cannot be told."""
    reap()
    if LINUX:
        return descendants()
    with contextlib.suppress(OSError):
        os.killpg(child, 0)
        return [-child]
    return []


def kill(processes: list[int], how: int) -> None:
    for pid in processes:
        with contextlib.suppress(OSError):
            os.kill(pid, how)


def descendants() -> list[int]:
    """Every process below this one that has not ended."""
    below: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  pathlib costs a third of this program's start
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            # "pid (name) state parent …": the name may hold spaces and brackets itself
            state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state not in (b"Z", b"X"):
                below.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    look = [os.getpid()]
    while look:
        children = below.get(look.pop(), [])
        found += children
        look += children
    return found


def adopt_orphans() -> None:
    """Makes this process the parent of every orphan below it. Linux alone has that; elsewhere the group must do."""
    if LINUX:
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
