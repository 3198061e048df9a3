"""Standard output and error as places that never cut a command off: the work comes first, and what became of the answer
is told at the end."""

import errno
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Outlet(io.FileIO):
    """A stream's lowest layer. What cannot be written is dropped; `lost` says why, once something was."""

    lost: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        if self.lost is None:
            try:
                while (written := super().write(data)) is None:  # a caller made the pipe one that does not wait
                    _wait(self.fileno())
                return written
            except OSError as error:
                self.lost = error
        return memoryview(data).nbytes


def _wait(number: int) -> None:
    import select

    select.select([], [number], [])


def secure() -> None:
    """Makes printing safe. A stream that the caller closed leads nowhere from here on, so that no file opened later
    gets its number; text that the terminal's encoding lacks is shown escaped."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(opened)
        if sys.stdin is None:
            sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout, sys.stderr = _wrapped(sys.stdout, 1), _wrapped(sys.stderr, 2)


def _wrapped(stream: object, number: int) -> io.TextIOWrapper:
    """The process's own stream over an Outlet; one that a caller in this process put there stays."""
    if stream is None:
        return _text(number, "utf-8", False, False)
    if isinstance(stream, io.TextIOWrapper) and hasattr(stream, "reconfigure"):
        if stream in (sys.__stdout__, sys.__stderr__) and stream.fileno() == number:
            return _text(number, stream.encoding, stream.line_buffering, stream.write_through)
        stream.reconfigure(errors="backslashreplace")
    return stream  # type: ignore[return-value]


def _text(number: int, encoding: str, line_buffering: bool, write_through: bool) -> io.TextIOWrapper:
    outlet = io.BufferedWriter(Outlet(number, "w", closefd=False))
    return io.TextIOWrapper(
        outlet, encoding, errors="backslashreplace", line_buffering=line_buffering, write_through=write_through
    )


def lost() -> str:
    """Why the answer did not reach standard output, once everything is flushed; empty where it did, or where its
    reader went away and wants no more."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    error = raw.lost if isinstance(raw, Outlet) else None
    return "" if error is None or error.errno == errno.EPIPE else error.strerror or str(error)
