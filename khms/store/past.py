"""Everything that git's history of a base holds: each content of each file once, and what commits and tags say.

Lists are of names only; contents come in portions, so that memory stays small however large a history is.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from khms.store.repo import Repo
from khms.store.tracked import LARGEST

PORTION = 16 * 1024 * 1024  # bytes of content that are read at once
MANY = 2000  # objects of one portion


@dataclass(frozen=True, slots=True)
class Past:
    """One object: `path` is a base path at which the content once lay, empty for what a commit or a tag says."""

    id: str
    kind: str
    path: str
    size: int


def listed(repo: Repo) -> list[Past]:
    """Every content that some branch, tag or stash can reach, and every commit and tag. In a base below the
    repository's top those of its own folder."""
    below = ("--", ".") if repo.prefix else ()
    names: dict[str, str] = {}
    for line in repo.run("rev-list", "--objects", "--all", *below).split(b"\n"):
        if line:
            name, _, where = line.partition(b" ")
            names.setdefault(name.decode(), os.fsdecode(where))
    for line in repo.run("for-each-ref", "--format=%(objectname) %(objecttype)", "refs/tags").split(b"\n"):
        if line.endswith(b" tag"):
            names.setdefault(line.split(b" ")[0].decode(), "")
    asked = "".join(f"{identity}\n" for identity in names).encode()
    form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    found = []
    for row in repo.run("cat-file", form, stdin=asked).decode().splitlines():
        identity, kind, size = row.split(" ")
        if kind != "tree":
            path = names[identity].removeprefix(repo.prefix) if kind == "blob" else ""
            found.append(Past(identity, kind, path, int(size)))
    return found


def contents(repo: Repo, wanted: Iterable[Past]) -> Iterator[tuple[Past, bytes]]:
    """Each object with its bytes; those over the limit of what is read at all are left out."""
    portion: list[Past] = []
    size = 0
    for one in wanted:
        if one.size > LARGEST:
            continue
        if portion and (size + one.size > PORTION or len(portion) == MANY):
            yield from _read(repo, portion)
            portion, size = [], 0
        portion.append(one)
        size += one.size
    yield from _read(repo, portion)


def _read(repo: Repo, portion: Sequence[Past]) -> Iterator[tuple[Past, bytes]]:
    for one, (_, data) in zip(portion, repo.objects([one.id for one in portion]), strict=True):
        yield one, data


def came_in(repo: Repo, blobs: Sequence[str]) -> dict[str, tuple[str, str]]:
    """blob -> (the commit that first brought it, the base path there), oldest first along all branches."""
    found: dict[str, tuple[str, str]] = {}
    for start in range(0, len(blobs), 200):
        some = blobs[start : start + 200]
        looked = [f"--find-object={blob}" for blob in some]
        out = repo.run(
            "log", "--all", "--reverse", "--root", "-m", "--raw", "-z", "--no-abbrev", "--no-renames",
            "--no-ext-diff", "--format=%x00%H", *looked,
        )  # fmt: skip
        commit = ""
        fields = out.split(b"\0")
        for at, field in enumerate(fields):
            text = field.strip(b"\n")
            if len(text) in (40, 64) and not text.startswith(b":"):
                commit = text.decode()
            elif text.startswith(b":"):
                blob = text.split(b" ")[3].decode()
                if blob in some:
                    path = os.fsdecode(fields[at + 1]).removeprefix(repo.prefix)
                    found.setdefault(blob, (commit, path))
    return found
