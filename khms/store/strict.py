"""The strict reading of one YAML mapping, over libyaml's events, behind python-frontmatter's handler interface.

Scalars stay text; only an unquoted `null`, `~` or nothing is None. What YAML would guess, merge, overwrite or drop
is refused with the line and a mend: duplicate keys, anchors, aliases, tags, further documents, text lost behind
` #`. Working on events, nothing is built from values: no date, number, alias or recursion can fail on the way.
`khms.store.markdown` imports this only where its quick reader gives up, since yaml and frontmatter load slowly.
"""

import re
from dataclasses import dataclass
from typing import Any

import yaml
from frontmatter.default_handlers import BaseHandler

from khms.store import yamlfaults, yamltext
from khms.store.yamltext import Unreadable, Value

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Position = tuple[int, int]  # row and column in the block, from 0

LIMIT = 64 * 1024  # bytes of a block
_ODD = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_TAB = re.compile(r"^ *\t", re.MULTILINE)
_LOST = re.compile(r"[ \t]+#\w")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one key and its value stand. `style` is scalar, flow or block; a block ends with its last value."""

    key: Position
    key_end: int
    start: Position
    end: Position
    style: str


class StrictHandler(BaseHandler):
    """python-frontmatter's handler: `frontmatter.loads(text, handler=StrictHandler())`.

    `line` is the file line of the first line that `load` is given: 1 as python-frontmatter splits, which leaves
    the rest of the opening fence's line at the front.
    """

    FM_BOUNDARY = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "---"

    def __init__(self, path: str = "", line: int = 1) -> None:
        super().__init__()
        self.path = path
        self.line = line

    def load(self, fm: str) -> dict[str, Any]:
        return self.read(fm)[0]

    def read(self, fm: str) -> tuple[dict[str, Any], dict[str, Entry]]:
        """The mapping and, by dotted name, the place of each key in it; raises Unreadable."""
        return _Block(fm, self.path, self.line).read()

    def export(self, metadata: dict[str, object], **_: object) -> str:
        return "\n".join(yamltext.lines(metadata))


class _Block:
    """One reading of one block. `end` is where the last scalar or flow collection that was read ends."""

    def __init__(self, text: str, path: str, line: int) -> None:
        self.text = text
        self.rows = text.split("\n")
        self.path, self.line = path, line
        self.events: Any = iter(())
        self.entries: dict[str, Entry] = {}
        self.end: Position = (0, 0)
        self.twice: list[tuple[str, int, int]] = []  # duplicate keys, each with its earlier and its later row

    def read(self) -> tuple[dict[str, Any], dict[str, Entry]]:
        self.check_characters()
        self.events = yaml.parse(self.text, Loader=LOADER)
        try:
            return self.document(), self.entries
        except yaml.MarkedYAMLError as error:
            raise self.fault(*yamlfaults.explain(self.rows, error)) from None
        except (yaml.YAMLError, ValueError, OverflowError):  # the pure Python scanner, on escapes like "\U7fffffff"
            raise self.fault(self.end[0], "an escape names no character", "correct the escape") from None

    def check_characters(self) -> None:
        odd, tab = _ODD.search(self.text), _TAB.search(self.text)
        if odd:
            name = f"U+{ord(odd[0]):04X}"
            message = f"the invisible character {name} in the frontmatter"
            raise self.fault(self.text.count("\n", 0, odd.start()), message, "remove it")
        if tab:
            raise self.fault(self.text.count("\n", 0, tab.start()), "a tab in the indentation", "indent with spaces")
        if len(self.text.encode("utf-8")) > LIMIT:
            mend = "keep long text in the body; is the closing `---` missing?"
            raise self.fault(0, f"the frontmatter is over {LIMIT // 1024} KiB", mend)

    def document(self) -> dict[str, Any]:
        meta: dict[str, Any] | None = None
        for event in self.events:
            row = event.start_mark.line
            if isinstance(event, yaml.DocumentStartEvent):
                if meta is not None or event.explicit:
                    mend = "keep one block of `key: value` lines"
                    raise self.fault(row, "more than one document in the frontmatter", mend)
            elif isinstance(event, yaml.MappingStartEvent):
                self.check_sign(event)
                meta = self.mapping(event, "", 1)
            elif isinstance(event, yaml.NodeEvent):
                self.check_sign(event)
                is_list = isinstance(event, yaml.SequenceStartEvent)
                what = "the frontmatter is a list," if is_list else f"`{yamlfaults.short(self.rows[row])}` is"
                mend = "write `key: value` lines; if the first `---` is a rule, put a blank line before it"
                raise self.fault(*yamlfaults.conflict(self.rows) or (row, f"{what} not `key: value`", mend))
        if self.twice:
            names = (f"`{key}` (lines {self.line + a} and {self.line + b})" for key, a, b in self.twice[:5])
            raise self.fault(self.twice[0][2], f"duplicate key {', '.join(names)}", "keep one of each")
        return meta or {}

    def mapping(self, opened: Any, prefix: str | None, depth: int) -> dict[str, Any]:
        """The mapping that `opened` starts. `prefix` goes before the names of its keys, None inside a list."""
        found: dict[str, Any] = {}
        rows: dict[str, int] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            place = _position(event.start_mark)
            self.check_sign(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise self.collection_as_key(event)
            key = self.scalar(event)
            if key is None and not event.value:
                raise self.fault(place[0], *yamlfaults.NO_KEY)
            key = event.value
            if key in found:
                name = yamlfaults.short(yamltext.scalar((prefix or "") + key))
                self.twice.append((name, rows[key], place[0]))
            rows[key] = place[0]
            value = next(self.events)
            found[key] = self.node(value, None if prefix is None else f"{prefix}{key}.", depth + 1)
            if prefix is not None:
                style = "scalar" if isinstance(value, yaml.ScalarEvent) else "flow" if value.flow_style else "block"
                start = _position(value.start_mark)
                self.entries[prefix + key] = Entry(place, _position(event.end_mark)[1], start, self.end, style)
        if opened.flow_style:
            self.end = _position(event.end_mark)
        return found

    def node(self, event: Any, prefix: str | None, depth: int) -> Value:
        self.check_sign(event)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if depth > yamlfaults.DEPTH:
            raise self.fault(event.start_mark.line, *yamlfaults.TOO_DEEP)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(event, prefix, depth)
        items = []
        while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(item, None, depth + 1))
        if event.flow_style:
            self.end = _position(item.end_mark)
        return items

    def scalar(self, event: Any) -> str | None:
        text: str = event.value
        row, column = self.end = _position(event.end_mark)
        if event.implicit[0]:
            if _LOST.match(self.rows[row], column):
                raise self.fault(
                    row, "YAML drops the text from ` #` on as a comment", yamlfaults.quoting(self.rows[row])
                )
            return None if text in ("", "~", "null") else text
        if event.style in "|>":
            last = row - 1 if column == 0 else row
            while last > event.start_mark.line and not self.rows[last].strip() and not text.endswith("\n\n"):
                last -= 1
            self.end = last, len(self.rows[last])
        elif _SURROGATE.search(text):  # libyaml refuses it itself
            raise self.fault(row, "an escape names half a character", "write the character itself")
        return text

    def check_sign(self, event: Any) -> None:
        """Refuse an alias, an anchor or a tag."""
        sign = "*" if isinstance(event, yaml.AliasEvent) else "&" if event.anchor else "!"
        if sign != "!" or event.tag is not None:
            row = event.start_mark.line
            raise self.fault(
                row, yamlfaults.SIGNS[sign], "write it out; if it is text, " + yamlfaults.quoting(self.rows[row])
            )

    def collection_as_key(self, event: Any) -> Unreadable:
        row = event.start_mark.line
        if "{{" in self.rows[row]:
            message, mend = "a `{{…}}` placeholder reads as a mapping used as a key", "fill the placeholder in, or "
        else:
            what = "list" if isinstance(event, yaml.SequenceStartEvent) else "mapping"
            message, mend = f"a key is itself a {what}", "write `key: value`, or "
        return self.fault(row, message, mend + yamlfaults.quoting(self.rows[row]))

    def fault(self, row: int, message: str, mend: str) -> Unreadable:
        return Unreadable(message, path=self.path, line=self.line + row, mend=mend)


def _position(mark: Any) -> Position:
    return mark.line, mark.column
