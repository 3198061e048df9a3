"""khms's entries inside a settings text of Claude's shape: found, added, taken out. No file is touched here.

    {"hooks": {"<Event>": [{"matcher": …, "hooks": [{"type": "command", "command": …, "timeout": …}]}]}}

Each entry of khms stands in a group of its own; those of others, in the same event or not, stay as they are. A host
that is FLAT has no groups: its entries stand in the event's list. `base.More` says what else a host can have.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from khms.hosts import jsonc
from khms.hosts.jsonc import Document, Node

if TYPE_CHECKING:
    from khms.hosts.base import Host, Watch


class Misshapen(Exception):
    """The entries would stand in something that the host does not expect there."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Entry:
    """One of khms's entries. `way` leads to it from the root: hooks, event, group, its list, the entry; or hooks,
    event, the entry."""

    event: str
    matcher: str
    command: str
    current: bool  # has exactly the keys and values that would be written today for this command
    way: tuple[tuple[Node, int], ...]
    place: tuple[int, int] = (0, 0)  # which group of the event, and which entry of the group


def command_words(command: str) -> tuple[str, str, str] | None:
    """Interpreter, client and host id of a command that runs khms's client, wherever these lie; else None."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    at = words.index("-IS") if "-IS" in words else len(words)
    if at == 0 or len(words) < at + 3 or not words[at + 1].replace("\\", "/").endswith("/hooks/client.py"):
        return None
    return words[at - 1], words[at + 1], words[at + 2]


def find(host: Host, document: Document) -> list[Entry]:
    """khms's entries for this host, under whatever event and matcher they stand."""
    return list(_entries(host, document.root))


def complete(host: Host, document: Document, command: str) -> bool:
    """Whether the entries of today are there, each once, and no other of khms's."""
    entries = find(host, document)
    found = sorted((entry.event, entry.matcher, entry.command) for entry in entries if entry.current)
    wanted = sorted((watch.event, watch.matcher, command) for watch in host.WATCHES)
    return found == wanted and len(found) == len(entries)


def check(host: Host, document: Document) -> None:
    """Raises Misshapen, with the line, where `add` would put an entry into something of another shape."""

    def wrong(node: Node, what: str) -> Misshapen:
        return Misshapen(what, jsonc.line_of(document.text, node.start))

    hooks = document.root.get("hooks")
    if hooks is None:
        return
    if document.root.repeated("hooks"):
        raise wrong(hooks, "`hooks` stands twice, and the host reads the last one only")
    if hooks.kind != "object":
        raise wrong(hooks, "`hooks` is not an object")
    for watch in host.WATCHES:
        groups = hooks.get(watch.event)
        if groups is None:
            continue
        if hooks.repeated(watch.event):
            raise wrong(groups, f"`{watch.event}` stands twice under `hooks`")
        if groups.kind != "array":
            raise wrong(groups, f"`hooks.{watch.event}` is not a list")
        for group in () if flat(host) else groups.members:
            handlers = group.node.get("hooks")
            if handlers is None or handlers.kind != "array":
                raise wrong(group.node, f"an item of `hooks.{watch.event}` has no list `hooks`")


def add(host: Host, document: Document, command: str) -> tuple[Document, tuple[str, ...]]:
    """The settings with khms's entries, and which containers had to be made for them: `hooks`, `hooks.<Event>`."""
    made = []
    for key, value in head(host).items():
        if document.root.get(key) is None:
            made.append(key)
            document = jsonc.parse(jsonc.add(document, document.root, key, value))
    if document.root.get("hooks") is None:
        made.append("hooks")
        document = jsonc.parse(jsonc.add(document, document.root, "hooks", {}))
    for watch in host.WATCHES:
        handler = handler_of(host, watch, command)
        matcher = {"matcher": watch.matcher} if watch.matcher else {}
        group = handler if flat(host) else {**matcher, "hooks": [handler]}
        hooks = document.root.get("hooks")
        assert hooks is not None
        groups = hooks.get(watch.event)
        if groups is None:
            made.append(f"hooks.{watch.event}")
            document = jsonc.parse(jsonc.add(document, hooks, watch.event, [group]))
        else:
            document = jsonc.parse(jsonc.add(document, groups, "", group))
    return document, tuple(made)


def remove(host: Host, document: Document, made: tuple[str, ...]) -> Document:
    """The settings without khms's entries. A group with nothing else goes too, and what is emptied and in `made`."""
    while entry := next(_entries(host, document.root), None):

        def alone(level: int, way: tuple[tuple[Node, int], ...] = entry.way) -> bool:
            return len(way[level][0].members) == 1 and not way[level][0].comment

        level = len(entry.way) - 1
        if level == 4 and alone(4) and not entry.way[3][0].comment:
            level = 2
        if level == 2 and alone(2) and f"hooks.{entry.event}" in made:
            level = 1
        if level == 1 and alone(1) and "hooks" in made:
            level = 0
        document = jsonc.parse(jsonc.drop(document, *entry.way[level]))
    for key in head(host) if document.root.get("hooks") is None else ():
        if key in made and (at := document.root.find(key)) is not None:
            document = jsonc.parse(jsonc.drop(document, document.root, at))
    return document


def flat(host: Host) -> bool:
    return bool(getattr(host, "FLAT", False))


def head(host: Host) -> dict[str, int]:
    return dict(getattr(host, "HEAD", {}))


def _entries(host: Host, root: Node) -> Iterator[Entry]:
    at = root.find("hooks")
    hooks = root.get("hooks")
    if at is None or hooks is None or hooks.kind != "object":
        return
    for event, member in enumerate(hooks.members):
        for index, group in enumerate(member.node.members if member.node.kind == "array" else []):
            way = ((root, at), (hooks, event), (member.node, index))
            if flat(host):
                if entry := _entry(host, member.key, group.node, group.node, way, (index, 0)):
                    yield entry
                continue
            inner = group.node.find("hooks")
            handlers = group.node.get("hooks")
            if inner is None or handlers is None or handlers.kind != "array":
                continue
            for place, handler in enumerate(handlers.members):
                longer = (*way, (group.node, inner), (handlers, place))
                if entry := _entry(host, member.key, handler.node, group.node, longer, (index, place)):
                    yield entry


def _entry(
    host: Host, event: str, handler: Node, group: Node, way: tuple[tuple[Node, int], ...], place: tuple[int, int]
) -> Entry | None:
    """The entry in `handler`, where it is khms's own for this host; `group` has its matcher."""
    command = handler.get("command")
    words = command_words(command.value) if command else None
    if command is None or words is None or words[2] != host.ID:
        return None
    matcher = group.get("matcher")
    return Entry(
        event=event,
        matcher=matcher.value if matcher else "",
        command=command.value,
        current=_current(host, event, handler, command.value),
        way=way,
        place=place,
    )


def _current(host: Host, event: str, handler: Node, command: str) -> bool:
    found = {member.key: member.node.value for member in handler.members}
    wanted = [handler_of(host, watch, command) for watch in host.WATCHES if watch.event == event]
    return any(found == {key: str(value) for key, value in one.items()} for one in wanted)


def handler_of(host: Host, watch: Watch, command: str) -> dict[str, str | int]:
    """What is run at an event, as the host's settings tell it."""
    own: Callable[[Watch, str], dict[str, str | int]] | None = getattr(host, "handler", None)
    return own(watch, command) if own else {"type": "command", "command": command, "timeout": watch.timeout}
