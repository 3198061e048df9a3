"""What git's history says of a base: the files of one state, what changed between two, every change on the way.

Paths are relative to the base; `prefix` is what stands before them in the repository. All of it works in a bare
repository too, and in the quarantine of a push.

One `git log` over all paths costs 0.6 s for 2,000 commits of 10,000 cards; a path argument makes it slower. `-c` shows
an edit that was made in a merge itself.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from khms.errors import Refused, Unavailable
from khms.store.repo import Repo

# A graft would hide commits, and settings of a user's would change what is listed.
_ENV = {"GIT_GRAFT_FILE": os.devnull}
_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=dirty")
SUBMODULE = "160000"
GONE = "000000"


@dataclass(frozen=True, slots=True)
class Change:
    """A file's blob before and after, None for no file and for a submodule, and its mode after (GONE for none). In a
    merge `old` is not told."""

    path: str
    old: str | None
    new: str | None
    mode: str = "100644"


@dataclass(frozen=True, slots=True)
class Commit:
    """`changes` are those below the base; of a merge only what differs from each of its parents."""

    id: str
    parents: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Tree:
    """The files of a commit, or of the staging area where `commit` is empty (`index` names it where it is not git's
    usual one)."""

    repo: Repo
    prefix: str
    commit: str = ""
    index: str = ""

    def listing(self, *paths: str) -> dict[str, str]:
        """The blob of every file at or below these base paths (all of the base without any)."""
        return {path: blob for path, mode, blob in self.rows(*paths) if mode != SUBMODULE}

    def rows(self, *paths: str) -> Iterator[tuple[str, str, str]]:
        """As `listing`, as (path, mode, id), submodules too."""
        wanted = [self.prefix + path for path in paths] or ([self.prefix] if self.prefix else [])
        if self.commit:
            out = self.repo.run("ls-tree", "-r", "-z", "--full-tree", self.commit, "--", *wanted)
        else:
            env = {"GIT_INDEX_FILE": self.index} if self.index else {}
            where = [f"./{path}" for path in paths] or ["."]
            out = self.repo.run("ls-files", "-s", "-z", "--full-name", "--", *where, env=env)
        yield from _entries(out, self.prefix)

    def read(self, *paths: str) -> dict[str, bytes]:
        """The bytes of those of these files that are there."""
        held = self.listing(*paths)
        data = blobs(self.repo, held.values())
        return {path: data[blob] for path, blob in held.items() if path in paths}


def _entries(out: bytes, prefix: str) -> Iterator[tuple[str, str, str]]:
    """(path, mode, id) of each row of `ls-tree` or `ls-files -s`."""
    cut = len(os.fsencode(prefix))
    for row in out.split(b"\0"):
        meta, found, name = row.partition(b"\t")
        if found:
            words = meta.decode().split()
            yield os.fsdecode(name[cut:]), words[0], words[2] if words[1] in ("blob", "commit") else words[1]


def blobs(repo: Repo, ids: Iterable[str]) -> dict[str, bytes]:
    """The bytes of each blob, by one git process."""
    wanted = list(dict.fromkeys(ids))
    held = zip(wanted, repo.objects(wanted, env=_ENV), strict=True)
    return {blob: data for blob, (kind, data) in held if kind == "blob"}


def at(repo: Repo, names: Iterable[str]) -> dict[str, str]:
    """The blob of each `COMMIT:path` that is there, by one git process. A path with a line break is not looked for."""
    wanted = [name for name in names if "\n" not in name]
    if not wanted:
        return {}
    out = repo.run("cat-file", "--batch-check", stdin=b"".join(os.fsencode(name) + b"\n" for name in wanted), env=_ENV)
    found = {}
    for name, line in zip(wanted, out.split(b"\n"), strict=False):
        words = line.rsplit(b" ", 2)
        if len(words) == 3 and words[1] == b"blob":
            found[name] = words[0].decode()
    return found


def between(repo: Repo, prefix: str, old: str, new: str) -> list[Change]:
    """What differs below the base between two commits (or trees)."""
    out = repo.run("diff-tree", "-r", *_RAW, "--no-relative", old, new, "--")
    return list(_changes(out.split(b"\0"), prefix))


def staged(repo: Repo, prefix: str, index: str = "") -> list[Change]:
    """What the next commit would change below `prefix`, as it is staged."""
    env = {"GIT_INDEX_FILE": index} if index else {}
    against = "HEAD" if repo.head() else empty_tree(repo)
    out = repo.run("diff-index", "--cached", *_RAW, "--no-relative", against, env=env)
    return list(_changes(out.split(b"\0"), prefix))


def below(changes: Iterable[Change], prefix: str) -> list[Change]:
    """Those of the repository's changes that lie below `prefix`, with their paths from there."""
    cut = len(prefix)
    held = (change for change in changes if change.path.startswith(prefix))
    return [replace(change, path=change.path[cut:]) for change in held] if prefix else list(held)


def empty_tree(repo: Repo) -> str:
    """The id of the tree without a file."""
    return repo.text("hash-object", "-t", "tree", "--stdin")


def _changes(fields: Iterable[bytes], prefix: str) -> Iterator[Change]:
    start = os.fsencode(prefix)
    rest = iter(fields)
    for meta in rest:
        if not meta.startswith(b":"):
            continue
        name = next(rest)
        if name.startswith(start):
            yield _change(meta, name[len(start) :])


def _change(meta: bytes, name: bytes) -> Change:
    parents = meta.count(b":")
    words = meta.lstrip(b":").decode().split(" ")
    mode = words[parents]
    old = _blob(words[0], words[2]) if parents == 1 else None
    return Change(os.fsdecode(name), old, _blob(mode, words[2 * parents + 1]), mode)


def _blob(mode: str, blob: str) -> str | None:
    return None if mode in (GONE, SUBMODULE) or is_zero(blob) else blob


@dataclass(frozen=True)
class Log:
    """Every commit, parents before children. `tip` is the newest."""

    tip: str
    commits: tuple[Commit, ...]
    _by_id: Mapping[str, Commit] = field(default_factory=dict)

    def commit(self, commit: str) -> Commit | None:
        return self._by_id.get(commit)

    def mainline(self) -> list[Commit]:
        """The commits from the first to the tip along first parents: what the branch itself went through."""
        found = []
        held = self._by_id.get(self.tip)
        while held is not None:
            found.append(held)
            held = self._by_id.get(held.parents[0]) if held.parents else None
        return found[::-1]

    def arrivals(self) -> list[tuple[Commit, list[Commit]]]:
        """Each commit of the mainline with all that came in by it: itself last, the commits that a merge brought
        before it, parents before children."""
        line = self.mainline()
        order = {commit.id: i for i, commit in enumerate(self.commits)}
        taken = {commit.id for commit in line}
        found = []
        for commit in line:
            side: list[Commit] = []
            queue = list(commit.parents[1:])
            while queue:
                held = self._by_id.get(queue.pop())
                if held is not None and held.id not in taken:
                    taken.add(held.id)
                    side.append(held)
                    queue += held.parents
            found.append((commit, [*sorted(side, key=lambda c: order[c.id]), commit]))
        return found


def log(repo: Repo, prefix: str, tip: str, *without: str) -> Log:
    """Every commit that `tip` descends from and that none of `without` does."""
    out = repo.run(
        "-c", "log.showRoot=true", "-c", "log.showSignature=false",
        "log", "--topo-order", "--reverse", "-c", *_RAW, "--no-relative", "--no-color", "--no-notes",
        "--format=%x01%H %P", tip, *(f"^{other}" for other in without), "--",
        env=_ENV,
    )  # fmt: skip
    start = os.fsencode(prefix)
    found: list[tuple[list[str], list[Change]]] = []
    fields = iter(out.split(b"\0"))
    for text in fields:
        if text.startswith(b"\x01"):
            found.append((text[1:].decode().split(), []))
            continue
        meta = text.lstrip(b"\n")
        if meta.startswith(b":"):
            name = next(fields)
            if name.startswith(start):
                found[-1][1].append(_change(meta, name[len(start) :]))
    commits = tuple(Commit(ids[0], tuple(ids[1:]), tuple(changes)) for ids, changes in found)
    return Log(tip, commits, {commit.id: commit for commit in commits})


def resolved(repo: Repo, *names: str) -> list[str]:
    """The commits that these names mean; raises Refused for one that means none."""
    found = []
    for name in names:
        out = repo.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128))
        if not out:
            raise Refused(f"there is no commit {name!r}", where=str(repo.root), hint="git log --oneline shows them")
        found.append(out)
    return found


def merge_base(repo: Repo, a: str, b: str) -> str | None:
    """The best commit that both descend from; None where they share none."""
    return repo.text("merge-base", a, b, ok=(0, 1)).split("\n")[0] or None


def demand_deep(repo: Repo) -> None:
    """Raises Unavailable in a shallow clone: what came before its first commit cannot be told."""
    if repo.text("rev-parse", "--is-shallow-repository") == "true":
        raise Unavailable(
            "this clone is shallow: it does not hold the history that an audit reads",
            where=str(repo.root),
            hint="git fetch --unshallow  (in CI: fetch the full history, such as fetch-depth: 0)",
        )


def own_bases(repo: Repo, commit: str) -> list[str]:
    """The prefix of every base in a commit: a folder with khms.toml, or with memory/know/. Raises GitFailed where the
    commit cannot be read: a base that is not seen would count as one without fault."""
    out = repo.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
    found = set()
    for row in out.split(b"\0"):
        name = os.fsdecode(row)
        folder, _, last = name.rpartition("/")
        if last == "khms.toml":
            found.add(folder + "/" if folder else "")
        elif last.endswith(".md") and ("/" + folder + "/").find("/memory/know/") >= 0:
            found.add(name[: ("/" + name).index("/memory/know/")])
    return sorted(found)


def is_zero(commit: str) -> bool:
    """Whether an id stands for none, as in the lines that git hands to a hook."""
    return not commit.strip("0")
