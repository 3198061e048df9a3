"""Changing one setting in a configuration file: every other byte, comments included, stays.

The line is edited as text, then the result is parsed and compared with what was meant; where they differ (values over
several lines, dotted or inline tables) nothing is changed and the person is asked to edit the file.
"""

import re
import tomllib
from typing import Any

from khms.errors import Refused

_SECTION = re.compile(r"\s*\[\s*(?P<name>[^\[\]]+?)\s*\]\s*(?:#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def set_value(text: str, name: str, value: Any, where: str) -> str:
    """`text` with the setting `section.key` set; raises Refused naming `where` if that cannot be done line by line."""
    section, _, key = name.partition(".")
    wanted = _parse(text, where)
    table = wanted.setdefault(section, {})
    if not isinstance(table, dict):
        raise _by_hand(name, value, where)
    table[key] = value
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    lines = text.removeprefix(bom).split("\n")
    changed = "\n".join(_edited(lines, section, key, value, "\r" if "\r\n" in text else ""))
    try:
        same = tomllib.loads(changed) == wanted
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise _by_hand(name, value, where)
    return bom + changed


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Refused(
            f"this configuration cannot be read: {error}", where=where, hint="mend the line named, then set it"
        ) from error


def _by_hand(name: str, value: Any, where: str) -> Refused:
    section, _, key = name.partition(".")
    return Refused(
        f"{name} stands in a form that is not changed line by line",
        where=where,
        hint=f"write it there by hand: [{section}] {key} = {literal(value)}",
    )


def _edited(lines: list[str], section: str, key: str, value: Any, end: str) -> list[str]:
    """The lines with the setting; `end` is what stands before each line break in this file."""
    row = f"{key} = {literal(value)}"
    start = next((i for i, line in enumerate(lines) if (m := _SECTION.match(line)) and m["name"] == section), None)
    if start is None:
        body = list(lines)
        while body and not body[-1].strip():
            body.pop()
        return [*body, *([end] if body else []), f"[{section}]{end}", f"{row}{end}", ""]
    stop = next((i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
    held = re.compile(rf"\s*(?:{re.escape(key)}|\"{re.escape(key)}\")\s*=")
    for i in range(start + 1, stop):
        if held.match(lines[i]):
            line = lines[i].removesuffix("\r")
            indent = line[: len(line) - len(line.lstrip())]
            return [*lines[:i], indent + row + _comment(line) + lines[i][len(line) :], *lines[i + 1 :]]
    last = max(i for i in range(start, stop) if lines[i].strip())
    return [*lines[: last + 1], row + end, *lines[last + 1 :], *([""] if last + 1 == len(lines) else [])]


def _comment(line: str) -> str:
    """The comment at the line's end, with the blanks before it; quotes are heeded."""
    quote = ""
    for i, char in enumerate(line):
        if quote:
            if char == quote and not (quote == '"' and line[i - 1] == "\\"):
                quote = ""
        elif char in "\"'":
            quote = char
        elif char == "#":
            before = line[:i].rstrip()
            return line[len(before) :]
    return ""


def literal(value: Any) -> str:
    """`value` as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_character(c) for c in value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if isinstance(value, dict):
        pairs = (f"{k if _BARE.fullmatch(k) else literal(k)} = {literal(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    return repr(value)


def _character(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if ord(char) < 32 or ord(char) == 127:
        return f"\\u{ord(char):04x}"
    return char
