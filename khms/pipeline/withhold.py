"""`khms reject` and `khms defer`: candidates leave the unit's front, whole, each with a receipt, in one commit."""

from collections.abc import Sequence
from dataclasses import dataclass

from khms.config import Config
from khms.errors import Refused, Usage
from khms.model.candidate import Candidate
from khms.model.ulid import new_ulid
from khms.pipeline import authority, form
from khms.pipeline.approve import pending
from khms.pipeline.record import now, review_receipt
from khms.store import cards, files, inbox
from khms.store.commit import exclusive
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import ledger, receipts_bytes, receipts_path
from khms.store.repo import Repo

FOLDERS = {"rejected": "dropped", "deferred": "deferred"}


@dataclass(frozen=True, slots=True)
class Withheld:
    """`moved` holds (label, new path); `already` the labels that an earlier call withheld the same way."""

    unit: str
    commit: str | None
    moved: tuple[tuple[str, str], ...] = ()
    already: tuple[str, ...] = ()
    recovered: str = ""


def withhold(
    base: Base, repo: Repo, config: Config, name: str, labels: Sequence[str], verdict: str, why: str
) -> Withheld:
    """Moves candidates to `dropped/` (verdict rejected) or `deferred/`; no labels means all that are pending. Raises
    Usage without a reason for a rejection, Refused for labels that are not pending."""
    if verdict == "rejected" and not why.strip():
        raise Usage("a rejection needs its reason", hint="--why 'what is wrong with it'")
    with exclusive(repo, f"{verdict} of {name}") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        reviewer = authority.reviewer(repo, config)
        unit = inbox.find(base, name)
        waiting = {candidate.label: candidate for candidate in pending(base, unit, cards.approvals(base))}
        before = _withheld(base, unit, verdict)
        unknown = [label for label in labels if label not in waiting and label not in before]
        if unknown:
            shown = ", ".join(waiting) or "none"
            raise Refused(
                f"{', '.join(unknown)} is not pending in {unit.name}", where=unit.path, hint=f"pending: {shown}"
            )
        chosen = [waiting[label] for label in (labels or list(waiting)) if label in waiting]
        already = tuple(label for label in labels if label in before and label not in waiting)
        if not chosen:
            return Withheld(unit.name, None, (), already or tuple(before), recovered)
        run, at = new_ulid(), now()
        changes: dict[str, bytes | None] = {}
        moved = []
        for candidate in chosen:
            path = _target(unit, candidate, verdict)
            moved.append((candidate.label, path))
            if path != candidate.path:
                changes[candidate.path] = None
                changes[path] = files.read(base.path(candidate.path))
        receipts = [review_receipt(form.mark_of(c), verdict, run, unit.path, c.label, why, at) for c in chosen]
        changes[receipts_path(run)] = receipts_bytes(receipts)
        names = ", ".join(candidate.label for candidate in chosen)
        verb = {"rejected": "Reject", "deferred": "Defer"}[verdict]
        message = f"{verb} {names} of {unit.name}\n\n{why}\n\nKhms-Unit: {unit.path}\nKhms-Reviewer: {reviewer}\n"
        commit = tx.commit(changes, message, what=f"{verdict} of {unit.name}", user_hooks=True)
    return Withheld(unit.name, commit, tuple(moved), already, recovered)


def _target(unit: Unit, candidate: Candidate, verdict: str) -> str:
    """Where the candidate goes. A single-file unit keeps its text; there the receipt alone tells."""
    return candidate.path if unit.single else f"{unit.path}/{FOLDERS[verdict]}/{candidate.label}.md"


def _withheld(base: Base, unit: Unit, verdict: str) -> list[str]:
    reviewed = ledger(base).reviewed()
    return [label for (path, label), receipt in reviewed.items() if path == unit.path and receipt.verdict == verdict]
