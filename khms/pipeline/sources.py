"""What a night is about: the journal files of its window, their MARKs, and which of those nobody decided yet.

Nothing here is inferred: a file that is empty, cannot be read or is not UTF-8 is recorded and reported, and hides no
other.
"""

import datetime
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from khms.errors import Refused, Usage
from khms.model.approval import plain_bytes
from khms.model.finding import Finding
from khms.model.mark import Mark, split_session
from khms.model.receipt import Receipt, decided
from khms.store import files, markdown
from khms.store.journal import Day
from khms.store.layout import JOURNAL, Base
from khms.store.receipts import Ledger

SESSION = "session:"
_HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class Window:
    """What a run was told to look at: journal days from `since` on (a day, or empty), or one MARK."""

    since: str = ""
    only_mark: str = ""

    def __str__(self) -> str:
        if self.only_mark:
            return f"only {self.only_mark}"
        return f"journal days since {self.since}" if self.since else "the whole journal"

    def holds(self, day: str) -> bool:
        return not self.since or (is_day(day) and day >= self.since)


@dataclass(frozen=True, slots=True)
class Page:
    """One journal file as it was read: `lines` are its text's, `marks` its MARKs in order."""

    path: str
    data: bytes
    sha256: str
    lines: tuple[str, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Collected:
    """`open` are the window's MARKs without a decision, in the journal's order, then those found in sessions; `settled`
    counts the others. `held` are the pieces of sessions that were read, by their path: quotes are looked up in them."""

    window: Window
    pages: Mapping[str, Page]
    open: tuple[Mark, ...]
    settled: int = 0
    empty: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()
    receipts: Mapping[str, Receipt] = field(default_factory=dict)
    held: Mapping[str, bytes] = field(default_factory=dict)

    def page(self, mark: Mark) -> Page:
        return self.pages[mark.path]


def is_day(text: str) -> bool:
    """Whether `text` is a day of the calendar, written 2026-03-04."""
    try:
        return len(text) == 10 and datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def window(since: str | None, only_mark: str | None) -> Window:
    """The window that a person asked for; raises Usage for what is no day or no MARK id."""
    if since is not None and not is_day(since):
        raise Usage(f"{since!r} is no day", hint="write it as 2026-03-04")
    if only_mark is not None and not only_mark.startswith("M-"):
        raise Usage(f"{only_mark!r} is no MARK id", hint="khms journal show lists them: M- and 12 digits")
    return Window(since or "", only_mark or "")


def collect(base: Base, ledger: Ledger, window: Window) -> Collected:
    """Reads the journal and sorts its MARKs; raises Refused where the MARK that was asked for is not there."""
    pages: dict[str, Page] = {}
    empty, problems = [], []
    for file in sorted(base.journal.glob("*.md")) if base.journal.is_dir() else []:
        if not window.holds(file.name[:10]):
            continue
        shown = f"{JOURNAL}/{file.name}"
        if not shown.isprintable():
            shown = shown.encode("utf-8", "backslashreplace").decode("utf-8")
            problems.append(
                _problem(shown, "error", "this journal file has no plain name; its MARKs stay open", "rename it")
            )
            continue
        try:
            data = files.read(files.inside(base.root, file))
        except (Refused, OSError) as error:
            said = error.message if isinstance(error, Refused) else error.strerror
            problems.append(_problem(shown, "error", f"this journal file cannot be read: {said}"))
            continue
        if not _is_utf8(data):
            problems.append(
                _problem(
                    shown, "warning", "this journal file is not UTF-8; the odd bytes read as �", "save it as UTF-8"
                )
            )
        torn = markdown.conflict_line(plain_bytes(data).decode("utf-8", "replace"))
        if torn is not None:
            said = f"a merge conflict stands on line {torn}; its MARKs stay open"
            problems.append(_problem(shown, "error", said, "choose one side and take the markers out"))
            continue
        pages[shown] = page = read(shown, data)
        if not page.marks:
            empty.append(shown)
    receipts = decided(ledger.receipts)
    marks = [mark for page in pages.values() for mark in page.marks if window.only_mark in ("", mark.id)]
    if window.only_mark and not marks:
        raise Refused(f"the journal has no MARK {window.only_mark}", hint="khms journal show lists what there is")
    waiting = tuple(mark for mark in marks if mark.id not in receipts)
    return Collected(window, pages, waiting, len(marks) - len(waiting), tuple(empty), tuple(problems), receipts)


def joined(window: Collected, journal: Collected, ids: set[str]) -> Collected:
    """The window with those open MARKs of the whole journal that `ids` names, in the journal's order."""
    held = {mark.id for mark in window.open}
    more = [mark for mark in journal.open if mark.id in ids and mark.id not in held]
    if not more:
        return window
    pages = {**{mark.path: journal.pages[mark.path] for mark in more}, **window.pages}
    both = sorted([*window.open, *more], key=lambda mark: (mark.path, mark.line))
    return replace(window, pages=dict(sorted(pages.items())), open=tuple(both))


def read(path: str, data: bytes) -> Page:
    day = Day(path, data)
    return Page(path, data, hashlib.sha256(data).hexdigest(), tuple(day.text.split("\n")), tuple(day.marks))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _problem(path: str, severity: str, message: str, mend: str = "check the file and its permissions") -> Finding:
    return Finding("KH001", severity, path, 0, message, mend)


def is_session(path: str) -> bool:
    """Whether a page is a piece of a session's digest (`pipeline.digest`) and no journal file."""
    return path.startswith(SESSION)


def words(page: Page, mark: Mark) -> str:
    """The MARK's own words as they stand in the file, from behind `MARK[kind]` to its end, without the session note. Of
    a MARK that was found in a session: the lines there that it rests on."""
    lines = list(page.lines[mark.line - 1 : mark.end])
    if not lines:
        return mark.text
    if is_session(page.path):
        return clean("\n".join(lines)).strip()
    lines[0] = lines[0].partition("]")[2].lstrip().removeprefix(":").lstrip()
    return clean(split_session("\n".join(lines).rstrip())[0]).strip()


def whole(page: Page, mark: Mark) -> str:
    """The MARK's lines with the `MARK[kind]` before them: for words too few to be a quote by themselves. Of a MARK that
    was found in a session: what was found, then the lines there."""
    if is_session(page.path):
        return f"MARK[{mark.kind}] {mark.text}\n{words(page, mark)}"
    first = page.lines[mark.line - 1]
    lines = [first[first.index("MARK[") :], *page.lines[mark.line : mark.end]]
    return clean(split_session("\n".join(lines).rstrip())[0]).strip()


def around(page: Page, first: int, last: int, radius: int) -> list[tuple[int, str]]:
    """(line number, text) of the lines from `radius` before line `first` to `radius` after line `last`."""
    start, stop = max(first - 1 - radius, 0), min(last + radius, len(page.lines))
    return [(i + 1, clean(page.lines[i])) for i in range(start, stop)]


def clean(text: str) -> str:
    """`text` with a blank for each control character, half character, direction control and hidden mark: nothing of
    that kind may reach a card. Line breaks stay, and so do the joiners that emoji and scripts are made with."""
    return text if text.isprintable() else _HIDDEN.sub(" ", text)
