"""khms's entries below `hooks` in a YAML text: found, put in, taken out, line by line, every other byte as it was.

    hooks:
      pre_llm_call:
        - command: "…"
          timeout: 5

The text is read to know where things stand, and never written anew. An edit is read again before it counts: it must
have changed nothing but the entry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from khms.hosts import jsonc
from khms.hosts.entries import Entry, Misshapen, command_words

if TYPE_CHECKING:
    from khms.hosts.base import Watch

STEP = "  "


@dataclass(frozen=True, slots=True)
class Hooks:
    """The entries of the host with this id. A text in which `hooks`, or a list that an entry belongs in, is written in
    braces or brackets raises Misshapen."""

    host: str
    watches: tuple[Watch, ...]

    def find(self, text: str) -> list[Entry]:
        return [entry for entry, _ in self._found(_compose(text))]

    def add(self, text: str, command: str) -> str:
        for watch in reversed(self.watches):
            lines = [f"- command: {json.dumps(command, ensure_ascii=False)}", f"{STEP}timeout: {watch.timeout}"]
            after = _inserted(text, watch.event, lines)
            wanted = _loaded(text) or {}
            hooks = wanted["hooks"] = wanted.get("hooks") or {}
            hooks[watch.event] = [{"command": command, "timeout": watch.timeout}, *(hooks.get(watch.event) or [])]
            if _loaded(after) != wanted:
                raise Misshapen("the entry cannot be put in safely", 1)
            text = after
        return text

    def remove(self, text: str) -> str:
        while found := self._found(_compose(text)):
            after = self._without(text, *found[-1])
            same = {**(_loaded(after) or {}), "hooks": None} == {**_loaded(text), "hooks": None}
            if not same or len(self._found(_compose(after))) != len(found) - 1:
                raise Misshapen("the entry cannot be taken out safely", found[-1][1].start_mark.line + 1)
            text = after
        return text

    def _without(self, text: str, entry: Entry, item: Any) -> str:
        hooks = _member(_compose(text), "hooks")
        assert hooks is not None
        lines = text.splitlines(keepends=True)
        first, last = item.start_mark.line, max(value.end_mark.line for _, value in item.value)
        if not lines[first].lstrip().startswith("-") or item.flow_style:
            raise Misshapen("the entry is not written as khms writes it", first + 1)
        gone = [(first, last)]
        items = _member(hooks[1], entry.event)
        assert items is not None
        if len(items[1].value) == 1:
            gone.append((items[0].start_mark.line,) * 2)
            if len(hooks[1].value) == 1:
                gone.append((hooks[0].start_mark.line,) * 2)
        for start, end in gone:
            if start == first or lines[start].strip().endswith(":"):
                lines[start : end + 1] = [""] * (end + 1 - start)
        return "".join(lines)

    def _found(self, root: Any) -> list[tuple[Entry, Any]]:
        """Each entry with its node, in the order of the text."""
        found = []
        hooks = _member(root, "hooks")
        for event, items in hooks[1].value if hooks and _is(hooks[1], "mapping") else []:
            for item in items.value if _is(items, "sequence") else []:
                command = _member(item, "command")
                said = command[1].value if command and _is(command[1], "scalar") else ""
                words = command_words(said)
                if words and words[2] == self.host:
                    found.append((Entry(str(event.value), "", said, True, ()), item))
        return found


def _inserted(text: str, event: str, entry: list[str]) -> str:
    """The text with the entry's lines as the first of the event's list."""
    root = _compose(text)
    if root is None:
        return _at_end(text, ["hooks:", f"{STEP}{event}:", *_indented(entry, STEP * 2)])
    if not _is(root, "mapping") or root.flow_style:
        raise Misshapen("the settings are not written as keys, one a line", 1)
    hooks = _member(root, "hooks")
    if hooks is None:
        indent = " " * root.start_mark.column
        added = ["hooks:", f"{STEP}{event}:", *_indented(entry, STEP * 2)]
        return _at_end(text, _indented(added, indent))
    indent = " " * hooks[0].start_mark.column
    if _nothing(hooks[1]):
        return _below(text, *hooks, _indented([f"{event}:", *_indented(entry, STEP)], indent + STEP))
    if not _is(hooks[1], "mapping") or hooks[1].flow_style:
        raise Misshapen("`hooks` is not written as keys, one a line", hooks[0].start_mark.line + 1)
    items = _member(hooks[1], event)
    indent = " " * hooks[1].start_mark.column
    if items is None:
        return _before(text, hooks[1], _indented([f"{event}:", *_indented(entry, STEP)], indent))
    if _nothing(items[1]):
        return _below(text, *items, _indented(entry, indent + STEP))
    if not _is(items[1], "sequence") or items[1].flow_style:
        raise Misshapen(f"`hooks.{event}` is not a list, one item a line", items[0].start_mark.line + 1)
    return _before(text, items[1], _indented(entry, " " * items[1].start_mark.column))


def _before(text: str, node: Any, added: list[str]) -> str:
    """The lines above the one that `node` begins."""
    lines = text.splitlines(keepends=True)
    at = node.start_mark.line
    if lines[at][: node.start_mark.column].strip():
        raise Misshapen("something stands before the first of the list", at + 1)
    end = jsonc.newline(text)
    return "".join([*lines[:at], *(line + end for line in added), *lines[at:]])


def _below(text: str, key: Any, value: Any, added: list[str]) -> str:
    """The lines below a key of no value; what is written for the empty value goes."""
    lines = text.splitlines(keepends=True)
    at = key.start_mark.line
    if value.start_mark.line != at and value.value:
        raise Misshapen(f"`{key.value}` has its empty value on another line", at + 1)
    line = lines[at].rstrip("\r\n")
    if value.end_mark.index > value.start_mark.index:
        line = (line[: value.start_mark.column].rstrip() + line[value.end_mark.column :]).rstrip()
    end = jsonc.newline(text)
    return "".join([*lines[:at], line + end, *(each + end for each in added), *lines[at + 1 :]])


def _at_end(text: str, added: list[str]) -> str:
    end = jsonc.newline(text)
    head = text if not text or text.endswith(("\n", "\ufeff")) else text + end
    return head + "".join(line + end for line in added)


def _indented(lines: list[str], indent: str) -> list[str]:
    return [indent + line for line in lines]


def _compose(text: str) -> Any:
    """The tree of the text's nodes; None for a text of nothing but comments."""
    import yaml

    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", "") or "nested too deeply, or with a character that may not be there"
        raise Misshapen(f"the settings are not YAML: {said}", mark.line + 1 if mark else 1) from error


def _loaded(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise Misshapen("the settings hold what cannot be read", 1) from error


def _is(node: Any, kind: str) -> bool:
    return getattr(node, "id", "") == kind


def _member(node: Any, key: str) -> tuple[Any, Any] | None:
    """Key and value of a mapping's member; the last of its name counts."""
    if not _is(node, "mapping"):
        return None
    return next((pair for pair in reversed(node.value) if _is(pair[0], "scalar") and pair[0].value == key), None)


def _nothing(node: Any) -> bool:
    """`key:`, `key: ~`, `key: {}` and `key: []`."""
    if _is(node, "scalar"):
        return bool(node.tag == "tag:yaml.org,2002:null")
    return not node.value
