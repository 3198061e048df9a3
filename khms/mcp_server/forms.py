"""The forms of what the tools take and give, as JSON Schema. An answer may get more keys: nothing is closed there."""

from typing import Any

Form = dict[str, Any]


def text(description: str, longest: int, *, shortest: int = 0, **more: Any) -> Form:
    least = {"minLength": shortest} if shortest else {}
    return {"type": "string", "description": description, "maxLength": longest, **least, **more}


def texts(description: str, most: int, longest: int) -> Form:
    items = {"type": "string", "maxLength": longest}
    return {"type": "array", "description": description, "items": items, "maxItems": most}


def count(description: str, most: int) -> Form:
    return {"type": "integer", "description": description, "minimum": 1, "maximum": most}


def flag(description: str) -> Form:
    return {"type": "boolean", "description": description, "default": False}


def takes(*required: str, **properties: Form) -> Form:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def gives(*required: str, **properties: Form) -> Form:
    """An answer: what is said of every one, and its own keys."""
    common = {
        "base": {"type": "string", "description": "the folder that relative paths are in"},
        "about": {"type": "string"},
        "remarks": _list({"type": "string"}),
        "cut": {**_list({"type": "string"}), "description": "what was shortened, and to how much"},
    }
    return {"type": "object", "properties": {**common, **properties}, "required": ["base", *required]}


def _list(items: Form) -> Form:
    return {"type": "array", "items": items}


_TEXT: Form = {"type": "string"}
_MAYBE: Form = {"type": ["string", "null"]}
_NUMBER: Form = {"type": "integer"}
_LINK: Form = {"type": "object", "properties": {"rel": _TEXT, "id": _TEXT, "title": _TEXT}, "required": ["rel", "id"]}
_HIT: Form = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "kind": _TEXT,
        "title": _TEXT,
        "path": _TEXT,
        "line": _NUMBER,
        "score": {"type": "number"},
        "status": _TEXT,
        "flags": _list(_TEXT),
        "snippet": _TEXT,
        "correctors": _list(_LINK),
        "links": _list(_LINK),
    },
    "required": ["id", "kind", "title", "path", "line"],
}
_SCHEMA: Form = {"type": "string", "description": "the answer's own form and version"}

HITS = gives(
    "hits",
    schema=_SCHEMA,
    hits=_list(_HIT),
    query=_TEXT,
    channel=_TEXT,
    elsewhere={"type": "object", "description": "how much other shelves hold: unreviewed, fog (the archive)"},
)
KNOWN = gives("hits", schema=_SCHEMA, hits=_list(_HIT), tags=_list(_TEXT), classes=_list(_TEXT), total=_NUMBER)
DOCUMENT = gives(
    *("kind", "id", "path", "body"),
    schema=_SCHEMA,
    kind=_TEXT,
    id=_TEXT,
    path=_TEXT,
    line=_NUMBER,
    title=_TEXT,
    body=_TEXT,
    meta={"type": "object"},
    correctors=_list(_LINK),
    links=_list(_LINK),
    notes=_list(_TEXT),
    warning=_MAYBE,
)
MARKED = gives(
    *("id", "path", "line"), schema=_SCHEMA, id=_TEXT, kind=_TEXT, text=_TEXT, path=_TEXT, line=_NUMBER,
    redacted={"type": "boolean", "description": "something that looks like a secret was taken out"},
)  # fmt: skip
PROPOSED = gives(
    *("unit", "label", "path", "next"),
    schema=_SCHEMA,
    unit=_TEXT,
    label=_TEXT,
    path=_TEXT,
    commit=_TEXT,
    nearest=_list({"type": "object"}),
    checks={"type": "object"},
    findings=_list({"type": "object"}),
    next={"type": "string", "description": "what is left to a person"},
)
UNITS = gives(
    "units",
    schema=_SCHEMA,
    units=_list(
        {
            "type": "object",
            "properties": {
                "unit": _TEXT,
                "pending": _NUMBER,
                "branch": _MAYBE,
                "candidates": _list({"type": "object"}),
            },
            "required": ["unit", "pending"],
        }
    ),
)
