"""What goes back to an agent: of bounded size, without anything that could pass for more than data."""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from khms.errors import KhmsError
from khms.model.frame import FRAME_HEAD, FRAME_START, framed, neutralise

# About 10,000 tokens: Claude Code warns of a tool's answer from there on and cuts it at 25,000.
LARGEST = 40_000  # characters of JSON
SHORTEST = 400  # characters to which a text is cut at most
_BREAKS = re.compile(r"([\n\t])")

Key = str | int
Way = tuple[Key, ...]


def about(path: str) -> str:
    """The sentence that stands beside every answer from a base."""
    return FRAME_HEAD.format(path=path).removeprefix(FRAME_START.partition(" ")[0] + " ")


def presented(value: dict[str, Any]) -> dict[str, Any]:
    """`value` as it may be shown: bounded, each text cleaned."""
    cleaned: dict[str, Any] = _cleaned(bounded(value))
    return cleaned


def text_of(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def bounded(value: dict[str, Any], largest: int = LARGEST) -> dict[str, Any]:
    """`value` within `largest` characters of JSON: the longest texts are cut, then the longest lists and mappings lose
    their last items. `cut` then says of what how much is left."""
    size = len(text_of(value))
    if size <= largest:
        return value
    value = copy.deepcopy(value)
    whole: dict[Way, tuple[int, int, str]] = {}
    while size > largest:
        way, size_of, kept = _shortened(value, size - largest)
        if not way:
            break
        whole[way] = (kept, whole.get(way, (0, size_of, ""))[1], "characters" if _is_text(value, way) else "items")
        value["cut"] = [_said(value, at, *figures) for at, figures in whole.items()]
        size = len(text_of(value))
    return value


def page(path: str, lines: list[str], largest: int = LARGEST) -> str:
    """Lines of a document within the frame; a long one is cut and says so in its last line."""
    text = "\n".join(lines)
    if len(text) > largest:
        lines = [*text[:largest].split("\n"), f"(cut: {largest:,} of {len(text):,} characters; open the file)"]
    return framed(path, lines)


def error_text(error: KhmsError) -> str:
    """What, where, what to do: a line each."""
    told = (error.message, error.where and f"where: {error.where}", error.hint and f"what to do: {error.hint}")
    text = "\n".join(neutralise(line) for part in told if part for line in part.split("\n"))
    return text if len(text) <= 4000 else text[:4000] + " (cut)"


def _said(value: dict[str, Any], way: Way, kept: int, whole: int, unit: str) -> str:
    place = value.get("path")
    rest = f"; the whole is in {place}" if isinstance(place, str) and unit == "characters" else ""
    return f"{'.'.join(map(str, way))}: {kept:,} of {whole:,} {unit}{rest}"


def _shortened(value: dict[str, Any], excess: int) -> tuple[Way, int, int]:
    """Shortens in place the longest text or else the largest container; its way, its size before and after."""
    leaves = [(len(item), way) for way, item in _walk(value) if isinstance(item, str) and len(item) > SHORTEST + 1]
    if leaves:
        length, way = max(leaves, key=lambda pair: pair[0])
        # an escaped character takes up to six
        kept = max(SHORTEST, min(length - excess - 300, length - 1))
        _put(value, way, _at(value, way)[:kept] + "…")
        return way, length, kept
    containers = [
        (len(item), way)
        for way, item in _walk(value)
        if isinstance(item, list | dict) and way and way[0] != "cut" and len(item) > 1
    ]
    if not containers:
        return (), 0, 0
    count, way = max(containers, key=lambda pair: pair[0])
    item, kept = _at(value, way), count // 2
    _put(value, way, item[:kept] if isinstance(item, list) else dict(list(item.items())[:kept]))
    return way, count, kept


def _walk(value: Any) -> Iterator[tuple[Way, Any]]:
    waiting: list[tuple[Way, Any]] = [((), value)]
    while waiting:
        way, item = waiting.pop()
        yield way, item
        if isinstance(item, dict):
            waiting += [((*way, key), inner) for key, inner in item.items()]
        elif isinstance(item, list):
            waiting += [((*way, at), inner) for at, inner in enumerate(item)]


def _at(value: Any, way: Way) -> Any:
    for key in way:
        value = value[key]
    return value


def _put(value: Any, way: Way, new: Any) -> None:
    _at(value, way[:-1])[way[-1]] = new


def _is_text(value: Any, way: Way) -> bool:
    return isinstance(_at(value, way), str)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return "".join(part if part in ("\n", "\t") else neutralise(part) for part in _BREAKS.split(value))
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return value
