"""Approval: the one way into memory/know. All of the named candidates come in, in one commit, or nothing changes.

Everything is checked before an id is given. The proof, who let which bytes in, is a file of the same commit. Proposed
changes of cards that are there come in beside new ones, with a record of their own: the one of `khms card status`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from khms.config import Config
from khms.errors import Refused, Usage
from khms.model.approval import Approval, Transition
from khms.model.candidate import Candidate
from khms.model.card import Card, id_number
from khms.model.finding import Finding
from khms.model.receipt import APPROVED
from khms.model.redact import redact
from khms.pipeline import authority, checks
from khms.pipeline.aside import whereabouts
from khms.pipeline.authority import Attested
from khms.pipeline.changing import ABSORBED
from khms.pipeline.examination import Examined, examine
from khms.pipeline.record import approval_message, next_id, now, review_receipt
from khms.pipeline.ruling import SECOND, Wish
from khms.pipeline.seal import sealed
from khms.pipeline.transition import Desk
from khms.store import cards, files, inbox
from khms.store.catalogue import catalogue
from khms.store.commit import Transaction, exclusive
from khms.store.inbox import Unit
from khms.store.layout import NEXT_ID, Base
from khms.store.markdown import Unreadable
from khms.store.receipts import ledger, receipts_bytes, receipts_path
from khms.store.repo import Repo

Views = Callable[[Base, Mapping[str, Card]], dict[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Result:
    """`commit` is None where all that was named had been approved before (`already`: label -> id). `unneeded` are
    waivers of what passed; the record does not hold them. `changed` are the proposed changes that were made: (label,
    the card's id, its path)."""

    unit: str
    commit: str | None
    cards: tuple[tuple[str, str, str], ...] = ()
    transitions: tuple[Transition, ...] = ()
    already: Mapping[str, str] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    recovered: str = ""
    record: str = ""
    unneeded: tuple[str, ...] = ()
    changed: tuple[tuple[str, str, str], ...] = ()


def approved_labels(records: Sequence[Approval], unit: str) -> dict[str, str]:
    """label -> id of what earlier approvals took from this unit."""
    return {card.label: card.id for record in records if record.unit == unit for card in record.cards}


def made_changes(base: Base, unit: Unit) -> dict[str, str]:
    """label -> the card's id of each proposed change of the unit that was approved, as the receipts tell it."""
    if not any(candidate.change for candidate in unit.candidates):
        return {}
    said = ledger(base).reviewed().items()
    made = {label: r.reason for (path, label), r in said if path == unit.path and r.verdict == APPROVED}
    return {c.label: made[c.label] for c in unit.candidates if c.change and c.label in made}


def pending(base: Base, unit: Unit, records: Sequence[Approval]) -> list[Candidate]:
    """The unit's candidates that still await a decision. In a folder a candidate that was refused or put off has been
    moved away, so one that stands there again was rescued; a single file keeps all, and receipts tell."""
    done = {*approved_labels(records, unit.path), *made_changes(base, unit)}
    if unit.single:
        done |= {label for (path, label) in ledger(base).reviewed() if path == unit.path}
    return [candidate for candidate in unit.candidates if candidate.label not in done]


def approve(
    base: Base,
    repo: Repo,
    config: Config,
    name: str,
    wish: Wish,
    views: Views,
    *,
    attested: Attested | None = None,
) -> Result:
    """Approves candidates of the unit `name`; `attested` is a git host's word for who did. Raises Usage without labels,
    Refused with every fault named (nothing was changed then), Unavailable without an identity, Busy while another holds
    the lock."""
    with exclusive(repo, f"approval of {name}") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        unit = inbox.find(base, name)
        records = cards.approvals(base)
        ids = approved_labels(records, unit.path)
        already = {**ids, **made_changes(base, unit)}
        chosen = _choose(base, unit, records, wish, already)
        _demand_meant(chosen, already, wish)
        if not chosen:
            return Result(unit.name, None, already=already, recovered=recovered)
        reviewer = authority.reviewer(repo, config, attested=attested)
        receiving = authority.demand_branch(repo, config, here=wish.here)
        authority.demand_calm(repo)
        known = catalogue(base)
        first = cards.greatest_id(known.paths, records) + 1
        found = examine(base, config, unit, chosen, wish, known, first, ids)
        if found.faults:
            raise _refusal(found.faults)
        desk = found.desk
        made = [
            sealed(base, repo, config, record, ask=attested is None)
            for record in _records(unit, found, records, reviewer, repo.head())
        ]
        changes = _changes(base, unit, chosen, desk, made)
        if receiving:
            changes.update(views(base, {**known.cards, **desk.cards()}))
        commit = _commit(tx, changes, made, desk, unit, attested)
    return Result(
        unit=unit.name,
        commit=commit,
        cards=tuple((a.label, a.id, desk.card(a.id).path) for a in found.approved),
        transitions=tuple(desk.transitions),
        already=already,
        unchecked=found.unchecked,
        recovered=recovered,
        record=made[0].id,
        unneeded=found.ruling.unneeded(),
        changed=tuple((c.label, c.change.card, desk.card(c.change.card).path) for c in chosen if c.change),
    )


def _records(
    unit: Unit, found: Examined, records: Sequence[Approval], reviewer: str, head: str | None
) -> Iterator[Approval]:
    """The record of the cards that come in, then the one of the changes, each where there are any."""
    at, first = now(), next_id(records)
    coming, later = found.desk.transitions[: found.entering], found.desk.transitions[found.entering :]
    waivers = found.ruling.waivers()
    fresh = {card.label for card in found.approved}
    if found.approved:
        own = tuple(waiver for waiver in waivers if waiver.label in fresh)
        record = Approval(first, unit.path, reviewer, at, head, found.approved, tuple(coming), own)
        yield record
        first = next_id([*records, record])
    if later:
        own = tuple(waiver for waiver in waivers if waiver.label not in fresh)
        yield Approval(first, "", reviewer, at, head, (), tuple(later), own)


def _choose(
    base: Base, unit: Unit, records: Sequence[Approval], wish: Wish, already: Mapping[str, str]
) -> list[Candidate]:
    """The candidates to let in, in the order of their labels. Those approved before are left out."""
    waiting = pending(base, unit, records)
    shown = ", ".join(candidate.label for candidate in waiting) or "none"
    if not wish.everything and not wish.labels:
        raise Usage(
            f"which candidates of {unit.name}? pending: {shown}", hint=f"khms approve {unit.name} LABEL…  or  --all"
        )
    if wish.everything:
        if unit.broken:
            raise _refusal([_finding(problem) for problem in unit.broken])
        demand_unique(unit)
        return waiting
    unknown = [label for label in wish.labels if unit.candidate(label) is None and label not in already]
    if unknown:
        broken = [_finding(problem) for problem in unit.broken]
        raise Refused(
            f"{unit.name} has no candidate {', '.join(unknown)}",
            where="\n".join(map(str, broken)),
            hint="\n".join([*whereabouts(base, unit, unknown), f"pending: {shown}"]),
        )
    demand_unique(unit)
    open_labels = {candidate.label for candidate in waiting}
    gone = [label for label in wish.labels if label not in already and label not in open_labels]
    if gone:
        told = [*whereabouts(base, unit, gone), f"pending: {shown}"]
        raise Refused(f"{', '.join(gone)} was already refused or put off", where=unit.path, hint="\n".join(told))
    return [candidate for candidate in waiting if candidate.label in wish.labels]


def _demand_meant(chosen: Sequence[Candidate], already: Mapping[str, str], wish: Wish) -> None:
    """Raises Usage where the reviewer names a check or a label that this approval does not have: a slip of the pen must
    not pass for a decision."""
    accepted = [name.partition(":") for name in wish.accepted]
    named = {*(check for check, _, _ in accepted), *(check for check, _ in wish.waived)}
    strange = sorted(named - checks.CHECKS.keys() - {SECOND, ABSORBED})
    if strange:
        raise Usage(f"there is no check {', '.join(strange)}", hint="checks: " + ", ".join((*checks.CHECKS, ABSORBED)))
    here = [c.label for c in chosen] + [label for label in already if wish.everything or label in wish.labels]
    spoken = {*wish.relations, *(label for _, label in wish.waived), *(label for _, _, label in accepted if label)}
    stray = sorted(spoken - set(here), key=inbox.label_order)
    if stray:
        raise Usage(f"{', '.join(stray)} is not among what is approved here", hint=f"these are: {', '.join(here)}")


def demand_unique(unit: Unit) -> None:
    labels = [candidate.label for candidate in unit.candidates]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise Refused(
            f"two candidates have the label {', '.join(twice)}", where=unit.path, hint="give one of them another label"
        )


def _finding(problem: Unreadable) -> Finding:
    return Finding("KH001", "error", problem.path, problem.line, problem.message, problem.mend)


class Faulty(Refused):
    """Candidates that cannot come in; `faults` is what stands against them."""

    def __init__(self, message: str, faults: Sequence[Finding], *, hint: str = "", where: str = "") -> None:
        super().__init__(message, hint=hint, where=where)
        self.faults = tuple(faults)


def _refusal(findings: Sequence[Finding]) -> Faulty:
    """All faults in one refusal; a key in a candidate is not shown again."""
    listed = redact("\n".join(str(finding) for finding in dict.fromkeys(findings)))
    count = "one fault" if len(findings) == 1 else f"{len(findings)} faults"
    hint = "mend them (or leave those candidates out)"
    return Faulty(f"{count}; nothing was approved", findings, where=listed, hint=hint)


def _changes(
    base: Base, unit: Unit, chosen: Sequence[Candidate], desk: Desk, made: Sequence[Approval]
) -> dict[str, bytes | None]:
    changes = desk.changes()
    for path in {candidate.path for candidate in chosen}:
        changes[path] = files.read(base.path(path))
    for record in made:
        changes[cards.approval_path(record.id)] = record.file_bytes()
        label_of = {card.label: card.id for card in record.cards}
        if not record.unit:
            label_of = {c.label: c.change.card for c in chosen if c.change}
        receipts = [
            review_receipt(c.mark, APPROVED, record.id, unit.path, c.label, label_of[c.label], record.at)
            for c in chosen
            if c.label in label_of
        ]
        changes[receipts_path(record.id)] = receipts_bytes(receipts)
    counter = base.path(NEXT_ID)
    fresh = [id_number(card.id) for record in made for card in record.cards]
    if fresh and counter.is_file():
        following = max(fresh) + 1
        newline = b"\n" if files.read(counter).endswith(b"\n") else b""
        changes[NEXT_ID] = str(following).encode() + newline
    return changes


def _commit(
    tx: Transaction,
    changes: dict[str, bytes | None],
    made: Sequence[Approval],
    desk: Desk,
    unit: Unit,
    attested: Attested | None,
) -> str:
    titles = {card.id: desk.card(card.id).title for record in made for card in record.cards}
    message = approval_message(made, unit.path, titles)
    message += f"Khms-Request: {attested.request}\n" if attested else ""
    return tx.commit(changes, message, what=f"approval of {unit.name}", user_hooks=True)
