"""What git's own folder says, read without a git process: for the hook's and mark's path, where one costs too much."""

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
            if target is not None:
                return GitDir(folder, target, _common(target))
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
