"""Files that are no pages: approval records, receipts, unit.json, the tag registry, khms.toml, journal days."""

import json
import re
from collections.abc import Iterator
from typing import Any

from khms import config
from khms.check.context import Context
from khms.check.subject import APPROVAL, RECEIPT, SETTINGS, TAG_FILE, UNIT, Fault, Subject
from khms.errors import Refused
from khms.store import files, schema
from khms.store.yamltext import Unreadable

_RESTORE = "restore it: git checkout -- FILE"


def readable(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH001 for what is no page: it parses, and its schema accepts it."""
    if subject.error is not None:
        yield Fault(subject.error.line, subject.error.message, subject.error.mend)
    elif (line := _undecodable(subject.entry.data)) is not None:
        yield Fault(line, "this is not UTF-8", "save the file as UTF-8")
    elif not subject.path.isprintable():
        yield Fault(0, "the file's name is not plain text, so its lines are passed over", "rename the file")
    elif subject.kind == SETTINGS:
        yield from _settings(subject)
    elif subject.kind == TAG_FILE:
        yield from _tags(subject)
    elif subject.kind == RECEIPT:
        yield from _receipts(subject)
    elif subject.kind in (APPROVAL, UNIT):
        yield from _json(subject, {APPROVAL: "approval", UNIT: "unit"}[subject.kind])


def _undecodable(data: bytes) -> int | None:
    """The line of the first byte that is not UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return None


def _value(text: str) -> tuple[Any, Fault | None]:
    try:
        return files.parse_json(text), None
    except json.JSONDecodeError as error:
        return None, Fault(error.lineno, f"this is no JSON: {error.msg}", _RESTORE)
    except (ValueError, RecursionError) as error:
        return None, Fault(1, f"this is no JSON: {error}", _RESTORE)


def _json(subject: Subject, name: str) -> Iterator[Fault]:
    value, fault = _value(subject.text)
    if fault is not None:
        yield fault
        return
    for pointer, message in schema.problems(name, value):
        yield Fault(_json_line(subject.text, pointer), message, schema.meaning(name, pointer) or _RESTORE)
    if name == "approval" and isinstance(value, dict) and value.get("id") != subject.name:
        yield Fault(1, f"`id` is {value.get('id')}, but the file's name is {subject.name}", _RESTORE)


def _json_line(text: str, pointer: str) -> int:
    """The line of the pointer's last key, where the file is laid out one key a line."""
    key = next((step for step in reversed(schema.keys(pointer)) if not step.isdigit()), "")
    at = text.find(json.dumps(key, ensure_ascii=False) + ":") if key else -1
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def _receipts(subject: Subject) -> Iterator[Fault]:
    for number, line in enumerate(subject.text.split("\n"), 1):
        if not line.strip():
            continue
        value, fault = _value(line)
        if fault is not None:
            yield Fault(number, fault.message, fault.mend)
            continue
        for pointer, message in schema.problems("receipt", value):
            yield Fault(number, message, schema.meaning("receipt", pointer) or _RESTORE)


def _tags(subject: Subject) -> Iterator[Fault]:
    if not any(line.strip() and not line.lstrip().startswith("#") for line in subject.text.split("\n")):
        return
    from khms.store.strict import StrictHandler

    try:
        meta, places = StrictHandler(subject.path).read(subject.text)
    except Unreadable as error:
        yield Fault(error.line, error.message, error.mend)
        return
    for pointer, message in schema.problems("tags", meta):
        steps = schema.keys(pointer)
        names = (".".join(steps[:end]) for end in range(len(steps), 0, -1))
        line = next((places[name].key[0] + 1 for name in names if name in places), 1)
        yield Fault(line, message, "tag: {group: …, description: …, aliases: […]}")


def _settings(subject: Subject) -> Iterator[Fault]:
    try:
        config.parse(subject.text, subject.path)
    except Refused as error:
        place = re.search(r"\(at line ([0-9]+)", error.message)
        line = int(place[1]) if place else _setting_line(subject.text, error.message)
        yield Fault(line, error.message, error.hint)
        return
    import tomllib

    for pointer, message in schema.problems("config", tomllib.loads(subject.text)):
        key = schema.keys(pointer)[-1] if pointer else ""
        yield Fault(_setting_line(subject.text, f"x.{key} "), message, schema.meaning("config", pointer))


def _setting_line(text: str, message: str) -> int:
    """The line of the setting that the message names (`hooks.deadline_ms`)."""
    named = re.search(r"[a-z_]+\.([a-z_0-9]+)", message)
    lines = text.split("\n")
    return next((i for i, line in enumerate(lines, 1) if named and line.strip().startswith(named[1])), 1)
