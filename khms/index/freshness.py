"""Whether the index may be behind the base, told by a handful of stats and without any process.

It sees every commit, checkout and every write by rename. It does not see an edit in place: for that, git is asked by
`sync.refresh`. Git's own index is no sign: `git status` writes it anew whenever it likes.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from khms.index import manifest
from khms.index.manifest import NOTHING, Mark, Unusable, mark
from khms.store import gitdir
from khms.store.layout import Base
from khms.values import dataclass

_GIT = "git:"


@dataclass(frozen=True, slots=True)
class Freshness:
    """`behind` with the reason in words; `checked_at` is when the files themselves were last looked at, in seconds
    since the epoch, 0 where never."""

    behind: bool
    why: str = ""
    checked_at: float = 0.0


def freshness(base: Base) -> Freshness:
    """Compares the look of the last refresh with the base as it is now."""
    try:
        known = manifest.load(base.index)
    except Unusable as error:
        return Freshness(True, f"the index cannot be used: {error}")
    if known is None:
        return Freshness(True, "there is no index yet")
    return compare(base, known)


def compare(base: Base, known: manifest.Manifest) -> Freshness:
    changed = _changed(base, known, look(base, (name for name in known.looked if not name.startswith(_GIT))))
    if not changed:
        return Freshness(False, "", known.at / 1e9)
    first = min(changed)
    why = "git moved since the last look" if first.startswith(_GIT) else f"{first} changed since the last look"
    return Freshness(True, why, known.at / 1e9)


def unmoved(base: Base, known: manifest.Manifest) -> bool:
    """Whether git stands where it stood at the last look."""
    return not any(name.startswith(_GIT) for name in _changed(base, known, look(base, ())))


def _changed(base: Base, known: manifest.Manifest, now: dict[str, Mark]) -> list[str]:
    """What does not look as it did."""
    changed = [name for name in {**known.looked, **now} if known.looked.get(name, NOTHING) != now.get(name, NOTHING)]
    if any(name.startswith(_GIT) for name in changed) and known.commit and _head(base) == known.commit:
        # Git packed its refs, or this is another branch at the same commit.
        return [name for name in changed if not name.startswith(_GIT)]
    return changed


def _head(base: Base) -> str:
    git = gitdir.find(base.root)
    return gitdir.head(git) if git else ""


def look(base: Base, folders: Iterable[str]) -> dict[str, Mark]:
    """HEAD, its ref and packed refs of git, and the given folders of the base, as they are at this moment."""
    root = str(base.root)
    found = {folder: _times(os.path.join(root, folder)) for folder in folders}  # noqa: PTH118
    git = gitdir.find(base.root)
    if git is None:
        return found
    found[f"{_GIT}HEAD"] = _times(git.folder / "HEAD")
    found[f"{_GIT}packed-refs"] = _times(git.common / "packed-refs")
    try:
        head = (git.folder / "HEAD").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return found
    if head.startswith("ref: "):
        found[f"{_GIT}ref"] = _times(git.common / head.removeprefix("ref: "))
    return found


def _times(path: Path | str) -> Mark:
    """The mark without the time of changes of any kind: who may do what in a folder is no change of what is in it."""
    at = mark(path)
    return at if at == NOTHING else (*at[:3], 0)
