"""The outcome of one check of one candidate. There are three, and not-run is never a pass."""

from collections.abc import Iterable
from dataclasses import dataclass

PASS, FAIL, NOT_RUN = "pass", "fail", "not-run"
_GRAVITY = (PASS, NOT_RUN, FAIL)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`message` says what failed or why it was not run; beside a pass, what a reviewer should still know. A failure
    that is not `waivable` cannot be let through by a reviewer's word."""

    check: str
    label: str
    state: str
    message: str = ""
    waivable: bool = True


def merged(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    """One outcome a check: its gravest state, with every message of that state."""
    found: dict[str, Outcome] = {}
    for new in outcomes:
        held = found.get(new.check)
        if held is None or _GRAVITY.index(new.state) > _GRAVITY.index(held.state):
            found[new.check] = new
        elif new.state == held.state and new.message and new.message != held.message:
            both = "; ".join(part for part in (held.message, new.message) if part)
            waivable = held.waivable and new.waivable
            found[new.check] = Outcome(held.check, held.label, held.state, both, waivable)
    return found
