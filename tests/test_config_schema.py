"""schemas/khms.schema.json is the settings table in the form that editors check khms.toml with.

After a change of the table: python tests/test_config_schema.py writes it anew.
"""

import json
from pathlib import Path
from typing import Any

from khms.config import OPTIONS
from khms.resources import folder

TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def wanted() -> dict[str, Any]:
    sections: dict[str, Any] = {}
    for option in OPTIONS:
        section, _, key = option.name.partition(".")
        held = sections.setdefault(section, {"type": "object", "properties": {}, "additionalProperties": False})
        held["properties"][key] = {
            "description": option.meaning,
            "type": TYPES[type(option.default)],
            "default": option.default,
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://khms.dev/schemas/khms.schema.json",
        "title": "Settings of a base or of a user",
        "description": "khms.toml and the user's config.toml: differences from the defaults.",
        "type": "object",
        "properties": sections,
        "additionalProperties": False,
    }


def path() -> Path:
    return folder("schemas") / "khms.schema.json"


def test_the_schema_is_the_table() -> None:
    assert json.loads(path().read_text(encoding="utf-8")) == wanted(), "run: python tests/test_config_schema.py"


if __name__ == "__main__":
    path().write_text(json.dumps(wanted(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
