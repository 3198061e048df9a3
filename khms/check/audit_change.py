"""The audit of a change: a range of commits, a push, what is staged. Only what changed is read."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from khms.check import auditing, ground
from khms.check.audit import Report, guarantee, in_order
from khms.check.audited import FOLDERS, Filed, Stood, Trust, filed, is_card, is_record, stem, stood, trust_from
from khms.check.auditing import Before, Restore, Seen, Trouble
from khms.check.changes import judge_changes
from khms.check.court import court, settled, trusts_at
from khms.check.provenance import Proposed, Texts, before_records, proposals, seen, texts
from khms.check.seals import Arrival, Seals, Step, unreadable
from khms.model.approval import card_sha256
from khms.store import history
from khms.store.history import Change, Log, Tree
from khms.store.layout import CONFIG, SIGNERS, Base
from khms.store.repo import Repo

# The ids in a record's bytes. One that is written with escapes is refused where it comes in (`filed`).
_IDS = re.compile(rb'"([A-Z]-[0-9A-Z]{5,})"')


@dataclass(frozen=True, slots=True)
class Delta:
    """A change to be judged: what it makes of the base (`tree`), what differs in the repository (`everywhere`) and in
    the base (`changes`), the records that its commits brought on the way (`seen`), whose word counts (`before`), where
    the histories parted (`parted`, and `rev`, a name for it), what follows it (`after`), and the commits before it
    (`old`): first the one whose word counts, then where they parted. `fault` is what makes the settings that come in
    unreadable."""

    tree: Tree
    everywhere: Sequence[Change]
    changes: Sequence[Change]
    seen: Sequence[Seen]
    before: Trust
    parted: Trust
    after: Trust
    rev: str
    tip: str | None
    old: Sequence[str] = ()
    fault: str = ""


def between(repo: Repo, prefix: str, a: str, b: str) -> Report:
    """Audits what `b` has over `a`, reading only what changed; whose word counts is told by `a` alone. Where `a` is not
    among `b`'s own commits, it is what changed since they parted."""
    history.demand_deep(repo)
    parted = history.merge_base(repo, a, b)
    fork = parted or history.empty_tree(repo)
    everywhere = history.between(repo, "", fork, b)
    brought = tuple(seen(history.log(repo, prefix, b, *([parted] if parted else []))))
    commits = [a, b, *([parted] if parted and parted != a else [])]
    trusts = trusts_at(repo, prefix, commits)
    before = settled(repo, prefix, a, trusts[a])
    delta = Delta(
        tree=Tree(repo, prefix, b),
        everywhere=everywhere,
        changes=history.below(everywhere, prefix),
        seen=brought,
        before=before,
        parted=settled(repo, prefix, parted, trusts[parted]) if parted else Trust(),
        after=trusts[b].after(before),
        rev=(parted or a)[:12],
        tip=b,
        old=(a, *([parted] if parted and parted != a else [])),
        fault=_new(trusts[b], trusts[a], trusts.get(parted or a, Trust())),
    )
    return _judge(delta)


def staged(base: Base, repo: Repo, index: str = "") -> Report:
    """Audits what the next commit would change, as it is staged. `index` is the staging area where it is not git's
    usual one."""
    head = repo.head()
    tree = Tree(repo, repo.prefix, "", index)
    held = tree.read(SIGNERS, CONFIG)
    stood = trusts_at(repo, repo.prefix, [head])[head] if head else Trust()
    before = settled(repo, repo.prefix, head, stood) if head else stood
    coming = trust_from(held.get(SIGNERS), held.get(CONFIG))
    everywhere = history.staged(repo, "", index)
    delta = Delta(
        tree=tree,
        everywhere=everywhere,
        changes=history.below(everywhere, repo.prefix),
        seen=(),
        before=before,
        parted=before,
        after=coming.after(before),
        rev="HEAD",
        tip=head,
        old=(head,) if head else (),
        fault=_new(coming, stood),
    )
    return _judge(delta)


def _new(coming: Trust, *stood: Trust) -> str:
    """What is wrong with the settings and was not before."""
    return "" if coming.fault in {trust.fault for trust in stood} else coming.fault


def _judge(delta: Delta) -> Report:
    repo, prefix = delta.tree.repo, delta.tree.prefix
    moved = [change for change in delta.changes if is_card(change.path)]
    entered = [change for change in delta.changes if is_record(change.path)]
    troubles = [*_kept(delta, entered), *ground.judge((change.path, change.mode) for change in delta.changes)]
    troubles += ground.second(repo, prefix, delta.before.configured, delta.everywhere, *delta.old)
    cards: list[Stood] = []
    records: list[Filed] = []
    fresh: list[Filed] = []
    if moved or entered:
        listing = delta.tree.listing(*FOLDERS)
        shelf = {path: blob for path, blob in listing.items() if is_card(path)}
        data = history.blobs(repo, [*_blobs(moved), *(blob for path, blob in listing.items() if is_record(path))])
        new = {change.path for change in entered if change.new and not change.old}
        fresh = [filed(path, data[listing[path]]) for path in sorted(new) if path in listing]
        ids = _ids(moved, data, fresh)
        records = list(fresh)
        for path, blob in sorted(listing.items()):
            if is_record(path) and path not in new and any(os.fsdecode(i) in ids for i in _IDS.findall(data[blob])):
                records.append(filed(path, data[blob]))
        cards = _cards(repo, shelf, moved, ids, data)
        books = auditing.books(records)
        stems = {stem(path) for path in shelf} | {card.id for card in cards}
        before = _admitted(repo, prefix, delta.tip, fresh)
        troubles += auditing.judge_cards(cards, books, _from_changes(delta, moved, data), before)
        proposed = proposals(repo, Log("", ()), _units(delta.tree, fresh), lambda path: None)
        known = _anywhere(repo, prefix, delta.tip, proposed)
        troubles += auditing.judge_presence(books, stems, ids)
        troubles += auditing.judge_records(fresh, books, known)
        troubles += judge_changes(books, _texts(delta, shelf, moved, data), {held.path for held in fresh})
    troubles += [unreadable(delta.fault)] if delta.fault else []
    judges = court(repo, {held.record.id for held in fresh if held.record})
    seals = Seals(judges.verify, judges.owners)
    step = Step(delta.before, (Arrival("", tuple(fresh), delta.after),), delta.parted)
    judges.prepare([step])
    troubles += seals.judge(step)
    judges.verifier.keep(whole=False)
    return Report(len(cards), len(records), seals.good, guarantee(delta.before), in_order(troubles))


def _kept(delta: Delta, entered: Sequence[Change]) -> Iterator[Trouble]:
    """KA005: records that stood before stand as they did, and those that came in on the way stand as they came in."""
    changed = {change.path: change.new for change in entered}
    old = [Seen(delta.rev, change.path, change.old) for change in entered if change.old]
    beside = sorted({one.path for one in delta.seen} - changed.keys())  # changed on the way, and as before in the end
    still = delta.tree.listing(*beside) if beside else {}
    old += [Seen(delta.rev, path, blob) for path, blob in still.items()]
    now = {**still, **{path: blob for path, blob in changed.items() if blob}}
    yield from auditing.judge_appended([*old, *delta.seen], now)


def _blobs(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        yield from (blob for blob in (change.old, change.new) if blob)


def _ids(moved: Iterable[Change], data: Mapping[str, bytes], fresh: Iterable[Filed]) -> frozenset[str]:
    """The cards that the change is about."""
    found = set()
    for change in moved:
        found.add(stem(change.path))
        found |= {stood(change.path, data[blob]).id for blob in (change.old, change.new) if blob and blob in data}
    for held in fresh:
        if held.record is not None:
            found |= {card.id for card in held.record.cards} | {t.id for t in held.record.transitions}
    return frozenset(found)


def _cards(
    repo: Repo, shelf: Mapping[str, str], moved: Iterable[Change], ids: frozenset[str], data: Mapping[str, bytes]
) -> list[Stood]:
    """The files of these cards as they shall be."""
    changed = {change.path for change in moved}
    wanted = {path: blob for path, blob in shelf.items() if path in changed or stem(path) in ids}
    held = {**data, **history.blobs(repo, [blob for blob in wanted.values() if blob not in data])}
    return [stood(path, held[blob]) for path, blob in sorted(wanted.items())]


def _units(tree: Tree, fresh: Iterable[Filed]) -> dict[str, bytes]:
    """The files of the units that new records name."""
    units = {held.record.unit for held in fresh if held.record and auditing.is_unit(held.record.unit)}
    if not units:
        return {}
    listing = tree.listing(*sorted(units))
    data = history.blobs(tree.repo, listing.values())
    return {path: data[blob] for path, blob in listing.items()}


def _anywhere(repo: Repo, prefix: str, tip: str | None, proposed: Proposed) -> Proposed:
    """`proposed`, and where it says no the whole history is asked, which is read then only."""
    deep: list[Proposed] = []

    def known(unit: str, label: str, sha256: str) -> bool:
        if proposed(unit, label, sha256):
            return True
        if tip is None:
            return False
        if not deep:
            history.demand_deep(repo)
            deep.append(proposals(repo, history.log(repo, prefix, tip), {}, lambda path: None))
        return deep[0](unit, label, sha256)

    return known


def _texts(delta: Delta, shelf: Mapping[str, str], moved: Iterable[Change], data: Mapping[str, bytes]) -> Texts:
    """The texts of cards, first those that the change itself shows; the history is read only for others."""
    repo, tip = delta.tree.repo, delta.tip
    near = [(change.path, blob) for change in moved for blob in (change.old, change.new) if blob]
    near += list(shelf.items())

    def find(card_id: str, sha256: str) -> bytes | None:
        own = [blob for path, blob in near if stem(path) == card_id]
        held = {**data, **history.blobs(repo, [blob for blob in own if blob not in data])}
        found = next((held[blob] for blob in own if blob in held and card_sha256(held[blob]) == sha256), None)
        if found is None and tip is not None:
            history.demand_deep(repo)
            found = texts(repo, history.log(repo, delta.tree.prefix, tip), {})(card_id, sha256)
        return found

    return find


def _admitted(repo: Repo, prefix: str, tip: str | None, fresh: Iterable[Filed]) -> Before | None:
    """What a new record without a unit may admit."""
    if not any(held.record and not held.record.unit and held.record.cards for held in fresh):
        return None
    if tip is None:
        return {}
    history.demand_deep(repo)
    return before_records(repo, prefix, tip)


def _from_changes(delta: Delta, moved: Iterable[Change], data: Mapping[str, bytes]) -> Restore:
    """Restores a card from the state before, where it was right then."""
    before = [(change.path, data[change.old]) for change in moved if change.old and change.old in data]

    def restore(card_id: str, right: frozenset[str]) -> str:
        for path, held in before:
            if stem(path) == card_id and card_sha256(held) in right:
                return f"git checkout {delta.rev} -- {path}"
        return f"git log --all --oneline -- '*/{card_id}.md'"

    return restore
