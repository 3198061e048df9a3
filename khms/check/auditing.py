"""The rules of an audit, over values alone: what the records say against how the cards stand, and records against
history. Those of signatures stand in `seals`, those of what a transition says of itself in `changes`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from khms.check.audited import Filed, Standing, Stood
from khms.model.approval import Approval, Approved, Transition
from khms.model.card import ARCHIVED
from khms.model.finding import Finding
from khms.store.layout import CONFIG, INBOX, SIGNERS

PROBLEMS = {
    "KA001": "no record",
    "KA002": "changed",
    "KA003": "id used twice",
    "KA004": "unrecorded transition",
    "KA005": "record changed or removed",
    "KA006": "unsigned",
    "KA007": "bad signature",
    "KA008": "signers or review settings changed",
    "KA009": "record of what is not there",
    "KA010": "no plain file",
}
PROPOSE = (
    "move it into an inbox unit (git mv {path} memory/inbox/UNIT/C1.md, with `id: C1`) and approve it: "
    "khms approve UNIT C1"
)


PLAIN = (
    "leave nothing on these lines but the plain value (status: active, contradicts: [K-00002]); the card's hash, and "
    "with it the approval, stays. What has to be said of a card is a card of its own, or the reason of khms card status"
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A finding with what it is about: a card's or record's id, the commit that did it where that is known, and whether
    it is in the work tree only."""

    finding: Finding
    id: str = ""
    commit: str = ""
    uncommitted: bool = False

    def as_json(self) -> dict[str, object]:
        more = {"id": self.id, "commit": self.commit, "problem": PROBLEMS[self.finding.code]}
        return {**self.finding.as_json(), **more, "uncommitted": self.uncommitted}


def trouble(
    code: str, path: str, message: str, mend: str, *, line: int = 0, about: str = "", commit: str = ""
) -> Trouble:
    return Trouble(Finding(code, "error", path, line, message, mend), about, commit)


@dataclass(frozen=True)
class Books:
    """What the records say of each card, oldest first; `placed` are its transitions, each with its record's path."""

    cards: Mapping[str, Sequence[tuple[Filed, Approved]]]
    placed: Mapping[str, Sequence[tuple[str, Transition]]]

    def transitions(self, card_id: str) -> Iterator[Transition]:
        return (change for _, change in self.placed.get(card_id, ()))

    def hashes(self, card_id: str) -> frozenset[str]:
        """The hashes that the card may have. A later recorded change of it counts."""
        changed = [t.new for t in self.transitions(card_id) if t.field == "card_sha256"]
        if changed and isinstance(changed[-1], str):
            return frozenset({changed[-1]})
        return frozenset(approved.card_sha256 for _, approved in self.cards.get(card_id, ()))

    def standing(self, card_id: str) -> Standing:
        """How the card has to stand. Every card begins active with no correctors; an edge that two branches each added
        beside others is the sum of what they did."""
        status = "active"
        edges: dict[str, set[str]] = {"links.contradicts": set(), "links.refuted_by": set()}
        for change in self.transitions(card_id):
            if change.field == "status" and isinstance(change.new, str):
                status = change.new
            elif change.field in edges:
                old, new = _texts(change.old), _texts(change.new)
                edges[change.field] = (edges[change.field] - (old - new)) | (new - old)
        return Standing(status, frozenset(edges["links.contradicts"]), frozenset(edges["links.refuted_by"]))

    def came_as_it_is(self, card_id: str) -> bool:
        """Whether the card is older than khms and has had its status since: then it may lie where it lay, and older
        tools left superseded cards in know/."""
        own = {filed.path for filed, _ in self.cards.get(card_id, ()) if filed.record and not filed.record.unit}
        changed = {path for path, t in self.placed.get(card_id, ()) if t.field == "status"}
        return len(own) == len(self.cards.get(card_id, ())) and changed <= own


def _texts(value: object) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def books(records: Iterable[Filed]) -> Books:
    cards: defaultdict[str, list[tuple[Filed, Approved]]] = defaultdict(list)
    transitions: defaultdict[str, list[tuple[str, Transition]]] = defaultdict(list)
    for held in sorted(records, key=lambda held: held.path):
        if held.record is None:
            continue
        for card in held.record.cards:
            cards[card.id].append((held, card))
        for change in held.record.transitions:
            transitions[change.id].append((held.path, change))
    return Books(cards, transitions)


Restore = Callable[[str, frozenset[str]], str]  # (card id, hashes that are right) -> the command that brings them back
Before = Mapping[str, Collection[str]]  # card id -> the hashes it had before the base's first record


def judge_cards(
    cards: Sequence[Stood], held: Books, restore: Restore, before: Before | None = None
) -> Iterator[Trouble]:
    """KA001 to KA004 of cards. `before` is asked for what a record without a unit admits; None leaves that out."""
    by_id: defaultdict[str, list[Stood]] = defaultdict(list)
    for card in cards:
        by_id[card.id].append(card)
    for card_id, files in by_id.items():
        right = held.hashes(card_id)
        first = next((file for file in files if file.sha256 in right), files[0])
        for file in files:
            if file is not first:
                message = f"a second file carries the id {card_id}: {first.path} has it too"
                yield trouble("KA003", file.path, message, PROPOSE.format(path=file.path), about=card_id)
        yield from _judge_card(first, held, right, restore, before)


def _judge_card(
    card: Stood, held: Books, right: frozenset[str], restore: Restore, before: Before | None
) -> Iterator[Trouble]:
    named = held.cards.get(card.id, ())
    if not named:
        mend = PROPOSE.format(path=card.path) + "; a card that is older than khms: khms audit --adopt"
        yield trouble("KA001", card.path, f"no approval record lets {card.id} in", mend, about=card.id)
        return
    if card.sha256 not in right:
        message = f"this is not what was approved ({named[-1][0].path} has another hash)"
        mend = f"restore it: {restore(card.id, right)}; a correction is a new card that supersedes it"
        yield trouble("KA002", card.path, message, mend, about=card.id)
        return
    if before is not None and not any(_admits(filed, approved, before) for filed, approved in named):
        message = f"{named[-1][0].path} admits {card.id} as older than khms, and it came in after the first approval"
        yield trouble("KA001", card.path, message, PROPOSE.format(path=card.path), about=card.id)
    for line, said in card.stray:
        yield trouble("KA004", card.path, f"{said}: nobody approved what stands here", PLAIN, line=line, about=card.id)
    yield from _judge_standing(card, held.standing(card.id), held.came_as_it_is(card.id))


def _admits(held: Filed, approved: Approved, before: Before) -> bool:
    """Whether the record can let the card in: by a unit, or because it stood there before the first record."""
    assert held.record is not None
    return bool(held.record.unit) or approved.card_sha256 in before.get(approved.id, ())


def _judge_standing(card: Stood, wanted: Standing, as_it_is: bool) -> Iterator[Trouble]:
    how = f"khms card status {card.id} STATUS --by K-… --why …"
    mend = f"put it back as the records have it, then change it by the command that records it: {how}"
    if card.standing is None and card.stray:
        return  # told by its lines
    if card.standing is None:
        yield trouble("KA004", card.path, "its status cannot be read", mend, about=card.id)
        return
    if card.standing.status != wanted.status:
        message = f"its status is {card.standing.status}, and the records say {wanted.status}"
        yield trouble("KA004", card.path, message, mend, line=card.lines.get("status", 0), about=card.id)
    for name in ("contradicts", "refuted_by"):
        has, says = getattr(card.standing, name), getattr(wanted, name)
        if has != says:
            message = f"its links.{name} has {_listed(has)}, and the records say {_listed(says)}"
            line = card.lines.get(f"links.{name}", 0)
            yield trouble("KA004", card.path, message, mend, line=line, about=card.id)
    misplaced = card.archived != (wanted.status in ARCHIVED) and card.standing.status == wanted.status
    if misplaced and not (as_it_is and not card.archived):
        there, place = ("the archive", "memory/know/") if card.archived else ("know/", "memory/archive/know/")
        name = card.path.rpartition("/")[2]
        message = f"it lies in {there}, and a card that is {wanted.status} belongs in {place}"
        yield trouble("KA004", card.path, message, f"git mv {card.path} {place}{name}", about=card.id)


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(sorted(ids)) or "none"


def judge_records(
    records: Iterable[Filed],
    held: Books,
    proposed: Callable[[str, str, str], bool],
) -> Iterator[Trouble]:
    """KA003 and KA009 of records. `proposed` tells whether a unit holds, or held, a candidate under a label with a
    hash."""
    for filed in records:
        name = filed.path.rpartition("/")[2].removesuffix(".json")
        if filed.record is None:
            mend = f"restore it: git log --oneline -- {filed.path}; a record is written by khms alone"
            yield trouble("KA009", filed.path, f"this record cannot be read: {filed.fault}", mend, about=name)
            continue
        for card in filed.record.cards:
            yield from _judge_entry(filed, filed.record, card, held, proposed)


def _judge_entry(
    filed: Filed,
    record: Approval,
    card: Approved,
    held: Books,
    proposed: Callable[[str, str, str], bool],
) -> Iterator[Trouble]:
    first = held.cards[card.id][0][0] if held.cards.get(card.id) else filed
    if first.path < filed.path:
        message = f"{card.id} was given before, by {first.path}"
        mend = (
            "an id is used once: take this approval back before it is published (git reset --hard to before it) and "
            "approve again on the newest state, which gives the next id"
        )
        yield trouble("KA003", filed.path, message, mend, about=card.id)
    redacted = any(t.field in ("card_sha256", "candidate_sha256") for t in held.transitions(card.id))
    if record.unit and not redacted and not proposed(record.unit, card.label, card.candidate_sha256):
        message = f"it names {card.label} of {record.unit}, and no unit ever held a candidate with that hash"
        mend = (
            "a record is written by khms approve alone: take this commit back, put the text of "
            f"{card.id} into an inbox unit and approve it there"
        )
        yield trouble("KA009", filed.path, message, mend, about=card.id)


def judge_presence(held: Books, present: Collection[str], asked: Collection[str] | None = None) -> Iterator[Trouble]:
    """KA009 of cards: each that a record names is there; of those `asked` for only, where some are."""
    for card_id in {**held.cards, **held.placed}:
        if card_id in (SIGNERS, CONFIG) or card_id in present or (asked is not None and card_id not in asked):
            continue
        named = [filed.path for filed, _ in held.cards.get(card_id, ())]
        yield _gone([*named, *(path for path, _ in held.placed.get(card_id, ()))][0], card_id)


def _gone(path: str, card_id: str) -> Trouble:
    mend = (
        f"restore it: git log --diff-filter=D --oneline -- '*{card_id}.md', then git checkout COMMIT~1 -- its path; "
        f"if it shall not count any more: khms card status {card_id} refuted --why …"
    )
    return trouble("KA009", path, f"{card_id}, which this record names, is gone", mend, about=card_id)


@dataclass(frozen=True, slots=True)
class Seen:
    """A record's file as some commit brought it."""

    commit: str
    path: str
    blob: str


def judge_appended(seen: Iterable[Seen], now: Mapping[str, str]) -> Iterator[Trouble]:
    """KA005: every blob that ever came in below approvals/ must be there now. That finds edits, edits undone, removals,
    and merges that took the other side."""
    by_path: defaultdict[str, list[Seen]] = defaultdict(list)
    for one in seen:
        by_path[one.path].append(one)
    for path, held in by_path.items():
        first = held[0]
        other = next((one for one in held if one.blob != now.get(path)), None)
        if other is None:
            continue
        name = path.rpartition("/")[2].removesuffix(".json")
        restore = (
            f"records are only ever added; restore it: git checkout {first.commit[:12]} -- {path} (its cards too, "
            "where they went with it; what shall not count any more: khms card status ID refuted --why …)"
        )
        if path not in now:
            said, mend, commit = "this record was removed after it came in", restore, first.commit
        elif first.blob != now[path]:
            said, mend = "this record was changed after it came in", restore
            commit = next((one.commit for one in held if one.blob == now[path]), "")
        else:
            said = f"this record was changed by {other.commit[:12]} and put back later"
            mend = f"take that change out of the history before it is published: git rebase -i {other.commit[:12]}~1"
            commit = other.commit
        yield trouble("KA005", path, said, mend, about=name, commit=commit)


def is_unit(path: str) -> bool:
    """Whether this can be the path of an inbox unit."""
    parts = path.split("/")
    return path.startswith(INBOX + "/") and len(parts) == 3 and not set(parts) & {"", ".", ".."}
