"""An index that was refreshed through hundreds of random edits equals one that is built from nothing: document by
document, vector by vector, and word by word.

Hypothesis draws the edits and makes a failure small. KHMS_SEED=s repeats a run; KHMS_SOAK=n makes it n times as long
(`make soak`).
"""

import contextlib
import itertools
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from khms.index import current, sync
from khms.index.catchup import ALL, LATER, NEW
from khms.index.vector import Vectors
from khms.model.document import Document, Query
from khms.recall.search import recall
from khms.store.layout import Base

SOAK = int(os.environ.get("KHMS_SOAK") or 0)
SEED = int(os.environ.get("KHMS_SEED") or random.randrange(2**32))
EDITS = 500 * (SOAK or 1)
STEPS = 50
WORDS = ("lampdrift", "gauge", "frame", "ground", "vane", "ice", "poll", "joint", "seal", "valve")
PLACES = (
    *("memory/know/K-00001.md", "memory/know/K-00002.md", "memory/know/deep/K-00003.md", "memory/know/K-00004.md"),
    *("memory/archive/know/K-00005.md", "memory/lessons/wait.md", "journal/2026-03-04.md", "journal/2026-03-05.md"),
    *("memory/inbox/unit-1/C1.md", "memory/inbox/unit-1/C2.md", "notes/one.md", "notes/two.md", "../far/three.md"),
    "../far/deep/four.md",
)
BROKEN = ("---\ntitle: [\n---\nbroken\n", "", "---\nid: K-1\nid: K-2\n---\ntwice\n", "\x00\x01", "---\na: &x 1\n---\n")
SECOND = 1_000_000_000
HOUR = 3600 * SECOND
CONFLICT = "<<<<<<< ours\nice\n=======\nvane\n>>>>>>> theirs\n"


class Elsewhere(Base):
    """A base whose index stands in another folder."""

    __slots__ = ()
    place: Path

    @property
    def local(self) -> Path:
        return type(self).place


@dataclass(frozen=True, slots=True)
class Contents:
    """All that an index holds, by path and line."""

    documents: dict[tuple[str, int], Document]
    vectors: dict[tuple[str, int], tuple[bytes, tuple[int, ...]]]
    words: dict[str, set[tuple[str, int]]]
    skipped: dict[str, Any]


def contents(base: Base) -> Contents:
    reader, known = current.opened(base)
    everything = {(d.path, d.line): d for d in reader.everything()}
    assert len(everything) == reader.documents == known.docs
    slots = reader.at_slots(reader.slots(Query(""), ()))
    vectors = {}
    if known.vectors is not None:
        held = Vectors(base.index / known.generation, known.vectors)
        ends = zip(
            held.slots.tolist(),
            itertools.pairwise(held.row_ends.tolist()),
            itertools.pairwise(held.piece_ends.tolist()),
            strict=True,
        )
        for slot, (row, row_end), (piece, piece_end) in ends:
            if slot in slots:
                at = slots[slot].path, slots[slot].line
                assert at not in vectors
                vectors[at] = held.rows[row:row_end].tobytes(), tuple(held.pieces[piece:piece_end].tolist())
    words = {
        word: {(hit.document.path, hit.document.line) for hit in reader.search(Query(word), depth=1000).hits}
        for word in WORDS
    }
    return Contents(everything, vectors, words, dict(known.skipped))


class Edits(RuleBasedStateMachine):
    """The base, in a repository with a second work tree, and an included folder outside; each rule is one edit."""

    edits = 0  # of all machines

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="khms-edits-")).resolve()
        self.roots = [self.folder / "base"]
        self.kept: dict[Path, bytes] = {}
        # The clock that stamps what is written. It runs behind the real one, so that no file is taken for one that may
        # still change, and it is set back and forth; but never to one second twice, for git compares no less.
        self.now = time.time_ns() - 100 * HOUR

    @initialize(number=st.integers(0, 2**16), second=st.booleans())
    def begin(self, number: int, second: bool) -> None:
        rng = random.Random(number)
        root = self.roots[0]
        root.mkdir()
        self.git("init", "--quiet")
        self.put(root / "khms.toml", b'[index.include]\nnotes = "notes"\nfar = "../far"\n')
        self.put(root / ".gitignore", b".khms/\n")
        for name in rng.sample(PLACES[:-2], 8) + list(PLACES[-2:]):
            self.put(root / name, text(name, rng.choices(WORDS, k=4)))
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "begin")
        if second and self.git("worktree", "add", "--quiet", "-b", "other", str(self.folder / "other")):
            self.roots.append(self.folder / "other")
        self.refresh(root, ALL)

    def teardown(self) -> None:
        try:
            if (self.roots[0] / "khms.toml").exists():
                for root in self.roots:
                    self.compare(root)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    # What the edits are made of.

    def git(self, *args: str, root: Path | None = None) -> bool:
        done = subprocess.run(["git", *args], cwd=root or self.roots[0], capture_output=True, check=False)
        return done.returncode == 0

    def put(self, path: Path, data: bytes, *, in_place: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if in_place:
            path.write_bytes(data)
        else:
            new = path.with_name(f"new-{path.name}.tmp")
            new.write_bytes(data)
            os.replace(new, path)
        self.now += 7 * SECOND
        os.utime(path, ns=(self.now, self.now))

    def files(self, root: Path) -> list[Path]:
        found = [root / name for name in PLACES if (root / name).is_file()]
        folders = (root / "memory", root / "journal", root / "notes", self.folder / "far")
        more = (path for folder in folders for path in folder.rglob("*.md") if path.is_file())
        return sorted({*(Path(os.path.normpath(path)) for path in found), *more})

    def refresh(self, root: Path, mode: str) -> None:
        sync.refresh(Base(root), vectors=mode)

    def compare(self, root: Path) -> None:
        base = Base(root)
        self.refresh(root, ALL)
        refreshed = contents(base)
        place = Path(tempfile.mkdtemp(dir=self.folder))
        fresh = type("Fresh", (Elsewhere,), {"__slots__": (), "place": place})(root)
        fresh.index.mkdir()
        shutil.copy2(base.index / "models.json", fresh.index)  # the model need not be hashed anew
        sync.refresh(fresh)
        built = contents(fresh)
        shutil.rmtree(place, ignore_errors=True)  # a thread of the engine may still be at work in there
        assert refreshed.documents == built.documents
        assert refreshed.skipped == built.skipped
        assert refreshed.vectors == built.vectors
        assert refreshed.words == built.words
        assert sync.verify(base) == ""

    @contextlib.contextmanager
    def edit(self, root: int, after: str) -> Iterator[Path]:
        """The chosen work tree; after the edit comes what a user would do next, or nothing, so that edits add up."""
        Edits.edits += 1
        chosen = self.roots[root % len(self.roots)]
        yield chosen
        if after == "recall":
            recall(Base(chosen), "lampdrift gauge", refresh=True)
        elif after == "compare":
            self.compare(chosen)
        elif after:
            self.refresh(chosen, after)

    # The edits.

    root = st.integers(0, 1)
    after = st.sampled_from(("", NEW, ALL, LATER, "recall", "compare"))
    which = st.integers(0, 1000)
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
    branch = st.sampled_from(("branch-a", "branch-b", "branch-c"))

    @rule(root=root, after=after, name=st.sampled_from(PLACES), words=words, in_place=st.booleans())
    def write(self, root: int, after: str, name: str, words: list[str], in_place: bool) -> None:
        with self.edit(root, after) as at:
            self.keep(at / name)
            self.put(at / name, text(name, words), in_place=in_place)

    @rule(root=root, after=after, which=which, word=st.sampled_from(WORDS), loose=st.booleans())
    def same_size_and_time(self, root: int, after: str, which: int, word: str, loose: bool) -> None:
        """Other words of the same length in place, and the file's time as it was. A file that git watches gets a time
        of its own: where the time was set before, git itself sees no such edit for up to a second."""
        with self.edit(root, after) as at, self.one_of(at, which, loose=loose) as path:
            data, stamp = path.read_bytes(), path.stat().st_mtime_ns
            old = next((w for w in WORDS if len(w) == len(word) and w != word and w.encode() in data), None)
            if old is not None:
                self.put(path, data.replace(old.encode(), word.encode()))
                if not self.tracked(at, path):
                    os.utime(path, ns=(stamp, stamp))

    @rule(root=root, after=after, which=which, hours=st.sampled_from((-8760, -1, 1, 8760)), edited=st.booleans())
    def clock(self, root: int, after: str, which: int, hours: int, edited: bool) -> None:
        """A file and its folder from another time, in the past or to come, and all that is written from then on."""
        with self.edit(root, after) as at, self.one_of(at, which) as path:
            if edited:
                self.put(path, path.read_bytes() + b"and an hour later, ice\n")
            then = path.stat().st_mtime_ns + hours * HOUR + SECOND
            for touched in (path, path.parent):
                os.utime(touched, ns=(then, then))
            self.now += hours % 17 * HOUR + SECOND

    @rule(root=root, after=after, which=which, by_git=st.booleans())
    def put_back(self, root: int, after: str, which: int, by_git: bool) -> None:
        """A file as it was before its last edit, or as it was committed."""
        with self.edit(root, after) as at, self.one_of(at, which) as path:
            kept = next((kept for kept in sorted(self.kept) if kept.is_relative_to(at)), None)
            if by_git or kept is None:
                self.git("checkout", "--", str(path), root=at)
            else:
                self.put(kept, self.kept.pop(kept))

    @rule(
        root=root,
        after=after,
        which=which,
        name=st.sampled_from(PLACES),
        case=st.booleans(),
        by_git=st.booleans(),
    )
    def move(self, root: int, after: str, which: int, name: str, case: bool, by_git: bool) -> None:
        """To another name, or to one where only the case is another."""
        with self.edit(root, after) as at, self.one_of(at, which) as path:
            new = path.with_name(path.stem.swapcase() + ".md") if case else at / name
            new.parent.mkdir(parents=True, exist_ok=True)
            if not (by_git and self.git("mv", "-f", str(path), str(new), root=at)):
                os.replace(path, new)

    @rule(root=root, after=after, words=words)
    def twins(self, root: int, after: str, words: list[str]) -> None:
        """Two files with the same bytes are made, or move to another folder together."""
        with self.edit(root, after) as at:
            made = [at / "notes" / name for name in ("twin-a.md", "twin-b.md")]
            if all(twin.exists() for twin in made):
                (at / "notes" / "moved").mkdir(exist_ok=True)
                for twin in made:
                    os.replace(twin, twin.parent / "moved" / twin.name)
            else:
                for twin in made:
                    self.put(twin, text("notes/twin.md", words))

    @rule(root=root, after=after, which=which, whole=st.sampled_from((False, False, False, True)))
    def delete(self, root: int, after: str, which: int, whole: bool) -> None:
        with self.edit(root, after) as at, self.one_of(at, which) as path:
            for gone in sorted(path.parent.glob("*.md")) if whole else [path]:
                self.keep(gone)
                gone.unlink()

    @rule(root=root, after=after, one=which, other=which)
    def swap(self, root: int, after: str, one: int, other: int) -> None:
        with self.edit(root, after) as at, self.one_of(at, one) as a, self.one_of(at, other) as b:
            if a != b:
                between = at / "between.tmp"
                for old, new in ((a, between), (b, a), (between, b)):
                    os.replace(old, new)

    @rule(root=root, after=after, which=which, data=st.sampled_from((CONFLICT, *BROKEN)))
    def spoil(self, root: int, after: str, which: int, data: str) -> None:
        with self.edit(root, after) as at, self.one_of(at, which) as path:
            self.keep(path)
            self.put(path, (path.read_bytes() if data == CONFLICT else b"") + data.encode())

    @rule(root=root, after=after, pack=st.booleans())
    def commit(self, root: int, after: str, pack: bool) -> None:
        with self.edit(root, after) as at:
            self.git("add", "--all", root=at)
            self.git("commit", "--quiet", "-m", "more", root=at)
            if pack:
                self.git("pack-refs", "--all", root=at)

    @rule(root=root, after=after, how=st.sampled_from(("--soft", "--mixed", "--hard")), for_good=st.booleans())
    def reset(self, root: int, after: str, how: str, for_good: bool) -> None:
        """The last commit is gone from the branch, and perhaps from the repository."""
        with self.edit(root, after) as at:
            if self.git("reset", "--quiet", how, "HEAD~1", root=at) and for_good:
                self.git("reflog", "expire", "--expire=now", "--all", root=at)
                self.git("prune", "--expire=now", root=at)

    @rule(root=root, after=after, name=branch, force=st.booleans())
    def checkout(self, root: int, after: str, name: str, force: bool) -> None:
        with self.edit(root, after) as at:
            if not self.git("checkout", "--quiet", *(["--force"] if force else []), name, root=at):
                self.git("checkout", "--quiet", "-b", name, root=at)

    @rule(root=root, after=after, pop=st.booleans(), untracked=st.booleans())
    def stash(self, root: int, after: str, pop: bool, untracked: bool) -> None:
        """What is not committed is put aside, or comes back, with markers where it does not fit any more."""
        with self.edit(root, after) as at:
            if not (pop and self.git("stash", "pop", "--quiet", root=at)):
                self.git("stash", "push", "--quiet", *(["--include-untracked"] if untracked else []), root=at)

    @rule(root=root, after=after, name=branch, ending=st.sampled_from(("stay", "abort", "commit")))
    def merge(self, root: int, after: str, name: str, ending: str) -> None:
        with self.edit(root, after) as at:
            if not self.git("merge", "--quiet", "--no-edit", name, root=at) and ending != "stay":
                if ending == "abort":
                    self.git("merge", "--abort", root=at)
                else:
                    self.git("add", "--all", root=at)
                    self.git("commit", "--quiet", "--no-edit", root=at)

    @contextlib.contextmanager
    def one_of(self, root: Path, which: int, *, loose: bool = False) -> Iterator[Path]:
        """One of the files that are there, or of those that git does not watch; one that is made now where there is
        none."""
        held = self.files(root)
        if loose:
            held = [path for path in held if not self.tracked(root, path)] or held
        path = held[which % len(held)] if held else root / PLACES[which % len(PLACES)]
        if not held:
            self.put(path, text(PLACES[which % len(PLACES)], ["lampdrift"]))
        yield path

    def keep(self, path: Path) -> None:
        if path.is_file():
            self.kept[path] = path.read_bytes()

    def tracked(self, root: Path, path: Path) -> bool:
        return self.git("ls-files", "--error-unmatch", str(path), root=root)


def text(name: str, words: list[str]) -> bytes:
    """A file as it belongs to its place."""
    said = " ".join(words)
    stem = name.rpartition("/")[2].removesuffix(".md")
    if "/know/" in name:
        return f'---\nid: {stem}\ntype: fact\ntitle: "About {words[0]}"\ntags: [{words[-1]}]\n---\n{said}\n'.encode()
    if "inbox" in name:
        return f"---\nid: {stem}\ntype: fact\ntitle: {said}\n---\n{said}\n".encode()
    long = "\n".join(f"## Part {part} of {word}\n\n{(word + ' ') * 500}\n" for part, word in enumerate(words))
    return f"# {words[0]}\n\n{said}\n{long if len(words) == 4 else ''}".encode()


@pytest.mark.slow
def test_refreshed_through_random_edits_it_is_as_built_from_nothing(told: Callable[[str], None]) -> None:
    how = settings(
        max_examples=EDITS // STEPS + 2,  # the first one is always the simplest that there can be
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    try:
        run_state_machine_as_test(seed(SEED)(Edits), settings=how)
    except BaseException as error:
        error.add_note(f"again: KHMS_SEED={SEED} KHMS_SOAK={SOAK}")
        raise
    assert Edits.edits >= EDITS
    told(f"{Edits.edits} random edits, each work tree's index as one built from nothing (KHMS_SEED={SEED})")
