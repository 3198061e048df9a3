"""What every recorded act of a reviewer shares: its time and its receipts."""

import datetime
import time
from collections.abc import Iterable, Mapping

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


def approval_message(record: Approval, titles: Mapping[str, str]) -> str:
    """The commit message of an approval; `titles` maps its cards' ids to their titles."""
    count = len(record.cards)
    unit = record.unit.rpartition("/")[2].removesuffix(".md")
    lines = [f"Approve {count} card{'s' if count > 1 else ''} from {unit}", ""]
    lines += [f"{card.id} {titles[card.id]}" for card in record.cards]
    lines += [f"{t.id} {t.field}: {t.old or 'none'} -> {t.new}" for t in record.transitions if t.field == "status"]
    lines += ["", *(f"Khms-Approved: {card.id}" for card in record.cards)]
    lines += [f"Khms-Unit: {record.unit}", f"Khms-Reviewer: {record.reviewer}"]
    return "\n".join(lines) + "\n"
