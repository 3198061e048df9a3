"""Where everything lies in a base, and which folder is the base."""

import os
from collections.abc import Mapping
from pathlib import Path

from khms.errors import Unavailable
from khms.values import dataclass

CONFIG = "khms.toml"
KNOW = "memory/know"
ARCHIVE = "memory/archive/know"
APPROVALS = "memory/approvals"
INBOX = "memory/inbox"
RECEIPTS = "memory/receipts"
HISTORY = "memory/history"
EVENTS = "memory/events"
VIEWS = "memory/views"
TAGS = "memory/tags.yaml"
SIGNERS = "memory/signers"
JOURNAL = "journal"
NEXT_ID = "tools/.next_id"
MEMORY = "memory"
CARDS = (f"{KNOW}/", f"{ARCHIVE}/")
# What came in through the review, or waits for it. Only plain files and real folders stand there and on the way there.
GUARDED = (KNOW, "memory/archive", APPROVALS, INBOX)


@dataclass(frozen=True, slots=True)
class Base:
    """A base by its root folder. `named` says that the user named it (--root, KHMS_ROOT, the default base); one found
    by walking up from a folder needs trust before hooks use it."""

    root: Path
    named: bool = False

    def path(self, relative: str) -> Path:
        return self.root / relative

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @property
    def know(self) -> Path:
        return self.root / KNOW

    @property
    def archive(self) -> Path:
        return self.root / ARCHIVE

    @property
    def approvals(self) -> Path:
        return self.root / APPROVALS

    @property
    def inbox(self) -> Path:
        return self.root / INBOX

    @property
    def receipts(self) -> Path:
        return self.root / RECEIPTS

    @property
    def journal(self) -> Path:
        return self.root / JOURNAL

    @property
    def local(self) -> Path:
        """This machine's own folder, ignored by git."""
        return self.root / ".khms"

    @property
    def index(self) -> Path:
        return self.local / "index"

    @property
    def carry(self) -> Path:
        return self.local / "carry"

    @property
    def state(self) -> Path:
        return self.local / "state"

    @property
    def log(self) -> Path:
        return self.local / "log"

    @property
    def locks(self) -> Path:
        return self.local / "locks"


def is_card_file(path: str) -> bool:
    """The one rule for which files are cards: below the folders of cards, with `.md` at the end, in these letters."""
    return path.startswith(CARDS) and path.endswith(".md")


def seems_card(path: str) -> bool:
    """Whether a reader, another program or a disk that does not tell cases apart could take this for a card's file,
    though it is none."""
    small = path.casefold()
    return small.startswith(CARDS) and small.endswith((".md", ".markdown")) and not is_card_file(path)


def is_base(folder: Path) -> bool:
    return (folder / CONFIG).is_file()


def is_older_base(folder: Path) -> bool:
    """A base of the older shell tools: cards, but no configuration file."""
    return (folder / KNOW).is_dir()


def named(folder: Path) -> Base:
    """The base at `folder`, named by the user; raises Unavailable where there is none. A folder whose `.memory` is a
    base means that one."""
    for candidate in (folder, folder / ".memory"):
        if is_base(candidate) or is_older_base(candidate):
            return Base(candidate.resolve(), named=True)
    raise Unavailable("there is no base here", where=str(folder), hint=f"make one: khms init {folder}")


def walk(start: Path) -> Base | None:
    """The nearest base at or above `start`: a folder with khms.toml, or one whose `.memory` has it."""
    here = start.resolve()
    for folder in (here, *here.parents):
        if is_base(folder):
            return Base(folder)
        if is_base(folder / ".memory"):
            return Base(folder / ".memory")
    return Base(here) if is_older_base(here) else None


def find(
    root: str | None, start: Path, default: Path | None = None, env: Mapping[str, str] = os.environ
) -> Base | None:
    """The base that a command works on: --root, KHMS_ROOT (empty is unset), the nearest at or above `start`, the user's
    default base. Raises Unavailable where a named one is not there."""
    said = root or env.get("KHMS_ROOT") or ""
    if said:
        return named(Path(said))
    found = walk(start)
    if found is not None:
        return found
    return named(default) if default is not None else None
