"""Whether anything below a base's folders was written since the last look, told by the system (inotify on Linux).

`git status` over 10,000 files takes 30 ms, more than all the rest of an answer, and is all that sees a file which was
edited in place. Where the system itself tells of every write, the last look still counts as long as it told of none.
Nothing is promised where it would not tell: on a file system that others write to over a network, in a folder with
links, in a tree of very many folders. What it does not tell of even so is a write through another name of the same file
or through a mapping of an open one; the look that follows an answer sees those.
"""

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# modify, attributes, close after writing, moved from and to, create, delete, the folder itself deleted or moved
_EVENTS = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
_FOLDER = 0x01000000
MOST = 4096  # folders; a user may have 8,192 watches on older systems
TOLD_OF = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs")


class Watch:
    """One inotify descriptor. `over` adds folders to it, `still` says whether nothing happened in them."""

    def __init__(self) -> None:
        self._fd = -1
        if sys.platform == "linux":
            self._system = ctypes.CDLL(None, use_errno=True)
            self._fd = self._system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def over(self, root: Path, trees: Iterable[str], never: Iterable[str] = ()) -> bool:
        """Watches `root` and, with all that is below them and all between, the folders `trees`, which are paths from
        it; folders named as in `never` are left out. False where a write might go untold."""
        if self._fd < 0:
            return False
        places: dict[str, None] = {str(root): None}
        for tree in trees:
            top = os.path.normpath(root / tree)
            inside = top.startswith(f"{root}{os.sep}")
            there = inside or top == str(root) or os.path.isdir(top)
            if not there or not _told_of(str(root) if inside else top):
                return False
            parents = (str(parent) for parent in Path(top).parents if parent.is_relative_to(root))
            places.update(dict.fromkeys(parents if inside else ()))
            for place in _below(top, frozenset(never)):
                if place is None or len(places) >= MOST:
                    return False
                places[place] = None
        return all(map(self._add, places))

    def still(self) -> bool:
        """Whether nothing happened since this was asked last."""
        happened = False
        while True:
            try:
                happened |= bool(os.read(self._fd, 65536))
            except BlockingIOError:
                return not happened
            except OSError:
                return False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _add(self, place: str) -> bool:
        """A folder that is not there needs no watch: its parent has one."""
        done = self._system.inotify_add_watch(self._fd, os.fsencode(place), _EVENTS | _FOLDER)
        return done >= 0 or not os.path.isdir(place)


def _below(top: str, never: frozenset[str]) -> Iterator[str | None]:
    """The folders of a tree; None for a link, whose target may be written anywhere."""
    if os.path.islink(top):
        yield None
        return
    yield top
    try:
        entries = list(os.scandir(top))
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink():
            yield None
        elif entry.name not in never and entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, never)


def _told_of(place: str) -> bool:
    """Whether `place` lies on a file system of this machine alone."""
    real = os.path.realpath(place)
    kind, longest = "", -1
    try:
        rows = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    for row in rows:
        before, _, after = row.partition(" - ")
        point = before.split(" ")[4].replace("\\040", " ")
        if len(point) >= longest and (real == point or real.startswith(point.rstrip("/") + "/")):
            kind, longest = after.split(" ")[0], len(point)
    return kind in TOLD_OF
