"""An agent's program as a child: the text on its standard input, an empty folder to stand in, an environment of what it
needs and nothing more, an end at the limit, and nothing of it left behind."""

import contextlib
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from khms.hosts.headless import keeper

# What any program needs to run, to find its user's login, and to reach the network as the user does.
ALLOWED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "NO_COLOR", "XDG_*"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
ERRORS_KEPT = 64 * 1024  # bytes of the end of standard error
SETTLE = keeper.GRACE + keeper.PATIENCE + 5  # seconds within which the keeper itself is done


@dataclass(frozen=True, slots=True)
class Ended:
    """How the program ended: its exit code (128 and the number where a signal did it), what it wrote, and whether that
    was at the limit of time or of output."""

    code: int
    out: str
    err: str
    late: bool = False
    much: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """Three fresh folders: `empty`, in which the program is started, `files` beside it for what it is handed, and
    `temporary` for what it writes on its way: a host's own report of an error holds the whole request."""

    empty: Path
    files: Path
    temporary: Path

    @property
    def whole(self) -> Path:
        return self.empty.parent

    def put(self, name: str, text: str) -> Path:
        path = self.files / name
        path.write_text(text, encoding="utf-8")
        return path


@contextlib.contextmanager
def room() -> Iterator[Room]:
    """The folders for one call, gone afterwards with whatever the program wrote there."""
    with tempfile.TemporaryDirectory(prefix="khms-agent-", ignore_cleanup_errors=True) as folder:
        found = Room(Path(folder, "empty"), Path(folder, "files"), Path(folder, "temporary"))
        for path in (found.empty, found.files, found.temporary):
            path.mkdir()
        yield found


def environment(
    run: str, room: Room, *, needs: Sequence[str] = (), more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a child of this run. `needs` are patterns of the further names of its host, `more` is set for
    it."""
    wanted = (*ALLOWED, *needs)
    found = {name: value for name, value in os.environ.items() if any(fnmatchcase(name, one) for one in wanted)}
    own = {"TMPDIR": str(room.temporary), "KHMS_HOOKS_OFF": "1", "KHMS_BACKGROUND": "1", "KHMS_RUN": run}
    return {**found, **own, **(more or {})}


def run(
    command: Sequence[str | Path], text: str, room: Room, *, env: Mapping[str, str], seconds: float, most: int
) -> Ended:
    """Runs `command` (its first part is a path) in the empty folder with `text` on standard input; it and everything
    that came from it has ended when this returns. `most` bytes of standard output are read, of standard error the end
    is kept. Should this process die meanwhile, the room is removed all the same."""
    control, held = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(control), str(room.whole), *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=room.empty,
            pass_fds=(control,),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # the latter for a NUL among the words
        os.close(held)
        return Ended(127, "", f"{command[0]} cannot be run: {error}")
    finally:
        os.close(control)
    try:
        out, err, late, much = _exchange(process, text.encode("utf-8", "replace"), time.monotonic() + seconds, most)
    finally:
        os.close(held)  # the keeper ends whatever is left
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(SETTLE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return Ended(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), late, much)


def _exchange(
    process: "subprocess.Popen[bytes]", given: bytes, until: float, most: int
) -> tuple[bytes, bytes, bool, bool]:
    """Writes and reads until the keeper, which holds both outputs open, is done: standard output, the end of standard
    error, and whether time or output was over the limit."""
    assert process.stdin and process.stdout and process.stderr
    into, outputs = process.stdin, {process.stdout: bytearray(), process.stderr: bytearray()}
    out, err = outputs.values()
    left, late, much = memoryview(given), False, False
    with selectors.DefaultSelector() as waiting:
        for stream in (into, *outputs):
            os.set_blocking(stream.fileno(), False)
            waiting.register(stream, selectors.EVENT_WRITE if stream is into else selectors.EVENT_READ)
        open_ones = len(outputs)
        while open_ones and not late and not much:
            remaining = until - time.monotonic()
            late = remaining <= 0
            for key, _ in waiting.select(max(remaining, 0)):
                if key.fileobj is into:
                    left = _write(into.fileno(), left)
                    if not left:
                        waiting.unregister(into)
                        into.close()
                    continue
                stream = process.stdout if key.fileobj is process.stdout else process.stderr
                chunk = os.read(stream.fileno(), 65536)
                outputs[stream] += chunk
                if not chunk:
                    waiting.unregister(stream)
                    open_ones -= 1
            much = len(out) > most
            del err[:-ERRORS_KEPT]
    return bytes(out[:most]), bytes(err), late and open_ones > 0, much


def _write(where: int, left: memoryview) -> memoryview:
    """What is still to be written; nothing where the program reads no further."""
    try:
        return left[os.write(where, left[:65536]) :] if left else left
    except BlockingIOError:
        return left
    except OSError:
        return left[:0]
