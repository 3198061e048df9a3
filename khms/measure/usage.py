"""What use was made of what was injected, and what became of everything else that hooks decided.

The measure is a proxy and says so: an agent that names a document in its next messages had some use for it; one that
does not may have read it all the same. An experiment's control sessions tell how much of that would have been named
anyhow.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from khms.errors import KhmsError
from khms.measure import decisions
from khms.measure.attribution import MESSAGES, NAMED, UNNAMED, Pointer, Read, attribute
from khms.measure.decisions import Decision, Log
from khms.measure.naming import Names
from khms.store.layout import Base

SCHEMA = "khms.usage/1"
BY: Mapping[str, Callable[[Pointer], str]] = {
    "event": lambda pointer: pointer.decision.moment,
    "host": lambda pointer: pointer.decision.host,
    "kind": lambda pointer: pointer.names.kind or "(not in the index)",
    "day": lambda pointer: pointer.decision.day,
}


@dataclass(frozen=True, slots=True)
class Count:
    """Pointers of one group: all, those whose conversation could be read, those that the agent named."""

    name: str
    pointers: int
    attributed: int
    named: int

    @property
    def share(self) -> float | None:
        return self.named / self.attributed if self.attributed else None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "share": None if self.share is None else round(self.share, 4)}


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of an experiment. In the control arm `count` is of pointers that were withheld: what the agent named of
    them it named by itself. Warnings before risky commands, which both arms get, are in neither count."""

    experiment: str
    arm: str
    sessions: int
    decisions: int
    count: Count

    def as_json(self) -> dict[str, Any]:
        counted = {key: value for key, value in self.count.as_json().items() if key != "name"}
        own = {"experiment": self.experiment, "arm": self.arm, "sessions": self.sessions, "decisions": self.decisions}
        return own | counted


@dataclass(frozen=True, slots=True)
class Usage:
    """`bare` counts injections without a pointer: reminders. `named_by` counts by what documents were named,
    `unattributed` why a pointer's conversation could not be read, `silent` why nothing was said."""

    log: Log
    since: str
    injections: int
    bare: int
    total: Count
    by: Mapping[str, tuple[Count, ...]]
    named_by: Mapping[str, int]
    unattributed: Mapping[str, int]
    silent: Mapping[str, int]
    arms: tuple[Arm, ...]
    read: Read

    def as_json(self) -> dict[str, Any]:
        total = {key: value for key, value in self.total.as_json().items() if key != "name"}
        return {
            "schema": SCHEMA,
            "since": self.since or None,
            "log_from": self.log.first or None,
            "decisions": len(self.log.decisions),
            "injections": self.injections,
            "without_pointer": self.bare,
            **total,
            "messages": MESSAGES,
            "named_by": dict(self.named_by),
            "by": {name: [count.as_json() for count in counts] for name, counts in self.by.items()},
            "unattributed": {"pointers": sum(self.unattributed.values()), "reasons": dict(self.unattributed)},
            "silent": dict(self.silent),
            "arms": [arm.as_json() for arm in self.arms],
            "unreadable_log_lines": self.log.unreadable,
            "transcripts": {"files": self.read.transcripts, **self.read.lines},
        }


def usage(
    base: Base,
    *,
    since: str = "",
    left_alone: Callable[[str], bool],
    progress: Callable[[int, int], None] | None = None,
) -> Usage:
    """The use made of the base's pointers from the day `since` on (all where it is empty). `left_alone` tells which
    sessions are not to be looked into; `progress` is told (done, all) of the sessions."""
    log = decisions.read(base, since)
    pointers, read = attribute(log.decisions, known_names(base), left_alone=left_alone, progress=progress)
    told = [pointer for pointer in pointers if pointer.decision.injected]
    return Usage(
        log=log,
        since=since,
        injections=sum(decision.injected for decision in log.decisions),
        bare=sum(decision.injected and not decision.cards for decision in log.decisions),
        total=_count("", told),
        by={name: _grouped(told, key) for name, key in BY.items()},
        named_by=_counted(pointer.by for pointer in told if pointer.by),
        unattributed=_counted(pointer.outcome for pointer in told if not _attributed(pointer)),
        silent=_counted(decision.reason for decision in log.decisions if not decision.injected),
        arms=_arms(log.decisions, pointers),
        read=read,
    )


def known_names(base: Base) -> Callable[[str], Names]:
    """What a document goes by, from its id, as the index has it; the id alone where there is no index."""
    from khms.index import current

    held: dict[str, Names] = {}
    try:
        reader, _ = current.opened(base)
    except KhmsError:
        return Names

    def names(identity: str) -> Names:
        if identity not in held:
            found = next(iter(reader.by_id(identity)), None)
            held[identity] = Names(identity, found.path, found.title, found.kind) if found else Names(identity)
        return held[identity]

    return names


def _arms(all_decisions: Iterable[Decision], pointers: Iterable[Pointer]) -> tuple[Arm, ...]:
    members: dict[tuple[str, str], list[Decision]] = {}
    for decision in all_decisions:
        if decision.arm:
            members.setdefault((decision.experiment, decision.arm), []).append(decision)
    grouped: dict[tuple[str, str], list[Pointer]] = {}
    for pointer in pointers:
        if not pointer.decision.warning:
            grouped.setdefault((pointer.decision.experiment, pointer.decision.arm), []).append(pointer)
    return tuple(
        Arm(key[0], key[1], len({d.session for d in found}), len(found), _count(key[1], grouped.get(key, [])))
        for key, found in sorted(members.items())
    )


def _attributed(pointer: Pointer) -> bool:
    return pointer.outcome in (NAMED, UNNAMED)


def _grouped(pointers: Iterable[Pointer], key: Callable[[Pointer], str]) -> tuple[Count, ...]:
    groups: dict[str, list[Pointer]] = {}
    for pointer in pointers:
        groups.setdefault(key(pointer), []).append(pointer)
    return tuple(_count(name, groups[name]) for name in sorted(groups))


def _count(name: str, pointers: list[Pointer]) -> Count:
    attributed = sum(map(_attributed, pointers))
    return Count(name, len(pointers), attributed, sum(pointer.outcome == NAMED for pointer in pointers))


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    """By number, the greatest first, equals by name."""
    return dict(sorted(Counter(reasons).items(), key=lambda pair: (-pair[1], pair[0])))
