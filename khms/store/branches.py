"""Units on branches of their own, `khms/inbox/<unit>`, local and remote-tracking: which there are, and what they hold.

Which there are is read from git's files, for everybody who reads receipts asks it; what they hold costs git processes,
and only where there are such branches.
"""

import os
from collections.abc import Collection, Iterable, Iterator

from khms.errors import Refused
from khms.store import gitdir
from khms.store.layout import INBOX, RECEIPTS, Base
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from khms.store.inbox import Unit
    from khms.store.repo import Repo

PREFIX = "khms/inbox/"


@dataclass(frozen=True, slots=True)
class Branch:
    """`ref` is the full name, `commit` its tip, `unit` the name of the unit that it is for."""

    ref: str
    commit: str
    unit: str

    @property
    def local(self) -> bool:
        return self.ref.startswith("refs/heads/")

    @property
    def name(self) -> str:
        """As git's commands take it: `khms/inbox/…` or `origin/khms/inbox/…`."""
        return self.ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def branch_ref(unit: str) -> str:
    return f"refs/heads/{PREFIX}{unit}"


def branches(base: Base) -> list[Branch]:
    """Every branch of a unit, by name, local ones first."""
    git = gitdir.find(base.root)
    if git is None:
        return []
    found = gitdir.refs_named(git, PREFIX)
    if found is None:
        found = _asked(base)
    return [Branch(ref, commit, ref.partition(f"/{PREFIX}")[2]) for ref, commit in sorted(found.items())]


def _asked(base: Base) -> dict[str, str]:
    from khms.store.repo import Repo

    form = "--format=%(refname) %(objectname)"
    lines = Repo(base.root).text("for-each-ref", form, "refs/heads", "refs/remotes").splitlines()
    rows = [line.partition(" ") for line in lines if f"/{PREFIX}" in line]
    return {ref: commit for ref, _, commit in rows}


def unmerged(base: Base) -> dict[str, Branch]:
    """The branches whose unit is not in the work tree, by unit. Of a local and a remote-tracking one the latter counts:
    a reviewer edits what was pushed."""
    return {branch.unit: branch for branch in branches(base) if not _there(base, branch.unit)}


def _there(base: Base, unit: str) -> bool:
    return os.path.lexists(base.inbox / unit) or os.path.lexists(base.inbox / f"{unit}.md")


def unmerged_unit(base: Base, named: str) -> Branch | None:
    """The branch of the unit that `named` means (its name or its path in the base), where it is on a branch only."""
    return unmerged(base).get(named.rstrip("/").removeprefix(f"{INBOX}/"))


def receipts(base: Base, held: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """The receipt files of all these branches whose names `held` does not have, each once: (where, bytes). A run's file
    has a name of its own and is never added to by another, so a name that is there is there whole."""
    tips = list(dict.fromkeys(branch.commit for branch in branches(base)))
    if not tips:
        return
    repo = _repo(base)
    folder = _prefix(base) + RECEIPTS
    trees = _batch(repo, [f"{tip}:{folder}" for tip in tips])
    wanted: dict[str, tuple[str, str]] = {}
    for tip, tree in zip(tips, trees, strict=True):
        for name, blob in _entries(tree or b"", len(tip) // 2):
            if name.endswith(".jsonl") and name not in held:
                wanted.setdefault(name, (tip, blob))
    if wanted:
        bodies = _batch(repo, [blob for _, blob in wanted.values()])
        for (name, (tip, _)), data in zip(wanted.items(), bodies, strict=True):
            yield f"{tip[:12]}:{folder}/{name}", data or b""


def files(repo: "Repo", commit: str, *folders: str) -> dict[str, bytes]:
    """The files below `folders` (or of that very path) in `commit`, by base path."""
    shown = [repo.prefix + folder for folder in folders]
    out = repo.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *shown)
    cut = len(repo.prefix)
    rows = [row.partition(b"\t") for row in out.split(b"\0") if row]
    blobs = {os.fsdecode(name)[cut:]: meta.split()[2].decode() for meta, _, name in rows if meta[:3] == b"100"}
    return {path: data or b"" for path, data in zip(blobs, _batch(repo, list(blobs.values())), strict=True)}


def unit(repo: "Repo", branch: Branch) -> "Unit":
    """The unit as it stands on its branch; raises Refused where the branch does not hold it."""
    from khms.store import inbox

    path = inbox.unit_path(branch.unit)
    found = files(repo, branch.commit, path)
    if not found:
        raise Refused(
            f"{branch.name} does not hold {path}",
            where=branch.ref,
            hint=f"look at it: git log -p {branch.name}",
        )
    return inbox.folder_of(path, found)


def added(repo: "Repo", branch: Branch, onto: str, folders: Iterable[str]) -> dict[str, bytes]:
    """What the branch has below `folders` that the commit `onto` has not, by base path."""
    wanted = tuple(folders)
    here = {path for folder in wanted for path in repo.files(onto, folder)}
    return {path: data for path, data in files(repo, branch.commit, *wanted).items() if path not in here}


def _repo(base: Base) -> "Repo":
    from khms.store.repo import Repo

    return Repo(base.root)


def _prefix(base: Base) -> str:
    """What stands before the base's paths in the repository, told without a process."""
    git = gitdir.find(base.root)
    inner = base.root.resolve().relative_to(git.top).as_posix() if git else "."
    return "" if inner == "." else f"{inner}/"


def _batch(repo: "Repo", names: list[str]) -> list[bytes | None]:
    """The bytes of each object, None for one that is not there, by one git process."""
    return [data if kind else None for kind, data in repo.objects(names)]


def _entries(tree: bytes, width: int) -> Iterator[tuple[str, str]]:
    """(name, id) of each entry of a tree object: `mode name NUL id`, the id in `width` bytes."""
    at = 0
    while at < len(tree):
        end = tree.index(b"\0", at)
        name = tree[at:end].partition(b" ")[2]
        yield os.fsdecode(name), tree[end + 1 : end + 1 + width].hex()
        at = end + 1 + width
