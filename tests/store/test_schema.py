import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.store import schema

CARD = {"id": "K-00001", "type": "fact", "level": "observation", "status": "active", "date": "2026-03-04"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("2026-03-04", True),
        ("2028-02-29", True),
        ("2026-03-04T10:00", True),
        ("2026-07-30T09:05:28-06:00", True),
        ("2026-03-04 10:00:00.5Z", True),
        ("2026-02-30", False),
        ("2026-13-01", False),
        ("2026-03-04T25:00", False),
        ("20260304", False),
        ("2026-W10-3", False),
        ("4 March 2026", False),
        ("", False),
    ],
)
def test_days_and_times(text: str, holds: bool) -> None:
    assert schema.is_day_or_time(text) is holds
    assert schema.fits("card", CARD | {"date": text}) is holds


def test_a_card_needs_five_keys_and_keeps_what_it_does_not_know() -> None:
    assert schema.problems("card", CARD | {"x_custom": "kept", "nested": {"a": ["b", None]}}) == []
    for key in CARD:
        rest = {name: value for name, value in CARD.items() if name != key}
        assert schema.problems("card", rest) == [("", f"`{key}` is missing")]


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"id": "K-1"}, "/id", "`id` cannot be `K-1`"),
        ({"id": "C1"}, "/id", "`id` cannot be `C1`"),
        ({"type": "problem→solution"}, "", ""),
        ({"type": "action->outcome"}, "", ""),
        ({"type": "Two words"}, "/type", "`type` cannot be `Two words`"),
        ({"level": "obs"}, "/level", "`level` must be observation, derived or assumption, not `obs`"),
        (
            {"status": None},
            "/status",
            "`status` must be active, challenged, refuted, superseded or condensed, not empty",
        ),
        ({"title": None}, "", ""),
        ({"title": ["x"]}, "/title", "`title` must be a text or empty, not a list"),
        ({"tags": "sensors"}, "/tags", "`tags` must be a list or empty, not `sensors`"),
        ({"tags": ["a", None]}, "/tags/1", "`tags[1]` must be a text, not empty"),
        ({"evidence": "seen"}, "/evidence", "`evidence` must be measured, observed or reported, not `seen`"),
        ({"date": "2026-02-30"}, "/date", "`date` is no day of the calendar: `2026-02-30`"),
        ({"links": []}, "/links", "`links` must be a mapping or empty, not a list"),
        (
            {"links": {"supports": "K-00002"}},
            "/links/supports",
            "`links.supports` must be a list or empty, not `K-00002`",
        ),
        ({"links": {"supersedes": "K-00002"}}, "", ""),
        ({"links": {"supersedes": ["K-00002", "x"]}}, "/links/supersedes/1", "`links.supersedes[1]` cannot be `x`"),
    ],
)
def test_one_problem_a_place_in_plain_words(changes: dict[str, object], pointer: str, words: str) -> None:
    expected = [(pointer, words)] if words else []
    assert schema.problems("card", CARD | changes) == expected
    assert schema.fits("card", CARD | changes) is not expected


def test_numbers_are_converted_where_the_schema_asks_for_them() -> None:
    meta = CARD | {
        "id": "C1",
        "title": "t",
        "confidence": "0.8",
        "other": "0.8",
        "quotes": [{"source": "s", "text": "7"}],
    }
    value = schema.convert(meta, "candidate")
    assert value["confidence"] == 0.8
    assert value["other"] == "0.8" and value["quotes"][0]["text"] == "7"
    assert schema.problems("candidate", value) == []
    assert schema.convert(CARD, "card") == CARD


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "0x1", "high", "", "1e400", "٣", "1.5", "-0.1", "9" * 5000])
def test_what_is_no_confidence_stays_and_is_named(text: str) -> None:
    value = schema.convert(CARD | {"id": "C1", "title": "t", "confidence": text}, "candidate")
    assert [pointer for pointer, _ in schema.problems("candidate", value)] == ["/confidence"]


def test_a_candidate_has_a_title() -> None:
    value = CARD | {"id": "C1"}
    assert schema.problems("candidate", value) == [("", "`title` is missing")]
    for title in (None, "", "  "):
        assert [pointer for pointer, _ in schema.problems("candidate", value | {"title": title})] == ["/title"]


def test_odd_values_are_no_crash() -> None:
    deep: object = None
    for _ in range(5000):
        deep = [deep]
    for odd in ("\ud800", b"bytes", {1: 2}, deep, float("nan"), 10**400, (), object()):
        assert not schema.fits("verdict", odd)
        assert schema.problems("verdict", odd)


def test_what_a_place_means_comes_from_the_schema() -> None:
    assert "five digits" in schema.meaning("card", "/id")
    assert "five digits" in schema.meaning("card", "/links/supports/0")
    assert schema.meaning("candidate", "/quotes/0/grade").startswith("EXACT")
    assert schema.meaning("card", "/unknown/0") == "" and schema.meaning("card", "") == ""


VERDICTS = [
    {"verdict": "not-carded", "reason": "small talk"},
    {"verdict": "already-carded", "card": "K-00001"},
    {"verdict": "attach", "to": "C1", "text": "and more", "quotes": [{"source": "journal", "text": "and more of it"}]},
    {"verdict": "new", "candidate": {"title": "t", "body": "b"}, "quotes": [], "relation": {"kind": "new"}},
    {
        "verdict": "correct",
        "corrects": "K-00001",
        "how": "supersedes",
        "because": "newer",
        "candidate": {"title": "t", "type": "fact", "body": "b", "tags": ["x"]},
        "quotes": [{"source": "K-00001", "text": "words"}],
    },
]


@pytest.mark.parametrize("value", VERDICTS, ids=lambda value: value["verdict"])
def test_the_five_verdicts_and_what_each_needs(value: dict[str, object]) -> None:
    assert schema.problems("verdict", value) == []
    optional = {"text", "relation"}
    for key in value.keys() - optional:
        assert not schema.fits("verdict", {name: held for name, held in value.items() if name != key}), key


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"verdict": "maybe"},
        VERDICTS[0] | {"candidate": {"title": "t", "body": "b"}},
        VERDICTS[1] | {"card": "../../etc"},
        VERDICTS[2] | {"to": "C1/../x"},
        VERDICTS[3] | {"candidate": {"title": None, "body": "b"}},
        VERDICTS[3] | {"candidate": {"title": "t", "body": "b", "id": "../../escape"}},
        VERDICTS[3] | {"candidate": {"title": "t", "body": float("nan")}},
        VERDICTS[4] | {"how": "supports"},
    ],
)
def test_what_is_no_verdict(value: object) -> None:
    assert schema.problems("verdict", value)


def test_the_shared_replies_of_models(shared) -> None:  # type: ignore[no-untyped-def]
    replies = json.loads(Path(shared("cases/39-model-replies.json")).read_text(encoding="utf-8"))
    said = []
    for reply in replies:
        try:
            value = json.loads(reply)
        except ValueError:
            continue
        if schema.fits("verdict", value):
            said.append(value["verdict"])
    assert said == ["new", "attach"]  # one quotes what stands nowhere, one an unknown label: other checks see that


KEYS = ("id", "type", "tags", "links", "verdict", "candidate", "title", "body", "quotes", "confidence")
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 2) | st.sampled_from(["K-00001", "C1", "new"])
values = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)


@given(values, st.sampled_from(["card", "candidate", "verdict", "unit", "approval", "receipt", "tags"]))
def test_two_validators_agree(value: object, name: str) -> None:
    """The quick validator against the reference one; formats are this package's own and left out."""
    definition = schema.definition(name)
    reference = jsonschema.Draft202012Validator(definition)
    found = schema.problems(name, value)
    assert schema.fits(name, value) is (not found)
    if not any("calendar" in words for _, words in found):
        assert reference.is_valid(value) is (not found)
