"""Card ids in texts, after unpublished cards were given others: only where a mention has a form of its own.

Those places are the header's id, links, nearest cards, relation and change, a quote's source, `[[K-…]]`, SUPERSEDES and
LINKS lines, and what a report or a receipt says as an id alone. Prose, quotes, code and journals stay byte for byte.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from khms.model.approval import Approval, Transition
from khms.model.card import is_card_id
from khms.store.layout import ARCHIVE, INBOX, KNOW, RECEIPTS

Ids = Mapping[str, str]
_ID = re.compile(r"\bK-\d{5,}(?![\w-])")
_WIKILINK = re.compile(r"\[\[(K-\d{5,})(?=[\]|#])")
_STRUCTURED = re.compile(r"(?:SUPERSEDES |\*\*LINKS:\*\*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_RULE = re.compile(r"(?:---|\.\.\.)[ \t]*\r?\n?")
_KEY = re.compile(r"[\"']?([A-Za-z_][\w-]*)[\"']?:(?:\s|$)")
_NESTED = re.compile(r"\s*(?:-\s+)?[\"']?(target|nearest|source|card|by)[\"']?:\s*[\"']?K-\d{5,}[\"']?\s*(?:#.*)?$")
_SPAN = re.compile(r"`(?:(?:new|supports|contradicts|supersedes|unjudged|K-\d{5,})[ ,]*)+`")


def _new(ids: Ids) -> Callable[[re.Match[str]], str]:
    return lambda match: ids.get(match[0], match[0])


def renumbered(path: str, data: bytes, ids: Ids) -> bytes:
    """The bytes of the base's file at `path` with its structured mentions of `ids` renewed."""
    if not ids or not any(old.encode() in data for old in ids):
        return data
    name = path.rpartition("/")[2]
    if path.startswith((f"{KNOW}/", f"{ARCHIVE}/")) and name.endswith(".md"):
        return _text(data, lambda text: page(text, ids))
    if path.startswith(f"{INBOX}/") and name == "REPORT.md":
        return _text(data, lambda text: _SPAN.sub(lambda span: _ID.sub(_new(ids), span[0]), text))
    if path.startswith(f"{INBOX}/") and name.endswith(".md"):
        return _text(data, lambda text: page(text, ids))
    if path.startswith(f"{RECEIPTS}/") and name.endswith(".jsonl"):
        return _text(data, lambda text: "".join(_receipt(line, ids) for line in text.splitlines(keepends=True)))
    return data


def _text(data: bytes, change: Callable[[str], str]) -> bytes:
    return change(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def page(text: str, ids: Ids) -> str:
    """A card's or candidate's file, or the older inbox file of several: what stands between two rules after a rule at
    the start or after a blank line is a header, all else is body."""
    found = []
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    lead = text[: len(text) - len("".join(lines))]
    at = 0
    body: list[str] = []
    while at < len(lines):
        end = _header_end(lines, at) if not body or not body[-1].strip() or _opens(body[-1]) else 0
        if end:
            found += [*_body(body, ids), *_header(lines[at:end], ids)]
            body, at = [], end
        else:
            body.append(lines[at])
            at += 1
    return lead + "".join([*found, *_body(body, ids)])


def _opens(line: str) -> bool:
    """Whether the line opens a fenced block, as the older inbox files put each card into one."""
    return bool(re.match(r"(?:`{3,}|~{3,})(?:yaml|yml|markdown|md)?\s*$", line))


def _header_end(lines: list[str], at: int) -> int:
    """The line after the header that begins at line `at`; 0 where none does."""
    if not _RULE.fullmatch(lines[at]) or at + 1 >= len(lines) or not _KEY.match(lines[at + 1]):
        return 0
    return next((i + 1 for i in range(at + 1, len(lines)) if _RULE.fullmatch(lines[i])), 0)


def _header(lines: list[str], ids: Ids) -> list[str]:
    found, key = [], ""
    for line in lines:
        top = _KEY.match(line)
        key = top[1] if top else key
        nested = key in ("relation", "quotes", "source", "change") and _NESTED.match(line)
        if key in ("id", "links", "nearest") or nested:
            line = _ID.sub(_new(ids), line)
        found.append(line)
    return found


def _body(lines: list[str], ids: Ids) -> list[str]:
    found, fence = [], ""
    for line in lines:
        run = _FENCE.match(line)
        if run and not fence:
            fence = run[1]
        elif run and run[1][0] == fence[0] and len(run[1]) >= len(fence):
            fence = ""
        elif not fence and not line.lstrip().startswith(">"):
            line = _line(line, ids)
        found.append(line)
    return found


def _line(line: str, ids: Ids) -> str:
    parts = line.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner opens no code
        parts = [line]
    for at in range(0, len(parts), 2):
        if _STRUCTURED.match(line):
            parts[at] = _ID.sub(_new(ids), parts[at])
        parts[at] = _WIKILINK.sub(lambda match: "[[" + ids.get(match[1], match[1]), parts[at])
    return "`".join(parts)


def _receipt(line: str, ids: Ids) -> str:
    """A receipt whose reason or label is an id, nothing more."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    if not isinstance(value, dict):
        return line
    fresh = {key: ids.get(item, item) if key in ("reason", "label") else item for key, item in value.items()}
    return line if fresh == value else json.dumps(fresh, ensure_ascii=False) + line[len(line.rstrip("\r\n")) :]


def transition(change: Transition, ids: Ids) -> Transition:
    """The transition under the new ids; its reason stays in the words in which it was given."""
    return replace(change, id=ids.get(change.id, change.id), old=_value(change.old, ids), new=_value(change.new, ids))


def _value(value: Any, ids: Ids) -> Any:
    if isinstance(value, list):
        return [_value(item, ids) for item in value]
    return ids.get(value, value) if isinstance(value, str) and is_card_id(value) else value


def mentions(path: str, data: bytes, ids: Ids) -> set[str]:
    """Those of `ids` that the file mentions in a structured place."""
    return {old for old in ids if renumbered(path, data, {old: "K-99999999999"}) != data}


def record(held: Approval, ids: Ids) -> Approval:
    """The record's transitions under the new ids."""
    return replace(held, transitions=tuple(transition(change, ids) for change in held.transitions))
