"""The cards of a base: reading them all, one bad file never hiding another, and the bytes of new ones."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from khms.errors import Refused
from khms.model.approval import Approval, approval_from
from khms.model.card import Card, card_from, id_number, is_card_id
from khms.store import files, markdown
from khms.store.layout import APPROVALS, ARCHIVE, KNOW, Base
from khms.store.markdown import Unreadable


@dataclass(frozen=True, slots=True)
class Shelf:
    """All cards that can be read, by id, and every file that cannot. Of two files with one id the first counts."""

    cards: dict[str, Card]
    unreadable: tuple[Unreadable, ...] = ()

    def corrects(self, card_id: str) -> list[tuple[str, Card]]:
        """The cards that correct `card_id`, each with its relation: they supersede or contradict it, or refute it."""
        found = [
            (relation, card)
            for card in self.cards.values()
            for relation in ("supersedes", "contradicts")
            if card_id in getattr(card.links, relation)
        ]
        held = self.cards.get(card_id)
        refuters = held.links.refuted_by if held else ()
        found += [("refuted_by", self.cards[i]) for i in refuters if i in self.cards]
        return found


def card_paths(base: Base) -> Iterator[str]:
    """The base path of every file of know/ and archive/, sub-folders included, in a fixed order. Names only, as texts:
    over 10,000 cards `Path` objects would cost more than reading the files. No link is followed, and no other
    repository entered. Raises Refused where a folder of cards is the one or the other."""
    for folder in (KNOW, ARCHIVE):
        _demand_own(base, folder)
        yield from sorted(_below(f"{base.root}/{folder}", folder))


def _demand_own(base: Base, folder: str) -> None:
    """Raises Refused where a folder of cards, or one that leads there, is none of the base's own."""
    files.inside(base.root, base.path(folder))
    shown = ""
    for name in folder.split("/"):
        shown = f"{shown}/{name}" if shown else name
        place = f"{base.root}/{shown}"
        what = "a symbolic link" if os.path.islink(place) else "another git repository"  # noqa: PTH114
        if what == "a symbolic link" or os.path.lexists(f"{place}/.git"):
            raise Refused(
                f"{what} stands where cards lie: what is in it came in by no review",
                where=place,
                hint=f"take it out, and bring back what stood there: git log --oneline -- {shown}",
            )


def _below(place: str, shown: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(place))
    except (FileNotFoundError, NotADirectoryError):
        return
    if any(entry.name[0] == "." and entry.name.casefold() == ".git" for entry in entries):
        return
    for entry in entries:
        if _is_folder(entry):
            yield from _below(entry.path, f"{shown}/{entry.name}")
        elif entry.name.endswith(".md"):
            yield f"{shown}/{entry.name}"


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def load(base: Base, path: str) -> Card:
    """The card at a base path; raises Unreadable, for a link too."""
    try:
        data = files.read(f"{base.root}/{path}", getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise Unreadable(
            f"the file cannot be read: {error.strerror or error}", path=path, mend="check the file and its permissions"
        ) from error
    page = markdown.parse(data, path)
    if not page.meta:
        raise Unreadable(
            "the frontmatter is missing", path=path, line=1, mend="begin it with `---`, `id: …`, the other keys, `---`"
        )
    return card_from(page.meta, page.body, path, page.body_line)


def shelf(base: Base) -> Shelf:
    cards: dict[str, Card] = {}
    unreadable = []
    for path in card_paths(base):
        try:
            card = load(base, path)
        except Unreadable as error:
            unreadable.append(error)
        else:
            cards.setdefault(card.id, card)
    return Shelf(cards, tuple(unreadable))


def find(base: Base, card_id: str) -> Path | None:
    """The file of a card, wherever it lies. A link is none."""
    for folder in (base.know, base.archive):
        path = folder / f"{card_id}.md"
        if path.is_file() and not path.is_symlink():
            return path
    named = (base.path(path) for path in card_paths(base) if _stem(path) == card_id)
    return next((path for path in named if not path.is_symlink()), None)


def approvals(base: Base) -> list[Approval]:
    """Every approval record, oldest first; raises Refused for one that cannot be read: a writer must not go on with a
    proof missing."""
    records = []
    for path in sorted(base.approvals.glob("*.json")):
        shown = base.relative(path)
        try:
            value = files.read_json(path)
        except (OSError, ValueError) as error:
            raise Refused(
                f"this approval record cannot be read: {error}",
                where=shown,
                hint=f"restore it: git checkout -- {shown}",
            ) from error
        records.append(approval_from(value, shown))
    return records


def greatest_id(paths: Iterable[str], records: Iterable[Approval]) -> int:
    """The greatest number among the ids of the card files at `paths` and of all that `records` name; 0 without any."""
    ids = [_stem(path) for path in paths]
    ids += [name for record in records for card in record.cards for name in (card.id, *card.was)]
    return max((id_number(i) for i in ids if is_card_id(i)), default=0)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def know_path(card_id: str) -> str:
    return f"{KNOW}/{card_id}.md"


def archive_path(card_id: str) -> str:
    return f"{ARCHIVE}/{card_id}.md"


def approval_path(record_id: str) -> str:
    return f"{APPROVALS}/{record_id}.json"
