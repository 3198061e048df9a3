"""Bringing the work tree to what a commit says: new folders whole, files by rename, nobody's third content lost."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from khms.store import files
from khms.store.repo import Repo

Changes = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Step:
    """One file of a commit. `blob` is the new blob's id, None for a removal; `entry` what the user's index held for the
    path; `before` and `after` the SHA-256 of the work tree's bytes then and as they shall be, None for no file."""

    path: str
    blob: str | None
    entry: str | None
    before: str | None
    after: str | None


def digest(path: Path) -> str | None:
    """SHA-256 of a file's bytes, None where there is no file."""
    try:
        return hashlib.sha256(files.read(path)).hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def place(repo: Repo, steps: tuple[Step, ...], changes: Changes | None = None) -> tuple[str, ...]:
    """Brings the work tree to what the commit says and returns the paths left alone because they hold something else.
    New folders appear whole, by one rename; what is added comes before what is removed. Without `changes` (recovery)
    the bytes come from git."""
    kept = []
    todo: dict[str, bytes | None] = {}
    for step in steps:
        now = digest(repo.root / step.path)
        if step.before == step.after or now == step.after:
            continue
        if now != step.before:
            kept.append(step.path)
        elif step.blob is None:
            todo[step.path] = None
        else:
            data = changes.get(step.path) if changes else None
            todo[step.path] = data if data is not None else repo.run("cat-file", "blob", step.blob)
    _sweep(repo.root, steps)
    added = {path: data for path, data in todo.items() if data is not None}
    for folder, members in _new_folders(repo.root, added).items():
        _place_folder(repo.root, folder, members)
        for path in members:
            del added[path]
    for path, data in sorted(added.items()):
        files.write_atomic(repo.root / path, data)
    for path in sorted(path for path, data in todo.items() if data is None):
        files.unlink(repo.root / path)
        files.remove_empty((repo.root / path).parent, repo.root)
    return tuple(kept)


def _sweep(root: Path, steps: tuple[Step, ...]) -> None:
    """Removes temporary files and folders that a killed run left beside its targets."""
    for folder in {
        parent for step in steps for parent in (root / step.path).parents if root in (parent, *parent.parents)
    }:
        if folder.is_dir():
            for leftover in folder.glob(files.TEMPORARY + "*"):
                files.remove_tree(leftover)


def _new_folders(root: Path, added: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The topmost folders that do not exist yet, each with the files to come into it."""
    found: dict[str, dict[str, bytes]] = {}
    for path, data in added.items():
        parents = [parent for parent in Path(path).parents if parent != Path()]
        missing = [parent for parent in parents if not (root / parent).exists()]
        if missing:
            found.setdefault(missing[-1].as_posix(), {})[path] = data
    return found


def _place_folder(root: Path, folder: str, members: Mapping[str, bytes]) -> None:
    target = root / folder
    temporary = target.with_name(f"{files.TEMPORARY}{os.getpid()}-{target.name}"[:200])
    for path, data in sorted(members.items()):
        inner = temporary / Path(path).relative_to(folder)
        files.make_folder(inner.parent)
        with files.naming(inner):
            files.write_new(inner, data)
    files.rename(temporary, target)
    files.sync_folder(target.parent)
