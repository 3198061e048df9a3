"""Which files the index has to look at again: what git says has changed, or, where git does not watch, all there are.

A path is relative to the base, with forward slashes.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from khms.index import sources
from khms.index.manifest import Manifest
from khms.index.sources import Rules
from khms.model.finding import Finding
from khms.store import gitdir
from khms.store.layout import Base
from khms.store.repo import GitFailed, Repo

FEW = 200  # paths that git is asked for by name; for more, all of a folder's cost less


@dataclass(frozen=True, slots=True)
class Changes:
    """`paths` says of each path to look at whether a file is there that git does not ignore. `loose` are those that no
    commit vouches for, missing ones among them. `commit` is HEAD's, empty before the first, None outside git."""

    commit: str | None
    paths: dict[str, bool]
    loose: frozenset[str]
    findings: tuple[Finding, ...] = ()


class Lost(Exception):
    """What the manifest stands for can no longer be compared with the base; the index has to be built again."""


@dataclass(slots=True)
class _Watched:
    """What one `git status` says."""

    commit: str = ""
    dirty: dict[str, bool] = field(default_factory=dict)


def changes(base: Base, rules: Rules, known: Manifest | None) -> Changes:
    """What to look at since `known` was written, or everything; raises Lost."""
    seen = tuple(known.seen) if known else ()
    outside = tuple(folder + "/" for folder in sources.outside(rules))
    inside = [path for path in seen if not path.startswith(outside)] if outside else list(seen)
    git = gitdir.find(base.root)
    paths: dict[str, bool] = {}
    loose: set[str] = set()
    if git is None:
        if known is not None and known.commit is not None:
            raise Lost("the base is no longer in a git repository")
        found = [path for folder in sources.folders(rules) for path in sources.walk(base.root, folder)]
        commit = None
        loose.update(found)
        paths.update(dict.fromkeys(inside, False))
        paths.update(dict.fromkeys(found, True))
    else:
        prefix = _prefix(base.root, git.top)
        watched = _status(Repo(base.root), prefix, sources.folders(rules))
        commit = watched.commit
        loose.update(watched.dirty)
        paths.update(_since(Repo(base.root), prefix, rules, known, inside, watched))
    for folder in sources.outside(rules):
        paths.update(dict.fromkeys((path for path in seen if path.startswith(folder + "/")), False))
        found = list(_listed(base.root, folder))
        loose.update(found)
        paths.update(dict.fromkeys(found, True))
    return Changes(commit, paths, frozenset(loose), tuple(missing(base.root, rules)))


def _since(
    repo: Repo, prefix: str, rules: Rules, known: Manifest | None, inside: list[str], watched: _Watched
) -> dict[str, bool]:
    """The paths that may differ from what the manifest stands for, in a base that git watches."""
    dirty = watched.dirty
    if known is None or not known.commit:  # before the first commit every document was a loose file
        return {**dict.fromkeys(inside, False), **dict.fromkeys(_listing(repo, sources.folders(rules)), True), **dirty}
    if not watched.commit:
        raise Lost("the branch has no commit any more")
    moved = _moved(repo, prefix, sources.folders(rules), known.commit, watched.commit)
    settled = [path for path in inside if path not in dirty and path not in moved]
    asked = settled if len(settled) <= FEW else sources.folders(rules)
    tracked = set(_listing(repo, asked, others=False)) if settled else set()
    return {**{path: path in tracked for path in settled}, **moved, **dirty}


def _status(repo: Repo, prefix: str, folders: Iterable[str]) -> _Watched:
    """HEAD and every file below `folders` that is not as committed: whether it is there."""
    out = repo.run(
        "status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all", "--", *folders
    )
    found = _Watched()
    for entry in out.split(b"\0"):
        kind, _, rest = entry.partition(b" ")
        if kind == b"#":
            name, _, value = rest.partition(b" ")
            if name == b"branch.oid":
                found.commit = "" if value == b"(initial)" else value.decode()
            continue
        # What stands before the path: 1 XY sub mH mI mW hH hI; u XY sub m1 m2 m3 mW h1 h2 h3.
        fields = rest.split(b" ", {b"1": 7, b"u": 9}.get(kind, 0))
        there = kind == b"?" or (len(fields) > 5 and fields[4 if kind == b"1" else 5] != b"000000")
        path = _below(os.fsdecode(fields[-1]), prefix)
        if kind in (b"1", b"u", b"?") and path and not path.endswith("/"):
            found.dirty[path] = there
    return found


def _moved(repo: Repo, prefix: str, folders: Iterable[str], old: str, new: str) -> dict[str, bool]:
    """The files that differ between two commits: whether the new one has them. Raises Lost where the old is gone."""
    if old == new:
        return {}
    try:
        out = repo.run("diff-tree", "-r", "-z", "--name-status", "--no-renames", old, new, "--", *folders)
    except GitFailed as error:
        raise Lost(f"the commit it stands for ({old[:12]}) is gone") from error
    fields = out.split(b"\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    found = {_below(os.fsdecode(name), prefix): status != b"D" for status, name in pairs}
    found.pop("", None)
    return found


def _listing(repo: Repo, folders: Iterable[str], *, others: bool = True) -> Iterable[str]:
    """The files that git tracks, and those it does not ignore; relative to the repository object's folder."""
    more = ("--others", "--exclude-standard") if others else ()
    out = repo.run("ls-files", "-z", "--cached", *more, "--", *folders)
    return (os.fsdecode(name) for name in out.split(b"\0") if name and not name.endswith(b"/"))


def _listed(root: Path, folder: str) -> Iterable[str]:
    """The files of an included folder outside the base: without those that its own git ignores, if it has one."""
    place = root / folder
    if not place.is_dir():
        return ()
    if gitdir.find(place) is None:
        return sources.walk(root, folder)
    return (f"{folder}/{name}" for name in _listing(Repo(place), ["."]))


def missing(root: Path, rules: Rules) -> Iterable[Finding]:
    """The folders of documents that are not read at all, and why."""
    yield from sources.led_out(root, rules)
    for name, folder in rules.include:
        if not (root / folder).is_dir():
            message = f"the included folder {name} is not there"
            yield Finding("KH001", "warning", folder, 0, message, "mend index.include in khms.toml")


def _prefix(root: Path, top: Path) -> str:
    below = os.path.relpath(root.resolve(), top).replace(os.sep, "/")
    return "" if below == "." else below + "/"


def _below(path: str, prefix: str) -> str:
    """A path of the repository as one of the base; empty where it lies elsewhere."""
    return path.removeprefix(prefix) if path.startswith(prefix) else ""
