"""The rules of an audit for signatures, over values alone: each record against who was allowed to sign when it came in,
and each change of who is allowed against the word of a signer before it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from khms.check.audited import Filed, Trust
from khms.check.auditing import Trouble, trouble
from khms.model.approval import Approval
from khms.store.layout import CONFIG, SIGNERS


@dataclass(frozen=True, slots=True)
class Arrival:
    """What one commit brought: records, and what it left as signers and settings."""

    commit: str
    records: tuple[Filed, ...]
    after: Trust


@dataclass(frozen=True, slots=True)
class Step:
    """One move of the branch: `before` it, and what came in by it, the commits of a merge's other side first. `also` is
    a second state that changes may start from, where the two histories parted."""

    before: Trust
    arrivals: tuple[Arrival, ...]
    also: Trust | None = None


Verify = Callable[[Approval, bytes], bool]
Owners = Callable[[Approval, bytes], Sequence[str]]


@dataclass
class Seals:
    """Judges signatures (KA006, KA007) and changes of who may sign (KA008), step by step; counts the good ones."""

    verify: Verify
    owners: Owners
    good: int = 0
    _valid: list[Approval] = field(default_factory=list)

    def judge(self, step: Step) -> Iterator[Trouble]:
        accepted = [step.before]
        self._valid = []
        for arrival in step.arrivals:
            for filed in arrival.records:
                if filed.record is not None:
                    yield from self._signature(filed, filed.record, accepted, arrival)
            last = arrival is step.arrivals[-1]
            started = [*accepted, *([step.also] if step.also else [])]
            wrong = list(self._change(started, arrival))
            if not wrong:
                accepted.append(arrival.after)
            elif last:
                yield from wrong
        stood = step.before.configured and (step.also is None or step.also.configured)
        if stood and not step.arrivals[-1].after.configured:
            yield _no_settings(step.arrivals[-1].commit)

    def _signature(
        self, filed: Filed, record: Approval, accepted: Sequence[Trust], arrival: Arrival
    ) -> Iterator[Trouble]:
        required = any(trust.required for trust in accepted)
        allowed = list(dict.fromkeys(trust.signers for trust in accepted if trust.signed))
        if not record.signature:
            if required:
                message = "it is not signed, and this base requires signatures (review.require_signed)"
                mend = (
                    "take this approval back before it is published (git reset --hard to before it) and approve again "
                    "with your key: khms signers list shows whose count"
                )
                yield trouble("KA006", filed.path, message, mend, about=record.id, commit=arrival.commit)
            return
        if all(trust.base and trust.base != record.base for trust in accepted):
            if required:
                named = f"base {record.base}" if record.base else "no base"
                message = f"it was made for {named}, and this is base {accepted[0].base} (base.id in {CONFIG})"
                yield trouble("KA007", filed.path, message, HERE, about=record.id, commit=arrival.commit)
        elif any(self.verify(record, signers) for signers in allowed):
            self.good += 1
            self._valid.append(record)
        elif allowed or required:
            why, mend = self._why(record, allowed, arrival.after)
            yield trouble("KA007", filed.path, why, mend, about=record.id, commit=arrival.commit)

    def _why(self, record: Approval, allowed: Sequence[bytes], after: Trust) -> tuple[str, str]:
        """Why its signature does not hold, and what to do."""
        owners = [name for signers in allowed for name in self.owners(record, signers)]
        if owners:
            why = (
                f"its signature does not hold for {record.reviewer}: the key is that of {', '.join(owners)}, or the "
                "record was changed after it was signed"
            )
            if any(b"valid-" in signers.lower() for signers in allowed):
                why += f", or {SIGNERS} lets the key count at another time only (what comes in now has to hold now)"
            return why, AGAIN
        if after.signers not in allowed and self.owners(record, after.signers):
            return "its signer was added by the same change; a new signer counts from the next one on", FIRST
        return f"it is signed by a key that {SIGNERS} did not have when it came in", AGAIN

    def _change(self, started: Sequence[Trust], arrival: Arrival) -> Iterator[Trouble]:
        """KA008, where this change needed a signer's word and does not have it."""
        if not started[0].signed:
            return
        after = arrival.after
        if after.signers not in {trust.signers for trust in started} and not self._recorded(
            SIGNERS, "sha256", {trust.signers_sha256 for trust in started}, after.signers_sha256
        ):
            message = "the signers changed without a record that one of the signers before signed"
            mend = (
                f"put it back (git checkout COMMIT~1 -- {SIGNERS}) and let a signer change it: khms signers add|remove"
            )
            yield trouble("KA008", SIGNERS, message, mend, commit=arrival.commit)
        if after.review not in {trust.review for trust in started} and not self._recorded(
            CONFIG, "review", {trust.review for trust in started}, after.review
        ):
            message = f"[review] changed to {after.review} without a record that a signer signed"
            mend = CHANGED.format(path=CONFIG, command="require on|off")
            yield trouble("KA008", CONFIG, message, mend, commit=arrival.commit)
        if after.base not in {trust.base for trust in started} and not self._recorded(
            CONFIG, "base", {trust.base or None for trust in started}, after.base or None
        ):
            message = f"base.id changed to {after.base or 'none'} without a record that a signer signed"
            mend = CHANGED.format(path=CONFIG, command="add EMAIL KEY.pub, which gives a base without an id one")
            yield trouble("KA008", CONFIG, message, mend, commit=arrival.commit)

    def _recorded(self, what: str, name: str, start: set[str | None], end: str | None) -> bool:
        """Whether signed records lead from one of the states before to the one after."""
        steps = [
            (_state(change.old), _state(change.new))
            for record in self._valid
            for change in record.transitions
            if (change.id, change.field) == (what, name)
        ]
        reached = set(start)
        while more := {new for old, new in steps if old in reached} - reached:
            reached |= more
        return end in reached


def _state(value: object) -> str | None:
    return value if isinstance(value, str) else None


AGAIN = (
    "the reviewer takes the approval back before it is published and approves again with the key that memory/signers "
    "has; a new key comes in first, by itself: khms signers add"
)
FIRST = (
    "push (or merge) the commit that adds the signer first (khms signers add), by itself, then the rest; where both "
    "are one commit, take the approval back and approve again once the signer is in"
)
HERE = "take it out before it is published; what this base shall have is approved in it: khms approve UNIT LABEL"
CHANGED = "put it back (git checkout COMMIT~1 -- {path}) and let a signer change it: khms signers {command}"


def _no_settings(commit: str) -> Trouble:
    mend = f"restore it: git checkout COMMIT~1 -- {CONFIG}"
    return trouble(
        "KA008", CONFIG, "the base's khms.toml was removed, and its review settings with it", mend, commit=commit
    )


def unreadable(fault: str, commit: str = "") -> Trouble:
    """KA008 of settings that nobody can read."""
    message = f"{CONFIG} cannot be read, so what it said before goes on to count: {fault}"
    mend = f"mend what is named, or put the file back: git log --oneline -- {CONFIG}"
    return trouble("KA008", CONFIG, message, mend, commit=commit)
