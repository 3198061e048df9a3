"""What a host takes of a JSON schema.

Measured on Claude Code 2.1.332 and Codex 0.171: the former refuses a schema that names its draft by `$schema`, and the
models' interfaces behind both refuse combinations at the top (`allOf`, `if` …). A strict form, as OpenAI's interface
wants it, names every key of an object as required; one that may be absent is null then.
"""

import json
from collections.abc import Mapping
from typing import Any

_COMBINED = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
_NAMES = ("$schema", "$id", "$comment", "title")
# What a strict form may not hold beside structure, types, words and choices.
_STRICT = ("type", "properties", "required", "additionalProperties", "items", "enum", "const", "description", "$ref",
           "$defs", "anyOf")  # fmt: skip


def plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without combinations and names at its top; what is left out is still checked afterwards."""
    return {key: value for key, value in schema.items() if key not in (*_COMBINED, *_NAMES)}


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the strict form. An answer of that form becomes one of the schema by `without_nulls`."""
    found: dict[str, Any] = {key: value for key, value in plain(schema).items() if key in _STRICT}
    if isinstance(schema.get("anyOf"), list) and "type" not in schema:
        found["anyOf"] = [strict(part) for part in schema["anyOf"] if isinstance(part, Mapping)]
    if "$ref" in found:
        return {"$ref": found["$ref"]}
    if isinstance(found.get("items"), Mapping):
        found["items"] = strict(found["items"])
    if "$defs" in found:
        found["$defs"] = {name: strict(part) for name, part in found["$defs"].items()}
    properties = found.get("properties")
    if isinstance(properties, Mapping):
        needed = schema.get("required", ())
        shaped = {name: strict(part) for name, part in properties.items() if isinstance(part, Mapping)}
        found["properties"] = {name: part if name in needed else _or_null(part) for name, part in shaped.items()}
        found["required"] = list(shaped)
        found["additionalProperties"] = False
    return found


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def without_nulls(text: str) -> str:
    """An answer that is one JSON object, without its keys that are null; any other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(_filled(value), ensure_ascii=False) if isinstance(value, dict) else text


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(part) for key, part in value.items() if part is not None}
    return [_filled(part) for part in value] if isinstance(value, list) else value
