"""`khms audit --adopt`: one record admits the cards that are older than khms.

Older means that they stood in the base before its first approval record, with the bytes that they have now: whatever
came in later goes through the inbox.
"""

from dataclasses import dataclass

from khms.check.provenance import before_records
from khms.config import Config
from khms.errors import Refused
from khms.model.approval import Approval, Approved, candidate_sha256, card_sha256
from khms.model.card import Card, card_from, is_card_id
from khms.model.cardhash import stray
from khms.pipeline import authority
from khms.pipeline.record import next_id, now
from khms.pipeline.seal import sealed
from khms.pipeline.transition import initial
from khms.store import cards, files, history, markdown
from khms.store.commit import exclusive
from khms.store.layout import Base
from khms.store.repo import Repo


@dataclass(frozen=True, slots=True)
class Adopted:
    """`commit` is None where every card has a record already; `cards` are the ids that were admitted."""

    commit: str | None
    record: str = ""
    cards: tuple[str, ...] = ()
    recovered: str = ""


def adopt(base: Base, repo: Repo, config: Config, *, here: bool = False) -> Adopted:
    """Admits every card without a record. Raises Refused naming those that came in or changed after the first record,
    and those that cannot be read; then nothing was changed. Raises Unavailable in a shallow clone."""
    with exclusive(repo, "adoption") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        records = cards.approvals(base)
        known = {card.id for record in records for card in record.cards}
        held = _cards(base, known)
        if not held:
            return Adopted(None, recovered=recovered)
        reviewer = authority.reviewer(repo, config)
        authority.demand_branch(repo, config, here=here)
        authority.demand_calm(repo)
        _demand_older(repo, held)
        record = Approval(
            id=next_id(records),
            unit="",
            reviewer=reviewer,
            at=now(),
            parent=repo.head(),
            cards=tuple(Approved(c.id, c.id, candidate_sha256(data), card_sha256(data)) for c, data in held),
            transitions=tuple(change for card, _ in held for change in initial(card)),
        )
        record = sealed(base, repo, config, record)
        count = f"{len(held)} card{'s' if len(held) > 1 else ''}"
        message = f"Admit {count} older than khms\n\nKhms-Reviewer: {reviewer}\n"
        changes = {cards.approval_path(record.id): record.file_bytes()}
        commit = tx.commit(changes, message, what="adoption of older cards", user_hooks=True)
    return Adopted(commit, record.id, tuple(card.id for card, _ in held), recovered)


def _cards(base: Base, known: set[str]) -> list[tuple[Card, bytes]]:
    """Every card without a record, by id, with its bytes."""
    found: dict[str, tuple[Card, bytes]] = {}
    faults = []
    for path in cards.card_paths(base):
        if path.rpartition("/")[2].removesuffix(".md") in known:
            continue
        try:
            data = files.read_inside(base.root, path)
            page = markdown.parse(data, path)
        except (OSError, markdown.Unreadable) as error:
            faults.append(f"{path}: it cannot be read: {error}")
            continue
        card = card_from(page.meta, page.body, path, page.body_line)
        if card.id in known:
            faults.append(f"{path}: it carries the id {card.id}, which has a record")
        elif not is_card_id(card.id):
            faults.append(f"{path}: {card.id} is no card id")
        elif card.id in found:
            faults.append(f"{path}: {found[card.id][0].path} carries the id {card.id} too")
        elif stray(data):
            faults += [f"{path}:{line}: {said}" for line, said in stray(data)]
        else:
            found[card.id] = (card, data)
    if faults:
        raise Refused(
            "some cards cannot be admitted; nothing was changed",
            where="\n".join(faults),
            hint="mend them, or move them out of memory/know/ and memory/archive/know/; on the lines of status, "
            "contradicts and refuted_by only the plain value may stand (status: active, contradicts: [K-00002])",
        )
    return [found[card_id] for card_id in sorted(found)]


def _demand_older(repo: Repo, held: list[tuple[Card, bytes]]) -> None:
    """Raises Refused naming the cards that did not stand there, with these bytes, before the first record."""
    history.demand_deep(repo)
    head = repo.head()
    before = before_records(repo, repo.prefix, head) if head else {}
    newer = []
    for card, data in held:
        if card_sha256(data) not in before.get(card.id, ()):
            said = "it changed" if card.id in before else "it came in"
            newer.append(f"{card.path}: {said} after the base's first approval")
    if newer and not before:
        raise Refused(
            "no card was committed before the base's first approval, so none can be told to be older",
            where="\n".join(newer),
            hint="move them into an inbox unit and approve them: khms approve UNIT --all",
        )
    if newer:
        raise Refused(
            f"{len(newer)} of {len(held)} cards are newer than the base's first approval; nothing was changed",
            where="\n".join(newer),
            hint="approve them in an inbox unit (put a changed one back as it was), then run this again",
        )
