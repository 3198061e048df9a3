"""One key of a frontmatter changed where it stands: comments, order, quotes, line ends and unknown keys stay.

Each change is read back before it is handed out; one that would alter anything else is refused.
"""

import copy
from collections.abc import Iterable
from typing import Any

from khms.store import yamltext
from khms.store.markdown import Unreadable, parse
from khms.store.strict import Entry, StrictHandler
from khms.store.yamltext import Value


def set_key(text: str, key: str, value: Value) -> str:
    """See `khms.store.markdown.set_key`."""
    file = _Frontmatter(text)
    meta = copy.deepcopy(file.meta)
    *above, name = file.names(key)
    target: Any = meta
    for part in above:
        target[part] = target.get(part) or {}
        target = target[part]
        if not isinstance(target, dict):
            mend = f"empty `{part}`, or write it as a mapping"
            raise Unreadable(f"`{part}` holds a value, so no key stands below it", line=file.line(part), mend=mend)
    target[name] = value
    entry = file.entry(key)
    return file.checked(file.with_new(key, value) if entry is None else file.with_value(entry, value), meta)


def remove_keys(text: str, keys: Iterable[str]) -> str:
    """See `khms.store.markdown.remove_keys`."""
    file = _Frontmatter(text)
    meta = copy.deepcopy(file.meta)
    gone: set[int] = set()
    for key in keys:
        if key not in file.entries:
            continue
        file.entry(key)
        names = file.names(key)
        while len(names) > 1 and len(_at(meta, names[:-1]) or "") == 1:
            names.pop()
        (_at(meta, names[:-1]) or {}).pop(names[-1], None)
        entry = file.entry(".".join(names))
        assert entry is not None
        gone.update(range(entry.key[0] + 1, entry.end[0] + 2))
    if not gone:
        return text
    return file.checked("\n".join(row for number, row in enumerate(file.rows) if number not in gone), meta)


class _Frontmatter:
    """The rows of a file, each with its CR if it has one, and where each key stands; `fence` is the row that closes
    the block. Entries count rows in the block, which begins one row down in the file."""

    def __init__(self, text: str) -> None:
        page = parse(text)
        self.meta, self.body, self.fence = page.meta, page.body, page.body_line - 2
        self.rows = text.split("\n")
        if self.fence < 1:
            mend = "begin the file with a block of `key: value` lines between two lines `---`"
            raise Unreadable("there is no frontmatter to change", line=1, mend=mend)
        block = "\n".join(row.removesuffix("\r") for row in self.rows[1 : self.fence])
        self.entries: dict[str, Entry] = StrictHandler(line=2).read(block + "\n")[1]

    def row(self, number: int) -> str:
        return self.rows[number].removesuffix("\r")

    def line(self, key: str) -> int:
        return self.entries[key].key[0] + 2 if key in self.entries else 0

    def names(self, key: str) -> list[str]:
        """The keys that `key` goes through. One with a dot in it, as it stands in the file, is one key."""
        return [key] if key in self.meta else key.split(".")

    def entry(self, key: str) -> Entry | None:
        """Where `key` stands, None if it does not; raises Unreadable if it cannot be changed there."""
        names = self.names(key)
        for above in (".".join(names[:end]) for end in range(1, len(names))):
            if above in self.entries and self.entries[above].style == "flow":
                message = f"`{above}` is written in brackets, so `{key}` is not changed"
                raise Unreadable(message, line=self.line(above), mend=f"write `{above}` as indented lines")
        entry = self.entries.get(key)
        if entry and self.row(entry.key[0] + 1)[: entry.key[1]].strip():
            mend = f"write `{names[-1]}: …` on a line of its own"
            raise Unreadable(f"`{key}` cannot be changed where it stands", line=self.line(key), mend=mend)
        return entry

    def replace(self, first: int, end: int, rows: list[str]) -> str:
        """The text with other rows in the place of those from `first` to before `end`."""
        cr = "\r" if self.rows[first].endswith("\r") else ""
        return "\n".join([*self.rows[:first], *(row + cr for row in rows), *self.rows[end:]])

    def with_value(self, entry: Entry, value: Value) -> str:
        """The text with another value for a key that is there. A comment on its line stays."""
        first, last = entry.key[0] + 1, entry.end[0] + 1
        row = self.row(first)
        colon = row.index(":", entry.key_end) + 1
        gap, rest = " ", row[colon:]
        if entry.start[0] == entry.key[0]:
            gap = row[colon : entry.start[1]] or " "
            rest = self.row(last)[entry.end[1] :]
        text = yamltext.inline(value)
        if text is not None:
            new = [row[:colon] + gap + text + rest]
        else:
            new = [row[:colon] + rest.rstrip(), *yamltext.nested(value, row[: entry.key[1]] + "  ")]
        return self.replace(first, last + 1, new)

    def with_new(self, key: str, value: Value) -> str:
        """The text with a key that is not there, as the last of its mapping: just before the next key outside it.

        Comments in between stay above the new key: the hash of an approved card counts them as part of what stands
        before them, and must not change with this.
        """
        *above, name = self.names(key)
        while above and ".".join(above) not in self.entries:
            name, value = above.pop(), {name: value}
        prefix, end = "", self.fence
        if above:
            parent = self.entry(".".join(above))
            assert parent is not None
            if _at(self.meta, above) is None:
                return self.with_value(parent, {name: value})
            prefix = ".".join(above) + "."
            after = [entry.key[0] + 1 for entry in self.entries.values() if entry.key[0] > parent.end[0]]
            end = min(after, default=end)
        column = min((entry.key[1] for at, entry in self.entries.items() if at.startswith(prefix)), default=0)
        return self.replace(end, end, yamltext.lines({name: value}, " " * column))

    def checked(self, text: str, meta: dict[str, Any]) -> str:
        """`text`, if it reads as `meta` and the body of before."""
        try:
            page = parse(text)
        except Unreadable:
            page = None
        if page is None or page.meta != meta or page.body != self.body:
            message = "the frontmatter is written in a form that cannot be changed one key at a time"
            raise Unreadable(message, line=2, mend="write it as `key: value` lines, or edit it by hand")
        return text


def _at(meta: dict[str, Any], names: list[str]) -> Any:
    value: Any = meta
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
