"""Whether a base is still what it was before an agent was called: an agent proposes, and writes nothing.

Looked at are the names, sizes, times and inodes of everything in the base but git's own objects and this machine's
`.khms`, where khms itself writes, and what git runs or obeys. The journal may grow meanwhile, for MARKs are jotted at
any hour; a line of it that changes may not.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from khms.errors import Refused
from khms.store.layout import JOURNAL, Base

Stamp = tuple[int, int, int, int]  # size, mtime in ns, inode, mode
_PASSED = (".khms", ".git", "__pycache__")
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Picture:
    files: Mapping[str, Stamp]
    heads: Mapping[str, bytes]
    journal: Mapping[str, bytes]


@dataclass
class Guard:
    """Compares the base around calls. Calls can run side by side, so the picture is taken when the first begins and
    looked at again whenever one ends."""

    base: Base
    git: Path | None = None
    _lock: Lock = field(default_factory=Lock)
    _before: Picture | None = None
    _running: int = 0

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Raises Refused at the end where anything changed while the body ran."""
        with self._lock:
            if not self._running:
                self._before = picture(self.base, self.git)
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                before = self._before
        assert before is not None
        changed = differences(before, picture(self.base, self.git))
        if changed:
            more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
            raise Refused(
                f"the base changed while the agent was asked: {', '.join(changed[:SHOWN])}{more}",
                where=str(self.base.root),
                hint="look at it (git status, git diff); if it is yours, run the command again: no decision is lost",
            )


def picture(base: Base, git: Path | None = None) -> Picture:
    """The base as it lies there now. `git` is the git folder of its repository."""
    found: dict[str, Stamp] = {}
    _walk(str(base.root), "", found)
    heads: dict[str, bytes] = {}
    if git is not None:
        _walk(str(git / "hooks"), "(git) hooks/", found)
        for name in ("HEAD", "config", "packed-refs", "info/attributes", "info/exclude"):
            with contextlib.suppress(OSError):
                heads[f"(git) {name}"] = (git / name).read_bytes()
        _walk(str(git / "refs" / "heads"), "(git) refs/heads/", found)
    lines = {}
    for name in found:
        if name.startswith(f"{JOURNAL}/"):
            with contextlib.suppress(OSError):
                lines[name] = (base.root / name).read_bytes()
    return Picture(found, heads, lines)


def _walk(folder: str, prefix: str, found: dict[str, Stamp]) -> None:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name in _PASSED:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                _walk(entry.path, f"{prefix}{entry.name}/", found)
            else:
                at = entry.stat(follow_symlinks=False)
                found[prefix + entry.name] = (at.st_size, at.st_mtime_ns, at.st_ino, at.st_mode)
        except OSError:
            found[prefix + entry.name] = (0, 0, 0, 0)


def differences(before: Picture, after: Picture) -> list[str]:
    """What is no longer as it was, by name."""
    changed = []
    for name in sorted({*before.files, *after.files}):
        if before.files.get(name) == after.files.get(name) or _grew(name, before, after):
            continue
        changed.append(name)
    heads = sorted({*before.heads, *after.heads})
    return changed + [name for name in heads if before.heads.get(name) != after.heads.get(name)]


def _grew(name: str, before: Picture, after: Picture) -> bool:
    """Whether this is a journal file that only got longer, or is new."""
    return name in after.journal and after.journal[name].startswith(before.journal.get(name, b""))
