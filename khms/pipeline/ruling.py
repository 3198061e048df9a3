"""What a reviewer says on the way of an approval, and what of it was called for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from khms.model.approval import Waiver

SECOND = "same-mark"  # the check that a candidate's MARK has no card yet
MEANT = "a second card of its MARK is meant"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the reviewer said: which labels (or `everything` that is pending), and what they settle on the way.

    `relations` maps a label to `KIND` or `KIND:K-…`, `because` to the reason of that relation; `waived` maps (check,
    label) to the reason; `why` stands for every reason that is not given. `accepted` holds checks that may stay not
    run, `CHECK` for all candidates or `CHECK:LABEL` for one; `unjudged` lets candidates in whose relation nobody
    judged, `also` a second card of a MARK; `here` approves on the branch at hand. `seen` maps a label to the SHA-256 of
    the bytes that the reviewer looked at: one that holds others by now does not come in.
    """

    labels: tuple[str, ...] = ()
    everything: bool = False
    relations: Mapping[str, str] = field(default_factory=dict)
    unjudged: bool = False
    also: bool = False
    accepted: frozenset[str] = frozenset()
    waived: Mapping[tuple[str, str], str] = field(default_factory=dict)
    because: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    here: bool = False
    seen: Mapping[str, str] = field(default_factory=dict)

    def accepts(self, check: str, label: str) -> bool:
        return not {check, f"{check}:{label}"}.isdisjoint(self.accepted)


@dataclass
class Ruling:
    """What a reviewer may let pass, and what of it was called for. `waive` notes each use."""

    wish: Wish
    used: set[tuple[str, str]] = field(default_factory=set)

    def waive(self, check: str, label: str) -> bool:
        also = check == SECOND and self.wish.also
        if (check, label) not in self.wish.waived and not also:
            return False
        self.used.add((check, label))
        return True

    def waivers(self) -> tuple[Waiver, ...]:
        """What the record holds of it: each waiver that was called for, with its reason."""
        reasons = {key: self.wish.waived.get(key) or self.wish.why or MEANT for key in sorted(self.used)}
        return tuple(Waiver(check, label, why) for (check, label), why in reasons.items())

    def unneeded(self) -> tuple[str, ...]:
        return tuple(f"{check}:{label}" for check, label in sorted(self.wish.waived.keys() - self.used))
