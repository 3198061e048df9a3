"""JSON text, edited in place: one value more or one less, every other byte as it was.

Reads what hosts read: JSON, and the same with comments and trailing commas. A parsed text is a tree of places;
an edit takes the text and a place and gives a new text, which is parsed anew for the next edit.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

DEPTH = 100

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


class Broken(Exception):
    """The text is not JSON; `line` is where it stops being so."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(slots=True)
class Node:
    """A value and its place in the text. `value` is a string's text, or the token of a number or a word."""

    kind: Literal["object", "array", "string", "plain"]
    start: int
    end: int = 0
    value: str = ""
    members: list["Member"] = field(default_factory=list)
    comment: bool = False  # one stands directly in this container

    def get(self, key: str) -> "Node | None":
        """The member that counts, which is the last of its name."""
        index = self.find(key)
        return None if index is None else self.members[index].node

    def find(self, key: str) -> int | None:
        found = [index for index, member in enumerate(self.members) if member.key == key]
        return found[-1] if self.kind == "object" and found else None

    def repeated(self, key: str) -> bool:
        return sum(member.key == key for member in self.members) > 1


@dataclass(slots=True)
class Member:
    """An item of an array, or a key and its value; `comma` is the place of the comma after it, -1 for none."""

    key: str
    start: int
    node: Node
    comma: int = -1


@dataclass(slots=True)
class Document:
    """A text as parsed. `loose` is the first line that strict JSON forbids, 0 where there is none."""

    text: str
    root: Node
    loose: int


def parse(text: str) -> Document:
    """Raises Broken."""
    return _Reader(text).document()


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.loose = 0

    def document(self) -> Document:
        self.space()
        root = self.value(0)
        self.space()
        if self.at < len(self.text):
            raise self.broken("something follows the end of the value")
        return Document(self.text, root, self.loose)

    def value(self, depth: int) -> Node:
        if depth > DEPTH:
            raise self.broken(f"nested deeper than {DEPTH}")
        start = self.text[self.at : self.at + 1]
        if start in ("{", "["):
            return self.container(start, depth)
        if start == '"':
            return self.string()
        found = _PLAIN.match(self.text, self.at)
        if not found or self.text[found.end() : found.end() + 1].isalnum():
            raise self.broken("a value is missing or misspelt")
        self.at = found.end()
        return Node("plain", found.start(), found.end(), found[0])

    def string(self) -> Node:
        found = _STRING.match(self.text, self.at)
        try:
            value = json.loads(found[0]) if found else None
        except ValueError:
            value = None
        if not found or value is None:
            raise self.broken("a string is not closed, or holds a character that must be escaped")
        self.at = found.end()
        return Node("string", found.start(), found.end(), value)

    def container(self, opening: str, depth: int) -> Node:
        node = Node("object" if opening == "{" else "array", self.at)
        closing = "}" if opening == "{" else "]"
        self.at += 1
        while True:
            node.comment |= self.space()
            if self.text.startswith(closing, self.at):
                if node.members and node.members[-1].comma >= 0:
                    self.loosen(node.members[-1].comma)
                self.at += 1
                node.end = self.at
                return node
            if node.members and node.members[-1].comma < 0:
                raise self.broken(f"a comma or {closing} is missing")
            node.members.append(self.member(node, depth))
            node.comment |= self.space()
            if self.text.startswith(",", self.at):
                node.members[-1].comma = self.at
                self.at += 1

    def member(self, parent: Node, depth: int) -> Member:
        start, key = self.at, ""
        if parent.kind == "object":
            if not self.text.startswith('"', self.at):
                raise self.broken("a key in double quotes is missing")
            key = self.string().value
            parent.comment |= self.space()
            if not self.text.startswith(":", self.at):
                raise self.broken("a colon is missing after the key")
            self.at += 1
            parent.comment |= self.space()
        return Member(key, start, self.value(depth + 1))

    def space(self) -> bool:
        """Skips blanks and comments; whether there was a comment."""
        found = _SPACE.match(self.text, self.at)
        end = found.end() if found else self.at
        comment = self.text.find("/", self.at, end)
        if comment >= 0:
            self.loosen(comment)
        self.at = end
        return comment >= 0

    def loosen(self, place: int) -> None:
        line = line_of(self.text, place)
        self.loose = min(self.loose or line, line)

    def broken(self, message: str) -> Broken:
        return Broken(message, line_of(self.text, self.at))


def newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def add(document: Document, container: Node, key: str, value: object) -> str:
    """The text with `value` as the container's last member (of an object: under `key`), in the style around it."""
    text = document.text
    last = container.members[-1] if container.members else None
    trailing = last is not None and last.comma >= 0
    close = container.end - 1
    blank = _blank_before(text, close)
    head, rest = text[:blank], text[blank:]
    if last and not trailing:
        head = text[: last.node.end] + "," + text[last.node.end : blank]
    name = json.dumps(key, ensure_ascii=False) + ": " if container.kind == "object" else ""
    if last and "\n" not in text[container.start : close]:
        item = " " + name + json.dumps(value, ensure_ascii=False)
    else:
        unit, outer, end = _unit(document), _indent(text, container.start), newline(text)
        own = last is not None and _starts_line(text, last.start)
        indent = end + (_indent(text, last.start) if last and own else outer + unit)
        item = indent + indent.join((name + json.dumps(value, ensure_ascii=False, indent=unit)).split("\n"))
        if "\n" not in text[blank:close]:
            rest = end + outer + text[close:]
    return head + item + ("," if trailing else "") + rest


def drop(document: Document, container: Node, index: int) -> str:
    """The text without the container's member `index`, without its comma and, where it has one, its own line."""
    text = document.text
    member = container.members[index]
    start, end = member.start, member.node.end
    if len(container.members) == 1 and not container.comment:
        return text[: container.start + 1] + text[container.end - 1 :]
    comma = member.comma if member.comma >= 0 else container.members[index - 1].comma if index else -1
    after = member.comma + 1 if member.comma >= 0 and not text[end : member.comma].strip() else end
    line_end = text.find("\n", after)
    blank = _blank_before(text, start)
    before = text.rfind("\n", blank, start)
    if before >= 0 and line_end >= 0 and not text[after:line_end].strip():
        start = before - 1 if text[before - 1] == "\r" else before
    elif before < 0 < index:
        start = blank
    else:  # what follows stays on its line: a line before it may end in a comment
        end = len(text) - len(text[after:].lstrip(" \t"))
    for left, right in _merged([(start, end), (comma, comma + 1)] if comma >= 0 else [(start, end)]):
        text = text[:left] + text[right:]
    return text


def _merged(cuts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The cuts from the last to the first, overlapping ones as one."""
    merged: list[tuple[int, int]] = []
    for left, right in sorted(cuts):
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(right, merged[-1][1]))
        else:
            merged.append((left, right))
    yield from reversed(merged)


def _blank_before(text: str, place: int) -> int:
    """Where the blanks that end at `place` begin."""
    while place > 0 and text[place - 1] in " \t\r\n":
        place -= 1
    return place


def _starts_line(text: str, place: int) -> bool:
    return not text[text.rfind("\n", 0, place) + 1 : place].strip()


def _indent(text: str, place: int) -> str:
    """The blanks that begin the line of `place`."""
    start = text.rfind("\n", 0, place) + 1
    line = text[start:place].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(document: Document) -> str:
    """One step of indentation: that of the root's first member, else two blanks."""
    for member in document.root.members:
        if _starts_line(document.text, member.start) and (found := _indent(document.text, member.start)):
            return found
    return "  "
