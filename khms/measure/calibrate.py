"""From which score on hooks speak, and from which evidence on recall does: figures for the settings, from golden
queries and from what hooks were silent about.

Golden lines are asked as hooks ask, and at each threshold it is counted what would be said. A line of kind `shell` or
`edit` stands for a command or an edit, any other for a prompt. Logged silences hold a score but no words, so nobody can
say whether they were right: they have a column of their own, and count as unrelated only where no golden line has an
empty gold.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from khms.config import Config
from khms.index import models, sync
from khms.measure import decisions
from khms.measure.golden import Golden
from khms.recall.search import recall
from khms.store.layout import Base

SCHEMA = "khms.calibrate/1"
STEPS = 20
GRID = tuple(round(step / STEPS, 2) for step in range(STEPS + 1))
MOMENTS = {"prompt": "prompt", "shell": "pre-shell", "edit": "pre-edit"}
FLOOR = "recall.floor"
LEAST = 20  # lines with and without an answer that a proposal needs: fewer move a share by more than 5 %
BETTER = 0.01  # by how much of its value a proposal must be better
FLAT = 0.005  # values closer than that are one plateau, and its middle is proposed
BETA = 0.5  # of the F-measure (van Rijsbergen, Information Retrieval, 1979): precision counts twice what recall does
Found = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Ways:
    """How hooks do it: `questions` makes what is asked of an event's text, by moment; `chosen` the ids that are named
    of what was found, at a threshold; `by_meaning` whether a server answers, which asks by meaning too."""

    questions: Callable[[str, str], Sequence[str]]
    chosen: Callable[[Found, float], Sequence[str]]
    by_meaning: bool


@dataclass(frozen=True, slots=True)
class Point:
    """One threshold. `precision` is the share of the times that something is said in which something right is among it,
    `pointers` the share of all that is named that is right, both None where nothing is said; `recall` the share of the
    related lines that get something right; `unrelated` and `silences` the shares of the lines without an answer, and
    of the logged silences, that get anything, None where there are none. `value` is what is maximised. It goes by the
    times, since a threshold decides whether to speak; hooks.cards and hooks.second_min say of how many cards."""

    threshold: float
    precision: float | None
    recall: float
    unrelated: float | None
    silences: float | None
    pointers: float | None
    value: float


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's curve. `proposed` is None where there is too little evidence; `why` says so, or what speaks for the
    proposal."""

    name: str
    current: Point
    proposed: Point | None
    why: str
    related: int
    unrelated: int
    silences: int
    curve: tuple[Point, ...] = field(repr=False)

    @property
    def better(self) -> bool:
        return self.proposed is not None and self.proposed.value >= self.current.value + BETTER

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "current": self.current.threshold,
            "proposed": self.proposed and self.proposed.threshold,
            "better": self.better,
            "why": self.why,
            "value": {"current": self.current.value, "proposed": self.proposed and self.proposed.value},
            "evidence": {"related": self.related, "unrelated": self.unrelated, "silences": self.silences},
            "curve": [asdict(point) for point in self.curve],
        }


@dataclass(frozen=True, slots=True)
class _Tried:
    """A golden line, and what hooks' recall found for it."""

    gold: tuple[str, ...]
    found: Found


@dataclass(frozen=True, slots=True)
class _Asked:
    """A golden line, whether recall's answer is right, and up to which floor there is one (-1: never)."""

    related: bool
    right: bool
    until: float


def calibrate(
    base: Base,
    config: Config,
    golden: Sequence[Golden],
    ways: Ways,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Setting, ...]:
    """The settings that there is any evidence for. Brings the index up to date; changes nothing else. Raises
    Unavailable where there is no index that can be used."""
    sync.refresh(base, config=config)
    models.at_hand(base, config)
    silences = _silences(base)
    tried: dict[str, list[_Tried]] = {moment: [] for moment in MOMENTS}
    asked = []
    for number, one in enumerate(golden, 1):
        moment = one.kind if one.kind in MOMENTS else "prompt"
        tried[moment].append(_Tried(one.gold, _found(base, config, ways, moment, one.query)))
        if moment == "prompt":
            asked.append(_held(base, config, one))
        if progress:
            progress(number, len(golden))
    settings = []
    for moment in MOMENTS:
        if tried[moment] or silences[moment]:
            name = f"hooks.{moment}_threshold"
            settings.append(_threshold(name, config[name], tried[moment], silences[moment], ways.chosen))
    return (*settings, *([_floor(config[FLOOR], asked)] if asked else []))


def _silences(base: Base) -> dict[str, list[float]]:
    """The best score of each event that was left alone because nothing was good enough, by moment."""
    found: dict[str, list[float]] = {moment: [] for moment in MOMENTS}
    named = {long: short for short, long in MOMENTS.items()}
    for decision in decisions.read(base).decisions:
        if decision.moment in named and decision.reason in ("threshold", "nothing-found"):
            found[named[decision.moment]].append(max((score for _, score in decision.hits), default=0.0))
    return found


def _found(base: Base, config: Config, ways: Ways, moment: str, text: str) -> Found:
    best: dict[str, float] = {}
    for question in ways.questions(moment, text):
        answer = recall(base, question, config=config, as_text=True, snippets=False, by_meaning=ways.by_meaning)
        for hit in answer:
            best[hit.id] = max(hit.score, best.get(hit.id, 0.0))
    return tuple(best.items())


def _held(base: Base, config: Config, one: Golden) -> _Asked:
    """The greatest floor of the grid at which there is still an answer, found by halving: an answer that one floor lets
    through, a lower one does too."""

    def ids(floor: float) -> list[str]:
        held = {**config, FLOOR: floor}
        return [hit.id for hit in recall(base, one.query, config=held, snippets=False)]

    found = ids(0.0)
    low, high = (0, STEPS + 1) if found else (-1, 0)  # answered at low, not at high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ids(GRID[middle]) else (low, middle)
    return _Asked(bool(one.gold), bool(set(found) & set(one.gold)), GRID[low] if low >= 0 else -1.0)


def _threshold(
    name: str,
    current: float,
    tried: Sequence[_Tried],
    silences: Sequence[float],
    chosen: Callable[[Found, float], Sequence[str]],
) -> Setting:
    related = [one for one in tried if one.gold]
    unrelated = [one for one in tried if not one.gold]

    def point(threshold: float) -> Point:
        times = named = right = answered = loud = 0
        for one in tried:
            names = chosen(one.found, threshold)
            hit = set(names) & set(one.gold)
            times, named = times + bool(names), named + len(names)
            answered, right = answered + bool(hit), right + len(hit)
            loud += bool(names) and not one.gold
        above = sum(score >= threshold and score > 0 for score in silences)
        if not unrelated:
            times += above
        precision = answered / times if times else None
        share = answered / len(related) if related else 0.0
        return Point(
            threshold,
            _short(precision),
            round(share, 4),
            _short(loud / len(unrelated) if unrelated else None),
            _short(above / len(silences) if silences else None),
            _short(right / named if named else None),
            round(_f_measure(precision or 0.0, share), 4),
        )

    counted = len(unrelated) or len(silences)
    curve = tuple(point(threshold) for threshold in GRID)
    lacking = _lacking(len(related), counted, "logged silences or lines with an empty gold")
    stand = "" if unrelated else "; logged silences stand for unrelated prompts"
    why = lacking or f"F{BETA:g} over {len(related)} related and {counted} unrelated{stand}"
    best = None if lacking else _best(curve)
    return Setting(name, point(current), best, why, len(related), len(unrelated), len(silences), curve)


def _floor(current: float, asked: Sequence[_Asked]) -> Setting:
    related = [one for one in asked if one.related]
    unrelated = [one for one in asked if not one.related]

    def point(floor: float) -> Point:
        answered = [one for one in asked if one.until >= floor]
        right = sum(one.right for one in answered)
        share = right / len(related) if related else 0.0
        loud = sum(one.until >= floor for one in unrelated) / len(unrelated) if unrelated else None
        precision = right / len(answered) if answered else None
        value = (share + 1 - (loud or 0.0)) / 2
        return Point(floor, _short(precision), round(share, 4), _short(loud), None, None, round(value, 4))

    curve = tuple(point(floor) for floor in GRID)
    lacking = _lacking(len(related), len(unrelated), "lines with an empty gold")
    why = lacking or f"mean of related answered and unrelated silent, over {len(related)} and {len(unrelated)}"
    best = None if lacking else _best(curve)
    return Setting(FLOOR, point(current), best, why, len(related), len(unrelated), 0, curve)


def _lacking(related: int, unrelated: int, what: str) -> str:
    if related >= LEAST and unrelated >= LEAST:
        return ""
    return f"too little to go by: {related} lines with gold, {unrelated} {what}; each needs {LEAST}"


def _best(curve: Sequence[Point]) -> Point:
    """The middle of the plateau around the greatest value, the higher of two: a figure at a plateau's edge falls off
    with the next document."""
    top = max(range(len(curve)), key=lambda at: curve[at].value)
    first = last = top
    while first > 0 and curve[first - 1].value >= curve[top].value - FLAT:
        first -= 1
    while last + 1 < len(curve) and curve[last + 1].value >= curve[top].value - FLAT:
        last += 1
    return curve[(first + last + 1) // 2]


def _f_measure(precision: float, share: float) -> float:
    weight = BETA * BETA
    below = weight * precision + share
    return (1 + weight) * precision * share / below if below else 0.0


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def changed(text: str, settings: Iterable[Setting], where: str) -> tuple[str, Mapping[str, float]]:
    """The configuration `text` with each setting whose proposal is better, and what was set. Raises Refused where the
    text cannot be changed line by line."""
    from khms.config import check
    from khms.store.tomltext import set_value

    done: dict[str, float] = {}
    for setting in settings:
        if setting.better and setting.proposed is not None:
            value = check(setting.name, setting.proposed.threshold, where)
            text = set_value(text, setting.name, value, where)
            done[setting.name] = value
    return text, done
