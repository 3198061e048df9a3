"""The JSON Schemas as the program uses them: a quick yes or no, and what is wrong in words.

A file under `schemas/` is the only definition of its format. The validator is jsonschema-rs: over 10,000 cards it costs
25 ms where jsonschema costs 3.5 s, and it knows the 2020-12 vocabulary that fastjsonschema lacks.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from khms import resources
from khms.store import files

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_WORDS = {
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
}
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?")


@cache
def definition(name: str) -> dict[str, Any]:
    """The schema `name` (card, candidate, unit, verdict, …) as parsed JSON; not to be changed."""
    path = resources.folder("schemas") / f"{name}.schema.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def is_day_or_time(text: str) -> bool:
    """Whether `text` is a day that the calendar has, or an ISO 8601 time on such a day."""
    from datetime import datetime

    try:
        return _TIME.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


@cache
def _validator(name: str) -> "Validator":
    import jsonschema_rs

    return jsonschema_rs.validator_for(definition(name), validate_formats=True, formats={"day-or-time": is_day_or_time})


def fits(name: str, value: object) -> bool:
    """Whether `value` is valid under the schema `name`: `problems` without the words."""
    try:
        return _validator(name).is_valid(value)
    except ValueError:
        return False


def problems(name: str, value: object) -> list[tuple[str, str]]:
    """What keeps `value` from being valid under the schema `name`, each as (JSON pointer, one line of words): every
    missing key, and one problem a place."""
    return _problems(_validator(name), value)


def problems_under(form: Mapping[str, Any], value: object) -> list[tuple[str, str]]:
    """`problems` under a schema that is no file."""
    import jsonschema_rs

    return _problems(jsonschema_rs.validator_for(dict(form)), value)


def _problems(validator: "Validator", value: object) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], str] = {}
    try:
        for error in validator.iter_errors(value):
            where = pointer(error.instance_path)
            missing = error.kind.value if error.kind.name == "required" else ""
            found.setdefault((where, str(missing)), _words(error))
    except ValueError as error:  # a lone surrogate, a key that is no text, nesting beyond the validator's depth
        return [("", f"this cannot be read: {error}")]
    return [(where, words) for (where, _), words in found.items()]


def pointer(path: Sequence[str | int]) -> str:
    """A JSON pointer (RFC 6901) of the path into a value."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def keys(pointer: str) -> list[str]:
    """The steps of a JSON pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def meaning(name: str, pointer: str) -> str:
    """What the schema says about the value at `pointer`: its description, else its title, else nothing."""
    schema = definition(name)
    node: Any = schema
    said: str = ""
    for step in keys(pointer):
        node = _resolved(node, schema)
        below = node.get("properties", {}).get(step)
        node = below if below is not None else node.get("items") if step.isdigit() else None
        if not isinstance(node, Mapping):
            return said
        said = node.get("description") or _resolved(node, schema).get("description") or node.get("title") or said
    return said


def _resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`node`, or what its `$ref` into the schema's own definitions means."""
    while "$ref" in node:
        found: Any = schema
        for step in keys(node["$ref"].removeprefix("#")):
            found = found[step]
        node = found
    return node


def convert(meta: Mapping[str, Any], name: str) -> dict[str, Any]:
    """`meta` with texts turned into numbers and booleans where the schema `name` asks for them; a text that is none
    stays, for the validator to name."""
    schema = definition(name)
    return {key: _converted(value, schema["properties"].get(key), schema) for key, value in meta.items()}


def _converted(value: Any, node: object, schema: Mapping[str, Any]) -> Any:
    if not isinstance(node, Mapping):
        return value
    node = _resolved(node, schema)
    if isinstance(value, str):
        return _scalar(value, node.get("type", "string"))
    if isinstance(value, list):
        return [_converted(item, node.get("items"), schema) for item in value]
    if isinstance(value, Mapping):
        below = node.get("properties", {})
        return {key: _converted(item, below.get(key), schema) for key, item in value.items()}
    return value


def _scalar(text: str, types: str | Sequence[str]) -> Any:
    types = (types,) if isinstance(types, str) else types
    if "string" in types:
        return text
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    if ("number" in types or "integer" in types) and _NUMBER.fullmatch(text):
        return files.parse_json(text)
    return text


def _shown(path: Sequence[str | int]) -> str:
    """`links.supports[0]` in backticks; the whole value where the path is empty."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    return f"`{text}`" if text else "this"


def _short(value: object) -> str:
    if isinstance(value, str):
        return f"`{value}`" if len(value) <= 60 else f"`{value[:59]}…`"
    if value is None:
        return "empty"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    return f"`{value}`"


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _words(error: "ValidationError") -> str:
    """The error in the words of whoever wrote the file."""
    kind, where, asked = error.kind.name, _shown(error.instance_path), error.kind.value
    value = error.instance
    if kind == "required":
        return f"`{asked}` is missing" + (f" in {where}" if error.instance_path else "")
    if kind == "type":
        types = sorted(asked if isinstance(asked, list) else [asked], key=list(_WORDS).index)
        return f"{where} must be {_either([_WORDS[name] for name in types])}, not {_short(value)}"
    if kind == "enum":
        options = [str(option) for option in asked if option]
        return f"{where} must be {_either(options)}, not {_short(value)}"
    if kind == "constant":
        return f"{where} must be `{asked}`, not {_short(value)}"
    if kind == "format":
        return f"{where} is no day of the calendar: {_short(value)}"
    if kind == "pattern":
        return f"{where} cannot be {_short(value)}"
    if kind == "minLength":
        return f"{where} is empty"
    if kind in ("maxLength", "maxItems"):
        size = len(value) if isinstance(value, str | list) else 0
        return f"{where} has {size:,} {'characters' if kind == 'maxLength' else 'items'}, at most {asked:,} will do"
    if kind in ("minimum", "maximum"):
        return f"{where} must be at {'least' if kind == 'minimum' else 'most'} {asked}, not {_short(value)}"
    if kind == "additionalProperties":
        return f"{where} has no key {_either([f'`{key}`' for key in asked])}"
    if kind == "falseSchema":
        return f"{where} does not belong here"
    return f"{where}: {error.message}"
