"""What became of what was injected: the transcripts are read, and of each pointer it is told whether the agent named
the document in its next messages.

One pass over a transcript, however large; what is held is the pointers of its session. An injection is placed by the
clock, in the session's own conversation, or in a sub-agent's where the injected text itself is seen to stand there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from khms.hosts import transcripts
from khms.hosts.transcripts.base import AGENT, CALL, INJECTED, Record, Session
from khms.measure.decisions import Decision
from khms.measure.naming import Names, flat, naming
from khms.model.digest import NOBODY, session_key
from khms.model.frame import FRAME_HEAD

if TYPE_CHECKING:
    from khms.hosts.transcripts.base import Reader

MESSAGES = 3  # of the agent, in which naming counts
NAMED, UNNAMED = "named", "unnamed"
# Why nothing can be said of a pointer.
NO_SESSION = "the host named no session"
NO_READER = "no reader of this host's transcripts"
NOT_FOUND = "the session has no transcript here"
LEFT_ALONE = "the session is switched off for khms"
UNREADABLE = "the transcript cannot be read"
SILENT = "the agent said nothing afterwards"
_NEAR = 60.0  # seconds between an injection in the log and its text in the transcript
_OPENING = FRAME_HEAD.partition("{")[0]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A document that was named to a session, or would have been. `outcome` is NAMED, UNNAMED, or the reason why it
    cannot be told; `by` is how it was named: id, path or title."""

    decision: Decision
    names: Names
    outcome: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read for it: transcripts, and the lines of them that could not be used."""

    transcripts: int
    lines: Mapping[str, int]


@dataclass
class _Watch:
    """One injection while a conversation goes by: the last message before it, those after it, what they named."""

    decision: Decision
    before: str = ""
    messages: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)
    seen: bool = False


def attribute(
    decisions: Iterable[Decision],
    names: Callable[[str], Names],
    *,
    left_alone: Callable[[str], bool],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Pointer], Read]:
    """Every pointer of the `decisions`, those that were withheld too, with what became of it. `left_alone` tells which
    sessions, by the host's id, are not to be looked into."""
    found: list[Pointer] = []
    sessions: dict[tuple[str, str], list[Decision]] = {}
    for decision in decisions:
        if decision.cards or decision.withheld:
            sessions.setdefault((decision.host, decision.session), []).append(decision)
    tally: Counter[str] = Counter()
    places = {host: _places(host, sessions) for host in {host for host, _ in sessions}}
    read = 0
    for number, ((host, session), told) in enumerate(sessions.items(), 1):
        where = places[host]
        known = where.get(session, []) if where is not None else []
        if session in ("", NOBODY):
            reason = NO_SESSION
        elif where is None:
            reason = NO_READER
        elif not known:
            reason = NOT_FOUND
        else:
            reason = LEFT_ALONE if any(left_alone(place.id) for place in known) else ""
        if reason:
            found += _all(told, names, reason)
        else:
            reader = transcripts.reader(host)
            assert reader is not None
            pointers, files = _read(reader, known, told, names, tally)
            found += pointers
            read += files
        if progress:
            progress(number, len(sessions))
    return found, Read(read, dict(tally))


def _places(host: str, wanted: Iterable[tuple[str, str]]) -> dict[str, list[Session]] | None:
    """The transcripts of the sessions wanted, by the session's key; None where the host has no reader."""
    reader = transcripts.reader(host)
    if reader is None:
        return None
    keys = {key for name, key in wanted if name == host}
    found: dict[str, list[Session]] = {}
    for session in reader.sessions():
        key = session_key(session.id)
        if key in keys:
            found.setdefault(key, []).append(session)
    return found


def _all(told: Iterable[Decision], names: Callable[[str], Names], reason: str) -> list[Pointer]:
    return [Pointer(decision, names(card), reason) for decision in told for card in _cards(decision)]


def _cards(decision: Decision) -> tuple[str, ...]:
    return decision.cards or decision.withheld


def _read(
    reader: "Reader", places: list[Session], told: list[Decision], names: Callable[[str], Names], tally: Counter[str]
) -> tuple[list[Pointer], int]:
    """The session's pointers, and how many files were read for them."""
    held = sorted(told, key=lambda decision: decision.began)
    watched: list[list[_Watch]] = []
    failed = False
    for path in (thread for place in places for thread in reader.threads(place.path)):
        try:
            watched.append(_follow(reader.records(path, "", tally), held, names))
        except OSError:
            failed = True
    found = []
    for number, decision in enumerate(held):
        watch = _chosen([watches[number] for watches in watched])
        for card in _cards(decision):
            by = watch.named.get(card, "") if watch else ""
            silent = UNREADABLE if failed else SILENT
            outcome = NAMED if by else UNNAMED if watch and watch.messages else silent
            found.append(Pointer(decision, names(card), outcome, by))
    return found, len(watched)


def _chosen(watches: list[_Watch]) -> _Watch | None:
    """The conversation that an injection went into: where its text stands, else the session's own."""
    return next((watch for watch in watches if watch.seen), watches[0] if watches else None)


def _follow(records: Iterable[Record], told: list[Decision], names: Callable[[str], Names]) -> list[_Watch]:
    """Each injection as this conversation has it. A message that had begun before the injection, of which another piece
    comes after it, is none of the next."""
    watches = [_Watch(decision) for decision in told]
    waiting, clock, last = list(watches), 0.0, ""
    open_: list[_Watch] = []
    for record in records:
        clock = record.at or clock
        if record.role == INJECTED:
            _see(watches, record, clock)
        if record.role not in (AGENT, CALL):
            continue
        while waiting and waiting[0].decision.began <= clock:
            waiting[0].before = last
            open_.append(waiting.pop(0))
        last = record.id
        text = flat(record.text) if open_ else ""
        for watch in open_:
            if record.id == watch.before:
                continue
            if record.id not in watch.messages:
                watch.messages.append(record.id)
            if len(watch.messages) <= MESSAGES:
                for card in _cards(watch.decision):
                    if card not in watch.named and (by := naming(text, names(card))):
                        watch.named[card] = by
        open_ = [watch for watch in open_ if len(watch.messages) <= MESSAGES]
    return watches


def _see(watches: list[_Watch], record: Record, clock: float) -> None:
    if _OPENING not in record.text:
        return
    for watch in watches:
        cards = watch.decision.cards
        if cards and abs(clock - watch.decision.began) <= _NEAR and all(card in record.text for card in cards):
            watch.seen = True
