"""`khms unreject`: a refusal is taken back. The candidate returns to the unit's front, pending again, and what says the
same is withheld no longer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from khms.config import Config
from khms.errors import Refused, Usage
from khms.model.receipt import REJECTED, UNREJECTED, Receipt
from khms.model.ulid import new_ulid
from khms.pipeline import authority
from khms.pipeline.record import now, review_receipt
from khms.pipeline.refusals import unit_name
from khms.pipeline.withhold import FOLDERS
from khms.store import files, inbox
from khms.store.commit import exclusive
from khms.store.inbox import label_order, unit_path
from khms.store.layout import Base
from khms.store.receipts import Ledger, ledger, receipts_bytes, receipts_path
from khms.store.repo import Repo


@dataclass(frozen=True, slots=True)
class Unrejected:
    """`moved` holds (label, path) of candidates that are pending again; `gone` the labels whose file is no longer there
    (git keeps it); `already` those that an earlier call took back."""

    unit: str
    commit: str | None
    moved: tuple[tuple[str, str], ...] = ()
    gone: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    recovered: str = ""


@dataclass
class _Step:
    changes: dict[str, bytes | None] = field(default_factory=dict)
    moved: list[tuple[str, str]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def unreject(
    base: Base, repo: Repo, config: Config, name: str, labels: Sequence[str], why: str, *, here: bool = False
) -> Unrejected:
    """Takes the refusal of these labels back, in one commit with a receipt each. Raises Usage without labels, Refused
    for labels that no reviewer refused, and where the place in front is taken by another text."""
    with exclusive(repo, f"unreject of {name}") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        reviewer = authority.reviewer(repo, config)
        authority.demand_branch(repo, config, here=here)
        authority.demand_idle(repo)
        held = ledger(base)
        unit = _unit(base, held, name)
        rejected = {label: r for (path, label), r in held.reviewed().items() if path == unit and r.verdict == REJECTED}
        shown = ", ".join(sorted(rejected, key=label_order)) or "none"
        if not labels:
            raise Usage(
                f"which candidates of {unit_name(unit)}? refused: {shown}",
                hint=f"khms unreject {unit_name(unit)} LABEL…",
            )
        before = {r.label for r in held.receipts if r.unit == unit and r.verdict == UNREJECTED} - rejected.keys()
        unknown = [label for label in labels if label not in rejected and label not in before]
        if unknown:
            raise Refused(
                f"no reviewer refused {', '.join(unknown)} of {unit_name(unit)}",
                where=unit,
                hint=f"refused: {shown}. What a run withheld is brought back by moving its file out of dropped/",
            )
        chosen = [label for label in dict.fromkeys(labels) if label in rejected]
        already = tuple(label for label in dict.fromkeys(labels) if label not in rejected)
        if not chosen:
            return Unrejected(unit_name(unit), None, already=already, recovered=recovered)
        step = _Step()
        for label in chosen:
            _bring_back(base, unit, label, step)
        run, at = new_ulid(), now()
        receipts = [_receipt(rejected[label], run, why, at) for label in chosen]
        step.changes[receipts_path(run)] = receipts_bytes(receipts)
        lines = [f"Take the refusal of {', '.join(chosen)} of {unit_name(unit)} back", "", *([why, ""] if why else [])]
        message = "\n".join([*lines, f"Khms-Unit: {unit}", f"Khms-Reviewer: {reviewer}"]) + "\n"
        commit = tx.commit(step.changes, message, what=f"unreject of {unit_name(unit)}", user_hooks=True)
    return Unrejected(unit_name(unit), commit, tuple(step.moved), tuple(step.gone), already, recovered)


def _unit(base: Base, held: Ledger, name: str) -> str:
    """The unit's base path. One whose folder was cleared away is known by its receipts."""
    try:
        return inbox.find(base, name).path
    except Refused:
        stem = Path(name.rstrip("/")).name.removesuffix(".md")
        known = {receipt.unit for receipt in held.receipts if receipt.stage == "review"}
        for path in (unit_path(stem), f"{unit_path(stem)}.md"):
            if path in known:
                return path
        raise


def _bring_back(base: Base, unit: str, label: str, step: _Step) -> None:
    """Moves the file from dropped/ to the front. In a single-file unit, and for one that a reviewer moved by hand, the
    receipt alone tells."""
    if unit.endswith(".md"):
        if base.path(unit).exists():
            step.moved.append((label, unit))
        else:
            step.gone.append(label)
        return
    dropped, front = f"{unit}/{FOLDERS[REJECTED]}/{label}.md", f"{unit}/{label}.md"
    there, ahead = _bytes(base, dropped), _bytes(base, front)
    if there is None and ahead is None:
        step.gone.append(label)
        return
    step.moved.append((label, front))
    if there is None:
        return
    if ahead is not None and ahead != there:
        raise Refused(
            f"{label} stands in front of {unit_name(unit)} with another text than in dropped/",
            where=f"{front}\n{dropped}",
            hint="keep one of the two files, then run the command again",
        )
    step.changes[dropped] = None
    step.changes[front] = there


def _bytes(base: Base, path: str) -> bytes | None:
    try:
        return files.read_inside(base.root, path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _receipt(refused: Receipt, run: str, why: str, at: str) -> Receipt:
    return review_receipt(refused.mark, UNREJECTED, run, refused.unit, refused.label, why, at)
