"""What stands in a commit, file by file, read without a work tree. Paths are the repository's, not the base's."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from khms.errors import Unavailable
from khms.store import files
from khms.store.repo import DURABLE, SAFE, Repo

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's id of a tree without entries


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree: its mode and its blob (a submodule's commit)."""

    mode: str
    blob: str


@dataclass
class Objects:
    """The repository's blobs, each read once; many at a time cost one process."""

    repo: Repo
    _held: dict[str, bytes] = field(default_factory=dict)

    def fetch(self, blobs: Iterable[str]) -> None:
        wanted = [blob for blob in dict.fromkeys(blobs) if blob not in self._held]
        if wanted:
            self._held.update(read_blobs(self.repo, wanted))

    def data(self, blob: str) -> bytes:
        self.fetch([blob])
        return self._held[blob]

    def write(self, contents: Sequence[bytes]) -> list[str]:
        """Puts blobs into the repository, durably; returns their ids."""
        stage = self.repo.folder / "khms" / "stage"
        files.remove_tree(stage)
        files.make_folder(stage)
        names = [stage / str(at) for at in range(len(contents))]
        for name, data in zip(names, contents, strict=True):
            name.write_bytes(data)
        listed = "".join(f"{name}\n" for name in names)
        out = self.repo.run(
            "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode(listed), config=(*SAFE, *DURABLE)
        )
        files.remove_tree(stage)
        blobs = out.decode().split()
        self._held.update(zip(blobs, contents, strict=True))
        return blobs


def read_blobs(repo: Repo, blobs: Sequence[str]) -> dict[str, bytes]:
    """The bytes of each blob, by its id, in one process; raises Unavailable where one is missing."""
    found = {}
    for blob, (kind, data) in zip(blobs, repo.objects(blobs), strict=True):
        if kind != "blob":
            raise Unavailable(f"the repository lacks {blob}", where=str(repo.root), hint="git fsck; git fetch")
        found[blob] = data
    return found


def listing(repo: Repo, commit: str | None, below: str = "") -> dict[str, Entry]:
    """Every file of a commit at or below a path, by its path; none where there is no commit yet."""
    if commit is None:
        return {}
    out = repo.run("ls-tree", "-r", "-z", "--full-tree", commit, *(["--", below] if below else []))
    found = {}
    for row in out.split(b"\0"):
        if row:
            meta, _, name = row.partition(b"\t")
            mode, _, blob = meta.decode().split(" ")
            found[os.fsdecode(name)] = Entry(mode, blob)
    return found


def difference(repo: Repo, old: str | None, new: str) -> dict[str, tuple[Entry | None, Entry | None]]:
    """Every path at which two commits differ, with what each of them has there."""
    out = repo.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old or EMPTY, new)
    rows = out.split(b"\0")
    found = {}
    for meta, name in zip(rows[::2], rows[1::2], strict=False):
        was_mode, mode, was_blob, blob, _ = meta.decode().lstrip(":").split(" ")
        found[os.fsdecode(name)] = (_entry(was_mode, was_blob), _entry(mode, blob))
    return found


def _entry(mode: str, blob: str) -> Entry | None:
    return None if mode == "000000" else Entry(mode, blob)
