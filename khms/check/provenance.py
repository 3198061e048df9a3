"""What an audit asks of the past: which records came in, which candidates there were, which cards are older."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from khms.check import auditing
from khms.check.audited import FOLDERS, candidates, is_card, is_record, stem, stood
from khms.check.auditing import Before, Seen
from khms.check.changes import Texts as Texts
from khms.model.approval import card_sha256
from khms.store import history
from khms.store.history import Log, Tree
from khms.store.layout import INBOX
from khms.store.repo import Repo


def seen(log: Log) -> Iterator[Seen]:
    for commit in log.commits:
        for change in commit.changes:
            if change.new and is_record(change.path):
                yield Seen(commit.id, change.path, change.new)


def stood_in(repo: Repo, prefix: str, commit: str, wanted: Collection[str] | None = None) -> Before:
    """The hash of each card in a commit, by id; of those `wanted` only, by their files' names."""
    listing = {path: blob for path, blob in Tree(repo, prefix, commit).listing(*FOLDERS).items() if is_card(path)}
    data = history.blobs(repo, listing.values())
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path, blob in listing.items():
        card = stood(path, data[blob])
        if wanted is None or card.id in wanted:
            found[card.id].add(card.sha256)
    return found


def before_records(repo: Repo, prefix: str, head: str) -> Before:
    """What an adoption may admit: the cards as they stood before the base's first record, or as they stand where there
    is none yet."""
    for line, brought in history.log(repo, prefix, head).arrivals():
        if any(is_record(change.path) and change.new for commit in brought for change in commit.changes):
            return stood_in(repo, prefix, line.parents[0]) if line.parents else {}
    return stood_in(repo, prefix, head)


Proposed = Callable[[str, str, str], bool]


def proposals(repo: Repo, log: Log, state: Mapping[str, bytes], beside: Callable[[str], bytes | None]) -> Proposed:
    """Whether a unit holds a candidate with that hash: in the state at hand, in the work tree, or anywhere in the
    history."""
    known = {entry for path, held in state.items() if path.startswith(INBOX + "/") for entry in candidates(path, held)}
    older: dict[str, set[str]] = {}

    def in_history(unit: str) -> None:
        if not older:
            for commit in log.commits:
                for change in commit.changes:
                    if change.new and change.path.startswith(INBOX + "/"):
                        name = "/".join(change.path.split("/")[:3])
                        older.setdefault(name, set()).add(f"{change.new} {change.path}")
        rows = [row.partition(" ") for row in older.pop(unit, ())]
        data = history.blobs(repo, [blob for blob, _, _ in rows])
        for blob, _, path in rows:
            known.update(candidates(path, data[blob]))

    def proposed(unit: str, label: str, sha256: str) -> bool:
        entry = (unit, label, sha256)
        if entry in known:
            return True
        if not auditing.is_unit(unit):
            return False
        path = unit if unit.endswith(".md") else f"{unit}/{label}.md"
        held = beside(path)
        if held is not None:
            known.update(candidates(path, held))
        if entry not in known:
            in_history(unit)
        return entry in known

    return proposed


def texts(repo: Repo, log: Log, state: Mapping[str, bytes]) -> Texts:
    """Finds the file of a card that had a hash: in the state at hand, or anywhere in the history."""

    def find(card_id: str, sha256: str) -> bytes | None:
        for path, held in state.items():
            if is_card(path) and stem(path) == card_id and card_sha256(held) == sha256:
                return held
        every = (change for commit in log.commits for change in commit.changes)
        blobs = {c.new for c in every if c.new and is_card(c.path) and stem(c.path) == card_id}
        return next((held for held in history.blobs(repo, blobs).values() if card_sha256(held) == sha256), None)

    return find
