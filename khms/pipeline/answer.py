"""A model's answer as text becomes the one JSON object in it.

Reasoning before the answer, a fence around it and words beside it are passed over. Exactly one object that fits is
taken: two that differ are an error, and where none fits it is said what is wrong with the nearest one. An answer is
never read line by line, nor completed where it was cut off: what is guessed into it nobody said.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

LARGEST = 1024 * 1024  # characters that are looked at
TRIED = 1000  # braces from which an object is looked for: a text of nothing but braces would take minutes
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()


class Unusable(Exception):
    """Why an answer does not count, in words that the model can act on. `format` is true where the words may be right
    and only their form is wrong: then a repair can help."""

    def __init__(self, why: str, *, format: bool = False) -> None:
        super().__init__(why)
        self.format = format


def read(text: str, wrong: Callable[[dict[str, Any]], list[str]]) -> dict[str, Any]:
    """The one object of `text` with which nothing is `wrong`; raises Unusable. The same object said twice is one."""
    if not text.strip():
        raise Unusable("the answer is empty")
    if len(text) > LARGEST:
        raise Unusable(f"the answer is over {LARGEST} characters long")
    found = list(_objects(_THOUGHT.sub("", text)))
    if not found:
        cut = text.count("{") > text.count("}")
        raise Unusable("the JSON object is cut off" if cut else "there is no JSON object in it", format="{" in text)
    faults = [(value, wrong(value)) for value in found]
    right: list[dict[str, Any]] = []
    for value, said in faults:
        if not said and value not in right:
            right.append(value)
    if len(right) > 1:
        raise Unusable(f"there are {len(right)} different JSON objects in it; answer with one")
    if right:
        return right[0]
    _, said = min(faults, key=lambda fault: len(fault[1]))
    raise Unusable("; ".join(said[:5]), format=True)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object in the text that stands in no other one."""
    at = text.find("{")
    for _ in range(TRIED):
        if at < 0:
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            return
        except ValueError:
            at += 1
        else:
            yield value
        at = text.find("{", at)
