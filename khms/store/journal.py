"""The journal: day files that people and agents write to while they work. Appending never rewrites what is there."""

import time
from pathlib import Path

from khms.errors import Refused, Unavailable
from khms.model.mark import Mark, normalise, opening, parse_marks
from khms.store import files, gitdir, lock
from khms.store.layout import Base
from khms.values import dataclass

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class Day:
    """One journal file as it was read; `path` is relative to the base."""

    path: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")

    @property
    def marks(self) -> list[Mark]:
        return parse_marks(self.text, self.path)


def clone_id(base: Base) -> str:
    """The four characters of this work tree where the base is shared (it has a remote), made once; empty else."""
    git = gitdir.find(base.root)
    if git is None or not gitdir.has_remote(git):
        return ""
    path = git.folder / "khms" / "clone"
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        import os

        fresh = "".join(ALPHABET[byte % len(ALPHABET)] for byte in os.urandom(4))
        files.write_atomic(path, f"{fresh}\n".encode())
        return path.read_text(encoding="utf-8").strip()


def day_path(base: Base, day: str) -> Path:
    clone = clone_id(base)
    return base.journal / (f"{day}.{clone}.md" if clone else f"{day}.md")


def mark_line(kind: str, text: str, session: str = "") -> str:
    """The journal line of a MARK; raises Refused for a kind or text that would not read back as one."""
    body = normalise(text)
    line = f"MARK[{kind}] {body}" + (f" (sess {normalise(session)})" if session else "")
    read = opening(line)
    if not body:
        raise Refused("a MARK needs a text", hint='khms mark decision "what was decided and why"')
    if read is None or read[0] != kind:
        raise Refused(f"{kind!r} is no kind of MARK", hint="use one word, such as decision, req, failed or solved")
    return line


def append(base: Base, line: str, day: str | None = None) -> Path:
    """Adds one line under the day's heading and returns the file. Safe against other writers and against a kill: the
    line and, in a new file, its heading are one write."""
    day = day or time.strftime("%Y-%m-%d")
    path = day_path(base, day)
    files.inside(base.root, path)
    with lock.hold(base.locks / "journal.lock", "mark", wait=10.0):
        try:
            held = files.read(path)
        except FileNotFoundError:
            held = b""
        except OSError as error:
            raise Unavailable(f"the journal cannot be read: {error.strerror}", where=str(path)) from error
        lead = f"# {day}\n\n" if not held.strip() else "" if held.endswith(b"\n") else "\n"
        files.append(path, f"{lead}{line}\n".encode())
    return path


def days(base: Base) -> list[Day]:
    """Every journal file, oldest first; raises Unavailable for one that cannot be read, since its MARKs would be lost
    from the coverage without a word."""
    found = []
    for path in sorted(base.journal.glob("*.md")):
        if not path.is_file():
            continue
        files.inside(base.root, path)
        try:
            found.append(Day(base.relative(path), files.read(path)))
        except OSError as error:
            raise Unavailable(
                f"a journal file cannot be read: {error.strerror}",
                where=base.relative(path),
                hint="give it back its read permission",
            ) from error
    return found
