"""The hash of a card that its approval record holds, and what it leaves out.

Left out is what may change later (`status`, `links.contradicts`, `links.refuted_by`), so that a transition, a rebase or
a move to the archive keeps the proof. Whoever asks for the proof asks `stray` too: nobody approved what else stands on
these lines.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from khms.model.card import STATUSES

_HELD = {"status": "one word that is a status", "links": "its keys"}
CHANGEABLE = ("status", "links.contradicts", "links.refuted_by")


def plain_bytes(data: bytes) -> bytes:
    """`data` without a byte-order mark and with LF line ends: what every hash is taken over."""
    return data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def candidate_sha256(data: bytes) -> str:
    return hashlib.sha256(plain_bytes(data)).hexdigest()


def has_flow_links(data: bytes) -> bool:
    """Whether `links` is written in flow style (`links: {…}`): such a card is hashed whole and takes no transition."""
    return _is_flow(_frontmatter(plain_bytes(data))[0])


def _is_flow(head: list[bytes]) -> bool:
    return any(line.startswith(b"links:") and line[6:].strip()[:1] == b"{" for line in head)


def card_sha256(data: bytes) -> str:
    """SHA-256 of a card's file without the full lines of the keys that may change, and of `links:` if then childless.

    A key's lines run from its own to the next line that is not deeper than it.
    """
    return hashlib.sha256(hashed(data)).hexdigest()


def hashed(data: bytes) -> bytes:
    """What of a card's file its hash is taken over."""
    data = plain_bytes(data)
    quick = _quick(data)
    if quick is not None:
        return quick
    head, rest = _frontmatter(data)
    return data if _is_flow(head) else b"".join(_without(head)) + rest


@cache
def _usual() -> Any:
    """Frontmatter as most cards have it: one line a key, and `links` with one line a relation."""
    import re

    key = rb"[a-z_]+:[^\n]*\n"
    return re.compile(rb"(---\n(?:%b)*?)status:[^\n]*\n((?:%b)*?)links:\n((?:  %b)+)((?:%b)*---\n)" % ((key,) * 4))


def _quick(data: bytes) -> bytes | None:
    """What is hashed of a card with usual frontmatter, at a quarter of the cost of reading its lines; None else."""
    found = None if b"\r" in data else _usual().match(data)
    if found is None or found[0].count(b"\nstatus:") > 1 or found[0].count(b"\nlinks:") > 1:
        return None
    before, between, links, after = found.groups()
    kept = [line for line in links.splitlines(True) if not line.startswith((b"  contradicts:", b"  refuted_by:"))]
    return b"".join([before, between, b"links:\n" if kept else b"", *kept, after, data[found.end() :]])


def _frontmatter(data: bytes) -> tuple[list[bytes], bytes]:
    """The lines up to and with the closing fence, each with its newline, and the bytes after them."""
    text = data.replace(b"\r", b"\n")
    lines: list[bytes] = []
    start = 0 if text.startswith(b"---") else len(text)
    while start < len(text):
        end = text.find(b"\n", start) + 1 or len(text)
        lines.append(text[start:end])
        start = end
        fence = lines[-1].rstrip()
        if len(lines) == 1 and fence != b"---":
            break
        if len(lines) > 1 and fence in (b"---", b"..."):
            return lines, text[start:]
    return [], data


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" "))


def _key(line: bytes) -> bytes:
    return line.strip().partition(b":")[0].strip(b"\"'") if b":" in line else b""


def _block_end(lines: list[bytes], start: int) -> int:
    """The line after the value of the key at `start`. A list may stand at its key's own indentation in YAML."""
    depth = _indent(lines[start])
    end = start + 1
    while end < len(lines) - 1:
        line = lines[end]
        text = line.lstrip(b" ")
        indent = len(line) - len(text)
        deeper = indent > depth or (indent == depth and text.startswith(b"- "))
        if not deeper and text.strip() and not text.lstrip().startswith(b"#"):
            break
        end += 1
    return end


def _without(head: list[bytes]) -> list[bytes]:
    kept: list[bytes] = []
    start = 0
    for gone, after in _left_out(head):
        kept += head[start:gone]
        start = after
    return kept + head[start:]


def _left_out(head: list[bytes]) -> Iterator[tuple[int, int]]:
    """The lines that are not hashed, as (first, the one after the last) of each key, and of a `links:` without more."""
    i = 0
    while i < len(head):
        line = head[i]
        if b"status" in line and _indent(line) == 0 and _key(line) == b"status":
            end = _block_end(head, i)
            yield i, end
        elif line.startswith(b"links:") and line.partition(b" #")[0].strip() == b"links:":
            end = _block_end(head, i)
            inner = list(_edges(head, i + 1, end))
            if sum(after - gone for gone, after in inner) == end - i - 1:
                yield i, i + 1
            yield from inner
        else:
            end = i + 1
        i = end


def _edges(head: list[bytes], start: int, end: int) -> Iterator[tuple[int, int]]:
    i = start
    while i < end:
        after = i + 1
        if _key(head[i]) in (b"contradicts", b"refuted_by"):
            after = min(_block_end(head, i), end)
            yield i, after
        i = after


@cache
def _plain() -> dict[bytes, Any]:
    """What may stand on the lines that are not hashed: a known status, a list of card ids."""
    import re

    blank = rb"[ \t]*+\n(?:[ \t]*+\n)*+"
    card = rb"""["']?K-[0-9]{5,}["']?"""
    space = rb"[ \t\n]*+"
    listed = rb"\[%b(?:%b%b(?:,%b%b%b)*(?:,%b)?)?\]" % (space, card, space, space, card, space, space)
    below = rb"[ \t]*+\n(?:[ \t]*+(?:- +%b[ \t]*+)?\n)+" % card
    edges = rb"""[ ]+["']?[a-z_]+["']?:(?:(?:[ \t]+(?:null|~|%b|%b))?%b|%b)""" % (card, listed, blank, below)
    status = rb"""["']?status["']?:[ \t]+["']?(?:%b)["']?%b""" % ("|".join(STATUSES).encode(), blank)
    found = {b"status": status, b"links": rb"links:" + blank, b"contradicts": edges, b"refuted_by": edges}
    return {key: re.compile(pattern) for key, pattern in found.items()}


def stray(data: bytes) -> list[tuple[int, str]]:
    """(file line, what is wrong with it) of all that the hash leaves out though it is more than the plain field: nobody
    approved what stands there. Nothing of a card that is hashed whole."""
    head, _ = _frontmatter(plain_bytes(data))
    if not head or _is_flow(head):
        return []
    found: list[tuple[int, str]] = []
    seen: set[bytes] = set()
    for start, end in _left_out(head):
        key = _key(head[start])
        name = key.decode() if key in (b"status", b"links") else f"links.{key.decode()}"
        if key in seen:
            found.append((start + 1, f"a second `{name}`"))
        elif not _plain()[key].fullmatch(b"".join(head[start:end])):
            line = next((i for i in range(start, end) if b"#" in head[i]), start)
            found.append((line + 1, f"`{name}` has to hold {_HELD.get(name, 'card ids')} and nothing else"))
        seen.add(key)
    if b"status" not in seen:
        found.append((1, "there is no `status:`"))
    return found
