"""Taking words out of a text: every place of them becomes `[redacted]`, and what can be read before can be read after.

Pure text work. In frontmatter the values are looked at, whatever way they are quoted; what must stay as it is for the
file to mean the same (ids, types, links) is left alone.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from khms.errors import Refused
from khms.model.claim import normalised
from khms.store import markdown

MARK = "[redacted]"
LEAST = 4  # characters; what is shorter stands in half of all words
_LABEL = re.compile(r"[A-Z][A-Z -]{1,40}:[ \t]*")
FIXED = ("id", "type", "level", "status", "evidence", "date", "links", "mark", "confidence", "nearest")


def forms(words: Iterable[str]) -> tuple[str, ...]:
    """The forms in which the words may stand in a file, longest first: as they are, on one line, as JSON escapes them,
    and as a receipt keeps a claim."""
    found: set[str] = set()
    for word in words:
        line = " ".join(word.split())
        for one in (word, line):
            found |= {one, json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1], one.replace("'", "''")}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def claimed(words: Iterable[str]) -> tuple[str, ...]:
    """The form of the words in a claim that a receipt keeps."""
    plain = {normalised(word) for word in words}
    return tuple(sorted((form for form in plain if len(form) >= LEAST), key=lambda form: (-len(form), form)))


def struck(text: str, held: Sequence[str]) -> str:
    """`text` without the words, as plain text."""
    for form in held:
        text = text.replace(form, MARK)
    return text


def struck_page(text: str, held: Sequence[str], path: str) -> str:
    """A page without the words. Raises Unreadable where it is none, Refused where they stand in what cannot change."""
    before = markdown.parse(text, path)
    head = text[: len(text) - len(before.body)]
    for key, value in before.meta.items():
        fresh = value if key in FIXED else _without(value, held)
        if fresh != value:
            head = markdown.set_key(head, key, fresh)
    if any(form in head for form in held):  # in a comment, or in a key
        head = struck(head, held)
    after = _read(head, path)
    if after is None or any(after.meta.get(key) != before.meta.get(key) for key in FIXED):
        raise Refused(
            "these words stand where the file would mean something else without them",
            where=path,
            hint=f"name words that stand in the text itself; fixed are {', '.join(FIXED)}",
        )
    body = _struck_body(before.body, held)
    if _labels(before.body) - _labels(body):
        raise Refused(
            "these words begin in the middle of a label that the text is read by",
            where=path,
            hint="name the words behind it, or --line N",
        )
    return head + body


def _struck_body(body: str, held: Sequence[str]) -> str:
    """A page's body without the words; the labels that it is read by (`FIX:` at a line's start) stay."""
    for form in held:
        body = re.sub(re.escape(form), _kept, body)
    return body


def _labels(body: str) -> Counter[str]:
    found = (_LABEL.match(line) for line in body.split("\n"))
    return Counter(label[0].rstrip() for label in found if label)


def _kept(match: re.Match[str]) -> str:
    """What stands in place of the words: the mark, behind each label that is among them."""
    text, start, end = match.string, match.start(), match.end()
    lines = match[0].split("\n")
    labels = []
    for number, line in enumerate(lines):
        begins = number > 0 or start == 0 or text[start - 1] == "\n"
        colon = ":" if number == len(lines) - 1 and text[end : end + 1] == ":" else ""
        label = _LABEL.match(line + colon) if begins else None
        labels.append("" if label is None else line[: label.end()])
    if not any(labels):
        return MARK
    pairs = zip(labels, lines, strict=True)
    return "\n".join(f"{label}{MARK if line[len(label) :].strip() else ''}" for label, line in pairs)


def _read(head: str, path: str) -> markdown.Page | None:
    try:
        return markdown.parse(head, path)
    except markdown.Unreadable:
        return None


def _without(value: Any, held: Sequence[str]) -> Any:
    if isinstance(value, str):
        return struck(value, held)
    if isinstance(value, list):
        return [_without(item, held) for item in value]
    if isinstance(value, Mapping):
        return {key: _without(item, held) for key, item in value.items()}
    return value


def words_at(text: str, line: int, path: str) -> str:
    """What is said on a line of a page: its text without indentation, bullet and label, or in frontmatter the value of
    the key there. Raises Refused where the line says nothing that could be taken out."""
    page = markdown.parse(text, path)
    rows = text.split("\n")
    if not 1 <= line <= len(rows):
        raise Refused(f"there is no line {line}", where=path, hint=f"it has {len(rows)} lines")
    if line >= page.body_line:
        words = rows[line - 1].strip().lstrip("-*>#").strip()
        label, colon, rest = words.partition(":")
        words = rest.strip() if colon and label.isupper() else words
    else:
        key = next((key for key, at in page.lines.items() if at == line and "." not in key), "")
        value = page.meta.get(key)
        words = value.strip() if isinstance(value, str) and key not in FIXED else ""
    if len(words) < LEAST or words == MARK:
        raise Refused(
            "this line says nothing that can be taken out", where=f"{path}:{line}", hint="name the words: --match"
        )
    return words
