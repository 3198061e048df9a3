"""The approval record: the proof of who let which bytes in, as values and bytes.

The record's hash of a card leaves out what may change later (`status`, `links.contradicts`, `links.refuted_by`), so
that a transition, a rebase or a move to the archive keeps the proof.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from khms.errors import Refused

SCHEMA = "khms.approval/1"
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
    data = plain_bytes(data)
    quick = _quick(data)
    if quick is not None:
        return hashlib.sha256(quick).hexdigest()
    head, rest = _frontmatter(data)
    if _is_flow(head):
        return hashlib.sha256(data).hexdigest()
    kept = _without(head)
    return hashlib.sha256(b"".join(kept) + rest).hexdigest()


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
    i = 0
    while i < len(head):
        line = head[i]
        if b"status" in line and _indent(line) == 0 and _key(line) == b"status":
            i = _block_end(head, i)
        elif line.startswith(b"links:") and line.partition(b" #")[0].strip() == b"links:":
            end = _block_end(head, i)
            children = _children(head, i + 1, end)
            kept += [line, *children] if children else []
            i = end
        else:
            kept.append(line)
            i += 1
    return kept


def _children(head: list[bytes], start: int, end: int) -> list[bytes]:
    kept: list[bytes] = []
    i = start
    while i < end:
        if _key(head[i]) in (b"contradicts", b"refuted_by"):
            i = min(_block_end(head, i), end)
        else:
            kept.append(head[i])
            i += 1
    return kept


@dataclass(frozen=True, slots=True)
class Approved:
    """One card that an approval let in. `was` holds the ids it had before a replay gave it another."""

    id: str
    label: str
    candidate_sha256: str
    card_sha256: str
    was: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """One later change of a card; `old` and `new` are the field's values."""

    id: str
    field: str
    old: Any
    new: Any
    why: str


@dataclass(frozen=True, slots=True)
class Waiver:
    check: str
    label: str
    why: str


@dataclass(frozen=True, slots=True)
class Approval:
    """`unit` is the approved unit's path, or empty for a transition; `parent` the commit it was made on, None on an
    unborn branch; `labels_of` the file that the labels belong to is the unit itself."""

    id: str
    unit: str
    reviewer: str
    at: str
    parent: str | None
    cards: tuple[Approved, ...] = ()
    transitions: tuple[Transition, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    signature: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "id": self.id,
            "unit": self.unit,
            "reviewer": self.reviewer,
            "at": self.at,
            "parent": self.parent,
            "cards": [
                {
                    "id": c.id,
                    "label": c.label,
                    "candidate_sha256": c.candidate_sha256,
                    "card_sha256": c.card_sha256,
                    "was": list(c.was),
                }
                for c in self.cards
            ],
            "transitions": [
                {"id": t.id, "field": t.field, "old": t.old, "new": t.new, "why": t.why} for t in self.transitions
            ],
            "waivers": [{"check": w.check, "label": w.label, "why": w.why} for w in self.waivers],
            "signature": self.signature,
        }

    def file_bytes(self) -> bytes:
        return (json.dumps(self.as_json(), ensure_ascii=False, indent=2) + "\n").encode("utf-8")

    def signed_bytes(self) -> bytes:
        """RFC 8785 canonical JSON without `signature`. A record holds texts, lists and null only, so sorted keys and
        no white space are the whole of that form here (keys are ASCII, there are no numbers)."""
        value = {key: item for key, item in self.as_json().items() if key != "signature"}
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )


def approval_from(value: Mapping[str, Any], path: str) -> Approval:
    """The record that one JSON file holds; raises Refused naming the file where a key is missing or holds what it never
    holds."""
    try:
        record = Approval(
            id=value["id"],
            unit=value["unit"],
            reviewer=value["reviewer"],
            at=value["at"],
            parent=value["parent"],
            cards=tuple(
                Approved(c["id"], c["label"], c["candidate_sha256"], c["card_sha256"], tuple(c.get("was", ())))
                for c in value["cards"]
            ),
            transitions=tuple(
                Transition(t["id"], t["field"], t["old"], t["new"], t["why"]) for t in value["transitions"]
            ),
            waivers=tuple(Waiver(w["check"], w["label"], w["why"]) for w in value["waivers"]),
            signature=value.get("signature"),
        )
        _demand_texts(record)
    except (KeyError, TypeError) as error:
        raise Refused(
            f"this approval record is incomplete: {error}", where=path, hint="restore it: git checkout -- " + path
        ) from error
    return record


def _demand_texts(record: Approval) -> None:
    """Raises TypeError where something else than a text stands for one: nothing after this expects that."""
    held = [record.id, record.unit, record.reviewer, record.at, record.parent or "", record.signature or ""]
    for card in record.cards:
        held += [card.id, card.label, card.candidate_sha256, card.card_sha256, *card.was]
    for change in record.transitions:
        held += [change.id, change.field, change.why]
    for waiver in record.waivers:
        held += [waiver.check, waiver.label, waiver.why]
    for item in held:
        if not isinstance(item, str):
            raise TypeError(f"{item!r:.40} is no text")
