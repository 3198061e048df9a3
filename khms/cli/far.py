"""A command run in the server for another process: what it prints goes to that process, byte for byte.

The command is the very function that a process without a server runs, over streams that stand for the client's. Where
anything is out of the ordinary (an option that is not known, help, an error) the client runs it itself.
"""

import contextlib
import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from khms.cli.session import Session
from khms.errors import Unavailable
from khms.index import current
from khms.server.service import Asked
from khms.store.layout import Base


class _Streams(threading.local):
    out: io.TextIOBase | None = None
    err: io.TextIOBase | None = None


class Stream(io.TextIOWrapper):
    """A client's stream: what is printed is kept. `columns` is the width of its terminal, 0 where it is none."""

    def __init__(self, encoding: str, columns: int) -> None:
        self.kept = io.BytesIO()
        super().__init__(self.kept, encoding, errors="backslashreplace", newline="", write_through=True)
        self.columns = columns

    def isatty(self) -> bool:
        return self.columns > 0


class _Switch(io.TextIOBase):
    """Standard output or error of a process with many clients: that of the thread's own client, else nowhere."""

    def __init__(self, streams: _Streams, name: str) -> None:
        self._streams, self._name = streams, name

    def __getattribute__(self, name: str) -> Any:
        if name in ("encoding", "columns", "buffer", "isatty", "write", "flush", "errors"):
            own = object.__getattribute__(self, "_streams")
            stream = getattr(own, object.__getattribute__(self, "_name")) or _NOWHERE
            return getattr(stream, name)
        return super().__getattribute__(name)


_streams = _Streams()
_NOWHERE: io.TextIOBase = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Puts the streams in place of the process's own for as long as it serves."""
    own = sys.stdout, sys.stderr
    sys.stdout = _Switch(_streams, "out")
    sys.stderr = _Switch(_streams, "err")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = own


class _Session(Session):
    colours = False

    @property
    def colour(self) -> bool:
        return self.colours and sys.stdout.isatty()


def runner(base: Base) -> Any:
    """What the server of `base` runs commands with (service.Command)."""

    def run(asked: Asked) -> tuple[bytes, bytes, bytes] | None:
        with _client(asked) as (out, err):
            try:
                status = _run(base, asked)
            except BaseException:
                return None
            return None if status is None else (out.kept.getvalue(), err.kept.getvalue(), b"%d" % status)

    return run


@contextlib.contextmanager
def _client(asked: Asked) -> Iterator[tuple[Stream, Stream]]:
    encodings, columns = asked.streams[:2], [int(number) for number in asked.streams[2:4]]
    out, err = (Stream(name.decode("ascii"), width) for name, width in zip(encodings, columns, strict=True))
    _streams.out, _streams.err = out, err
    try:
        yield out, err
    finally:
        _streams.out = _streams.err = None


def _run(base: Base, asked: Asked) -> int | None:
    """The exit code, None where the command is not for this server."""
    from khms.cli.ask import recall

    root, quiet, verbose, *words = asked.words
    cwd = Path(os.fsdecode(asked.cwd))
    named = root or asked.env.get("KHMS_ROOT", "")
    session = _Session(str(cwd / named) if named else None, cwd, quiet=bool(quiet), verbose=bool(verbose))
    session.colours = asked.streams[4] == b"1"
    if os.path.realpath(session.base.root) != os.path.realpath(base.root):
        return None
    try:
        current.opened(base)
    except Unavailable:  # it has to be built: the client does that, since this process would keep the memory it takes
        return None
    ctx = recall.make_context("recall", list(words), obj=session)
    try:
        with ctx:
            recall.invoke(ctx)
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0
