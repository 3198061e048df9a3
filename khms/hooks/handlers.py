"""What a hook does at each moment of a session. One function a moment, in one table; none raises for an empty answer.

Recall is asked with the moment's question, `rules` adds what the base's owner put down for its words, and `budget`
decides what of the answer is said. What is said names cards; their bodies stay in the base.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from khms.config import Config
from khms.hooks import budget, query
from khms.hooks.budget import Pointer, SessionState
from khms.hooks.injectlog import digest
from khms.hooks.places import Place
from khms.model.frame import framed, neutralise
from khms.store.layout import Base
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from khms.hosts.base import Event
    from khms.model.document import Hit

    class Memory(Protocol):
        """What a session was told, however it is kept (`sessions.Session`)."""

        @property
        def at(self) -> float:
            """When the event happened, in seconds since the epoch: what is remembered of it bears this time."""

        def load(self) -> SessionState:
            """The state as it stands."""

        def remember(self, step: Callable[[SessionState], SessionState | None]) -> None:
            """Replaces the state by what `step` makes of it (None: as it is), with no other hook in between."""


TITLE_CHARS, PATH_CHARS = 160, 240
HEAD_CHARS = 200  # of the base's own path, in the frame
REMINDER = "The conversation was cut down to a summary; what was learnt and is not in the base yet: khms mark KIND TEXT"
COMMAND_CHARS = 100_000  # of a shell command that are looked at for what is risky in it
_CORRECTED = {"supersedes": "superseded by", "contradicts": "contradicted by", "refuted_by": "refuted by"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What is said, or why nothing: `reason` is one word. `score` is the best hit's, `found` all that was weighed."""

    text: str | None
    reason: str = ""
    cards: tuple[str, ...] = ()
    score: float = 0.0
    query: str = ""
    found: tuple[Pointer, ...] = ()
    channel: str = ""
    classes: tuple[str, ...] = ()


def session_start(place: Place, event: Event, session: Memory, by_meaning: bool) -> Decision:
    """What waits for a person, and what is overdue; nothing where nothing does. A base that was passed over is named
    once, so that nobody wonders."""
    return _started(place, _waiting(place, event))


def subagent_start(place: Place, event: Event, session: Memory, by_meaning: bool) -> Decision:
    """The most important line of the session's start: whoever started this one has read the rest."""
    return _started(place, _waiting(place, event)[:1])


def _started(place: Place, lines: list[str]) -> Decision:
    if not lines:
        return Decision(None, "nothing-waits" if place.base else "no-base")
    return Decision(framed(_shown(place.base or place.passed_over), lines))


def _waiting(place: Place, event: Event) -> list[str]:
    lines = []
    if place.passed_over is not None:
        lines.append(
            f"The memory base at {_cut(str(place.passed_over.root), HEAD_CHARS)} is not used: {place.why}. "
            "That is for the person at the keyboard to settle, with khms trust"
        )
    if place.base is not None:
        lines += [REMINDER] if event.source == "compact" else []
        lines += _reminders(place.base, place.config)
    return lines


def _reminders(base: Base, config: Config) -> list[str]:
    from khms.hooks import waiting

    lines = []
    units, candidates = waiting.unreviewed(base)
    if candidates:
        named = "candidate awaits" if candidates == 1 else "candidates await"
        lines.append(f"{candidates} {named} review in {units} inbox unit{'s'[: units > 1]}: khms inbox list")
    if late := waiting.overdue(base, config["nightly.stale_hours"]):
        ago = f"{late / 24:.0f} days" if late >= 48 else f"{late:.0f} hours"
        lines.append(f"The nightly run last succeeded {ago} ago: khms nightly")
    return lines


def prompt(place: Place, event: Event, session: Memory, by_meaning: bool) -> Decision:
    asked = query.from_prompt(event.prompt, place.config["hooks.query_chars"])
    return _recall(place, asked, "hooks.prompt_threshold", session, by_meaning)


def pre_shell(place: Place, event: Event, session: Memory, by_meaning: bool) -> Decision:
    """What is on record about commands of this class comes first, and whatever was said before; else recall. Where a
    host speaks after the command only, the event can hold its error too."""
    from khms.hooks import risky

    classes, found = risky.before(place, event.command[:COMMAND_CHARS])
    if found:
        warnings = [_pointer(hit, place.config, other) for hit, other in found]
        return _warn(place, event.command, classes, warnings, session)
    asked = query.from_command(event.command, place.config["hooks.query_chars"])
    if event.error and place.config["hooks.after_failure"]:
        asked += query.from_failure(event.error, place.config["hooks.query_chars"])
    return _recall(place, asked, "hooks.shell_threshold", session, by_meaning)


def pre_edit(place: Place, event: Event, session: Memory, by_meaning: bool) -> Decision:
    asked = query.from_edit(event.path, event.cwd, event.text, place.config["hooks.query_chars"])
    return _recall(place, asked, "hooks.edit_threshold", session, by_meaning)


def after_failure(place: Place, event: Event, session: Memory, by_meaning: bool) -> Decision:
    if not place.config["hooks.after_failure"]:
        return Decision(None, "switched-off")
    asked = query.from_failure(event.error, place.config["hooks.query_chars"])
    return _recall(place, asked, "hooks.prompt_threshold", session, by_meaning)


def leaving(place: Place, event: Event, session: Memory, by_meaning: bool) -> Decision:
    """Before the conversation is cut down or ends nobody reads what is said; where its record lies is kept for the
    nightly run."""
    from khms.hooks import digests

    assert place.base is not None
    return Decision(None, digests.keep(place.base, event))


HANDLERS: dict[str, Callable[[Place, Event, Memory, bool], Decision]] = {
    "session-start": session_start,
    "subagent-start": subagent_start,
    "prompt": prompt,
    "pre-shell": pre_shell,
    "pre-edit": pre_edit,
    "after-failure": after_failure,
    "pre-compact": leaving,
    "session-end": leaving,
}
_STARTS = ("session-start", "subagent-start")


def decide(place: Place, event: Event, session: Memory, *, by_meaning: bool = False) -> Decision:
    """The decision at one moment; `by_meaning` where the embedding model is at hand. May raise whatever reading the
    base raises."""
    handler = HANDLERS.get(event.moment)
    if handler is None:
        return Decision(None, "no-handler")
    if place.base is None and event.moment not in _STARTS:
        return Decision(None, "untrusted" if place.passed_over else "no-base")
    return handler(place, event, session, by_meaning)


def _warn(place: Place, command: str, classes: tuple[str, ...], found: list[Pointer], session: Memory) -> Decision:
    """What is on record before a risky command, each time that it comes."""
    now, known = session.at, digest(f"precheck {command}")
    choice = budget.warn(session.load(), place.config, found, known, now)

    def step(state: SessionState) -> SessionState | None:
        nonlocal choice
        choice = budget.warn(state, place.config, found, known, now)
        keys = [pointer.key for pointer in choice.pointers]
        return budget.after(state, place.config, keys, known, now, counted=False) if keys else None

    if choice.pointers:
        session.remember(step)
    return _decision(place, choice, command, found, "precheck", classes)


def _recall(place: Place, asked: tuple[str, ...], threshold: str, session: Memory, by_meaning: bool) -> Decision:
    """Recall on the questions `asked`, as far as the budget lets it through. The choice is made where the state cannot
    change under it, so two hooks at once do not say the same."""
    base, config = place.base, place.config
    assert base is not None
    whole = "\n".join(asked)
    now, known = session.at, digest(whole)
    reason = budget.gate(session.load(), config, whole, known, now)
    if reason:
        return Decision(None, reason, query=whole)
    found, channel = _pointers(place, asked, by_meaning)
    room = config["hooks.chars"] - len(framed(_shown(base), [""]))
    choice = budget.choose(SessionState(), config, config[threshold], found, room, now)

    def step(state: SessionState) -> SessionState | None:
        nonlocal choice
        late = budget.gate(state, config, whole, known, now)
        choice = budget.Choice((), late) if late else budget.choose(state, config, config[threshold], found, room, now)
        if not choice.pointers:
            return None
        return budget.after(state, config, [pointer.key for pointer in choice.pointers], known, now)

    if choice.pointers:
        session.remember(step)
    return _decision(place, choice, whole, found, channel)


def _decision(
    place: Place, choice: budget.Choice, asked: str, found: list[Pointer], channel: str, classes: tuple[str, ...] = ()
) -> Decision:
    lines = [line for pointer in choice.pointers for line in (pointer.line, *pointer.correctors)]
    return Decision(
        text=framed(_shown(place.base), lines) or None,
        reason=choice.reason,
        cards=tuple(pointer.id for pointer in choice.pointers),
        score=max((pointer.score for pointer in found), default=0.0),
        query=asked,
        found=tuple(found),
        channel=channel,
        classes=classes,
    )


def _pointers(place: Place, asked: tuple[str, ...], by_meaning: bool) -> tuple[list[Pointer], str]:
    """What the base and the user's own one have on the questions, best first in neither, and by which channel."""
    from khms.hooks import places, rules
    from khms.recall.search import recall

    base, config = place.base, place.config
    assert base is not None
    ask = partial(recall, base, config=config)
    if others := places.others(place):
        from khms.recall import bases

        ask = partial(bases.ask, [(base, config), *others])
    answers = [ask(text, as_text=True, snippets=False, by_meaning=by_meaning) for text in asked]
    hits = [*rules.hits(base, config, asked), *(hit for answer in answers for hit in answer)]
    return [_pointer(hit, config) for hit in hits], next((answer.channel for answer in answers), "")


def _pointer(hit: Hit, config: Config, other: Base | None = None) -> Pointer:
    """A hit as the line that names it. Nothing of the body is in it. `other` is the base that it comes from, where that
    is another one and the hit does not say so itself."""
    chars = config["hooks.corrector_chars"]
    path = str(other.root / hit.path) if other else hit.path
    own = "" if hit.path == f"{hit.id}.md" else f"{_cut(hit.id, PATH_CHARS)} "
    flags = f"[{', '.join(hit.flags)}] " if hit.flags else ""
    newest = sorted(hit.correctors, key=lambda link: (len(link.id), link.id), reverse=True)
    return Pointer(
        id=hit.id,
        score=hit.score,
        line=f"{own}{flags}{_cut(hit.title, TITLE_CHARS)} ({_cut(path, PATH_CHARS)})",
        correctors=tuple(
            _cut(f"  {_CORRECTED.get(link.rel, link.rel)} {link.id}: {link.title}", chars) for link in newest
        ),
        base=str(other.root) if other else hit.base,
    )


def _shown(base: Base | None) -> str:
    return _cut(str(base.root), HEAD_CHARS) if base else ""


def _cut(text: str, limit: int) -> str:
    text = neutralise(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
