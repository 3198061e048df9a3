"""Approval: the one way into memory/know. All of the named candidates come in, in one commit, or nothing changes.

Everything is checked before an id is given. The proof, who let which bytes in, is a file of the same commit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from khms.config import Config
from khms.errors import KhmsError, Refused, Usage
from khms.model.approval import Approval, Approved, Transition, Waiver, candidate_sha256, card_sha256
from khms.model.candidate import RELATION_KINDS, Candidate, Relation
from khms.model.card import Card, Links, id_number, id_text
from khms.model.finding import Finding
from khms.model.outcome import Outcome
from khms.model.redact import redact
from khms.model.ulid import new_ulid
from khms.pipeline import authority, carding, checks, form
from khms.pipeline.duplicates import Claims
from khms.pipeline.form import fault
from khms.pipeline.record import now, review_receipt
from khms.pipeline.transition import Desk, follow
from khms.store import cards, files, inbox
from khms.store.catalogue import Catalogue, catalogue
from khms.store.commit import Transaction, exclusive
from khms.store.inbox import Unit
from khms.store.layout import NEXT_ID, Base
from khms.store.markdown import Unreadable
from khms.store.receipts import ledger, receipts_bytes, receipts_path
from khms.store.repo import Repo

SETTLING = "new|supports:K-…|contradicts:K-…|supersedes:K-…"
Views = Callable[[Base, Mapping[str, Card]], dict[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What the reviewer said: which labels (or `everything` that is pending), and what they settle on the way.

    `relations` maps a label to `KIND` or `KIND:K-…`; `waived` holds (check, label); `accepted` names checks that may
    stay not run; `unjudged` lets candidates in whose relation nobody judged; `why` is the reason of a
    waiver or of a correction; `here` approves on the branch at hand.
    """

    labels: tuple[str, ...] = ()
    everything: bool = False
    relations: Mapping[str, str] = field(default_factory=dict)
    unjudged: bool = False
    accepted: frozenset[str] = frozenset()
    waived: frozenset[tuple[str, str]] = frozenset()
    why: str = ""
    here: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """`commit` is None where all that was named had been approved before (`already`: label -> id). `unneeded` are
    waivers of what passed; the record does not hold them."""

    unit: str
    commit: str | None
    cards: tuple[tuple[str, str, str], ...] = ()
    transitions: tuple[Transition, ...] = ()
    already: Mapping[str, str] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    recovered: str = ""
    record: str = ""
    unneeded: tuple[str, ...] = ()


@dataclass
class Ruling:
    """What a reviewer may let pass, and what of it was called for. `waive` notes each use."""

    waived: frozenset[tuple[str, str]]
    used: set[tuple[str, str]] = field(default_factory=set)

    def waive(self, check: str, label: str) -> bool:
        if (check, label) not in self.waived:
            return False
        self.used.add((check, label))
        return True

    def unneeded(self) -> tuple[str, ...]:
        return tuple(f"{check}:{label}" for check, label in sorted(self.waived - self.used))


def approved_labels(records: Sequence[Approval], unit: str) -> dict[str, str]:
    """label -> id of what earlier approvals took from this unit."""
    return {card.label: card.id for record in records if record.unit == unit for card in record.cards}


def pending(base: Base, unit: Unit, records: Sequence[Approval]) -> list[Candidate]:
    """The unit's candidates that still await a decision. In a folder a candidate that was refused or put off has been
    moved away, so one that stands there again was rescued; a single file keeps all, and receipts tell."""
    done = set(approved_labels(records, unit.path))
    if unit.single:
        done |= {label for (path, label) in ledger(base).reviewed() if path == unit.path}
    return [candidate for candidate in unit.candidates if candidate.label not in done]


def approve(base: Base, repo: Repo, config: Config, name: str, wish: Wish, views: Views) -> Result:
    """Approves candidates of the unit `name`. Raises Usage without labels, Refused with every fault named (nothing was
    changed then), Unavailable without an identity, Busy while another holds the lock."""
    with exclusive(repo, f"approval of {name}") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        unit = inbox.find(base, name)
        records = cards.approvals(base)
        already = approved_labels(records, unit.path)
        chosen = _choose(base, unit, records, wish, already)
        _demand_meant(chosen, already, wish)
        if not chosen:
            return Result(unit.name, None, already=already, recovered=recovered)
        reviewer = authority.reviewer(repo, config)
        receiving = authority.demand_branch(repo, config, here=wish.here)
        authority.demand_calm(repo)
        known = catalogue(base)
        relations = {c.label: carding.settled(c, wish.relations.get(c.label), wish.why) for c in chosen}
        ruling = Ruling(wish.waived)
        faults, unchecked = _verify(base, config, unit, chosen, relations, known, wish, ruling)
        desk = Desk(base)
        sound = _sound(relations, faults)
        approved, more = _make(desk, chosen, sound, cards.greatest_id(base, records) + 1, already)
        faults += more
        if not more:
            faults += _lint(base, config, desk, known.cards, _made_of(approved, chosen), ruling)
        if faults:
            raise _refusal(faults)
        waivers = tuple(Waiver(check, label, wish.why) for check, label in sorted(ruling.used))
        record = Approval(
            id=new_ulid(),
            unit=unit.path,
            reviewer=reviewer,
            at=now(),
            parent=repo.head(),
            cards=tuple(approved),
            transitions=tuple(desk.transitions),
            waivers=waivers,
        )
        changes = _changes(base, unit, chosen, desk, record)
        if receiving:
            changes.update(views(base, {**known.cards, **desk.cards()}))
        commit = _commit(tx, changes, record, desk, unit)
    made = tuple((a.label, a.id, desk.card(a.id).path) for a in approved)
    told = ruling.unneeded()
    return Result(unit.name, commit, made, record.transitions, already, unchecked, recovered, record.id, told)


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
        _demand_unique(unit)
        return waiting
    unknown = [label for label in wish.labels if unit.candidate(label) is None and label not in already]
    if unknown:
        broken = [_finding(problem) for problem in unit.broken]
        raise Refused(
            f"{unit.name} has no candidate {', '.join(unknown)}",
            where="\n".join(map(str, broken)),
            hint=f"pending: {shown}",
        )
    _demand_unique(unit)
    open_labels = {candidate.label for candidate in waiting}
    gone = [label for label in wish.labels if label not in already and label not in open_labels]
    if gone:
        raise Refused(f"{', '.join(gone)} was already refused or put off", where=unit.path, hint=f"pending: {shown}")
    return [candidate for candidate in waiting if candidate.label in wish.labels]


def _demand_meant(chosen: Sequence[Candidate], already: Mapping[str, str], wish: Wish) -> None:
    """Raises Usage where the reviewer names a check or a label that this approval does not have: a slip of the pen must
    not pass for a decision."""
    named = {*wish.accepted, *(check for check, _ in wish.waived)}
    strange = sorted(named - checks.CHECKS.keys())
    if strange:
        raise Usage(f"there is no check {', '.join(strange)}", hint="checks: " + ", ".join(checks.CHECKS))
    here = [c.label for c in chosen] + [label for label in already if wish.everything or label in wish.labels]
    spoken = {*wish.relations, *(label for _, label in wish.waived)}
    stray = sorted(spoken - set(here), key=inbox.label_order)
    if stray:
        raise Usage(f"{', '.join(stray)} is not among what is approved here", hint=f"these are: {', '.join(here)}")


def _demand_unique(unit: Unit) -> None:
    labels = [candidate.label for candidate in unit.candidates]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise Refused(
            f"two candidates have the label {', '.join(twice)}", where=unit.path, hint="give one of them another label"
        )


def _finding(problem: Unreadable) -> Finding:
    return Finding("KH001", "error", problem.path, problem.line, problem.message, problem.mend)


def _refusal(findings: Sequence[Finding]) -> Refused:
    """All faults in one refusal; a key in a candidate is not shown again."""
    listed = redact("\n".join(str(finding) for finding in dict.fromkeys(findings)))
    count = "one fault" if len(findings) == 1 else f"{len(findings)} faults"
    return Refused(f"{count}; nothing was approved", where=listed, hint="mend them (or leave those candidates out)")


def _verify(
    base: Base,
    config: Config,
    unit: Unit,
    chosen: Sequence[Candidate],
    relations: Mapping[str, Relation],
    known: Catalogue,
    wish: Wish,
    ruling: Ruling,
) -> tuple[list[Finding], tuple[str, ...]]:
    """Runs every check again on the bytes at hand: what fails and is not waived, and what was accepted unchecked."""
    faults: list[Finding] = []
    unchecked = []
    claims = Claims(known.claims)
    for candidate in chosen:
        relation = relations[candidate.label]
        faults += form.faults(candidate, single=unit.single)
        faults += _unjudged(unit, candidate, relation, wish)
        for outcome in checks.examine(base, unit, candidate, relation, known.cards, claims, config):
            if outcome.state == "pass":
                continue
            waived = outcome.waivable and ruling.waive(outcome.check, candidate.label)
            if outcome.state == "fail" and not waived:
                faults.append(fault(candidate, outcome.check, outcome.message, _mend(outcome, relation)))
            elif outcome.state == "not-run" and outcome.check not in wish.accepted and not waived:
                mend = f"--accept-unchecked {outcome.check}"
                faults.append(fault(candidate, outcome.check, f"not checked: {outcome.message}", mend))
            elif outcome.state == "not-run":
                unchecked.append(f"{candidate.label} {outcome.check}: {outcome.message}")
    return faults, tuple(unchecked)


def _mend(outcome: Outcome, relation: Relation) -> str:
    """How the reviewer can go on from a failed check."""
    if outcome.check == "relations" and relation.kind not in RELATION_KINDS:
        return "one of: " + ", ".join(RELATION_KINDS)
    if outcome.waivable:
        return f"--waive {outcome.check}:{outcome.label} --why …"
    return f"--relation {outcome.label}={SETTLING}" if outcome.check == "relations" else ""


def _unjudged(unit: Unit, candidate: Candidate, relation: Relation, wish: Wish) -> list[Finding]:
    if relation.kind != "unjudged" or wish.unjudged or (unit.single and candidate.label not in wish.relations):
        return []
    near = ", ".join(candidate.nearest) or "no card"
    mend = f"--relation {candidate.label}={SETTLING}  or  --unjudged"
    return [fault(candidate, "relations", f"nobody judged its relation (nearest: {near})", mend)]


def _sound(relations: Mapping[str, Relation], faults: Sequence[Finding]) -> dict[str, Relation]:
    """The relations to make cards with. One that has a fault already is left out, or it would be told again in the
    words of whatever stumbles over it next."""
    told = {finding.code for finding in faults}
    return {label: Relation() if f"{label} relations:" in told else held for label, held in relations.items()}


def _make(
    desk: Desk,
    chosen: Sequence[Candidate],
    relations: Mapping[str, Relation],
    first: int,
    already: Mapping[str, str],
) -> tuple[list[Approved], list[Finding]]:
    """Gives ids from `first` on, lays the cards on the desk and follows their edges; returns them and every fault."""
    fresh = {candidate.label: id_text(first + i) for i, candidate in enumerate(chosen)}
    ids = {**already, **fresh}
    faults: list[Finding] = []
    approved = []
    for candidate in chosen:
        if not candidate.title:
            faults.append(fault(candidate, "title", "an approved card has a title", "add `title:` to it"))
            continue
        try:
            made = carding.make(candidate, fresh[candidate.label], relations[candidate.label], ids)
        except KhmsError as error:
            faults.append(fault(candidate, "form", error.message, error.hint))
            continue
        tangled = _tangles(candidate, made.links, fresh)
        if tangled:
            faults += tangled
            continue
        desk.put(made.id, made.text)
        seen = candidate_sha256(candidate.text.encode("utf-8"))
        approved.append(Approved(made.id, candidate.label, seen, card_sha256(made.data)))
    by_label = {candidate.label: candidate for candidate in chosen}
    for card in [] if faults else approved:
        try:
            follow(desk, card.id)
        except KhmsError as error:
            faults.append(fault(by_label[card.label], "relations", error.message, error.hint))
    return approved, faults


def _tangles(candidate: Candidate, links: Links, fresh: Mapping[str, str]) -> list[Finding]:
    """Edges that no new card can have: to itself, and to replace another that comes in with it."""
    labels = {card_id: label for label, card_id in fresh.items()}
    found = []
    for name, target in links.edges():
        label = labels.get(target)
        if label == candidate.label:
            said = f"its links.{name} names itself"
        elif label and name == "supersedes":
            said = f"it supersedes {label}, which comes in with it: leave {label} out instead"
        else:
            continue
        found.append(fault(candidate, "relations", said, "take that link out", form.line_of(candidate, "links")))
    return found


def _made_of(approved: Sequence[Approved], chosen: Sequence[Candidate]) -> dict[str, Candidate]:
    """Each new card's path with the candidate that it is made of."""
    by_label = {candidate.label: candidate for candidate in chosen}
    return {cards.know_path(card.id): by_label[card.label] for card in approved}


def _lint(
    base: Base,
    config: Config,
    desk: Desk,
    known: Mapping[str, Card],
    made: Mapping[str, Candidate],
    ruling: Ruling,
) -> list[Finding]:
    """Every lint rule of severity error over the cards as they shall be, told at the place in the candidate (`made`
    maps a card's path to it); findings elsewhere refuse nothing."""
    from khms.check import lint

    changes = desk.changes()
    faults = []
    for finding in lint.proposed(base, config, changes, known):
        candidate = made.get(finding.path)
        if finding.severity != "error":
            continue
        if not (candidate and finding.code == "KH014" and ruling.waive("screening", candidate.label)):
            faults.append(_at_candidate(finding, candidate, changes[finding.path]) if candidate else finding)
    return faults


def _at_candidate(finding: Finding, candidate: Candidate, card: bytes | None) -> Finding:
    """The finding of a card that is not there yet, at the same line of the candidate it is made of."""
    rows = (card or b"").decode("utf-8").split("\n")
    row = rows[finding.line - 1] if 0 < finding.line <= len(rows) else ""
    lines = candidate.text.split("\n")
    above = candidate.text[: len(candidate.text) - len(candidate.body)].count("\n") + 1
    line = lines.index(row) + 1 + candidate.body_line - above if row in lines else candidate.body_line
    return replace(finding, code=f"{candidate.label} {finding.code}", path=candidate.path, line=line)


def _changes(
    base: Base, unit: Unit, chosen: Sequence[Candidate], desk: Desk, record: Approval
) -> dict[str, bytes | None]:
    changes = desk.changes()
    for path in {candidate.path for candidate in chosen}:
        changes[path] = files.read(base.path(path))
    changes[cards.approval_path(record.id)] = record.file_bytes()
    label_of = {card.label: card.id for card in record.cards}
    receipts = [
        review_receipt(c.mark, "approved", record.id, unit.path, c.label, label_of[c.label], record.at) for c in chosen
    ]
    changes[receipts_path(record.id)] = receipts_bytes(receipts)
    counter = base.path(NEXT_ID)
    if counter.is_file():
        following = max(id_number(card.id) for card in record.cards) + 1
        newline = b"\n" if files.read(counter).endswith(b"\n") else b""
        changes[NEXT_ID] = str(following).encode() + newline
    return changes


def _commit(tx: Transaction, changes: dict[str, bytes | None], record: Approval, desk: Desk, unit: Unit) -> str:
    count = len(record.cards)
    lines = [f"Approve {count} card{'s' if count > 1 else ''} from {unit.name}", ""]
    lines += [f"{card.id} {desk.card(card.id).title}" for card in record.cards]
    lines += [f"{t.id} {t.field}: {t.old or 'none'} -> {t.new}" for t in record.transitions if t.field == "status"]
    lines += ["", *(f"Khms-Approved: {card.id}" for card in record.cards)]
    lines += [f"Khms-Unit: {unit.path}", f"Khms-Reviewer: {record.reviewer}"]
    return tx.commit(changes, "\n".join(lines) + "\n", what=f"approval of {unit.name}", user_hooks=True)
