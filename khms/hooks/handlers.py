"""What a hook does at each moment of a session. One function a moment, in one table; none raises for an empty answer.

Recall is asked with the moment's question, and `budget` decides what of the answer is said. What is said names cards;
their bodies stay in the base.
"""

from __future__ import annotations

import time
from collections.abc import Callable

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

        def load(self) -> SessionState:
            """The state as it stands."""

        def remember(self, step: Callable[[SessionState], SessionState | None]) -> None:
            """Replaces the state by what `step` makes of it (None: as it is), with no other hook in between."""


TITLE_CHARS, PATH_CHARS = 160, 240
HEAD_CHARS = 200  # of the base's own path, in the frame
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


def session_start(place: Place, event: Event, session: Memory) -> Decision:
    """What waits for a person, and what is overdue; nothing where nothing does. A base that was passed over is named
    once, so that nobody wonders."""
    lines = []
    if place.passed_over is not None:
        lines.append(
            f"The memory base at {_cut(str(place.passed_over.root), HEAD_CHARS)} is not used: {place.why}. "
            "That is for the person at the keyboard to settle, with khms trust"
        )
    if place.base is not None:
        lines += _reminders(place.base, place.config)
    if not lines:
        return Decision(None, "nothing-waits" if place.base else "no-base")
    return Decision(framed(_shown(place.base or place.passed_over), lines))


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


def prompt(place: Place, event: Event, session: Memory) -> Decision:
    asked = query.from_prompt(event.prompt, place.config["hooks.query_chars"])
    return _recall(place, asked, "hooks.prompt_threshold", session)


def pre_shell(place: Place, event: Event, session: Memory) -> Decision:
    asked = query.from_command(event.command, place.config["hooks.query_chars"])
    return _recall(place, asked, "hooks.shell_threshold", session)


def pre_edit(place: Place, event: Event, session: Memory) -> Decision:
    asked = query.from_edit(event.path, event.cwd, event.text, place.config["hooks.query_chars"])
    return _recall(place, asked, "hooks.edit_threshold", session)


HANDLERS: dict[str, Callable[[Place, Event, Memory], Decision]] = {
    "session-start": session_start,
    "prompt": prompt,
    "pre-shell": pre_shell,
    "pre-edit": pre_edit,
}


def decide(place: Place, event: Event, session: Memory) -> Decision:
    """The decision at one moment. May raise whatever reading the base raises."""
    handler = HANDLERS.get(event.moment)
    if handler is None:
        return Decision(None, "no-handler")
    if place.base is None and event.moment != "session-start":
        return Decision(None, "untrusted" if place.passed_over else "no-base")
    return handler(place, event, session)


def _recall(place: Place, asked: tuple[str, ...], threshold: str, session: Memory) -> Decision:
    """Recall on the questions `asked`, as far as the budget lets it through. The choice is made where the state cannot
    change under it, so two hooks at once do not say the same."""
    base, config = place.base, place.config
    assert base is not None
    whole = "\n".join(asked)
    now, known = time.time(), digest(whole)
    reason = budget.gate(session.load(), config, whole, known, now)
    if reason:
        return Decision(None, reason, query=whole)
    found = _pointers(base, config, asked)
    shown = _shown(base)
    room = config["hooks.chars"] - len(framed(shown, [""]))
    choice = budget.choose(SessionState(), config, config[threshold], found, room, now)

    def step(state: SessionState) -> SessionState | None:
        nonlocal choice
        late = budget.gate(state, config, whole, known, now)
        choice = budget.Choice((), late) if late else budget.choose(state, config, config[threshold], found, room, now)
        if not choice.pointers:
            return None
        return budget.after(state, config, [pointer.id for pointer in choice.pointers], known, now)

    if choice.pointers:
        session.remember(step)
    lines = [line for pointer in choice.pointers for line in (pointer.line, *pointer.correctors)]
    return Decision(
        text=framed(shown, lines) or None,
        reason=choice.reason,
        cards=tuple(pointer.id for pointer in choice.pointers),
        score=max((pointer.score for pointer in found), default=0.0),
        query=whole,
        found=tuple(found),
    )


def _pointers(base: Base, config: Config, asked: tuple[str, ...]) -> list[Pointer]:
    from khms.recall.search import recall

    return [
        _pointer(hit, config["hooks.corrector_chars"])
        for text in asked
        for hit in recall(base, text, config=config, as_text=True, snippets=False, by_meaning=False)
    ]


def _pointer(hit: Hit, corrector_chars: int) -> Pointer:
    """A hit as the line that names it. Nothing of the body is in it."""
    own = "" if hit.path == f"{hit.id}.md" else f"{_cut(hit.id, PATH_CHARS)} "
    flags = f"[{', '.join(hit.flags)}] " if hit.flags else ""
    newest = sorted(hit.correctors, key=lambda link: (len(link.id), link.id), reverse=True)
    return Pointer(
        id=hit.id,
        score=hit.score,
        line=f"{own}{flags}{_cut(hit.title, TITLE_CHARS)} ({_cut(hit.path, PATH_CHARS)})",
        correctors=tuple(
            _cut(f"  {_CORRECTED.get(link.rel, link.rel)} {link.id}: {link.title}", corrector_chars) for link in newest
        ),
    )


def _shown(base: Base | None) -> str:
    return _cut(str(base.root), HEAD_CHARS) if base else ""


def _cut(text: str, limit: int) -> str:
    text = neutralise(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
