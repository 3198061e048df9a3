"""The base as it stood in a commit, written out as files once more, so that all that reads a base reads it too.

The commit's own files go to `.khms/past/`, in the repository's layout, with an index of their own beside them: the one
indexer builds it, recall and show read it like any base. The settings are today's. A few of the last ones are kept.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from khms.errors import KhmsError, No, Unavailable, Usage
from khms.index import sources
from khms.model.digest import sha256_hex
from khms.store import files, history, local
from khms.store.layout import CONFIG, JOURNAL, MEMORY, Base
from khms.store.repo import GitFailed, Repo

FOLDER = "past"
KEPT = 3
FRESH = 60.0  # seconds in which one that was just asked may still be read by its process
UNFINISHED = 3600.0  # seconds after which one that is not complete was left by a killed process
AT_ONCE = 2000  # files that one git process hands over
SUFFIXES = (*sources.SUFFIXES, ".json", ".yaml", ".toml")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FILE = ("100644", "100755")  # links are no cards, and nothing is led anywhere by one that an old commit holds
_MISSING = {"GIT_NO_LAZY_FETCH": "1"}  # a partial clone asks no network for what it lacks


@dataclass(frozen=True, slots=True)
class Moment:
    """The commit that stands for a moment, and its own date, ISO 8601 with zone."""

    commit: str
    date: str

    def as_json(self) -> dict[str, str]:
        return {"commit": self.commit, "date": self.date}


@dataclass(frozen=True, slots=True)
class Past:
    """The base as it was then, the settings to ask it by, and what of today's base it cannot hold, in words."""

    base: Base
    config: Mapping[str, Any]
    moment: Moment
    without: str = ""


def moment(repo: Repo, branch: str, text: str) -> Moment:
    """The commit that `text` means: the last one of the branch's own line at or before a date (the end of that day by
    this machine's clock) or time, or the commit that git knows by it. Raises Usage where it is neither, No where the
    base is younger, Unavailable where a shallow clone does not hold it."""
    until = _until(text)
    commit = _named(repo, text) if until is None else _last(repo, branch, text, until)
    date = repo.text("show", "--no-patch", "--no-show-signature", "--format=%cI", commit)
    return Moment(commit, date)


def _until(text: str) -> int | None:
    """The last second that counts, None where `text` is no date."""
    if not _DAY.match(text):
        return None
    try:
        if _DAY.fullmatch(text):
            day = datetime.date.fromisoformat(text)
            return int(datetime.datetime.combine(day, datetime.time(23, 59, 59)).astimezone().timestamp())
        return int(datetime.datetime.fromisoformat(text).astimezone().timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise _unknown(text) from error


def _named(repo: Repo, text: str) -> str:
    out = repo.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}", ok=(0, 1, 128))
    if not out:
        _demand_whole(repo, text)
        raise _unknown(text)
    return out


def _last(repo: Repo, branch: str, text: str, until: int) -> str:
    names = (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}", "HEAD")
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    tip = next((tip for name in names if (tip := repo.text(*asked, f"{name}^{{commit}}", ok=(0, 1, 128)))), "")
    if not tip:
        raise No("the base has no commit yet", where=str(repo.root), hint="khms approve and git commit make them")
    found = ""
    if until >= 0:
        found = repo.text("rev-list", "--first-parent", "--max-count=1", f"--min-age={until}", tip, "--")
    if not found:
        _demand_whole(repo, text)
        first = repo.text("log", "--first-parent", "--no-show-signature", "--format=%cI", tip, "--").split("\n")[-1]
        raise No(f"the base is younger than {text}", where=str(repo.root), hint=f"its first commit is of {first}")
    return found


def _unknown(text: str) -> Usage:
    return Usage(
        f"{text!r} is neither a date nor a commit here",
        hint="--at 2026-03-04, --at 2026-03-04T18:00+01:00, or what git knows: --at 1f3c9ab, --at HEAD~5",
    )


def _demand_whole(repo: Repo, text: str) -> None:
    if repo.text("rev-parse", "--is-shallow-repository") == "true":
        raise Unavailable(
            f"this clone is shallow: it does not hold the base as of {text}",
            where=str(repo.root),
            hint="git fetch --unshallow",
        )


def unfolded(base: Base, repo: Repo, config: Mapping[str, Any], when: Moment) -> Past:
    """The base in that commit. Raises No where the commit holds none, Unavailable where the clone lacks a file of it or
    nothing can be written here."""
    top, prefix = str(repo.top), repo.prefix
    include, left = _include(base, config, top)
    wanted = [f"{prefix}{name}" for name in (CONFIG, MEMORY, JOURNAL)]
    wanted += [name for name in include.values() if not name.startswith(wanted[1] + "/")]
    if config["index.notes"]:
        wanted = [prefix.rstrip("/") or ".", *include.values()]
    name = f"{when.commit[:16]}-{sha256_hex(repr(sorted(wanted)).encode())[:8]}"
    place = base.local / FOLDER / name
    kept = _writable(base, place)
    place = place if kept else _aside() / name
    try:
        os.utime(place)  # from now on it is in use
    except FileNotFoundError:
        if kept:
            local.make(base)
        _write(repo, when.commit, wanted, prefix, place)
    root = place / prefix
    clear_away(base, KEPT)
    within = {name: os.path.relpath(folder, prefix or ".") for name, folder in include.items()}
    without = f"without {', '.join(sorted(left))}, which this history does not hold" if left else ""
    return Past(Base(root.resolve(), named=True), {**config, "index.include": within}, when, without)


def _writable(base: Base, place: Path) -> bool:
    """Whether files can be made at `place`, or where it is to be."""
    nearest = next(path for path in (place, base.local / FOLDER, base.local, base.root) if path.is_dir())
    return os.access(nearest, os.W_OK)


def _aside() -> Path:
    """A folder for a base that cannot be written, which goes with this process."""
    import atexit
    import tempfile

    place = Path(tempfile.mkdtemp(prefix="khms-past-"))
    atexit.register(remove, place)
    return place


def clear_away(base: Base, kept: int) -> None:
    """Removes all but the `kept` that were asked last; one that may be in use at this moment stays."""
    for path in old(base)[: -kept or None]:
        remove(path)


def old(base: Base) -> list[Path]:
    """Those that no process can be asking now, the one asked longest ago first; what a killed process left too."""
    try:
        held = [(entry.stat().st_mtime, Path(entry.path)) for entry in os.scandir(base.local / FOLDER)]
    except OSError:
        return []
    now = time.time()
    return [path for at, path in sorted(held) if at < now - (UNFINISHED if files.TEMPORARY in path.name else FRESH)]


def remove(path: Path) -> None:
    with contextlib.suppress(KhmsError, OSError):  # another process removes it at this moment
        files.remove_tree(path)


def _include(base: Base, config: Mapping[str, Any], top: str) -> tuple[dict[str, str], list[str]]:
    """The included folders that lie in the repository, as paths in it; and the names of the others."""
    real = os.path.realpath(top)
    found, left = {}, []
    for name, folder in sources.rules(base, config).include:
        place = os.path.normpath(base.root.resolve() / folder)
        if place != real and sources.contains(real, place):
            found[name] = os.path.relpath(place, real).replace(os.sep, "/")
        else:
            left.append(name)
    return found, left


def _write(repo: Repo, commit: str, wanted: list[str], prefix: str, place: Path) -> None:
    """Puts the commit's files at `place`, which is there whole or not at all; "." means all of them."""
    rows = [
        (path, blob)
        for path, mode, blob in history.Tree(repo, "", commit).rows(*([] if "." in wanted else wanted))
        if mode in _FILE and (path.endswith(SUFFIXES) or path == f"{prefix}memory/signers") and _plain(path)
    ]
    if not any(path == prefix + CONFIG or path.startswith(f"{prefix}{MEMORY}/") for path, _ in rows):
        raise No(f"there was no base here yet in {commit[:12]}", where=str(repo.root), hint="name a later date")
    new = place.with_name(f"{files.TEMPORARY}{os.getpid()}-{place.name}")
    remove(new)
    try:
        for path, data in _contents(repo, rows):
            files.make_folder((new / path).parent)
            files.write_at(new / path, 0, data)
        # Whoever looks for a repository from in here, git too, shall not find the one around.
        files.write_at(new / ".git", 0, b"no repository: files of an older commit, made by khms\n")
        try:
            files.rename(new, place)
        except Unavailable:
            if not place.is_dir():  # another process was first
                raise
    finally:
        remove(new)


def _contents(repo: Repo, rows: list[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        try:
            held = repo.objects([blob for _, blob in part], env=_MISSING)
        except GitFailed as error:
            raise _lacking(repo, part[0][0]) from error
        for (path, _), (kind, data) in zip(part, held, strict=True):
            if kind != "blob":
                raise _lacking(repo, path)
            yield path, data


def _lacking(repo: Repo, path: str) -> KhmsError:
    return Unavailable(
        "this clone does not hold the files of that commit",
        where=path,
        hint="it is a partial clone, or damaged: git fetch --refetch --no-filter  (git fsck tells)",
    )


def _plain(path: str) -> bool:
    """Whether the path leads below its folder and nowhere else; git lets any bytes into a tree."""
    return not any(part in ("", ".", "..", *sources.NEVER) for part in path.split("/")) and "\\" not in path
