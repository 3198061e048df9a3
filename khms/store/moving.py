"""What it takes to bring a branch, its index and its work tree from one commit to another, or why it cannot be done:
nothing that the user changed or staged, and no file that git does not know, is ever overwritten.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from khms.errors import Refused
from khms.store import tree
from khms.store.placing import Step, sight, signature
from khms.store.repo import Repo
from khms.store.tree import Entry

MANY = 2000  # paths from which git is asked about all of them instead of by name
Difference = Mapping[str, tuple[Entry | None, Entry | None]]


def steps(repo: Repo, old: str | None, new: str) -> tuple[Step, ...]:
    """One step for each file in which `new` differs from `old`; `repo` is that of the work tree's top. Raises Refused,
    naming the files, where one of them holds what would be lost."""
    changed = tree.difference(repo, old, new)
    for path in changed:
        _demand_inside(path)
    blobs = [e.blob for pair in changed.values() for e in pair if e is not None and e.mode != tree.SUBMODULE]
    objects = tree.Objects(repo)
    objects.fetch(blobs)
    held, hidden = _index(repo, changed)
    if hidden:
        raise Refused(
            "a sparse checkout leaves out files that this would change",
            where=_some(hidden),
            hint="git sparse-checkout disable",
        )
    staged = [path for path, pair in changed.items() if held.get(path) not in pair]
    found, unlike = [], []
    for path, (was, shall) in sorted(changed.items()):
        here = sight(repo.root / path)
        before, after = _signed(objects, was), _signed(objects, shall)
        if tree.SUBMODULE in (was and was.mode, shall and shall.mode):
            here = after = None  # what stands in a submodule's folder is its own repository's
        elif not _same(here, before) and not _same(here, after):
            unlike.append(path)
        entry = held.get(path)
        kind = shall or was
        found.append(
            Step(path, shall.blob if shall else None, entry.blob if entry else None, here, after, kind.mode)  # type: ignore[union-attr]
        )
    lost = [*staged, *_lost(repo, unlike, changed), *_blocked(repo, changed)]
    if lost:
        raise Refused(
            "files of yours stand in the way: they hold changes, or git does not know them",
            where=_some(sorted(set(lost))),
            hint="commit them, put them away (git stash -u) or remove them",
        )
    return tuple(found)


def _signed(objects: tree.Objects, entry: Entry | None) -> str | None:
    if entry is None or entry.mode == tree.SUBMODULE:
        return None
    return signature(objects.data(entry.blob), entry.mode)


def _same(one: str | None, other: str | None) -> bool:
    """Whether two signatures mean the same bytes; whether a plain file may be run is not looked at."""
    return (one or "").removeprefix("program ") == (other or "").removeprefix("program ")


def _demand_inside(path: str) -> None:
    """Raises Refused for a path that git would not check out either: out of the work tree, or into a git folder."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.rstrip(". ").casefold() in (".git", "git~1") for part in parts):
        raise Refused(
            "a commit holds a path that git itself would not check out", where=path, hint="look at who made it"
        )


def _index(repo: Repo, paths: Iterable[str]) -> tuple[dict[str, Entry], list[str]]:
    """What the user's index holds for these paths, and those that a sparse checkout leaves out."""
    wanted = sorted(paths)
    if not wanted:
        return {}, []
    out = repo.run("ls-files", "-s", "-t", "-z", "--full-name", "--", *(wanted if len(wanted) < MANY else ()))
    held: dict[str, Entry] = {}
    hidden = []
    asked = set(wanted)
    for row in out.split(b"\0"):
        meta, _, name = row.partition(b"\t")
        path = os.fsdecode(name)
        if not row or path not in asked:
            continue
        tag, mode, blob, _stage = meta.decode().split(" ")
        held[path] = Entry(mode, blob)
        if tag == "S" and not os.path.lexists(repo.root / path):
            hidden.append(path)
    return held, hidden


def _lost(repo: Repo, unlike: list[str], changed: Difference) -> list[str]:
    """Those of the paths whose bytes are neither commit's that hold work of the user's: git knows which of them differ
    only by their line ends or a filter."""
    unknown = [path for path in unlike if changed[path][0] is None]
    known = sorted(set(unlike) - set(unknown))
    if not known:
        return unknown
    out = repo.run("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--", *known)
    return [*unknown, *(os.fsdecode(row[3:]) for row in out.split(b"\0") if row)]


def _blocked(repo: Repo, changed: Difference) -> list[str]:
    """What stands where a folder is needed, or a folder where a file comes, and does not leave with this change."""
    leaving = {path for path, (_, shall) in changed.items() if shall is None}
    found = set()
    for path, (_, shall) in changed.items():
        if shall is None or shall.mode == tree.SUBMODULE:
            continue
        for parent in list(Path(path).parents)[:-1]:
            place = repo.root / parent
            if (place.is_symlink() or (place.exists() and not place.is_dir())) and parent.as_posix() not in leaving:
                found.add(parent.as_posix())
        place = repo.root / path
        if place.is_dir() and not place.is_symlink():
            inner = (item.relative_to(repo.root).as_posix() for item in place.rglob("*") if not item.is_dir())
            found.update(name for name in inner if name not in leaving)
    return sorted(found)


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 8} more" if len(paths) > 8 else ""
    return ", ".join(paths[:8]) + more
