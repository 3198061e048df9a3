"""The files of a base as git sees them: which there are, and the bytes of each in the work tree or the staging area."""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from khms.store.files import TEMPORARY
from khms.store.layout import MEMORY, Base
from khms.store.repo import Repo

LARGEST = 8 * 1024 * 1024  # bytes; a larger file is not read
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_LINK, _SUBMODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file. `link` is where a symbolic link points; `problem` says why `data` is not there; `nested` says that
    another repository stands there."""

    path: str
    data: bytes = b""
    size: int = 0
    link: str | None = None
    problem: str = ""
    nested: bool = False


def listing(base: Base, repo: Repo | None) -> list[str]:
    """The base paths of all files that git tracks or would add; without git, of all files outside hidden folders."""
    if repo is None:
        return sorted(_walk(base.root, ""))
    out = repo.run("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = {os.fsdecode(name) for name in out.split(b"\0") if name}
    return sorted(path for path in paths if not path.rpartition("/")[2].startswith(TEMPORARY))


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY):
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield prefix + entry.name
            elif not entry.name.startswith("."):
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")


def entry(base: Base, path: str) -> Entry | None:
    """A file of the work tree, None where there is none any more (or a folder stands there). Links are not followed. On
    the base's own ground a folder that git names like a file is another repository."""
    file = f"{base.root}/{path}"
    try:
        fd = os.open(file, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if Path(file).is_symlink():
            return Entry(path, link=os.readlink(file))  # noqa: PTH115  its text, not a Path made of it
        return Entry(path, problem=error.strerror or str(error))
    try:
        held = os.fstat(fd)
        if not stat.S_ISREG(held.st_mode):
            nested = stat.S_ISDIR(held.st_mode) and path.startswith(f"{MEMORY}/")
            return Entry(path.rstrip("/"), nested=True) if nested else None
        if held.st_size > LARGEST:
            return Entry(path, size=held.st_size, problem=f"it holds {held.st_size:,} bytes")
        data = os.read(fd, held.st_size + 1)
        if len(data) != held.st_size:  # it is being written to
            while more := os.read(fd, 1 << 20):
                data += more
        return Entry(path, data, len(data))
    except OSError as error:
        return Entry(path, problem=error.strerror or str(error))
    finally:
        os.close(fd)


def staged(repo: Repo, index: str = "") -> list[Entry]:
    """The files that the next commit would add or change, as they are staged. `index` is the staging area to look at
    where git names one of its own (in a hook, for `git commit -a` or `git commit FILE`), as an absolute path."""
    out = repo.run(
        "diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--diff-filter=d", "--no-ext-diff",
        "--relative", "--ignore-submodules=dirty", env=_looking_at(index),
    )  # fmt: skip
    fields = [os.fsdecode(field) for field in out.split(b"\0") if field]
    found, nested = [], []
    for row, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, _ = row.split(" ")
        if mode != _SUBMODULE:
            found.append((path, mode, blob))
        elif path.startswith(f"{MEMORY}/"):
            nested.append(Entry(path, nested=True))
    bodies = _blobs(repo, [blob for _, _, blob in found])
    return nested + [
        Entry(path, link=os.fsdecode(data)) if mode == _LINK else Entry(path, data, len(data))
        for (path, mode, _), data in zip(found, bodies, strict=True)
    ]


def staged_names(repo: Repo, *folders: str, index: str = "") -> list[str]:
    """The base paths of all files below `folders` as they are staged."""
    out = repo.run("ls-files", "-z", "--cached", "--", *folders, env=_looking_at(index))
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def _looking_at(index: str) -> dict[str, str]:
    return {"GIT_INDEX_FILE": index} if index else {}


def names(base: Base, folders: Iterable[str]) -> list[str]:
    """The base paths of all files below `folders` in the work tree, known to git or not."""
    found: list[str] = []
    for folder in folders:
        place = base.root / folder
        if place.is_dir() and not place.is_symlink():
            found += sorted(_walk(place, folder + "/"))
    return found


def _blobs(repo: Repo, ids: list[str]) -> list[bytes]:
    """The bytes of each blob, by one git process."""
    return [data for _, data in repo.objects(ids)]
