"""What the agents that are programs share: finding them, and telling from words what a host means by them."""

import json
import re
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from khms.errors import Unavailable
from khms.hosts.headless.base import ANSWER, FAILED, LIMIT, OVERSIZE, REFUSAL, TIMEOUT, Reply, Request
from khms.hosts.headless.child import Ended

LINES, CHARS = 20, 2000  # what is kept of a host's own words

# (kind, what it looks like, any case); a group named `resets` says when a limit ends.
Signs = Sequence[tuple[str, str]]
# How a model's refusal begins where its host says nothing of one.
_DECLINES = re.compile(
    r"(?:I['’]?m sorry|Sorry|I apologi[sz]e|Unfortunately)?[,.:;\s]*(?:but\s+)?"
    r"I\s*(?:['’]m|\s+am)?\s*(?:can['’]?t|can ?not|won['’]t|will not|unable to|not able to|must decline|decline to)",
    re.IGNORECASE,
)


def find(name: str, hint: str = "") -> str:
    """The absolute path of a program; raises Unavailable where it is not on PATH."""
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not on PATH", hint=hint or "install it, or name another nightly.proposer")
    return str(Path(found).absolute())


def whole(request: Request) -> str:
    """Instructions and text as one, for an agent that takes no instructions apart."""
    return f"{request.system}\n\n{request.text}" if request.system else request.text


def tail(text: str) -> str:
    """The last lines of what a program said."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-LINES:])[-CHARS:]


def stopped(ended: Ended, seconds: float, signs: Signs = ()) -> Reply | None:
    """The reply about a program that was ended at a limit; None where it ended by itself. A host that spent its time
    on trying again at a limit of its own says so in `signs`."""
    if ended.much:
        return Reply(OVERSIZE, f"more output than {len(ended.out.encode())} bytes", said=tail(ended.err))
    if not ended.late:
        return None
    kind, resets = meaning(ended.err, signs)
    if kind == LIMIT:
        return Reply(LIMIT, tail(ended.err), said=tail(ended.err), resets=resets)
    return Reply(TIMEOUT, f"no answer within {seconds:.0f} seconds", said=tail(ended.err))


def clock(seconds: float) -> str:
    """A point in time, in seconds since 1970, as ISO 8601 in the local zone; empty for one that no calendar has."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="minutes")
    except (ValueError, OverflowError, OSError):
        return ""


def meaning(text: str, signs: Signs) -> tuple[str, str]:
    """The kind that a host's words stand for and when a limit resets; two empty texts where no sign fits."""
    for kind, pattern in signs:
        found = re.search(pattern, text, re.IGNORECASE | re.MULTILINE)
        if found:
            resets = (found.groupdict().get("resets") or "").strip(" .")
            return kind, clock(int(resets)) if resets.isdecimal() else resets
    return "", ""


def answered(text: str, **rest: Any) -> Reply:
    """The reply about a call that ended well with `text` as its answer."""
    if not text.strip():
        return Reply(FAILED, "there is no answer", **rest)
    return Reply(REFUSAL, tail(text), **rest) if declines(text) else Reply(ANSWER, text, **rest)


def declines(text: str) -> bool:
    """Whether these are the words of a model that declines: they begin so, are few, and hold no object."""
    return "{" not in text and len(text) < CHARS and _DECLINES.match(text.strip()) is not None


def events(out: str) -> list[dict[str, Any]]:
    """The JSON objects of an output with one a line; other lines are passed over."""
    found = []
    for line in out.split("\n"):  # a text in JSON may hold what else Python takes for the end of a line
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def number(value: object) -> int:
    """A count that a host reports; 0 where it is none."""
    return int(amount(value) or 0)


def amount(value: object) -> float | None:
    """A sum that a host reports; None where it is none."""
    right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
    return float(value) if right and isinstance(value, int | float) else None
