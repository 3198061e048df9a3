"""`khms reject` and `khms defer`: candidates leave the unit's front, whole, each with a receipt, in one commit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from khms.config import Config
from khms.errors import Refused, Usage
from khms.model.candidate import Candidate
from khms.model.receipt import DEFERRED, REJECTED, Receipt
from khms.model.ulid import new_ulid
from khms.pipeline import authority, form
from khms.pipeline.approve import pending
from khms.pipeline.arriving import arriving
from khms.pipeline.aside import whereabouts
from khms.pipeline.record import now, review_receipt
from khms.pipeline.refusals import said
from khms.store import cards, files, inbox
from khms.store.commit import exclusive
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import ledger, receipts_bytes, receipts_path
from khms.store.repo import Repo

FOLDERS = {REJECTED: "dropped", DEFERRED: "deferred"}
_DEEDS = {REJECTED: "refusal", DEFERRED: "deferral"}  # as a message names them


@dataclass(frozen=True, slots=True)
class Withheld:
    """`moved` holds (label, new path); `already` the labels that an earlier call withheld the same way. `branch` is set
    where the unit was on a branch of its own only, which is no longer needed: the unit's name."""

    unit: str
    commit: str | None
    moved: tuple[tuple[str, str], ...] = ()
    already: tuple[str, ...] = ()
    recovered: str = ""
    branch: str = ""


def withhold(
    base: Base,
    repo: Repo,
    config: Config,
    name: str,
    labels: Sequence[str],
    verdict: str,
    why: str,
    *,
    here: bool = False,
) -> Withheld:
    """Moves candidates to `dropped/` (verdict rejected) or `deferred/`; no labels means all that are pending. What is
    rejected is remembered by its claim. A unit that is on a branch of its own only comes in with it, and so do its
    receipts: its MARKs stay decided when the branch goes. Raises Usage without a reason for a rejection, Refused for
    labels that are not pending, on another branch than the receiving one (unless `here`), and while git is in the
    middle of something."""
    if verdict == REJECTED and not why.strip():
        raise Usage("a rejection needs its reason", hint="--why 'what is wrong with it'")
    with exclusive(repo, f"{_DEEDS[verdict]} of {name}") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        reviewer = authority.reviewer(repo, config)
        authority.demand_branch(repo, config, here=here)
        authority.demand_idle(repo)
        new = arriving(base, repo, name, labels)
        unit = new.unit if new else inbox.find(base, name)
        waiting = {candidate.label: candidate for candidate in pending(base, unit, cards.approvals(base))}
        before = _withheld(base, unit, verdict)
        unknown = [label for label in labels if label not in waiting and label not in before]
        if unknown:
            shown = ", ".join(waiting) or "none"
            raise Refused(
                f"{', '.join(unknown)} is not pending in {unit.name}",
                where=unit.path,
                hint="\n".join([*whereabouts(base, unit, unknown), f"pending: {shown}"]),
            )
        chosen = [waiting[label] for label in (labels or list(waiting)) if label in waiting]
        already = tuple(label for label in labels if label in before and label not in waiting)
        if not chosen and not new:
            return Withheld(unit.name, None, (), already or tuple(before), recovered)
        run, at = new_ulid(), now()
        changes: dict[str, bytes | None] = {**new.files, **new.records} if new else {}
        moved = []
        for candidate in chosen:
            path = _target(unit, candidate, verdict)
            moved.append((candidate.label, path))
            if path != candidate.path:
                changes[path] = new.files[candidate.path] if new else files.read(base.path(candidate.path))
                changes[candidate.path] = None
        for problem in unit.broken if new else ():
            changes[f"{unit.path}/dropped/{problem.path.rpartition('/')[2]}"] = changes.pop(problem.path)
        receipts = [_receipt(c, verdict, run, unit, why, at) for c in chosen]
        if receipts:
            changes[receipts_path(run)] = receipts_bytes(receipts)
        names = ", ".join(candidate.label for candidate in chosen) or "what was left"
        verb = {REJECTED: "Reject", DEFERRED: "Defer"}[verdict]
        message = f"{verb} {names} of {unit.name}\n\n{why}\n\nKhms-Unit: {unit.path}\nKhms-Reviewer: {reviewer}\n"
        commit = tx.commit(changes, message, what=f"{_DEEDS[verdict]} of {unit.name}", user_hooks=True)
    return Withheld(unit.name, commit, tuple(moved), already, recovered, new.branch.unit if new else "")


def _receipt(candidate: Candidate, verdict: str, run: str, unit: Unit, why: str, at: str) -> Receipt:
    made = review_receipt(form.mark_of(candidate), verdict, run, unit.path, candidate.label, why, at)
    return replace(made, claim=said(candidate.says)) if verdict == REJECTED else made


def _target(unit: Unit, candidate: Candidate, verdict: str) -> str:
    """Where the candidate goes. A single-file unit keeps its text; there the receipt alone tells."""
    return candidate.path if unit.single else f"{unit.path}/{FOLDERS[verdict]}/{candidate.label}.md"


def _withheld(base: Base, unit: Unit, verdict: str) -> list[str]:
    reviewed = ledger(base).reviewed()
    return [label for (path, label), receipt in reviewed.items() if path == unit.path and receipt.verdict == verdict]
