"""What the work tree holds otherwise than a commit: told by the bytes of every file, not by git's memory of how a file
looked. That memory passes over a change of the same size within the same second, and settings make it pass over more.
"""

import hashlib
import os
import stat
from collections.abc import Iterator

from khms.check.audited import FOLDERS, is_card, is_record, is_trust
from khms.store.history import Tree
from khms.store.layout import CONFIG, SIGNERS, Base
from khms.store.repo import Repo

# As `files.read`, which costs twice as much: ten thousand files are read here.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
Held = dict[str, bytes | None]


def overlay(base: Base, repo: Repo) -> Held:
    """The cards, records, signers and settings that differ from HEAD, ignored ones included; None where one is gone.
    Line ends that git converts are no difference. Files that a sparse checkout leaves out are not gone."""
    head = repo.head()
    listing = Tree(repo, repo.prefix, head).listing(*FOLDERS, SIGNERS, CONFIG) if head else {}
    wanted = {path: blob for path, blob in listing.items() if _counts(path)}
    found: Held = {}
    for path, blob in wanted.items():
        data = on_disk(base, path)
        if data is None or not is_blob(data, blob):
            found[path] = data
    for path in _left_out(repo, [path for path, data in found.items() if data is None]):
        del found[path]
    fresh = {path: on_disk(base, path) for path in _there(base) if path not in wanted}
    return found | {path: data for path, data in fresh.items() if data is not None}


def on_disk(base: Base, path: str) -> bytes | None:
    """The bytes of a file as git would take it: of a link its target."""
    place = f"{base.root}/{path}"
    try:
        fd = os.open(place, _READ)
    except OSError:
        try:
            return os.fsencode(os.readlink(place))  # noqa: PTH115
        except OSError:
            return None
    try:
        held = os.fstat(fd)
        if not stat.S_ISREG(held.st_mode):
            return None
        data = os.read(fd, held.st_size + 1)
        while len(data) > held.st_size and (more := os.read(fd, 1 << 20)):  # it is being written to
            data += more
        return data
    except OSError:
        return None
    finally:
        os.close(fd)


def blob_id(data: bytes, like: str) -> str:
    """The id that git would give these bytes, in a repository whose ids are of the length of `like`."""
    make = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return make(b"blob %d\0" % len(data) + data).hexdigest()


def is_blob(data: bytes, blob: str) -> bool:
    """Whether git keeps these bytes under this id, as they are or with its own line ends."""
    return blob_id(data, blob) == blob or (b"\r\n" in data and blob_id(data.replace(b"\r\n", b"\n"), blob) == blob)


def _counts(path: str) -> bool:
    return is_card(path) or is_record(path) or is_trust(path)


def _there(base: Base) -> Iterator[str]:
    for folder in FOLDERS:
        yield from (path for path in _below(f"{base.root}/{folder}", folder) if _counts(path))
    yield from (path for path in (SIGNERS, CONFIG) if os.path.lexists(base.path(path)))


def _below(place: str, shown: str) -> Iterator[str]:
    """The files below a folder; links to folders and other repositories are not entered."""
    try:
        entries = list(os.scandir(place))
    except OSError:
        return
    if os.path.islink(place) or any(entry.name.casefold() == ".git" for entry in entries):  # noqa: PTH114
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, f"{shown}/{entry.name}")
        else:
            yield f"{shown}/{entry.name}"


def _left_out(repo: Repo, paths: list[str]) -> frozenset[str]:
    """Those of these missing files that git was told not to check out."""
    if not paths:
        return frozenset()
    cut = len(repo.prefix)
    rows = repo.run("ls-files", "-t", "-z", "--full-name").split(b"\0")
    return frozenset(os.fsdecode(row[2:])[cut:] for row in rows if row.startswith(b"S ")) & frozenset(paths)
