"""One unpublished record again, on what others published meanwhile: an approval with its cards, or transitions.

The reviewer stays, the time is the replay's: the record then sorts behind all that it now builds on, and its signature
covers what really came in. A record that nothing touched is taken over byte for byte, signature and all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from khms.model.approval import Approval, approval_from
from khms.model.receipt import Receipt, receipt_from
from khms.pipeline.replay import Commit, Conflict, Replay
from khms.pipeline.replay_tip import Content
from khms.store import cards, files
from khms.store.layout import ARCHIVE, KNOW
from khms.store.receipts import receipts_path
from khms.store.tree import Entry, listing

Changed = Mapping[str, tuple[Entry | None, Entry | None]]


@dataclass
class Made:
    """What the tip takes, by repository path, and which of the old commit's paths that settles. No `message`: the old
    one fits."""

    changes: dict[str, Content] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    message: str | None = None


@dataclass
class Old:
    """The old commit's side: its record, and what its files hold."""

    work: Replay
    commit: Commit
    changed: Changed
    path: str
    record: Approval

    @cached_property
    def _unit(self) -> dict[str, Entry]:
        """The approved unit's files in the old commit."""
        place = self.work.repo.prefix + self.record.unit
        found = listing(self.work.repo, self.commit.id, place) if self.record.unit else {}
        self.work.tip.objects.fetch(entry.blob for entry in found.values())
        return found

    def data(self, path: str) -> bytes | None:
        """The bytes of a base path in the old commit."""
        name = self.work.repo.prefix + path
        entry = self.changed[name][1] if name in self.changed else self._unit.get(name)
        if entry is not None:
            return self.work.tip.objects.data(entry.blob)
        return None if name in self.changed else self.work.repo.blob(self.commit.id, path)

    def card(self, card_id: str) -> tuple[str, bytes]:
        for path in (cards.know_path(card_id), cards.archive_path(card_id)):
            data = self.data(path)
            if data is not None:
                return path, data
        raise Conflict(
            f"{card_id} is not in the commit that let it in",
            where=str(self.commit),
            hint="take that commit back (git revert), or make it again by hand on the new tip",
        )

    def receipts(self) -> list[Receipt]:
        data = self.data(receipts_path(self.record.id)) or b""
        return [receipt_from(files.parse_json(line)) for line in data.decode("utf-8").splitlines() if line.strip()]

    def candidate(self, label: str) -> str:
        single = self.record.unit.endswith(".md")
        return self.record.unit if single else f"{self.record.unit}/{label}.md"


def again(work: Replay, commit: Commit, changed: Changed, path: str) -> Made:
    """The record at `path` of the old commit on the tip."""
    from khms.pipeline import replay_approval, replay_transitions

    data = work.tip.objects.data(changed[work.repo.prefix + path][1].blob)  # type: ignore[union-attr]
    old = Old(work, commit, changed, path, approval_from(files.parse_json(data), path))
    made = replay_approval.again(old) if old.record.unit else replay_transitions.again(old)
    named = {c.id for c in old.record.cards} | {t.id for t in old.record.transitions if t.field != "card_sha256"}
    prefix = work.repo.prefix
    made.done |= {prefix + path, prefix + receipts_path(old.record.id)} if old.record.unit else {prefix + path}
    for name in changed:
        base_path = name.removeprefix(prefix)
        if base_path.startswith((f"{KNOW}/", f"{ARCHIVE}/")) and stem(base_path) in named:
            made.done.add(name)
    return made


def stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")
