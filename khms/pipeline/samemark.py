"""One MARK, one card. Two clones may decide the same MARK before either hears of the other; of their proposals the
earlier counts, and what was made of the later one is put aside unless a reviewer touched it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from khms.model.candidate import Candidate
from khms.model.outcome import FAIL, Outcome
from khms.model.receipt import Receipt
from khms.model.verdict import CORRECT, NEW
from khms.pipeline.record import next_id, now, review_receipt
from khms.pipeline.ruling import SECOND
from khms.store import files
from khms.store.receipts import receipts_bytes, receipts_path

if TYPE_CHECKING:
    from khms.pipeline.replay import Replay

_MAKING = (NEW, CORRECT)


def carded(receipts: Iterable[Receipt]) -> dict[str, Receipt]:
    """MARK -> the receipt of the first card that was made of it."""
    found: dict[str, Receipt] = {}
    for receipt in receipts:
        if receipt.stage == "review" and receipt.verdict == "approved" and receipt.mark:
            found.setdefault(receipt.mark, receipt)
    return found


def outcomes(chosen: Sequence[Candidate], receipts: Iterable[Receipt]) -> dict[str, Outcome]:
    """label -> what is wrong with a candidate whose MARK has a card already, or gets one by another candidate of the
    same approval."""
    taken = {mark: f"{held.reason} ({held.unit} {held.label})" for mark, held in carded(receipts).items()}
    found = {}
    for candidate in chosen:
        if candidate.mark and candidate.mark in taken:
            said = f"its MARK {candidate.mark} became {taken[candidate.mark]} already"
            found[candidate.label] = Outcome(SECOND, candidate.label, FAIL, said, waivable=True)
        elif candidate.mark:
            taken[candidate.mark] = f"{candidate.label} of this approval"
    return found


def settle(work: "Replay") -> None:
    """Puts aside, in a commit of its own on the tip, the untouched candidates of MARKs that others decided first."""
    from khms.pipeline.replay import Left

    tip = work.tip
    receipts = tip.receipts()
    made = [r for r in receipts if r.stage == "propose" and r.verdict in _MAKING and r.mark and r.unit and r.label]
    decided: dict[str, list[Receipt]] = {}
    for receipt in made:
        decided.setdefault(receipt.mark, []).append(receipt)
    done = {(record.unit, card.label): card.id for record in tip.records for card in record.cards}
    reviewed = {(r.unit, r.label) for r in receipts if r.stage == "review"}
    cards = carded(receipts)
    changes: dict[str, bytes | None] = {}
    aside: list[Left] = []
    kept: list[Receipt] = []
    run, at = next_id(tip.records), now()
    for mark, rivals in sorted(decided.items()):
        if len({receipt.run for receipt in rivals}) < 2:
            continue
        first = min(rivals, key=lambda receipt: (receipt.at, receipt.run))
        card = cards.get(mark)
        for rival in rivals:
            place = (rival.unit, rival.label)
            if place in done or place in reviewed or (rival is first and card is None):
                continue
            path = f"{rival.unit}/{rival.label}.md"
            data = tip.read(path)
            if data is None or not _untouched(work, rival, data):
                continue
            other = card.reason if card else f"{first.unit} {first.label}"
            said = f"{other} came of the same MARK {mark}, decided {first.at}"
            changes |= {path: None, f"{rival.unit}/dropped/{rival.label}.md": data}
            kept.append(review_receipt(mark, SECOND, run, rival.unit, rival.label, said, at))
            aside.append(Left(rival.unit, rival.label, "", SECOND, said, card.reason if card else ""))
    if not kept:
        return
    changes[receipts_path(run)] = receipts_bytes(kept)
    names = "\n".join(f"{one.unit} {one.label}: {one.reason}" for one in aside)
    count = f"{len(kept)} candidate{'s' if len(kept) > 1 else ''}"
    prefix = work.repo.prefix
    done_now = tip.take({prefix + path: None if data is None else ("100644", data) for path, data in changes.items()})
    tip.close(done_now, f"Put aside {count} of MARKs that were decided before\n\n{names}\n".encode(), None)
    work.left += aside
    work.count += 1


def _untouched(work: "Replay", rival: Receipt, data: bytes) -> bool:
    """Whether the candidate is as its run published it, by the hashes that the unit keeps."""
    try:
        held = files.parse_json(work.tip.read(f"{rival.unit}/unit.json") or b"{}")
        return bool(held["files"][f"{rival.label}.md"] == hashlib.sha256(data).hexdigest())
    except (ValueError, LookupError, TypeError):
        return False
