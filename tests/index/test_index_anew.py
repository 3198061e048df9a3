"""Whatever people and git do to a base, the refreshed index equals one built from nothing."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.index import current, sync
from khms.index.catchup import ALL, LATER, NEW
from khms.index.vector import Vectors
from khms.model.document import Document, Query
from khms.store.layout import Base

Git = Callable[..., str]


class Gardener:
    """Random edits of a base, as people and git make them. It knows which word stands in which file now."""

    def __init__(self, base: Base, seed: int, git: Git) -> None:
        self.base, self.git, self.random, self.word = base, git, random.Random(seed), 0
        self.past: list[str] = []

    def files(self) -> list[Path]:
        folders = ("memory/know", "memory/archive/know", "notes", "journal")
        return sorted(p for f in folders for p in (self.base.root / f).rglob("*.md") if p.is_file())

    def fresh(self) -> str:
        self.word += 1
        return f"uniqueword{self.word}"

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def new_path(self) -> Path:
        folder = self.random.choice(["memory/know", "memory/know/sub", "memory/archive/know", "notes", "notes/deep"])
        return self.base.root / folder / f"{self.random.choice('KkABab')}-{self.random.randrange(10):05d}.md"

    def add(self) -> None:
        self.write(self.new_path(), f"---\ntitle: t {self.fresh()}\n---\n{self.fresh()} body\n")

    def edit(self) -> None:
        if files := self.files():
            path = self.random.choice(files)
            self.write(path, path.read_text(encoding="utf-8") + f"{self.fresh()}\n")

    def delete(self) -> None:
        if files := self.files():
            self.random.choice(files).unlink()

    def move(self) -> None:
        if files := self.files():
            target = self.new_path()
            target.parent.mkdir(parents=True, exist_ok=True)
            self.random.choice(files).rename(target)

    def copy(self) -> None:
        if files := self.files():
            target = self.new_path()
            self.write(target, self.random.choice(files).read_text(encoding="utf-8"))

    def swap(self) -> None:
        if len(files := self.files()) > 1:
            one, two = self.random.sample(files, 2)
            first, second = one.read_text(encoding="utf-8"), two.read_text(encoding="utf-8")
            self.write(one, second)
            self.write(two, first)

    def case(self) -> None:
        if files := self.files():
            path = self.random.choice(files)
            path.rename(path.with_name(path.name.swapcase().replace(".MD", ".md")))

    def spoil(self) -> None:
        if files := self.files():
            spoiled = self.random.choice(["", "---\na: 1\na: 2\n---\n", "<<<<<<< HEAD\n", "x" * 262145])
            self.write(self.random.choice(files), spoiled)

    def ignore(self) -> None:
        rules = self.random.choice(["", "notes/\n", "K-0000[0-4].md\n", "deep\n"])
        self.write(self.base.root / ".gitignore", ".khms/\n" + rules)

    def commit(self) -> None:
        self.git(self.base, "add", "--all")
        self.git(self.base, "commit", "--quiet", "--allow-empty", "-m", "x")
        self.past.append(self.git(self.base, "rev-parse", "HEAD"))

    def untrack(self) -> None:
        self.git(self.base, "rm", "-r", "--quiet", "--cached", "--ignore-unmatch", "--", "notes")

    def checkout(self) -> None:
        if self.past:
            self.git(self.base, "checkout", "--quiet", "--force", self.random.choice(self.past))

    def restore(self) -> None:
        self.git(self.base, "checkout", "--quiet", "--", ".")

    def stash(self) -> None:
        self.git(self.base, "stash", "--quiet", "--include-untracked")

    def soft_reset(self) -> None:
        if self.past:
            self.git(self.base, "reset", "--quiet", "--mixed", self.random.choice(self.past))

    def step(self) -> str:
        deeds = [self.add, self.add, self.edit, self.edit, self.edit, self.delete, self.move, self.move, self.copy]
        deeds += [self.swap, self.case, self.spoil, self.ignore, self.commit, self.commit, self.untrack]
        deeds += [self.checkout, self.restore, self.stash, self.soft_reset]
        deed = self.random.choice(deeds)
        deed()
        return deed.__name__


def vectors(base: Base) -> dict[str, tuple[bytes, bytes]]:
    """The rows and the pieces of each document of the index that has any."""
    reader, known = current.opened(base)
    assert known.vectors
    held = Vectors(base.index / known.generation, known.vectors)
    found = reader.at_slots(held.slots.tolist())
    return {
        f"{found[slot].path}:{found[slot].line}": (
            held.rows[held.row_ends[at] : held.row_ends[at + 1]].tobytes(),
            held.pieces[held.piece_ends[at] : held.piece_ends[at + 1]].tobytes(),
        )
        for at, slot in enumerate(held.slots.tolist())
        if slot in found
    }


def contents(base: Base, words: int) -> tuple[list[Document], dict[str, list[str]]]:
    """Everything in the index: each document, and the files in which each word is found."""
    reader, _ = current.opened(base)
    documents = sorted(reader.everything(), key=lambda d: (d.path, d.line))
    places = {}
    for number in range(1, words + 1):
        hits = reader.search(Query(f"uniqueword{number}"), depth=100).hits
        places[f"uniqueword{number}"] = sorted(f"{hit.document.path}:{hit.document.line}" for hit in hits)
    return documents, places


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_any_edits_the_index_is_as_if_built_from_nothing(base: Base, tmp_path: Path, git: Git, seed: int) -> None:
    gardener = Gardener(base, seed, git)
    gardener.write(base.config, "[index]\nnotes = true\n")
    for _ in range(8):
        gardener.add()
    gardener.commit()
    done = []
    for number in range(40):
        done.append(gardener.step())
        report = sync.refresh(base, vectors=gardener.random.choice([LATER, NEW, ALL]))
        assert report.rebuilt is None, (seed, done)
        if number % 4 == 3:
            sync.refresh(base)
            other = Base(tmp_path / f"copy-{number}")
            shutil.copytree(base.root, other.root, ignore=shutil.ignore_patterns(".khms"), symlinks=True)
            anew = sync.refresh(other)
            assert contents(base, gardener.word) == contents(other, gardener.word), (seed, done)
            assert vectors(base) == vectors(other), (seed, done)
            assert (report.docs, report.skipped) == (anew.docs, anew.skipped), (seed, done)
            shutil.rmtree(other.root)
    assert sync.verify(base) == ""
