"""What an audit judges, as values: cards, records and what decides whether a record counts."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from khms import config
from khms.errors import Refused
from khms.model.approval import Approval, approval_from, candidate_sha256, card_sha256
from khms.model.card import STATUSES, as_list, as_text
from khms.model.cardhash import stray
from khms.model.ulid import is_ulid
from khms.options import OPTIONS
from khms.store import files, inbox, markdown, signing
from khms.store.layout import APPROVALS, ARCHIVE, CONFIG, INBOX, KNOW, SIGNERS
from khms.store.markdown import Unreadable

UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Trust:
    """The file of signers, and of khms.toml: `review`, its `[review]` table as canonical JSON, and `base`, the base's
    id. `configured` says whether there is a khms.toml, `fault` why it cannot be read."""

    signers: bytes = b""
    review: str = "{}"
    configured: bool = False
    base: str = ""
    fault: str = ""

    @property
    def signed(self) -> bool:
        """Whether there is anyone whose signature could be checked."""
        return bool(_signers(self.signers))

    @property
    def required(self) -> bool:
        """Whether a record counts only with a signature. What cannot be read asks for one."""
        if self.review == UNREADABLE:
            return True
        return json.loads(self.review).get("require_signed") is True

    @property
    def signers_sha256(self) -> str | None:
        return file_sha256(self.signers)

    def after(self, before: "Trust") -> "Trust":
        """These, coming after `before`: settings that cannot be read change nothing."""
        return replace(self, review=before.review, base=before.base) if self.fault else self


@cache
def _signers(data: bytes) -> bool:
    return bool(signing.signers(data))


def file_sha256(data: bytes) -> str | None:
    """The hash that the record of a change of the signers holds: over the bytes as they are, since ssh reads a
    byte-order mark as part of a name. None for no file."""
    return hashlib.sha256(data).hexdigest() if data else None


def trust_from(signers: bytes | None, settings: bytes | None) -> Trust:
    try:
        table = tomllib.loads((settings or b"").decode("utf-8-sig"))
        fault = _fault(table)
    except (ValueError, RecursionError) as error:
        table, fault = {}, str(error)
    if fault:
        return Trust(signers or b"", UNREADABLE, settings is not None, fault=fault)
    return Trust(signers or b"", review_table(settings), settings is not None, base_id(settings))


def _fault(table: Mapping[str, object]) -> str:
    """What is wrong with the settings that this khms knows; empty for nothing. Others may be those of a newer one."""
    for option in OPTIONS:
        section, _, key = option.name.partition(".")
        body = table.get(section, {})
        if not isinstance(body, Mapping):
            return f"{section} is no table"
        try:
            if key in body:
                config.check(option.name, body[key], CONFIG)
        except Refused as error:
            return error.message
        except ValueError as error:  # a number too long to be shown
            return f"{option.name}: {error}"
    held = table.get("base", {})
    named = held.get("id", "") if isinstance(held, Mapping) else ""
    return f"base.id is no ULID: {named!r:.40}" if named and not is_ulid(str(named)) else ""


def base_id(settings: bytes | None) -> str:
    """The id that a khms.toml gives its base; empty for none, and where it cannot be read."""
    try:
        held = tomllib.loads((settings or b"").decode("utf-8-sig")).get("base", {})
    except (ValueError, RecursionError):
        return ""
    named = held.get("id", "") if isinstance(held, Mapping) else ""
    return named if isinstance(named, str) else ""


def review_table(settings: bytes | None) -> str:
    """The `[review]` table of a khms.toml as canonical JSON."""
    try:
        table = tomllib.loads((settings or b"").decode("utf-8-sig")).get("review", {})
        return json.dumps(table, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    except (ValueError, RecursionError):
        return UNREADABLE


@dataclass(frozen=True, slots=True)
class Filed:
    """A record's file. `record` is None where it cannot be read, and `fault` says why."""

    path: str
    record: Approval | None
    fault: str = ""


def filed(path: str, data: bytes) -> Filed:
    name = path.rpartition("/")[2].removesuffix(".json")
    try:
        value = files.parse_json(data)
        if not isinstance(value, dict):
            return Filed(path, None, "it is no JSON object")
        record = approval_from(value, path)
        if data != record.file_bytes() or not all(_is_value(t.old) and _is_value(t.new) for t in record.transitions):
            return Filed(path, None, ODD)
    except (ValueError, RecursionError) as error:
        return Filed(path, None, f"it is no JSON: {error}")
    except Refused as error:
        return Filed(path, None, error.message)
    if record.id != name or not is_ulid(name):
        return Filed(path, None, f"its file has another name than its id, {record.id}")
    return Filed(path, record)


# Two ways to write one thing would let a reader by bytes and a reader by values see different records.
ODD = (
    "its bytes are not the ones that khms writes for what it says (letters written as escapes, a key that stands twice "
    "or that no record has, other white space, a number)"
)


def _is_value(value: object) -> bool:
    """Whether a transition can have it: a text, texts, or nothing."""
    return (
        value is None or isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))
    )


def is_record(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder == APPROVALS and name.endswith(".json")


# The kinds of file that come in with a record only: (folder, ending). A record names each by its id in `cards`.
KINDS: tuple[tuple[str, str], ...] = ((KNOW + "/", ".md"), (ARCHIVE + "/", ".md"))
FOLDERS = (*(folder.rstrip("/") for folder, _ in KINDS), APPROVALS)


def is_card(path: str) -> bool:
    return any(path.startswith(folder) and path.endswith(ending) for folder, ending in KINDS)


def is_trust(path: str) -> bool:
    return path in (SIGNERS, CONFIG)


@dataclass(frozen=True, slots=True)
class Standing:
    """The three things about a card that may change."""

    status: str = "active"
    contradicts: frozenset[str] = frozenset()
    refuted_by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Stood:
    """A card as its file says it. `standing` is None where that cannot be read; `lines` are where its keys stand,
    `stray` the lines that its hash leaves out though more than the plain field stands there, with what is wrong."""

    path: str
    id: str
    sha256: str
    standing: Standing | None
    lines: Mapping[str, int]
    stray: tuple[tuple[int, str], ...] = ()

    @property
    def archived(self) -> bool:
        return self.path.startswith(ARCHIVE + "/")


# Frontmatter as khms writes it, every value on one line: a third of the cost of the reader that takes all there is.
_VALUE = rb"""(?:[^\n"'\[{|>&*!%@`#?,\]}: -][^\n]*|"[^"\\\n]*"|'[^'\n]*'|\[[^\[\]\n"']*\])?"""
_ROW = rb"[a-z_]+: ?" + _VALUE + rb"\n"
_IDS = rb"(?:null|\[(?:K-[0-9]+(?:, K-[0-9]+)*)?\])"
_LINKS = rb"links:\n((?:  [a-z_]+: (?:%b|K-[0-9]+)\n)+)" % _IDS
_USUAL = re.compile(
    rb"---\nid: (K-[0-9]+)\n(?:%b)*?status: (?!null\n)([a-z]+)\n(?:%b)*?%b(?:%b)*---\n" % (_ROW, _ROW, _LINKS, _ROW)
)
_KEYS = re.compile(rb"^ *[a-z_]+:", re.MULTILINE)


def _quick(path: str, data: bytes) -> Stood | None:
    """A card whose frontmatter is of the usual form; None for any other, a key that stands twice included."""
    found = _USUAL.match(data)
    if found is None:
        return None
    keys = [key.strip() for key in _KEYS.findall(found[0])]
    if len(set(keys)) != len(keys) or b"\r" in found[0] or found[2].decode() not in STATUSES:
        return None
    edges: dict[bytes, frozenset[str]] = {}
    for row in found[3].splitlines():
        name, _, value = row.strip().partition(b": ")
        if name in (b"contradicts", b"refuted_by"):
            edges[name] = frozenset(value.strip(b"[]").decode().split(", ")) - {"", "null"}
    standing = Standing(
        found[2].decode(), edges.get(b"contradicts", frozenset()), edges.get(b"refuted_by", frozenset())
    )
    line = found[0].count(b"\n", 0, found.start(2)) + 1
    return Stood(path, found[1].decode(), card_sha256(data), standing, {"status": line})


def stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def stood(path: str, data: bytes) -> Stood:
    """The card in a file, whatever the file holds."""
    quick = _quick(path, data)
    if quick is not None:
        return quick
    sha256, odd = card_sha256(data), tuple(stray(data))
    try:
        page = markdown.parse(data, path)
    except Unreadable:
        return Stood(path, stem(path), sha256, None, {}, odd)
    links = page.meta.get("links")
    edges = links if isinstance(links, Mapping) else {}
    standing = Standing(
        as_text(page.meta.get("status")) or "active",
        frozenset(as_list(edges.get("contradicts"))),
        frozenset(as_list(edges.get("refuted_by"))),
    )
    return Stood(path, as_text(page.meta.get("id")) or stem(path), sha256, standing, page.lines, odd)


def candidates(path: str, data: bytes) -> Iterable[tuple[str, str, str]]:
    """(unit, label, SHA-256) of each candidate in a file of the inbox."""
    parts = path.removeprefix(INBOX + "/").split("/")
    if len(parts) == 1:
        try:
            held = inbox.single(data, parts[0].removesuffix(".md"), path)
        except Unreadable:
            return
        for candidate in held.candidates:
            yield path, candidate.label, candidate_sha256(candidate.text.encode("utf-8", "surrogateescape"))
    elif parts[-1] != "REPORT.md":
        yield f"{INBOX}/{parts[0]}", parts[-1].removesuffix(".md"), candidate_sha256(data)
