"""The entry of khms's server inside a host's settings text: read, put in, taken out, every other byte as it was. No
file is touched here.

    {"mcpServers": {"khms": {…}}}              Claude Code, Gemini CLI, Cursor, Copilot CLI
    {"mcp": {"khms": {…}}}                     opencode
    [mcp_servers.khms]                         Codex
"""

import re
import tomllib
from dataclasses import dataclass
from typing import Any, Protocol

from khms.errors import Refused
from khms.hosts import jsonc, userfile
from khms.hosts.jsonc import Node
from khms.store.tomltext import literal

NAME = "khms"
_HEADER = re.compile(r"\s*\[")
_OURS = re.compile(rf"""\s*\[\s*mcp_servers\s*\.\s*["']?{NAME}["']?\s*[.\]]""")


class Form(Protocol):
    """A kind of settings text. What is not of it raises Refused with the place in `path`."""

    def entry(self, text: str, path: Any) -> dict[str, Any] | None:
        """khms's entry, whoever wrote it; None where there is none."""

    def put(self, text: str, path: Any, entry: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        """The text with the entry, which was not there, and the containers that had to be made for it."""

    def drop(self, text: str, path: Any, made: tuple[str, ...]) -> str:
        """The text without the entry, and without what is emptied by that and in `made`."""

    def empty(self, text: str) -> bool:
        """Whether nothing is left in it."""


@dataclass(frozen=True, slots=True)
class Json:
    """JSON, with comments or without, whose key `key` holds the servers. `strict`: the host ignores a text that is not
    plain JSON."""

    key: str
    title: str
    strict: bool = False

    def entry(self, text: str, path: Any) -> dict[str, Any] | None:
        document = self._document(text, path)
        servers = document.root.get(self.key)
        found = servers.get(NAME) if servers else None
        value = _value(found) if found else None
        if found and not isinstance(value, dict):
            raise self._misshapen(document, found, path, f"`{self.key}.{NAME}` is not an object")
        return value

    def put(self, text: str, path: Any, entry: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        document = self._document(text, path)
        made: tuple[str, ...] = ()
        if document.root.get(self.key) is None:
            text, made = jsonc.add(document, document.root, self.key, {}), (self.key,)
            document = jsonc.parse(text)
        servers = document.root.get(self.key)
        assert servers is not None
        return jsonc.add(document, servers, NAME, entry), made

    def drop(self, text: str, path: Any, made: tuple[str, ...]) -> str:
        document = self._document(text, path)
        servers = document.root.get(self.key)
        while servers and (at := servers.find(NAME)) is not None:
            text = jsonc.drop(document, servers, at)
            document = jsonc.parse(text)
            servers = document.root.get(self.key)
        at = document.root.find(self.key)
        if servers and at is not None and self.key in made and not servers.members and not servers.comment:
            text = jsonc.drop(document, document.root, at)
        return text

    def empty(self, text: str) -> bool:
        root = jsonc.parse(text).root
        return not root.members and not root.comment

    def _document(self, text: str, path: Any) -> jsonc.Document:
        document = userfile.parse(path, text.encode("utf-8"))
        if self.strict and document.loose:
            raise Refused(
                f"{self.title} ignores this file: it takes no comment and no comma after the last item",
                where=f"{path}:{document.loose}",
                hint="take it out, then run the command again",
            )
        servers = document.root.get(self.key)
        if servers is not None and servers.kind != "object":
            raise self._misshapen(document, servers, path, f"`{self.key}` is not an object")
        if servers is not None and document.root.repeated(self.key):
            raise self._misshapen(document, servers, path, f"`{self.key}` stands twice")
        return document

    def _misshapen(self, document: jsonc.Document, node: Node, path: Any, what: str) -> Refused:
        line = jsonc.line_of(document.text, node.start)
        return Refused(what, where=f"{path}:{line}", hint=f"mend it as {self.title}'s manual says")


@dataclass(frozen=True, slots=True)
class Toml:
    """TOML whose table `mcp_servers.khms` is the entry; it is put at the end, where it changes nobody's section."""

    title: str

    def entry(self, text: str, path: Any) -> dict[str, Any] | None:
        servers = self._parsed(text, path).get("mcp_servers", {})
        found = servers.get(NAME) if isinstance(servers, dict) else None
        if found is not None and not isinstance(found, dict):
            raise Refused(f"mcp_servers.{NAME} is not a table", where=str(path), hint="take it out by hand")
        return found

    def put(self, text: str, path: Any, entry: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        end = jsonc.newline(text)
        lines = [f"[mcp_servers.{NAME}]", *(f"{key} = {literal(value)}" for key, value in entry.items())]
        gap = "" if not text.removeprefix("\ufeff") else end if text.endswith("\n") else end + end
        after = text + gap + end.join(lines) + end
        wanted = self._parsed(text, path)
        servers = wanted.setdefault("mcp_servers", {})
        if isinstance(servers, dict):
            servers[NAME] = entry
        self._same(after, wanted, path, "put in: " + "; ".join(lines))
        return after, ()

    def drop(self, text: str, path: Any, made: tuple[str, ...]) -> str:
        wanted = self._parsed(text, path)
        servers = wanted["mcp_servers"]
        del servers[NAME]
        kept: list[str] = []
        lines = text.splitlines(keepends=True)
        at = 0
        while at < len(lines):
            if not _OURS.match(lines[at].removeprefix("\ufeff")):
                kept.append(lines[at])
                at += 1
                continue
            last = at  # up to the last line of the table: what stands before the next one is that one's
            at += 1
            while at < len(lines) and not _HEADER.match(lines[at]):
                last = at if lines[at].strip() and not lines[at].lstrip().startswith("#") else last
                at += 1
            at = last + 1
            if kept and not kept[-1].strip():
                kept.pop()
        after = "".join(kept)
        if not servers and "mcp_servers" not in self._parsed(after, path):
            del wanted["mcp_servers"]
        self._same(after, wanted, path, f"take out the table mcp_servers.{NAME}")
        return after

    def empty(self, text: str) -> bool:
        return not text.removeprefix("\ufeff").strip()

    def _parsed(self, text: str, path: Any) -> dict[str, Any]:
        try:
            return tomllib.loads(text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError as error:
            hint = "mend that line, then run the command again"
            raise Refused(f"the settings are not TOML: {error}", where=str(path), hint=hint) from error

    def _same(self, after: str, wanted: dict[str, Any], path: Any, by_hand: str) -> None:
        try:
            if tomllib.loads(after.removeprefix("\ufeff")) == wanted:
                return
        except tomllib.TOMLDecodeError:
            pass
        raise Refused("the servers stand in a form that is not changed line by line", where=str(path), hint=by_hand)


def _value(node: Node) -> Any:
    if node.kind == "string":
        return node.value
    if node.kind == "object":
        return {member.key: _value(member.node) for member in node.members}
    if node.kind == "array":
        return [_value(member.node) for member in node.members]
    import json

    return json.loads(node.value)
