"""Bringing the work tree to what a commit says: new folders whole, files by rename, nobody's third content lost."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from khms.store import files, tree
from khms.store.repo import Repo

Changes = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Step:
    """One file of a commit. `blob` is the new blob's id, None for a removal; `entry` what the user's index held for the
    path; `before` and `after` the digest of the work tree's bytes then and as they shall be, None for no file. `mode`
    is git's mode of the new file (of the old one for a removal); empty means a plain file, with links followed as every
    writer of the base does."""

    path: str
    blob: str | None
    entry: str | None
    before: str | None
    after: str | None
    mode: str = ""


def digest(path: Path) -> str | None:
    """SHA-256 of a file's bytes, None where there is no file."""
    try:
        return hashlib.sha256(files.read(path)).hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def signature(data: bytes, mode: str) -> str:
    """The digest of a file as git keeps it: a link counts by where it leads, a program apart from a plain file."""
    kind = {tree.LINK: "link ", tree.PROGRAM: "program "}.get(mode, "")
    return kind + hashlib.sha256(data).hexdigest()


def sight(path: Path) -> str | None:
    """The signature of what stands at `path`, links not followed; None for nothing, and for a folder."""
    try:
        seen = path.lstat()
        if stat.S_ISLNK(seen.st_mode):
            return signature(os.fsencode(os.readlink(path)), tree.LINK)  # noqa: PTH115  Path would tidy it
        return signature(files.read(path), tree.PROGRAM if seen.st_mode & stat.S_IXUSR else tree.FILE)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def place(repo: Repo, steps: tuple[Step, ...], changes: Changes | None = None) -> tuple[str, ...]:
    """Brings the work tree to what the commit says and returns the paths left alone because they hold something else.
    New folders appear whole, by one rename; what is added comes before what is removed, unless it stands in the way.
    Without `changes` (recovery) the bytes come from git."""
    kept = []
    todo: dict[str, Step] = {}
    for step in steps:
        if step.before == step.after:
            continue
        now = (sight if step.mode else digest)(repo.root / step.path)
        if now == step.after:
            continue
        if now != step.before:
            kept.append(step.path)
        else:
            todo[step.path] = step
    contents = _contents(repo, todo.values(), changes or {})
    _sweep(repo.root, steps)
    added = {path: step for path, step in todo.items() if step.blob is not None}
    gone = [path for path, step in todo.items() if step.blob is None]
    early = _in_the_way(added, gone)
    for path in early:
        _remove(repo.root, path)
    for name, members in _new_folders(repo.root, added).items():
        _place_folder(repo.root, name, {path: (contents[path], added[path].mode) for path in members})
        for path in members:
            del added[path]
    touched = set()
    for path, step in sorted(added.items()):
        if step.mode:
            _put(repo.root / path, contents[path], step.mode)
            touched.add((repo.root / path).parent)
        else:
            files.write_atomic(repo.root / path, contents[path])
    for folder in sorted(
        touched
    ):  # once each: a pull may bring thousands of files, and the intent stands until the end
        files.sync_folder(folder)
    for path in sorted(set(gone) - set(early)):
        _remove(repo.root, path)
    for parent in {(repo.root / step.path).parent for step in steps if step.after is None}:
        files.remove_empty(parent, repo.root)  # a killed run may have removed the files and not their folder
    return tuple(kept)


def _contents(repo: Repo, steps: Iterable[Step], changes: Changes) -> dict[str, bytes]:
    wanted = {step.path: step.blob for step in steps if step.blob is not None}
    given = {path: data for path, data in changes.items() if data is not None and path in wanted}
    blobs = [blob for path, blob in wanted.items() if path not in given]
    held = tree.read_blobs(repo, list(dict.fromkeys(blobs))) if blobs else {}
    return {path: given[path] if path in given else held[blob] for path, blob in wanted.items()}


def _in_the_way(added: Mapping[str, Step], gone: list[str]) -> list[str]:
    """The removals without which something cannot be added: a file where a folder comes, or the other way round."""
    folders = {parent.as_posix() for path in added for parent in Path(path).parents}
    return sorted(p for p in gone if p in folders or any(parent.as_posix() in added for parent in Path(p).parents))


def _remove(root: Path, path: str) -> None:
    files.unlink(root / path)
    files.remove_empty((root / path).parent, root)


def _sweep(root: Path, steps: tuple[Step, ...]) -> None:
    """Removes temporary files and folders that a killed run left beside its targets."""
    for folder in {root / parent for step in steps for parent in Path(step.path).parents}:
        for name in os.listdir(folder) if folder.is_dir() else ():  # noqa: PTH208  thousands of cards lie in one
            if name.startswith(files.TEMPORARY):
                files.remove_tree(folder / name)


def _new_folders(root: Path, added: Mapping[str, Step]) -> dict[str, list[str]]:
    """The topmost folders that do not exist yet, each with the files to come into it."""
    found: dict[str, list[str]] = {}
    for path in added:
        parents = [parent for parent in Path(path).parents if parent != Path()]
        missing = [parent for parent in parents if not (root / parent).exists()]
        if missing:
            found.setdefault(missing[-1].as_posix(), []).append(path)
    return found


def _place_folder(root: Path, folder: str, members: Mapping[str, tuple[bytes, str]]) -> None:
    target = root / folder
    temporary = target.with_name(f"{files.TEMPORARY}{os.getpid()}-{target.name}"[:200])
    for path, (data, mode) in sorted(members.items()):
        inner = temporary / Path(path).relative_to(folder)
        files.make_folder(inner.parent)
        with files.naming(inner):
            _write_new(inner, data, mode)
    files.rename(temporary, target)
    files.sync_folder(target.parent)


def _put(path: Path, data: bytes, mode: str) -> None:
    """A file with the permissions that its mode asks for, or a link, whole or not at all."""
    temporary = path.with_name(f"{files.TEMPORARY}{os.getpid()}-{path.name}"[:200])
    with files.naming(path):
        _write_new(temporary, data, mode)
    if path.is_dir() and not path.is_symlink():  # all that was in it has gone, perhaps before a kill
        _remove_empty_folders(path)
    files.rename(temporary, path)


def _remove_empty_folders(path: Path) -> None:
    """Removes a folder and those in it as far as they hold no file."""
    for child in sorted(path.iterdir()):
        if child.is_dir() and not child.is_symlink():
            _remove_empty_folders(child)
    with contextlib.suppress(OSError):
        path.rmdir()
        files.tick()


def _write_new(path: Path, data: bytes, mode: str) -> None:
    if mode == tree.LINK:
        os.symlink(os.fsdecode(data), path)  # noqa: PTH211  Path would tidy it
        files.tick()
    else:
        files.write_new(path, data, 0o777 if mode == tree.PROGRAM else 0o666)
