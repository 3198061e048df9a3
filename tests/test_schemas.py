"""The shipped schemas: they are valid, they teach, they agree with the code that writes what they describe.

`python tests/test_schemas.py` writes schemas/config.schema.json anew from the table of settings.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from khms.model.approval import Approval, Approved, Transition, Waiver
from khms.model.candidate import CANDIDATE_KEYS, RELATION_KINDS, Candidate, Quote, Relation
from khms.model.card import EVIDENCE, KEYS, LEVELS, RELATIONS, STATUSES
from khms.model.receipt import Receipt
from khms.options import OPTIONS
from khms.store import schema

FOLDER = Path(__file__).parents[1] / "schemas"
NAMES = sorted(path.name.removesuffix(".schema.json") for path in FOLDER.glob("*.schema.json"))


def config_schema() -> dict[str, Any]:
    """The schema of khms.toml, made of the table of settings."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    below: dict[str, Any] = {
        "cards.types": {
            "type": "object",
            "required": ["level"],
            "properties": {
                "level": {"enum": list(LEVELS)},
                "labels": {"type": "array", "items": {"type": "string"}},
            },
        },
        "index.include": {"type": "string"},
        "precheck.classes": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "patterns": {"type": "array", "items": {"type": "string"}},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        },
    }
    sections: dict[str, dict[str, Any]] = {}
    for option in OPTIONS:
        section, _, key = option.name.partition(".")
        entry: dict[str, Any] = {"description": option.meaning, "type": names[type(option.default)]}
        if isinstance(option.default, list):
            entry["items"] = {"type": "string"}
        bounds = {"minimum": option.least, "maximum": option.most, "enum": list(option.choices) or None}
        entry |= {key: value for key, value in bounds.items() if value is not None}
        if option.name in below:
            entry["additionalProperties"] = below[option.name]
        if option.needs_trust:
            entry["$comment"] = "counts in a base that this user trusted"
        sections.setdefault(section, {})[key] = entry | {"default": option.default}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://khms.dev/schemas/config.schema.json",
        "title": "Configuration",
        "description": "khms.toml and the user's config.toml: only what differs from the defaults.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            section: {"type": "object", "additionalProperties": False, "properties": keys}
            for section, keys in sections.items()
        },
    }


def config_text() -> str:
    return json.dumps(config_schema(), ensure_ascii=False, indent=2) + "\n"


def test_config_schema_is_what_the_settings_say() -> None:
    held = (FOLDER / "config.schema.json").read_text(encoding="utf-8")
    assert held == config_text(), "write it anew: python tests/test_schemas.py"


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_valid_schema_with_its_address_and_words(name: str) -> None:
    held = schema.definition(name)
    jsonschema.Draft202012Validator.check_schema(held)
    assert held["$id"] == f"https://khms.dev/schemas/{name}.schema.json"
    assert held["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert held["title"] and held["description"]


@pytest.mark.parametrize("name", ["card", "candidate", "change", "principle", "verdict", "approval", "receipt", "unit"])
def test_every_key_says_what_it_is(name: str) -> None:
    for key, node in schema.definition(name)["properties"].items():
        assert node.get("title") or node.get("description") or "const" in node, key


def test_a_candidate_is_a_card_with_a_label_and_six_keys() -> None:
    card, candidate = (schema.definition(name)["properties"] for name in ("card", "candidate"))
    assert tuple(card) == KEYS
    assert tuple(candidate) == KEYS + CANDIDATE_KEYS
    for key in KEYS:
        if key not in ("id", "title"):
            assert card[key] == candidate[key], key


def test_the_words_of_the_schema_are_the_words_of_the_code() -> None:
    card = schema.definition("card")["properties"]
    assert tuple(card["level"]["enum"]) == LEVELS
    assert tuple(card["status"]["enum"]) == STATUSES
    assert tuple(card["evidence"]["enum"]) == (*EVIDENCE, None)
    assert tuple(card["links"]["properties"]) == RELATIONS
    candidate = schema.definition("candidate")["properties"]
    assert tuple(candidate["relation"]["properties"]["kind"]["enum"]) == RELATION_KINDS


def test_what_the_code_writes_is_valid() -> None:
    sha = "0" * 64
    record = Approval(
        id="01JDXKQZ8V7M3N5P9R2T4W6Y8A",
        unit="memory/inbox/2026-03-05-nightly",
        reviewer="Ada <ada@example.org>",
        at="2026-03-05T08:00:00+01:00",
        parent=None,
        cards=(Approved("K-00001", "C1", sha, sha, ("K-00002",)),),
        transitions=(Transition("K-00003", "status", "active", "superseded", "by K-00001"),),
        waivers=(Waiver("quotes", "C1", "seen on paper"),),
    )
    assert schema.problems("approval", record.as_json()) == []
    receipt = Receipt("M-0123456789ab", "propose", "new", "01JDXKQZ8V7M3N5P9R2T4W6Y8A", "u", "C1", "", "2026-03-05")
    assert schema.problems("receipt", json.loads(receipt.line())) == []
    meta = {
        "id": "C1", "type": "fact", "level": "observation", "status": "active", "title": "t", "date": "2026-03-04",
        "confidence": "0.8", "relation": Relation("new").as_meta(), "quotes": [Quote("journal", "words").as_meta()],
    }  # fmt: skip
    assert Candidate("C1", meta, "").relation.kind == "new"
    assert schema.problems("candidate", schema.convert(meta, "candidate")) == []


if __name__ == "__main__":
    (FOLDER / "config.schema.json").write_text(config_text(), encoding="utf-8")
