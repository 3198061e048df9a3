"""Where a base goes: looked at and decided before anything is written."""

import os
from dataclasses import dataclass
from pathlib import Path

from khms import config
from khms.errors import Refused
from khms.store import files, gitdir, layout
from khms.store.repo import Repo

INSIDE = ".memory"
UNSEEN = (".git", ".khms", ".DS_Store")


@dataclass(frozen=True, slots=True)
class Plan:
    """`kind` is what `root` becomes: `new` (a folder of its own), `inside` (.memory/ of a repository), `adopted` (a
    folder of notes), `older` (a base of the older tools, which lacks khms.toml only) or `there` (a base already).

    `fresh` says that git starts there. `because` tells why the place differs from the obvious one.
    """

    root: Path
    kind: str
    fresh: bool = False
    because: str = ""


def plan(folder: Path, *, named: bool, adopt: bool = False, separate: bool = False) -> Plan:
    """Where the base for `folder` goes. `named` says that the person named the folder.

    Raises Refused where that needs a word of theirs, Unavailable where git does not work there.
    """
    folder = folder.absolute() if not folder.exists() else folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise Refused("a file stands where the base's folder shall be", where=str(folder), hint="name another folder")
    tree = work_tree(folder)
    if separate:
        return _beside(folder, tree)
    held = _held(folder, tree, named)
    if held is not None:
        return _again(held, tree, adopt)
    if tree is None:
        if not is_empty(folder) and not adopt:
            raise Refused(
                "this folder holds files but is in no git repository",
                where=str(folder),
                hint="khms init --adopt makes the folder itself the base, its notes stay as they are;"
                " khms init --separate makes a base beside it",
            )
        return Plan(folder, "adopted" if adopt and not is_empty(folder) else "new", fresh=True)
    if is_empty(folder):
        return Plan(folder, "new")
    if adopt:
        return Plan(folder, "adopted")
    return _inside(folder, tree, named)


def _inside(folder: Path, tree: Repo, named: bool) -> Plan:
    top = tree.top.resolve()
    place, because = folder, ""
    if not named and folder != top:
        place, because = top, f"the repository's top folder; for this folder alone: khms init {folder}"
    root = place / INSIDE
    if ignores(tree, f"{root}/"):
        raise Refused(
            f"this repository ignores {INSIDE}/, so a base there could not be committed",
            where=str(root),
            hint="take that rule out of its .gitignore, or: khms init --separate",
        )
    return Plan(root, "inside", because=because)


def _beside(folder: Path, tree: Repo | None) -> Plan:
    """The place of a base outside: `<name>-memory` beside the project's main work tree, one for all its work trees, or
    in `bases/` of the user's data folder where that is not possible."""
    project = folder
    if tree is not None:
        project = tree.common.parent.resolve() if tree.common.name == ".git" else tree.top.resolve()
    root = project.parent / f"{project.name or 'root'}-memory"
    because = ""
    if work_tree(root) is not None and not (root / ".git").exists():
        because = "the folder beside the project belongs to another repository"
    elif not os.access(project.parent, os.W_OK):
        because = "nothing can be written beside the project"
    if because:
        root = config.user_data() / "bases" / root.name
    if layout.is_base(root):
        return Plan(root, "there")
    if not is_empty(root):
        raise Refused(
            "the place of the separate base holds other files", where=str(root), hint="move them, or: khms init DIR"
        )
    return Plan(root, "new", fresh=not (root / ".git").exists(), because=because)


def _held(folder: Path, tree: Repo | None, named: bool) -> Path | None:
    """The base that already stands here; one above counts where the folder was not named, and never across the border
    of a repository."""
    for here in (folder, folder / INSIDE):
        if layout.is_base(here) or layout.is_older_base(here):
            return here
    above = layout.walk(folder) if folder.is_dir() else layout.walk(folder.parent)
    if above is None or (tree is not None and tree.top.resolve() not in (above.root, *above.root.parents)):
        return None
    if not named:
        return above.root
    if above.root in folder.parents:
        raise Refused(
            "this folder is inside a base",
            where=str(above.root),
            hint="a base in a base would hide its files from it; commands here use that one (khms status)",
        )
    return None


def _again(root: Path, tree: Repo | None, adopt: bool) -> Plan:
    if tree is None and not adopt:
        raise Refused(
            "this base is in no git repository",
            where=str(root),
            hint="khms init --adopt starts one here and commits what the base holds",
        )
    return Plan(root, "there" if layout.is_base(root) else "older", fresh=tree is None)


def is_empty(folder: Path) -> bool:
    """Whether nothing of anybody's stands in `folder`; git's own and what a killed run of ours left do not count."""
    if not folder.is_dir():
        return True
    return all(entry.name in UNSEEN or entry.name.startswith(files.TEMPORARY) for entry in folder.iterdir())


def work_tree(folder: Path) -> Repo | None:
    """The repository whose work tree holds `folder`, None where there is none or where it ignores the folder. Raises
    Unavailable without git, in a bare repository, in one of another user."""
    place = next(here for here in (folder, *folder.parents) if here.is_dir())
    repo = Repo(place)
    if gitdir.find(place) is None:
        if repo.text("rev-parse", "--is-bare-repository", ok=(0, 128)) == "true":
            repo.top  # noqa: B018  raises with the reason
        return None
    return None if repo.top.resolve() != folder and ignores(repo, f"{folder}/") else repo


def ignores(repo: Repo, path: str) -> bool:
    """Whether git ignores `path`; a folder's ends with a slash. This command refuses literal pathspecs."""
    return bool(repo.run("check-ignore", "--", path, env={"GIT_LITERAL_PATHSPECS": "0"}, ok=(0, 1, 128)))
