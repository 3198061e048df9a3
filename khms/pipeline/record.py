"""What every recorded act of a reviewer shares: its time and its receipts."""

import datetime
import time
from collections.abc import Iterable, Mapping, Sequence

from khms.model.approval import Approval
from khms.model.receipt import Receipt
from khms.model.ulid import is_ulid, new_ulid, ulid_milliseconds


def now() -> str:
    """This moment, ISO 8601 with zone, to the second."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def review_receipt(mark: str, verdict: str, run: str, unit: str, label: str, reason: str, at: str) -> Receipt:
    return Receipt(mark, "review", verdict, run, unit, label, reason, at)


def next_id(records: Iterable[Approval]) -> str:
    """A record's id that sorts after all that are there: transitions count in the order of their records, and another
    machine's clock may be ahead of this one's."""
    latest = max((ulid_milliseconds(record.id) for record in records if is_ulid(record.id)), default=0)
    return new_ulid(max(int(time.time() * 1000), latest + 1))


def approval_message(records: Sequence[Approval], path: str, titles: Mapping[str, str]) -> str:
    """The commit message of an approval of candidates of the unit at `path`; `titles` maps the ids of its new cards to
    their titles. A record without a unit is the one of the changes that were proposed beside them."""
    approved = [card for record in records for card in record.cards]
    changes = [(record.unit, t) for record in records for t in record.transitions if t.field == "status"]
    proposed = sum(not unit for unit, _ in changes)
    counts = [(len(approved), "card"), (proposed, "change")]
    shown = " and ".join(f"{n} {what}{'s' if n > 1 else ''}" for n, what in counts if n)
    lines = [f"Approve {shown} from {path.rpartition('/')[2].removesuffix('.md')}", ""]
    lines += [f"{card.id} {titles[card.id]}" for card in approved]
    lines += [f"{t.id} {t.field}: {t.old or 'none'} -> {t.new}" for _, t in changes]
    lines += ["", *(f"Khms-Approved: {card.id}" for card in approved)]
    lines += [f"Khms-Transition: {t.id} {t.old} {t.new}" for unit, t in changes if not unit]
    lines += [f"Khms-Unit: {path}", f"Khms-Reviewer: {records[0].reviewer}"]
    return "\n".join(lines) + "\n"
