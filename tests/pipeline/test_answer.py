"""Which object of a model's answer counts, and why none does."""

import json
from typing import Any

import pytest

from khms.pipeline import answer
from khms.pipeline.answer import Unusable
from khms.store import schema

RIGHT = {"verdict": "not-carded", "reason": 'a {brace} and a "quote" in it'}
OTHER = {"verdict": "already-carded", "card": "K-00001"}


def wrong(value: dict[str, Any]) -> list[str]:
    return [words for _, words in schema.problems("verdict", value)]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RIGHT),
        f"```json\n{json.dumps(RIGHT, indent=2)}\n```",
        f"Here is my verdict:\n\n{json.dumps(RIGHT)}\n\nI hope {{this}} helps.",
        f"<think>perhaps {json.dumps(OTHER)}?</think>\n{json.dumps(RIGHT)}",
        f"{json.dumps(RIGHT)}\n{json.dumps(RIGHT)}",
        f'{{"note": "not the answer"}} {json.dumps(RIGHT)}',
        f"[{json.dumps(RIGHT)}]",
        f"\ufeff{json.dumps(RIGHT)}",
    ],
    ids=["bare", "fenced", "prose", "thought", "twice-the-same", "beside-another", "in-a-list", "bom"],
)
def test_the_one_object_that_fits_is_found(text: str) -> None:
    assert answer.read(text, wrong) == RIGHT


@pytest.mark.parametrize(
    ("text", "said", "form"),
    [
        ("", "empty", False),
        ("I cannot help with that.", "no JSON object", False),
        (json.dumps(RIGHT)[:-3], "cut off", True),
        (f"{json.dumps(RIGHT)} or else {json.dumps(OTHER)}", "2 different", False),
        ('{"verdict": "maybe"}', "maybe", True),
        ('{"verdict": "not-carded"}', "reason", True),
        (f"<think>{json.dumps(RIGHT)}", "cut off|no JSON", True),
        ('"' + "x" * answer.LARGEST + '"', "long", False),
        ('{"a":' * 100_000, "cut off", True),
    ],
    ids=["empty", "prose", "cut", "two", "unknown", "missing", "thought-only", "huge", "deep"],
)
def test_what_does_not_count_says_why(text: str, said: str, form: bool) -> None:
    with pytest.raises(Unusable, match=said) as error:
        answer.read(text, wrong)
    assert error.value.format is form


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"verdict": "already-carded", "card": "K-00001", "verdict": "not-carded", "reason": "no"}', "twice"),
        ('{"verdict": "not-carded", "reason": "no", "more": {"a": 1, "a": 2}}', "twice"),
        ('{"verdict": "not-carded", "reason": "no", "sure": NaN}', "NaN"),
        ('{"verdict": "not-carded", "reason": "no", "sure": -Infinity}', "Infinity"),
        (f'{{"verdict": "not-carded", "reason": "no", "sure": {"9" * 6000}}}', "digits"),
        ('{"verdict": "not-carded", "reason": "half \\ud800 a character"}', "surrogate"),
        (f'{{"said": NaN, "answer": {json.dumps(RIGHT)}}}', "NaN"),
    ],
    ids=["key", "inner-key", "nan", "infinity", "digits", "surrogate", "inner-object"],
)
def test_what_can_be_read_in_two_ways_or_kept_in_no_file_does_not_count(text: str, said: str) -> None:
    with pytest.raises(Unusable, match=said) as error:
        answer.read(text, wrong)
    assert error.value.format


def test_an_answer_in_lines_is_never_pieced_together() -> None:
    with pytest.raises(Unusable):
        answer.read('"verdict": "not-carded",\n"reason": "it says nothing"', wrong)
