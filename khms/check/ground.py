"""What may stand on a base's own ground: plain files in real folders of its own repository, and no second base.

A link, another repository or a file that is a card to one reader and none to another would bring in what no record let
in, and no rule over bytes would see it.
"""

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator

from khms.check.audited import is_trust
from khms.check.auditing import PROPOSE, Trouble, trouble
from khms.store import history
from khms.store.history import GONE, SUBMODULE, Change
from khms.store.layout import APPROVALS, CONFIG, GUARDED, MEMORY, SIGNERS, Base, seems_card
from khms.store.repo import Repo

PLAIN = frozenset({"100644", "100755"})
LINK = "120000"
_ON_THE_WAY = frozenset({MEMORY, *GUARDED})
_WHAT = {
    LINK: "a symbolic link stands here: what it leads to came in by no review",
    SUBMODULE: "another git repository stands here: what is in it came in by no review",
}


def is_guarded(path: str) -> bool:
    """Whether only plain files and real folders may stand at this base path."""
    return path in _ON_THE_WAY or is_trust(path) or path.startswith(tuple(f"{folder}/" for folder in GUARDED))


def judge(rows: Iterable[tuple[str, str]]) -> Iterator[Trouble]:
    """KA010 and KA001 of these (path, git's mode)."""
    for path, mode in rows:
        if mode == GONE:
            continue
        if mode not in PLAIN and (is_guarded(path) or (mode == SUBMODULE and path.startswith(MEMORY + "/"))):
            yield _odd(path, _WHAT.get(mode, f"this file has git's mode {mode}, and a plain one has 100644"))
        elif seems_card(path):
            message = "this is no card to khms, and one to others: a card's file ends in .md, in small letters"
            yield trouble("KA001", path, message, PROPOSE.format(path=path))


def _odd(path: str, message: str) -> Trouble:
    mend = f"take it out: git rm --cached {path}; what stood here before comes back by: git checkout COMMIT -- {path}"
    return trouble("KA010", path, message, mend)


def on_disk(base: Base) -> Iterator[tuple[str, str]]:
    """What of the work tree's ground is not plain, as (path, mode that git would give it), and every file that could be
    taken for a card."""
    for path in (CONFIG, SIGNERS):
        if base.path(path).is_symlink():
            yield path, LINK
    yield from _below(base.root / MEMORY, MEMORY)


def _below(place: os.PathLike[str], path: str) -> Iterator[tuple[str, str]]:
    try:
        mode = os.lstat(place).st_mode
        if stat.S_ISLNK(mode):
            yield path, LINK
        if not stat.S_ISDIR(mode):
            return
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name.casefold() == ".git" for entry in entries):
        yield path, SUBMODULE
        return
    for entry in entries:
        shown = f"{path}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry, shown)
        elif entry.is_symlink():
            yield shown, LINK
        elif seems_card(shown):
            yield shown, "100644"


def second(repo: Repo, prefix: str, stood: bool, changes: Iterable[Change], *before: str) -> Iterator[Trouble]:
    """KA008: a base beside, above or below one that has signers or records. Commands take the nearest base, so another
    one would answer in its place, without its signers; the one that is audited may be that other one itself, unless it
    `stood` before. `before` are the commits that a base may have stood in, the one whose word counts first; `changes`
    are the repository's. The paths are relative to the base."""
    places: dict[str, str] = {}
    for change in changes:
        place = _place(change)
        if place is not None and not (stood and place == prefix):
            places.setdefault(place, change.path)
    if not places or not before:
        return
    known = {root for commit in before for root in history.own_bases(repo, commit)}
    if not any(history.Tree(repo, root, before[0]).listing(APPROVALS, SIGNERS) for root in known):
        return
    for place, path in places.items():
        if place not in known:
            shown = posixpath.relpath(path, prefix or ".")
            message = "a second base comes in beside one that is guarded, and its signers have no say in it"
            mend = (
                "give it a repository of its own: khms init --separate; or whoever keeps the server takes it in, "
                "with the hook set aside"
            )
            yield trouble("KA008", shown, message, mend)


def _place(change: Change) -> str | None:
    """The folder that the change may make a base."""
    if change.mode == GONE:
        return None
    small = "/" + change.path.casefold()
    folder, _, name = change.path.rpartition("/")
    if name.casefold() == CONFIG:
        return folder + "/" if folder else ""
    if "/memory/know/" in small:
        return change.path[: small.index("/memory/know/")]
    if name.casefold() == ".memory" and change.mode not in PLAIN:
        return change.path + "/"
    return None
