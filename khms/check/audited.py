"""What an audit judges, as values: cards, records and what decides whether a record counts."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from khms.errors import Refused
from khms.model.approval import Approval, approval_from, candidate_sha256, card_sha256
from khms.model.card import as_list, as_text
from khms.model.ulid import is_ulid
from khms.store import files, inbox, markdown, signing
from khms.store.layout import APPROVALS, ARCHIVE, CONFIG, INBOX, KNOW, SIGNERS
from khms.store.markdown import Unreadable

UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Trust:
    """The file of signers, and `review`: the `[review]` table of khms.toml as canonical JSON. `configured` says whether
    there is a khms.toml."""

    signers: bytes = b""
    review: str = "{}"
    configured: bool = False

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
        return candidate_sha256(self.signers) if self.signers else None


@cache
def _signers(data: bytes) -> bool:
    return bool(signing.signers(data))


def trust_from(signers: bytes | None, settings: bytes | None) -> Trust:
    return Trust(signers or b"", review_table(settings), settings is not None)


def review_table(settings: bytes | None) -> str:
    """The `[review]` table of a khms.toml as canonical JSON."""
    try:
        table = tomllib.loads((settings or b"").decode("utf-8-sig")).get("review", {})
        return json.dumps(table, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
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
    except (ValueError, RecursionError) as error:
        return Filed(path, None, f"it is no JSON: {error}")
    except Refused as error:
        return Filed(path, None, error.message)
    if record.id != name or not is_ulid(name):
        return Filed(path, None, f"its file has another name than its id, {record.id}")
    return Filed(path, record)


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
    """A card as its file says it. `standing` is None where that cannot be read; `lines` are where its keys stand."""

    path: str
    id: str
    sha256: str
    standing: Standing | None
    lines: Mapping[str, int]

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
    if len(set(keys)) != len(keys) or b"\r" in found[0]:
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
    sha256 = card_sha256(data)
    try:
        page = markdown.parse(data, path)
    except Unreadable:
        return Stood(path, stem(path), sha256, None, {})
    links = page.meta.get("links")
    edges = links if isinstance(links, Mapping) else {}
    standing = Standing(
        as_text(page.meta.get("status")) or "active",
        frozenset(as_list(edges.get("contradicts"))),
        frozenset(as_list(edges.get("refuted_by"))),
    )
    return Stood(path, as_text(page.meta.get("id")) or stem(path), sha256, standing, page.lines)


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
