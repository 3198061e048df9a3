"""How much a session is told: pure functions over what it was told before, the settings and the clock.

Two looks. `gate` is taken before any index is opened, `choose` when the hits are there. Times are seconds since the
epoch; one that lies in the future (a clock that was set back) counts like one that lies as far in the past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MINUTE, HOUR = 60.0, 3600.0
LEAST_CHARS = 3  # a shorter question says nothing
RETRY = MINUTE  # within which an agent that was warned runs the same command again, having read the warning


@dataclass(frozen=True, slots=True)
class SessionState:
    """What one session was told: when, which cards, in answer to which questions (by their digest)."""

    injections: tuple[float, ...] = ()
    cards: tuple[tuple[str, float], ...] = ()
    queries: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Pointer:
    """A card that could be named: its line, the lines of its correctors (the newest first), and how well it fits.
    `base` is empty for the base that was asked, else the root of the other one, whose ids are its own."""

    id: str
    score: float
    line: str
    correctors: tuple[str, ...] = ()
    base: str = ""

    @property
    def key(self) -> str:
        """What tells it from all others, of whichever base."""
        return f"{self.base} {self.id}" if self.base else self.id


@dataclass(frozen=True, slots=True)
class Choice:
    """What is said, and why nothing is where `pointers` is empty. `reason` is one word for the log."""

    pointers: tuple[Pointer, ...]
    reason: str


def gate(state: SessionState, config: Mapping[str, Any], query: str, digest: str, now: float) -> str:
    """The reason not to look anything up, or nothing. A session that has used its injections up may still be owed the
    one that a strong hit is granted; beyond that no search can change the answer."""
    if not query.strip():
        return "empty"
    if len(query.strip()) < LEAST_CHARS:
        return "short"
    if any(held == digest and _within(at, now, _query_seconds(config)) for held, at in state.queries):
        return "same-query"
    if _recent(state, config, now) > config["hooks.per_window"]:
        return "window"
    return ""


def choose(
    state: SessionState, config: Mapping[str, Any], threshold: float, found: Sequence[Pointer], room: int, now: float
) -> Choice:
    """The pointers that are said, best first. `room` is what the frame leaves of the characters; lines are counted with
    their line end, correctors are not counted."""
    fit = [pointer for pointer in _ranked(found) if pointer.score >= threshold]
    if not fit:
        return Choice((), "threshold" if found else "nothing-found")
    told = {card for card, at in state.cards if _within(at, now, _card_seconds(config))}
    fresh = [pointer for pointer in fit if pointer.key not in told]
    if not fresh:
        return Choice((), "card-told")
    if _recent(state, config, now) >= config["hooks.per_window"] and (
        _recent(state, config, now) > config["hooks.per_window"] or fresh[0].score < config["hooks.strong"]
    ):
        return Choice((), "window")
    kept: list[Pointer] = []
    for pointer in fresh:
        if len(kept) >= config["hooks.cards"] or (kept and pointer.score < config["hooks.second_min"]):
            break
        if sum(len(held.line) + 1 for held in (*kept, pointer)) <= room:
            kept.append(_trimmed(pointer, config))
    return Choice(tuple(kept), "" if kept else "no-room")


def warn(state: SessionState, config: Mapping[str, Any], found: Sequence[Pointer], digest: str, now: float) -> Choice:
    """What is said before something risky: all of it, each time, whatever was said before; only a command that is
    tried again at once is not held up twice."""
    if any(held == digest and _within(at, now, RETRY) for held, at in state.queries):
        return Choice((), "same-query")
    return Choice(tuple(_trimmed(pointer, config) for pointer in found), "")


def after(
    state: SessionState,
    config: Mapping[str, Any],
    cards: Sequence[str],
    digest: str,
    now: float,
    *,
    counted: bool = True,
) -> SessionState:
    """The state once `cards` (their keys) were named in answer to the question `digest`; what no longer counts is
    forgotten. What is not `counted` takes nothing of the injection limit."""
    window = config["hooks.window_minutes"] * MINUTE
    told = {card: at for card, at in state.cards if _within(at, now, _card_seconds(config))}
    asked = {query: at for query, at in state.queries if _within(at, now, _query_seconds(config))}
    return SessionState(
        injections=(*(at for at in state.injections if _within(at, now, window)), *([now] if counted else [])),
        cards=tuple((told | dict.fromkeys(cards, now)).items()),
        queries=tuple((asked | {digest: now}).items()),
    )


def without(state: SessionState, at: float) -> SessionState:
    """The state as if nothing had been said in answer to the event of that very time."""
    return SessionState(
        tuple(one for one in state.injections if one != at),
        tuple(one for one in state.cards if one[1] != at),
        tuple(one for one in state.queries if one[1] != at),
    )


def _ranked(found: Sequence[Pointer]) -> list[Pointer]:
    """Best first, each card once; of equals the newer card, whose number is the greater one."""
    best: dict[str, Pointer] = {}
    for pointer in found:
        if pointer.key not in best or best[pointer.key].score < pointer.score:
            best[pointer.key] = pointer
    newest = sorted(best.values(), key=lambda pointer: (len(pointer.id), pointer.id), reverse=True)
    return sorted(newest, key=lambda pointer: -pointer.score)


def _trimmed(pointer: Pointer, config: Mapping[str, Any]) -> Pointer:
    correctors = pointer.correctors[: config["hooks.correctors"]]
    return Pointer(pointer.id, pointer.score, pointer.line, correctors, pointer.base)


def _recent(state: SessionState, config: Mapping[str, Any], now: float) -> int:
    return sum(_within(at, now, config["hooks.window_minutes"] * MINUTE) for at in state.injections)


def _card_seconds(config: Mapping[str, Any]) -> float:
    return float(config["hooks.card_hours"] * HOUR)


def _query_seconds(config: Mapping[str, Any]) -> float:
    return float(config["hooks.query_minutes"] * MINUTE)


def _within(at: float, now: float, seconds: float) -> bool:
    return abs(now - at) < seconds
