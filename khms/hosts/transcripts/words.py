"""Getting words out of what hosts wrote: texts of JSON values, times, lines that tell an error, and cutting out what
nobody said."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from khms.model.frame import FRAME_HEAD, FRAME_TAIL

if TYPE_CHECKING:
    from collections.abc import Iterator

ERROR_LINES, ERROR_TEXT = 20, 2000
_WIDEST = 300  # characters of a line that are looked at
_TELLS = re.compile(
    r"error|fail|fatal|panic|exception|traceback|abort|denied|cannot|can't|could not|unable|not found|no such|"
    r"not exist|not permitted|not allowed|unknown|undefined|unresolved|unexpected|invalid|illegal|missing|refused|"
    r"rejected|conflict|timed? ?out|killed|segmentation|overflow|^E\s|✗|✘|❌",
    re.IGNORECASE,
)
_OPENING = FRAME_HEAD.partition("{")[0]
_FRAME = re.compile(rf"{re.escape(_OPENING)}(?:(?!{re.escape(_OPENING)}).)*?{re.escape(FRAME_TAIL)}", re.DOTALL)
_OPEN_FRAME = re.compile(rf"{re.escape(_OPENING)}.*?(?=\n\s*\n|\Z)", re.DOTALL)


def text_of(value: object) -> str:
    """A text as it is, and nothing of any other value."""
    return value if isinstance(value, str) else ""


def texts(value: object, depth: int = 8) -> Iterator[str]:
    """Every text in a JSON value, as deep as a tool's input goes."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from texts(part, depth - 1)
    elif depth and isinstance(value, list):
        for part in value:
            yield from texts(part, depth - 1)


def blocks(value: object) -> list[dict[str, object]]:
    """A message's content as a list of blocks, whether it is written so or as one text."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [block for block in value if isinstance(block, dict)] if isinstance(value, list) else []


def seconds(stamp: object) -> float:
    """An ISO 8601 time, or milliseconds since the epoch, as seconds since the epoch; 0 for anything else."""
    try:
        if isinstance(stamp, str):
            return datetime.fromisoformat(stamp).timestamp()
        if isinstance(stamp, int | float) and not isinstance(stamp, bool):
            return datetime.fromtimestamp(stamp / 1000).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    return 0.0


def whole(text: str) -> str:
    """`text` with U+FFFD for half characters, which JSON can spell and no encoder takes."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def unframed(text: str) -> str:
    """`text` without what khms had put in. A frame whose end is lost goes as far as its paragraph."""
    if _OPENING not in text:
        return text
    return _OPEN_FRAME.sub("", _FRAME.sub("", text))


def without(text: str, tag: str) -> str:
    """`text` without the elements of this name. One that does not end goes to the end of the text."""
    return re.sub(rf"<{tag}>.*?(?:</{tag}>|\Z)", "", text, flags=re.DOTALL)


def error_lines(output: str, *, first: bool = False) -> str:
    """The lines of a failed tool's output that tell of an error, each once: the first and the last of them where there
    are many. With `first` the first line counts whatever it says: the host's own message."""
    found: dict[str, None] = {}
    for line in output.splitlines():
        short = line.strip()[:_WIDEST]
        if short and (_TELLS.search(short) or (first and not found)):
            found[short] = None
    lines = list(found)
    half = ERROR_LINES // 2
    kept = lines if len(lines) <= ERROR_LINES else lines[:half] + lines[-half:]
    return "\n".join(kept)[:ERROR_TEXT]
