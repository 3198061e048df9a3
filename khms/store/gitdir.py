"""What git's own folder says, read without a git process: for the hook's and mark's path, where one costs too much."""

import contextlib
import os
from pathlib import Path

from khms.values import dataclass


@dataclass(frozen=True, slots=True)
class GitDir:
    """`top` is the work tree's root, `folder` this work tree's git folder, `common` the repository's shared one."""

    top: Path
    folder: Path
    common: Path


def find(path: Path) -> GitDir | None:
    """The repository that holds `path`, or None. Stops at the file system's root."""
    start = path.resolve()
    for folder in (start, *start.parents):
        dot = folder / ".git"
        if dot.is_dir() and (dot / "HEAD").exists():
            return GitDir(folder, dot, dot)
        if dot.is_file():
            target = _pointer(dot, "gitdir: ")
            return GitDir(folder, target, _common(target)) if target is not None else None  # git too looks no further
    return None


def _pointer(file: Path, prefix: str) -> Path | None:
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return None
    if not text.startswith(prefix):
        return None
    path = Path(text.removeprefix(prefix))
    return path if path.is_absolute() else Path(os.path.normpath(file.parent / path))


def _common(folder: Path) -> Path:
    shared = folder / "commondir"
    return (_pointer(shared, "") or folder) if shared.exists() else folder


def has_remote(git: GitDir) -> bool:
    """Whether the repository's own configuration names a remote: then the base is shared."""
    try:
        text = (git.common / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(line.lstrip().startswith('[remote "') for line in text.splitlines())


def head(git: GitDir) -> str:
    """The commit that HEAD names, or empty where it cannot be told from files (unborn branch, reftable)."""
    try:
        text = (git.folder / "HEAD").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    if not text.startswith("ref: "):
        return text
    ref = text.removeprefix("ref: ")
    try:
        return (git.common / ref).read_text(encoding="utf-8").strip()
    except OSError:
        return _packed(git.common / "packed-refs", ref)


def _packed(file: Path, ref: str) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.split(" ", 1)[0] for line in lines if line.endswith(" " + ref)), "")


def refs_named(git: GitDir, name: str) -> dict[str, str] | None:
    """The branches, local and remote-tracking, whose names begin with `name` (`khms/inbox/`): full name to commit. None
    where this repository keeps its refs in a way that only git can read (reftable)."""
    if (git.common / "reftable").is_dir():
        return None
    found = _packed_named(git.common / "packed-refs", name)
    homes = [git.common / "refs" / "heads"]
    with contextlib.suppress(OSError):
        homes += [Path(entry.path) for entry in os.scandir(git.common / "refs" / "remotes") if entry.is_dir()]
    for home in homes:
        for folder, _, files in os.walk(home / name.rstrip("/")):
            for file in files:
                path = Path(folder, file)
                try:
                    commit = path.read_text(encoding="utf-8").strip()
                except (OSError, ValueError):
                    continue
                if commit and not file.endswith(".lock"):
                    found[path.relative_to(git.common).as_posix()] = commit
    return found


def _packed_named(file: Path, name: str) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    rows = [line.split(" ", 1) for line in lines if f"/{name}" in line and line[:1] not in "#^"]
    return {ref: commit for commit, ref in rows if ref.startswith((f"refs/heads/{name}", "refs/remotes/"))}
