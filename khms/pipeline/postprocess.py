"""Which candidates are published, which wait, which are withheld. Nothing is thrown away: `deferred/` and `dropped/`
hold them whole, and moving a file back rescues it.

Withheld are candidates whose header cannot be put right, whose relation is broken, that screening stops, or that say
what a reviewer has refused. Beyond the cap the lower-ranked wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from khms.errors import Refused
from khms.model.finding import Finding
from khms.model.outcome import FAIL
from khms.model.redact import redact
from khms.pipeline import draft as drafting
from khms.pipeline.draft import DEFERRED, DROPPED, PUBLISHED, Draft
from khms.pipeline.duplicates import Bodies
from khms.store import inbox
from khms.store.layout import Base
from khms.store.receipts import Ledger

WITHHOLDING = ("refused", "relations", "screening")
RANK = ("decision", "solved", "failed", "req")  # kinds that say most come first; all others after them


@dataclass
class Remembered:
    """What the inbox already holds: the claims that await review."""

    waiting: Bodies = field(default_factory=Bodies)
    problems: list[Finding] = field(default_factory=list)


def remembered(base: Base, ledger: Ledger) -> Remembered:
    """Reads the inbox. What cannot be read there is no claim, and is named."""
    found = Remembered()
    reviewed = ledger.reviewed()
    for path in sorted(base.inbox.iterdir()) if base.inbox.is_dir() else []:
        if path.name.startswith(".") or not (path.is_dir() or path.suffix == ".md"):
            continue
        try:
            unit = inbox.find(base, path.name)
        except Refused as error:
            found.problems.append(Finding("KH001", "warning", error.where, 0, error.message, error.hint))
            continue
        for candidate in unit.candidates:
            if (unit.path, candidate.label) not in reviewed:
                found.waiting.add(f"{unit.name}/{candidate.label}", candidate.body)
    return found


def sort(drafts: Sequence[Draft], memory: Remembered, *, cap: int, least: float) -> list[Draft]:
    """Every draft with its fate, in the order of their labels."""
    judged = [_judge(made, memory, least) for made in drafts]
    published = sorted((d for d in judged if d.fate == PUBLISHED), key=_rank)
    late = {made.label for made in published[max(cap, 0) :]}
    why = f"beyond the {cap} that one unit publishes"
    return [replace(made, fate=DEFERRED, why=why) if made.label in late else made for made in judged]


def _rank(made: Draft) -> tuple[int, int, int, int]:
    kind = made.mark.kind.casefold()
    failures = sum(outcome.state == FAIL for outcome in made.checks().values())
    order = RANK.index(kind) if kind in RANK else len(RANK)
    return failures, order, int("thin" in made.candidate.flags), int(made.label[1:])


def _judge(made: Draft, memory: Remembered, least: float) -> Draft:
    if made.fate != PUBLISHED:
        return made
    if made.header:
        return replace(made, fate=DROPPED, why=made.header)
    if made.failed("screening"):
        return _screened(made)
    broken = next((outcome for check in WITHHOLDING if (outcome := made.failed(check))), None)
    if broken is not None:
        return replace(made, fate=DROPPED, why=f"{broken.check}: {broken.message}")
    waiting = memory.waiting.same(made.candidate.body, least)
    if waiting:
        more = [f"awaits-review:{same.id}" for same in waiting[:3]]
        return drafting.with_flags(made, [*made.candidate.flags, *more])
    return made


def _screened(made: Draft) -> Draft:
    """Withheld by screening; what looks like a secret is taken out first, since even `dropped/` is kept by git."""
    outcome = made.failed("screening")
    assert outcome is not None
    meta = {key: redacted(value) for key, value in made.candidate.meta.items()}
    clean = replace(made, candidate=replace(made.candidate, meta=meta, body=redact(made.candidate.body)))
    written = drafting.with_flags(clean, clean.candidate.flags)
    return replace(written, fate=DROPPED, why=f"screening: {outcome.message}") if written.fate == PUBLISHED else written


def redacted(value: object) -> object:
    """A value of a candidate's header without what looks like a key."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(item) for item in value]
    if isinstance(value, Mapping):
        return {key: item if key == "sha256" else redacted(item) for key, item in value.items()}
    return value


def loud_gates(drafts: Sequence[Draft]) -> list[str]:
    """The checks that failed for more candidates than they passed: such a check reports on itself first."""
    counts: dict[str, list[int]] = {}
    for made in drafts:
        for name, outcome in made.checks().items():
            row = counts.setdefault(name, [0, 0])
            row[outcome.state == FAIL] += outcome.state != "not-run"
    return [
        f"The check `{name}` failed for {failed} of {failed + passed} candidates: look at the check itself first."
        for name, (passed, failed) in counts.items()
        if failed > passed
    ]
