"""What every recorded act of a reviewer shares: its time and its receipts."""

import datetime

from khms.model.receipt import Receipt


def now() -> str:
    """This moment, ISO 8601 with zone, to the second."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def review_receipt(mark: str, verdict: str, run: str, unit: str, label: str, reason: str, at: str) -> Receipt:
    return Receipt(mark, "review", verdict, run, unit, label, reason, at)
