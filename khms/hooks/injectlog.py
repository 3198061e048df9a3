"""Every decision of a hook, silence included, as one JSON line: `inject.jsonl` in the base's log folder.

A line never holds what somebody wrote: a question stands in it by a digest, a session by its hash. Where the base has
no room for a log, or there is no base, the line goes into the user's data folder. Failing to log is silent.
"""

import contextlib
import json
import os
import time
from pathlib import Path

from khms.config import user_data
from khms.errors import KhmsError
from khms.model.digest import sha256_hex
from khms.store import local
from khms.store.layout import Base

NAME = "inject.jsonl"
LARGEST = 4 * 1024 * 1024  # bytes; a larger log becomes `inject.jsonl.1`, whose predecessor goes


def digest(query: str) -> str:
    """What a question is known by: the same words, however they are spaced and in whichever case, are one question."""
    return sha256_hex(" ".join(query.split()).casefold().encode("utf-8", "surrogatepass"))[:16]


def write(base: Base | None, record: dict[str, object]) -> None:
    """Adds one line, with the time; never raises."""
    now = time.time()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
    line = (json.dumps({"at": at, **record}) + "\n").encode("ascii")
    if base is None or not _append_in(base, line):
        with contextlib.suppress(KhmsError):  # a user without a home
            _append(user_data() / "log", line)


def _append_in(base: Base, line: bytes) -> bool:
    try:
        local.make(base)
    except KhmsError:
        return False
    return _append(base.log, line)


def _append(folder: Path, line: bytes) -> bool:
    path = str(folder / NAME)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, flags, 0o600)
        try:
            os.write(fd, line)
            held = os.fstat(fd)
        finally:
            os.close(fd)
        if held.st_size > LARGEST and os.lstat(path).st_ino == held.st_ino:
            os.replace(path, path + ".1")
    except OSError:
        return False
    return True
