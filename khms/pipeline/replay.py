"""Unpublished commits again, on top of what others published meanwhile. Nothing but git's object store is written.

Oldest first. An approval is made anew (`replay_records`): ids from the new tip on, edges followed again, a record of
its own. All else is carried over file by file, with ids renewed where they are mentioned. Commits of other authors,
and merges, are never rewritten: they are merged as they are, and the rest is replayed on top. What cannot be done
without a person stops everything, and nothing has changed.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from khms.config import Config
from khms.errors import Refused
from khms.model.card import Card
from khms.model.receipt import Receipt
from khms.model.tags import Registry
from khms.pipeline import renumber
from khms.pipeline.replay_tip import Author, Content, Tip, receipts_of, tip_at
from khms.store import files
from khms.store.cards import approval_path, archive_path, know_path
from khms.store.catalogue import catalogue
from khms.store.founding import OURS
from khms.store.layout import APPROVALS, NEXT_ID, RECEIPTS, VIEWS, Base
from khms.store.repo import GitFailed, Repo
from khms.store.tree import SUBMODULE, Entry, difference, listing

MEMORY = "MEMORY.md"
Views = Callable[
    [Mapping[str, Card], Registry, Callable[[str], bytes | None], Iterable[str]], Mapping[str, bytes | None]
]


class Conflict(Refused):
    """Two people did what cannot both stand; a person decides."""


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    parents: tuple[str, ...]
    author: Author
    message: str

    def __str__(self) -> str:
        return f"{self.id[:12]} {self.message.partition(chr(10))[0]}"


@dataclass(frozen=True, slots=True)
class Left:
    """A card that did not come in again, or a candidate that was put aside: `id` is the unpublished id, empty for a
    candidate; `verdict` is same-mark, target-archived, withheld-target or already-approved; `instead` the card that
    stands for it."""

    unit: str
    label: str
    id: str
    verdict: str
    reason: str
    instead: str = ""


@dataclass
class Replay:
    """What is being replayed onto `tip`. `ids` maps the ids of unpublished cards to their new ones, `moved` their files
    and records to where they are now; `gone` are those that do not come in, `replaced` those of them for which another
    card stands. `here` are the cards of this clone before; `there` the receipts, and `touched` the ids of cards in
    transitions, that came from the others. `count` is the number of commits made."""

    base: Base
    repo: Repo
    config: Config
    tip: Tip
    views: Views
    here: Mapping[str, Card]
    there: Sequence[Receipt]
    touched: frozenset[str]
    yielded: frozenset[str] = frozenset()
    ids: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    count: int = 0

    # one commit

    def again(self, commit: Commit) -> None:
        """Makes one plain commit again on the tip; one that the others have already leaves nothing to do."""
        from khms.pipeline import replay_records

        prefix = self.repo.prefix
        changed = difference(self.repo, commit.parents[0], commit.id)
        self.tip.objects.fetch(e.blob for pair in changed.values() for e in pair if e is not None and _is_blob(e))
        new = [p for p, (was, _) in changed.items() if was is None and _is_record(p.removeprefix(prefix))]
        message, done = commit.message, set[str]()
        changes: dict[str, Content] = {}
        for path in sorted(new):
            if path in self.tip.files:
                continue
            made = replay_records.again(self, commit, changed, path.removeprefix(prefix))
            changes |= made.changes
            done |= made.done
            message = made.message if made.message is not None else message
        changes = self.carried(commit, {p: pair for p, pair in changed.items() if p not in done}) | changes
        kept = self.tip.take(changes)
        if any(self._is_generated(path) or path == prefix + NEXT_ID for path in changed):
            kept |= self._generated()
        if kept or not changed:
            self.count += 1
            self.tip.close(kept, message.encode("utf-8", "surrogateescape"), commit.author)

    def _is_written_anew(self, path: str, entry: Entry | None) -> bool:
        """Whether the file is ours to generate; a person's own MEMORY.md, say, is carried like any other."""
        if path == self.repo.prefix + NEXT_ID:
            return True
        return self._is_generated(path) and entry is not None and self.tip.objects.data(entry.blob).startswith(OURS)

    def _is_generated(self, path: str) -> bool:
        return path == self.repo.prefix + MEMORY or path.startswith(f"{self.repo.prefix}{VIEWS}/")

    def _generated(self) -> dict[str, Content]:
        """The generated files and an older base's counter, as they fit the tip."""
        tip, prefix = self.tip, self.repo.prefix
        wanted = dict(self.views(tip.cards, tip.registry(), tip.read, tip.listed(VIEWS))) | tip.counter()
        return tip.take({prefix + p: None if d is None else ("100644", d) for p, d in wanted.items()})

    # carrying

    def carried(self, commit: Commit, changed: Mapping[str, tuple[Entry | None, Entry | None]]) -> dict[str, Content]:
        """The same changes on the tip, file by file. Raises Conflict naming the file that others changed too."""
        found: dict[str, Content] = {}
        hashes: dict[str, str] = {}
        for path, (was, shall) in sorted(changed.items()):
            if self._is_written_anew(path, shall or was):
                continue
            if SUBMODULE in (was and was.mode, shall and shall.mode):
                self._demand(self.tip.files.get(path) in (was, shall), path, commit)
                if self.tip.files.get(path) != shall:
                    raise Conflict(
                        "this commit changes a submodule, which is not carried over",
                        where=f"{path} in {commit}",
                        hint="git rebase it yourself, then run khms sync",
                    )
                continue
            place = self._place(path)
            before, after = self._content(path, was), self._content(path, shall)
            if shall is not None and after is not None:
                hashes |= _hashes(self.tip.objects.data(shall.blob), after[1])
            found[place] = self._merged(place, before, after, commit, path != place)
        for path, content in found.items():
            if content is not None and path.endswith("/unit.json") and hashes:
                found[path] = content[0], _replaced(content[1], hashes)
        return found

    def _place(self, path: str) -> str:
        cut = len(self.repo.prefix)
        base_path = path[cut:] if path.startswith(self.repo.prefix) else path
        return self.repo.prefix + self.moved[base_path] if base_path in self.moved else path

    def _content(self, path: str, entry: Entry | None) -> Content:
        if entry is None:
            return None
        data = self.tip.objects.data(entry.blob)
        if entry.mode.startswith("100"):
            data = renumber.renumbered(path.removeprefix(self.repo.prefix), data, self.ids)
        return entry.mode, data

    def _merged(self, path: str, before: Content, after: Content, commit: Commit, moved: bool) -> Content:
        entry = self.tip.files.get(path)
        have = None if entry is None else (entry.mode, self.tip.objects.data(entry.blob))
        if have in (before, after) or (moved and after is None):
            return after
        both = have is not None and before is not None and after is not None
        self._demand(both and have is not None and have[0].startswith("100"), path, commit)
        assert have is not None and before is not None and after is not None
        mode = after[0] if have[0] == before[0] else have[0]
        text = _merge(self.repo, have[1], before[1], after[1])
        if text is None:
            self._demand(False, path, commit)
        assert text is not None
        return mode, text

    def _demand(self, fine: bool, path: str, commit: Commit) -> None:
        if not fine:
            raise Conflict(
                f"{path} was changed here and by others, in ways that do not fit together",
                where=f"here: {commit}",
                hint=f"git merge {self.tip.commit[:12]}, settle that file, commit, then run khms sync",
            )

    # what others made here

    def merge(self, commit: Commit, onto: str) -> None:
        """Merges a commit that must stay as it is, with all before it. Raises Conflict where ids collide."""
        base = _merge_base(self.repo, commit.id, self.tip.commit)
        changed = difference(self.repo, base, commit.id)
        self.tip.objects.fetch(e.blob for pair in changed.values() for e in pair if e is not None and _is_blob(e))
        self._demand_free(commit, changed)
        kept = self.tip.take(self.carried(commit, changed))
        if any(self._is_generated(path) for path in changed):
            kept |= self._generated()
        title = f"Merge {commit.id[:12]}, which others made, into {onto}\n"
        self.count += 1
        self.tip.close(kept, title.encode(), None, commit.id)

    def _demand_free(self, commit: Commit, changed: Mapping[str, tuple[Entry | None, Entry | None]]) -> None:
        taken = {card.id for record in self.tip.records for card in record.cards}
        cut = len(self.repo.prefix)
        for path, (was, shall) in changed.items():
            if was is None and shall is not None and _is_record(path[cut:]) and path not in self.tip.files:
                held = files.parse_json(self.tip.objects.data(shall.blob))
                same = sorted(taken & {str(card["id"]) for card in held["cards"]})
                if same:
                    raise Conflict(
                        f"{', '.join(same)} was given twice: by the others, and in an approval that is not this "
                        "reviewer's to make again, since a merge or another author's commit builds on it",
                        where=f"{path} in {commit}",
                        hint="whoever approved it runs khms sync in their own clone; then take it from the remote",
                    )


def _is_blob(entry: Entry) -> bool:
    return entry.mode != SUBMODULE


def _is_record(path: str) -> bool:
    return path.startswith(f"{APPROVALS}/") and path.endswith(".json")


def _hashes(old: bytes, new: bytes) -> dict[str, str]:
    """What a unit's list of hashes has to say of a file that changed on the way."""
    return {} if old == new else {hashlib.sha256(old).hexdigest(): hashlib.sha256(new).hexdigest()}


def _replaced(data: bytes, hashes: Mapping[str, str]) -> bytes:
    for old, new in hashes.items():
        data = data.replace(old.encode(), new.encode())
    return data


def _merge(repo: Repo, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """The three-way merge of a text, None where it has a conflict."""
    folder = repo.folder / "khms" / "merge"
    files.remove_tree(folder)
    files.make_folder(folder)
    names = [folder / name for name in ("ours", "base", "theirs")]
    for name, data in zip(names, (ours, base, theirs), strict=True):
        name.write_bytes(data)
    try:
        return repo.run("merge-file", "-p", "-q", *map(str, names))
    except GitFailed:
        return None
    finally:
        files.remove_tree(folder)


def _merge_base(repo: Repo, one: str, other: str) -> str:
    found = repo.text("merge-base", one, other, ok=(0, 1)).split()
    if not found:
        raise Refused(
            "this clone and its remote share no history",
            where=str(repo.root),
            hint="check the remote's address: git remote -v",
        )
    return found[0]


def unpublished(repo: Repo, head: str, *without: str) -> list[Commit]:
    """The commits that `head` has and the others lack, oldest first."""
    form = "%H%n%P%n%an%n%ae%n%aI%n%B"
    flags = ("-z", "--topo-order", "--reverse", f"--format={form}")
    out = repo.run("-c", "log.showSignature=false", "log", *flags, head, "--not", *without)
    found = []
    for row in out.decode("utf-8", "surrogateescape").split("\0"):
        if row.strip():
            name, parents, *who, message = row.lstrip("\n").split("\n", 5)
            found.append(Commit(name, tuple(parents.split()), Author(*who), message))
    return found


def fixed(commits: Sequence[Commit], email: str) -> set[str]:
    """Those of the commits that stay as they are: merges, those of other authors, and all that these build on."""
    held = {commit.id: commit for commit in commits}
    found: set[str] = set()
    todo = [c.id for c in commits if len(c.parents) != 1 or c.author.email.casefold() != email.casefold()]
    while todo:
        name = todo.pop()
        if name in held and name not in found:
            found.add(name)
            todo += held[name].parents
    return found


def replay(
    base: Base,
    repo: Repo,
    config: Config,
    head: str,
    onto: str,
    branch: str,
    views: Views,
    yielded: frozenset[str] = frozenset(),
    since: str = "",
    ids: Mapping[str, str] | None = None,
) -> Replay:
    """Everything that `head` has and `onto` lacks, on top of `onto`; the result's tip is the commit to publish. The
    cards `yielded` do not come in. What `since` had is in `onto` already, its cards under the new `ids`. Raises
    Conflict where a person must decide, and what `sealed` raises where a person must sign; nothing is changed then."""
    from khms.pipeline import samemark

    commits = unpublished(repo, head, onto, *([since] if since else []))
    _merge_base(repo, head, onto)
    tip = tip_at(base, repo, onto)
    mine = listing(repo, head)
    there = receipts_of(tip, [path for path in tip.listed(RECEIPTS) if repo.prefix + path not in mine])
    new = [record for record in tip.records if repo.prefix + approval_path(record.id) not in mine]
    touched = frozenset(change.id for record in new for change in record.transitions)
    moved = {place(old): place(new) for old, new in (ids or {}).items() for place in (know_path, archive_path)}
    work = Replay(
        base, repo, config, tip, views, catalogue(base).cards, there, touched, yielded, dict(ids or {}), moved
    )
    try:
        tip.open()
        stay = fixed(commits, repo.identity().rpartition("<")[2].rstrip(">"))
        last = next((commit for commit in reversed(commits) if commit.id in stay), None)
        if last is not None:
            work.merge(last, branch)
        for commit in commits:
            if commit.id not in stay:
                work.again(commit)
        samemark.settle(work)
    finally:
        tip.drop()
    return work
