"""A model's answer as text becomes the one JSON object in it.

Reasoning before the answer, a fence around it and words beside it are passed over. Exactly one object that fits is
taken: two that differ are an error, and where none fits it is said what is wrong with the nearest one. An answer is
never read line by line, nor completed where it was cut off: what is guessed into it nobody said. Nor does one count of
which readers make different things (a key said twice, NaN), or that no file can hold (half of a surrogate pair).
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

LARGEST = 1024 * 1024  # characters that are looked at
TRIED = 1000  # braces from which an object is looked for: a text of nothing but braces would take minutes
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
DIGITS = 300  # of a number; Python reads no more than 4300, and no figure of an answer is so long


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
    faults = [(value, odd or wrong(value)) for value, odd in found]
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


def _objects(text: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Every JSON object in the text that stands in no other one, and what keeps it from being read in one way only."""
    odd: list[str] = []

    def pairs(held: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(held)
        if len(value) < len(held):
            odd.append("a key stands twice in one object")
        return value

    def number(digits: str) -> int:
        if len(digits) > DIGITS:
            odd.append(f"a number has over {DIGITS} digits")
            return 0
        return int(digits)

    def constant(name: str) -> None:
        odd.append(f"{name} is no JSON")

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_int=number, parse_constant=constant)
    at = text.find("{")
    for _ in range(TRIED):
        if at < 0:
            return
        odd.clear()
        try:
            value, at = decoder.raw_decode(text, at)
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except RecursionError:
            return
        except UnicodeEncodeError:
            yield value, ["there is half of a surrogate pair in it, which is no character"]
        except ValueError:
            at += 1
        else:
            yield value, list(dict.fromkeys(odd))
        at = text.find("{", at)
