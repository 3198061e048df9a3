"""The all-or-nothing commit: a set of files becomes one git commit, or nothing happened, also under `kill -9`.

The commit is built beside the work tree. Before the branch moves, git's own `index.lock` is taken, so that git itself
refuses every other commit, and an intent is written into the git folder (the base's `.khms/` may be deleted). Order:

    flock, intent, link index.lock, blobs, temporary index, the user's hooks, write-tree, commit-tree, the next real
    index into index.lock, the full intent, update-ref (compare and swap), files by rename, index.lock to index,
    intent removed

Whoever takes the lock next finds the intent of a killed run: it undoes where the branch has not moved and finishes
where it has. A file that holds a third content by then is kept and reported.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from khms.errors import Busy, Refused
from khms.store import files, lock, moving
from khms.store.placing import Changes, Step, digest, place
from khms.store.repo import DURABLE, SAFE, ZERO, Repo
from khms.store.tree import FILE

WAIT = 10.0


@dataclass(frozen=True, slots=True)
class Intent:
    """`new` is empty until the commit is ready to be published. `prefix` is what stands before the base's paths in the
    repository: one that holds several bases keeps one intent, and any of them may find it."""

    inode: int
    old: str | None = None
    new: str = ""
    what: str = ""
    steps: tuple[Step, ...] = ()
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of a run that was killed: `done` is finished, undone or unknown; `kept` are the files left alone
    because they hold something that neither side wrote."""

    what: str
    done: str
    kept: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = {
            "finished": f"finished the interrupted {self.what}",
            "undone": f"undid the interrupted {self.what}; nothing of it was published",
            "unknown": f"the interrupted {self.what} was overtaken by another commit; check git log",
        }[self.done]
        return said + (f"; kept as they are: {', '.join(self.kept)}" if self.kept else "")


@dataclass
class Transaction:
    """The right to commit to a base, held by one process at a time. `recovered` tells what a killed run left."""

    repo: Repo
    fd: int
    recovered: Recovery | None = None

    @property
    def _own(self) -> Path:
        return self.repo.folder / "khms"

    @property
    def _lock(self) -> Path:
        return self.repo.folder / "index.lock"

    def commit(
        self,
        changes: Changes,
        message: str,
        *,
        what: str,
        user_hooks: bool = False,
        as_read: frozenset[str] = frozenset(),
    ) -> str:
        """Commits `changes` (base path -> bytes, None removes) on HEAD and puts them into the work tree; returns the
        commit's id. Other files that the user staged stay staged. `what` names the work in messages. The files named by
        `as_read` were read from the work tree and are left alone there, since someone may have added to them meanwhile.
        Raises Busy where git is at work, Refused where a hook of the user's says no; then nothing was changed."""
        self.repo.identity()
        base = {path: self._target(path) for path in changes}
        old = self.repo.head()
        intent = self._fence(what)
        try:
            steps = self._steps(changes, base, as_read)
            tree_index = self._tree_index(old, steps)
            new = self._build(old, tree_index, message, user_hooks)
            self._next_index(steps)
            intent = Intent(intent.inode, old, new, what, steps, self.repo.prefix)
            self._write_intent(intent)
            self._git("update-ref", "-m", message.splitlines()[0], "HEAD", new, old or ZERO)
        except BaseException:
            if self.repo.head() == old:
                self._undo(intent)
            raise
        self._finish(intent, changes)
        return new

    def move(self, new: str, *, what: str) -> tuple[str, ...]:
        """Brings HEAD's branch, the index and the work tree from where they are to the commit `new`, all or nothing
        like `commit`; returns the files that someone wrote to in that very moment, which are left alone. What the user
        staged or changed elsewhere stays. Raises Refused, before anything changes, where a file holds what would be
        lost (`demand_movable` asks that alone)."""
        top = self._at_top()
        old = top.repo.head()
        if old == new:
            return ()
        intent = top._fence(what)
        try:
            old = top.repo.head()
            steps = moving.steps(top.repo, old, new)
            top._next_index(steps)
            intent = Intent(intent.inode, old, new, what, steps)
            top._write_intent(intent)
            top._git("update-ref", "-m", what, "HEAD", new, old or ZERO)
        except BaseException:
            if top.repo.head() == old:
                top._undo(intent)
            raise
        return top._finish(intent)

    def demand_movable(self, new: str) -> None:
        """Raises Refused, naming the files, where `move` to this commit would."""
        top = self._at_top()
        moving.steps(top.repo, top.repo.head(), new)

    def _at_top(self) -> "Transaction":
        """The same right for the whole repository: a commit may hold more than the base's own folder."""
        return Transaction(Repo(self.repo.top), self.fd) if self.repo.prefix else self

    def commit_to(self, ref: str, parent: str, changes: Changes, message: str) -> str:
        """Makes the branch `ref`, which must not exist yet, with one commit of `changes` on top of `parent`; returns
        its id. HEAD, the index and the work tree stay as they are, so this needs no fence: it counts from the moment
        when git makes the ref, and what a run that was killed before leaves behind hangs on nothing."""
        self.repo.identity()
        files.make_folder(self._own)
        steps = self._steps(changes, {}, frozenset(changes))
        new = self._build(parent, self._tree_index(parent, steps), message, user_hooks=False)
        self._git("update-ref", "-m", message.splitlines()[0], ref, new, ZERO)
        return new

    def _target(self, path: str) -> Path:
        target = files.inside(self.repo.root, self.repo.root / path)
        if target.is_dir():
            raise Refused("a folder stands where this file belongs", where=path, hint="move the folder away")
        return target

    def _git(self, *args: str, stdin: bytes | None = None, index: Path | None = None) -> bytes:
        env = {"GIT_INDEX_FILE": str(index)} if index else {}
        return self.repo.run(*args, stdin=stdin, env=env, config=(*SAFE, *DURABLE), pass_fds=(self.fd,))

    def _fence(self, what: str) -> Intent:
        files.make_folder(self._own)
        fresh = self._own / "index.lock"
        fresh.unlink(missing_ok=True)
        files.write_new(fresh, b"")
        intent = Intent(fresh.stat().st_ino, what=what, prefix=self.repo.prefix)
        self._write_intent(intent)
        try:
            os.link(fresh, self._lock)
        except FileExistsError as error:
            files.unlink(self._own / "intent.json")
            files.unlink(fresh)
            raise Busy(
                "git is at work in this repository, or a killed git left its lock behind",
                where=str(self._lock),
                hint="wait for the other git command; if there is none, remove the lock file",
            ) from error
        files.tick()
        files.unlink(fresh)
        return intent

    def _write_intent(self, intent: Intent) -> None:
        files.write_atomic(self._own / "intent.json", json.dumps(asdict(intent)).encode())

    def _steps(self, changes: Changes, places: Mapping[str, Path], as_read: frozenset[str]) -> tuple[Step, ...]:
        stage = self._own / "stage"
        files.remove_tree(stage)
        files.make_folder(stage)
        written = [(path, data) for path, data in sorted(changes.items()) if data is not None]
        for i, (_path, data) in enumerate(written):
            (stage / str(i)).write_bytes(data)
        names = "".join(f"{stage / str(i)}\n" for i in range(len(written)))
        ids = self._git("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode(names)).decode().split()
        files.remove_tree(stage)
        blobs = {path: blob for (path, _data), blob in zip(written, ids, strict=True)}
        entries = self._entries(changes)
        steps = []
        for path, wanted in sorted(changes.items()):
            after = None if wanted is None else hashlib.sha256(wanted).hexdigest()
            before = after if path in as_read else digest(places[path])
            steps.append(Step(path, blobs.get(path), entries.get(path), before, after))
        return tuple(steps)

    def _entries(self, changes: Changes) -> dict[str, str]:
        """What the user's index holds for these paths: path -> blob."""
        out = self._git("ls-files", "-s", "-z", "--full-name", "--", *sorted(changes))
        cut = len(self.repo.prefix)
        found = {}
        for row in out.split(b"\0"):
            if row:
                meta, _, name = row.partition(b"\t")
                found[os.fsdecode(name)[cut:]] = meta.split()[1].decode()
        return found

    def _index_info(self, steps: tuple[Step, ...]) -> bytes:
        rows = []
        for step in steps:
            name = self.repo.prefix + step.path
            mode = f"{step.mode or FILE} {step.blob}" if step.blob else f"0 {ZERO}"
            rows.append(os.fsencode(f"{mode}\t{name}") + b"\0")
        return b"".join(rows)

    def _tree_index(self, old: str | None, steps: tuple[Step, ...]) -> Path:
        index = self._own / "index.commit"
        index.unlink(missing_ok=True)
        self._git("read-tree", *([old] if old else ["--empty"]), index=index)
        self._git("update-index", "-z", "--index-info", stdin=self._index_info(steps), index=index)
        return index

    def _tree(self, index: Path) -> str:
        """The tree that `index` stands for. Its blobs are the parent's or just written: to look each of 10,000 of them
        up again would take longer than all else that a commit needs of git."""
        return self._git("write-tree", "--missing-ok", index=index).decode().strip()

    def _build(self, old: str | None, index: Path, message: str, user_hooks: bool) -> str:
        tree = self._tree(index)
        text = message.encode()
        if user_hooks and self.repo.has_hook("pre-commit"):
            self.repo.run_hook("pre-commit", index=index, pass_fds=(self.fd,))
            if self._tree(index) != tree:
                raise Refused(
                    "your pre-commit hook changed what is to be committed; nothing was changed",
                    where=str(self.repo.root),
                    hint="leave the base's folder out of that hook",
                )
        if user_hooks and self.repo.has_hook("commit-msg"):
            note = self._own / "message"
            files.write_atomic(note, text)
            self.repo.run_hook("commit-msg", str(note), index=index, pass_fds=(self.fd,))
            text = note.read_bytes()
            files.unlink(note)
        files.unlink(index)
        parents = ["-p", old] if old else []
        return self._git("commit-tree", tree, *parents, "-F", "-", stdin=text).decode().strip()

    def _next_index(self, steps: tuple[Step, ...]) -> None:
        """Writes what the index shall be into the lock file, in place: its inode tells that the lock is ours."""
        copy = self._own / "index.next"
        copy.unlink(missing_ok=True)
        current = self.repo.folder / "index"
        if current.exists():
            copy.write_bytes(current.read_bytes())
            seen = current.stat()  # its time tells git which entries it must not take for clean by their stat alone
            os.utime(copy, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        self._git("update-index", "-z", "--index-info", stdin=self._index_info(steps), index=copy)
        with self._lock.open("r+b") as file:
            file.write(copy.read_bytes())
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        files.tick()
        files.unlink(copy)

    def _finish(self, intent: Intent, changes: Changes | None = None) -> tuple[str, ...]:
        kept = place(self.repo, intent.steps, changes)
        if self._ours(intent):
            files.rename(self._lock, self.repo.folder / "index")
            files.sync_folder(self.repo.folder)
        else:
            self._mend_index(intent)
        self._drop()
        with contextlib.suppress(Exception):  # only spares the next `git status` some hashing
            self.repo.run("update-index", "-q", "--refresh", ok=(0, 1))
        return kept

    def _mend_index(self, intent: Intent) -> None:
        """The lock is gone: either it became the index already, or someone removed it. Entries that are still as they
        were before the commit are brought up to it."""
        current = self._entries({step.path: None for step in intent.steps})
        stale = tuple(s for s in intent.steps if current.get(s.path) == s.entry and s.entry != s.blob)
        if stale:
            self._git("update-index", "-z", "--index-info", stdin=self._index_info(stale))

    def _undo(self, intent: Intent) -> None:
        if self._ours(intent):
            files.unlink(self._lock)
        self._drop()

    def _ours(self, intent: Intent) -> bool:
        try:
            return self._lock.stat().st_ino == intent.inode
        except FileNotFoundError:
            return False

    def _drop(self) -> None:
        files.unlink(self._own / "intent.json")
        for name in ("index.lock", "index.commit", "index.next", "index.replay", "message"):
            (self._own / name).unlink(missing_ok=True)
        files.remove_tree(self._own / "stage")
        for leftover in self._own.glob(files.TEMPORARY + "*"):
            leftover.unlink(missing_ok=True)

    def recover(self) -> Recovery | None:
        """Finishes or undoes what a killed run left behind; None where there is nothing."""
        intent = pending(self.repo)
        if intent is None:
            return None
        if intent.prefix != self.repo.prefix:
            root = self.repo.top / intent.prefix
            files.make_folder(root)
            return Transaction(Repo(root), self.fd).recover()
        head = self.repo.head()
        if not intent.new or head == intent.old:
            self._undo(intent)
            return Recovery(intent.what, "undone")
        published = head == intent.new or (
            head is not None and self.repo.status("merge-base", "--is-ancestor", intent.new, head) == 0
        )
        if published:
            return Recovery(intent.what, "finished", self._finish(intent))
        self._undo(intent)
        return Recovery(intent.what, "unknown")


def pending(repo: Repo) -> Intent | None:
    """The intent of a run that was killed, or of one that is at work this moment; None where there is none."""
    try:
        value: dict[str, Any] = files.read_json(repo.folder / "khms" / "intent.json")
    except (FileNotFoundError, ValueError):
        return None
    return Intent(**{**value, "steps": tuple(Step(**step) for step in value["steps"])})


@contextlib.contextmanager
def exclusive(repo: Repo, what: str, *, wait: float = WAIT) -> Iterator[Transaction]:
    """Holds the repository's approval lock for the block and first mends what a killed run left. Raises Busy after
    `wait` seconds, Refused where a sparse checkout hides a part of the base."""
    with lock.hold(lock_path(repo), what, wait=wait) as fd:
        transaction = Transaction(repo, fd)
        transaction.recovered = transaction.recover()
        repo.demand_whole("memory")
        yield transaction


def lock_path(repo: Repo) -> Path:
    """One lock for all work trees of a repository: they share its branches."""
    return repo.common / "khms" / "approve.lock"
