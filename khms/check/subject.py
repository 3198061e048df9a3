"""What a rule looks at: one file, or one candidate of the older single-file inbox, with what it reads as."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from khms.check import ahead
from khms.errors import Refused
from khms.model.approval import Approval, approval_from
from khms.model.card import Card, card_from
from khms.store import files, inbox, markdown
from khms.store.layout import APPROVALS, CARDS, CONFIG, INBOX, JOURNAL, RECEIPTS, TAGS, is_card_file
from khms.store.markdown import Page, Unreadable
from khms.store.tracked import Entry

if TYPE_CHECKING:
    from khms.check.screening import Hit

# What a file is to lint; each rule names the kinds that it looks at. A part is one candidate of a single-file unit, a
# change a candidate that proposes no card but a change of one.
CARD, CANDIDATE, WITHHELD, SINGLE, PART, UNIT = "card", "candidate", "withheld", "single", "part", "unit"
CHANGE = "change"
APPROVAL, RECEIPT, DAY, TAG_FILE, SETTINGS = "approval", "receipts", "journal", "tags", "config"
NOTE, OTHER = "note", "other"

PAGES = frozenset({CARD, CANDIDATE, NOTE})
OWN = ("memory/", "journal/", "skills/", "workflows/", "site/")
MARKDOWN = (".md", ".markdown")
CONTENT = (*MARKDOWN, ".json", ".jsonl", ".yaml", ".yml", ".toml")


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule found, before it is known whose it is. An empty severity is the rule's own."""

    line: int
    message: str
    mend: str
    severity: str = ""


def kind_of(path: str) -> str:
    """What the file at this base path is to lint."""
    if path.startswith(CARDS):
        return CARD if is_card_file(path) else OTHER
    folder, _, name = path.rpartition("/")
    is_page = name.lower().endswith(MARKDOWN)
    if path.startswith(INBOX + "/"):
        return _inbox_kind(path[len(INBOX) + 1 :].split("/"))
    if folder == APPROVALS and name.endswith(".json"):
        return APPROVAL
    if folder == RECEIPTS and name.endswith(".jsonl"):
        return RECEIPT
    if folder == JOURNAL and is_page:
        return DAY
    return {CONFIG: SETTINGS, TAGS: TAG_FILE}.get(path, NOTE if is_page else OTHER)


def _inbox_kind(parts: list[str]) -> str:
    name = parts[-1]
    if not name.endswith(".md"):
        return UNIT if len(parts) == 2 and name == "unit.json" else OTHER
    if len(parts) == 1:
        return SINGLE
    if len(parts) == 2:
        return OTHER if name == "REPORT.md" else CANDIDATE
    return WITHHELD if len(parts) == 3 and parts[1] in inbox.SECTIONS else OTHER


@dataclass(frozen=True)
class Subject:
    """`name` is the file's stem, or the candidate's label; `unit` the base path of the inbox unit. Where a page cannot
    be read, `error` says why and `page` is empty."""

    path: str
    kind: str
    entry: Entry
    name: str = ""
    unit: str = ""
    page: Page = field(default_factory=lambda: Page({}, "", {}, 1))
    error: Unreadable | None = None

    @property
    def meta(self) -> Mapping[str, Any]:
        return self.page.meta

    @cached_property
    def text(self) -> str:
        return ahead.text_of(self.entry.data)

    @cached_property
    def hits(self) -> Sequence["Hit"]:
        """What screening finds in the file's text."""
        return ahead.hits(self.entry)

    def take(self, hits: Sequence["Hit"]) -> None:
        """Takes what another process found in the file."""
        self.__dict__["hits"] = hits

    @cached_property
    def card(self) -> Card:
        return card_from(self.page.meta, self.page.body, self.path, self.page.body_line)

    @cached_property
    def record(self) -> Approval | None:
        """The approval record in the file, None where it cannot be read: the rules over that file say so."""
        try:
            value = files.parse_json(self.entry.data)
            return approval_from(value, self.path) if isinstance(value, dict) else None
        except (ValueError, RecursionError, Refused):
            return None

    @property
    def is_content(self) -> bool:
        """Whether people or agents write this file; what only programs append to may grow."""
        return self.path.lower().endswith(CONTENT) and not self.path.startswith(ahead.LEDGERS) and self.kind != UNIT

    @cached_property
    def conflict(self) -> int | None:
        """The line of the first merge-conflict marker at a line's start."""
        data = self.entry.data
        has_marker = b"<<<<<<< " in data or b">>>>>>> " in data
        return markdown.conflict_line(self.text) if has_marker and self.is_text else None

    @property
    def is_unreadable(self) -> bool:
        return self.error is not None or (self.kind in (CARD, CANDIDATE, PART) and not self.page.meta)

    @property
    def is_own(self) -> bool:
        """Whether this is khms's own ground, and no note of a base that was adopted."""
        return self.path.startswith(OWN) or self.path == CONFIG

    @property
    def is_text(self) -> bool:
        return ahead.is_text(self.entry.data)

    def line(self, *keys: str) -> int:
        """The file line of the first of these keys (dotted) that is written, else of the frontmatter's begin."""
        lines = self.page.lines
        return next((lines[key] for key in keys if key in lines), min(lines.values(), default=1))


def subjects(entry: Entry) -> list[Subject]:
    """The file, and where it is an older inbox file each of its candidates too."""
    kind = kind_of(entry.path)
    stem = entry.path.rpartition("/")[2].rpartition(".")[0]
    unit = entry.path.rpartition("/")[0] if kind in (CANDIDATE, UNIT) else entry.path if kind == SINGLE else ""
    if kind == SINGLE and entry.link is None and not entry.problem:
        return _single(entry, stem, unit)
    page = Page({}, "", {}, 1)
    error = None
    if entry.problem:
        error = Unreadable(f"the file cannot be read: {entry.problem}", path=entry.path, mend="check the file")
    elif kind in PAGES and entry.link is None:
        try:
            page = markdown.parse(entry.data, entry.path)
        except Unreadable as unreadable:
            error = unreadable
    if kind == CANDIDATE and "change" in page.meta:
        kind = CHANGE
    return [Subject(entry.path, kind, entry, stem, unit, page, error)]


def _single(entry: Entry, stem: str, unit: str) -> list[Subject]:
    held = inbox.single(entry.data, stem, entry.path)
    found = [Subject(entry.path, SINGLE, entry, stem, unit)]
    for error in held.broken:
        found.append(Subject(entry.path, PART, entry, "", unit, error=error))
    for candidate in held.candidates:
        page = markdown.parse(candidate.text, entry.path)
        down = candidate.body_line - page.body_line
        lines = {key: line + down for key, line in page.lines.items()}
        whole = Page(dict(candidate.meta), candidate.body, lines, candidate.body_line)
        found.append(Subject(entry.path, PART, entry, candidate.label, unit, whole))
    return found
