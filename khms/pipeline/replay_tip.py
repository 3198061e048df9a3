"""The commit that a replay has got to: its files, cards and records, in memory and in git's object store alone.

Nothing of it is seen anywhere until a ref moves to it; what a killed replay leaves behind hangs on nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from khms.errors import KhmsError, Refused
from khms.model.approval import Approval, approval_from, has_flow_links
from khms.model.card import Card, card_from, id_number, is_card_id
from khms.model.receipt import Receipt, receipt_from
from khms.model.tags import Registry
from khms.pipeline.transition import Desk, Held
from khms.store import cards, files, markdown, tags
from khms.store.catalogue import catalogue
from khms.store.layout import APPROVALS, ARCHIVE, KNOW, NEXT_ID, RECEIPTS, TAGS, Base
from khms.store.markdown import Unreadable
from khms.store.repo import DURABLE, SAFE, Repo
from khms.store.tree import FILE, Entry, Objects, difference, listing

Content = tuple[str, bytes] | None  # mode and bytes; None for no file


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a commit and when: a replayed one keeps it."""

    name: str
    email: str
    date: str


@dataclass
class Tip:
    """`files` maps the repository's paths to what stands there; all other methods take the base's own paths. `cards`
    have no bodies, like a catalogue's."""

    base: Base
    repo: Repo
    commit: str
    files: dict[str, Entry]
    objects: Objects
    cards: dict[str, Card]
    records: list[Approval]
    _paths: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._paths = {_stem(path): path for path in self.listed(KNOW, ARCHIVE) if path.endswith(".md")}

    def listed(self, *folders: str) -> list[str]:
        """The base paths of the files below these folders."""
        cut = len(self.repo.prefix)
        heads = tuple(f"{self.repo.prefix}{folder}/" for folder in folders)
        return sorted(path[cut:] for path in self.files if path.startswith(heads))

    def read(self, path: str) -> bytes | None:
        entry = self.files.get(self.repo.prefix + path)
        return None if entry is None else self.objects.data(entry.blob)

    def greatest(self) -> int:
        ids = [*self._paths, *(card.id for r in self.records for card in r.cards)]
        ids += [old for r in self.records for card in r.cards for old in card.was]
        return max((id_number(card_id) for card_id in ids if is_card_id(card_id)), default=0)

    def card_path(self, card_id: str) -> str | None:
        return self._paths.get(card_id)

    def registry(self) -> Registry:
        data = self.read(TAGS)
        return Registry() if data is None else tags.parse(data)

    def receipts(self) -> list[Receipt]:
        """Every receipt; raises Refused for a file that holds something else."""
        return receipts_of(self, self.listed(RECEIPTS))

    def counter(self) -> dict[str, bytes | None]:
        """The change that an older base's counter needs, if there is one."""
        held = self.read(NEXT_ID)
        if held is None:
            return {}
        return {NEXT_ID: str(self.greatest() + 1).encode() + (b"\n" if held.endswith(b"\n") else b"")}

    def take(self, changes: Mapping[str, Content]) -> dict[str, Content]:
        """Lays changes (repository path -> content) over the tip and returns those that changed something. They count
        from `close` on for git."""
        kept = {path: content for path, content in changes.items() if self._differs(path, content)}
        written = [(path, content) for path, content in kept.items() if content is not None]
        blobs = self.objects.write([data for _, (_, data) in written]) if written else []
        for (path, (mode, _)), blob in zip(written, blobs, strict=True):
            self.files[path] = Entry(mode, blob)
        for path, content in kept.items():
            if content is None:
                del self.files[path]
        self._note(kept)
        return kept

    def _differs(self, path: str, content: Content) -> bool:
        have = self.files.get(path)
        if have is None or content is None:
            return have is not None or content is not None
        return have.mode != content[0] or self.objects.data(have.blob) != content[1]

    def _note(self, changes: Mapping[str, Content]) -> None:
        """Keeps the cards and records in step with the files."""
        cut = len(self.repo.prefix)
        # Removals first: a card that moves to the archive is gone from one path and there at another.
        for name, content in sorted(changes.items(), key=lambda item: item[1] is not None):
            path = name[cut:] if name.startswith(self.repo.prefix) else ""
            if path.startswith((f"{KNOW}/", f"{ARCHIVE}/")) and path.endswith(".md"):
                if content is None:
                    self._paths.pop(_stem(path), None)
                    self.cards.pop(_stem(path), None)
                else:
                    self._paths[_stem(path)] = path
                    card = _card(path, content[1])
                    if card is not None:
                        self.cards[card.id] = card
            elif path.startswith(f"{APPROVALS}/") and path.endswith(".json"):
                self.records = [held for held in self.records if cards.approval_path(held.id) != path]
                if content is not None:
                    self.records.append(_record(path, content[1]))

    def close(self, changes: Iterable[str], message: bytes, author: Author | None, *more: str) -> str:
        """Makes a commit of the tip as it is; `changes` are the repository paths that differ from the last one, `more`
        are further parents. Returns its id."""
        index = self.repo.folder / "khms" / "index.replay"
        rows = b"".join(self._row(path) for path in changes)
        config = (*SAFE, *DURABLE)
        env = {"GIT_INDEX_FILE": str(index)}
        self.repo.run("update-index", "-z", "--index-info", stdin=rows, env=env, config=config)
        tree = self.repo.run("write-tree", env=env, config=config).decode().strip()
        parents = [part for parent in (self.commit, *more) for part in ("-p", parent)]
        who = {}
        if author is not None:
            who = {"GIT_AUTHOR_NAME": author.name, "GIT_AUTHOR_EMAIL": author.email, "GIT_AUTHOR_DATE": author.date}
        out = self.repo.run("commit-tree", tree, *parents, "-F", "-", stdin=message, env=who, config=config)
        self.commit = out.decode().strip()
        return self.commit

    def _row(self, path: str) -> bytes:
        entry = self.files.get(path)
        meta = f"{entry.mode} {entry.blob}" if entry else f"0 {'0' * 40}"
        return meta.encode() + b"\t" + path.encode("utf-8", "surrogateescape") + b"\0"

    def open(self) -> None:
        """Begins the index that commits are built with."""
        index = self.repo.folder / "khms" / "index.replay"
        index.unlink(missing_ok=True)
        self.repo.run("read-tree", self.commit, env={"GIT_INDEX_FILE": str(index)}, config=(*SAFE, *DURABLE))

    def drop(self) -> None:
        (self.repo.folder / "khms" / "index.replay").unlink(missing_ok=True)


def tip_at(base: Base, repo: Repo, commit: str) -> Tip:
    """The tip that stands at `commit`. The cards are the work tree's (their catalogue is kept from run to run) but for
    those in which the commit differs from HEAD; the caller has seen to it that no card holds uncommitted changes."""
    objects = Objects(repo)
    held = dict(catalogue(base).cards)
    head = repo.head()
    cut = len(repo.prefix)
    changed = {
        path[cut:]: pair[1]
        for path, pair in difference(repo, head, commit).items()
        if path.startswith((f"{repo.prefix}{KNOW}/", f"{repo.prefix}{ARCHIVE}/")) and path.endswith(".md")
    }
    objects.fetch(entry.blob for entry in changed.values() if entry is not None)
    for path, entry in sorted(changed.items(), key=lambda item: item[1] is not None):
        if entry is None:
            held.pop(_stem(path), None)
            continue
        card = _card(path, objects.data(entry.blob))
        if card is not None:
            held[card.id] = card
    every = listing(repo, commit)
    found = {p[cut:]: e for p, e in every.items() if p.startswith(f"{repo.prefix}{APPROVALS}/") and p.endswith(".json")}
    objects.fetch(entry.blob for entry in found.values())
    records = [_record(path, objects.data(entry.blob)) for path, entry in sorted(found.items())]
    return Tip(base, repo, commit, every, objects, held, records)


def receipts_of(tip: Tip, paths: Iterable[str]) -> list[Receipt]:
    wanted = [path for path in paths if path.endswith(".jsonl")]
    tip.objects.fetch(tip.files[tip.repo.prefix + path].blob for path in wanted)
    return [receipt for path in wanted for receipt in receipts_in(path, tip.read(path) or b"")]


def receipts_in(path: str, data: bytes) -> Iterator[Receipt]:
    """The receipts of one file; raises Refused for a line that holds something else."""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = files.parse_json(line)
            if not isinstance(value, dict):
                raise ValueError("not an object")
        except ValueError as error:
            where = f"{path}:{number}"
            raise Refused(f"this receipt cannot be read: {error}", where=where, hint="mend the line") from error
        yield receipt_from(value)


def _record(path: str, data: bytes) -> Approval:
    try:
        return approval_from(files.parse_json(data), path)
    except (ValueError, TypeError, AttributeError) as error:
        hint = "put it back as it was: git log -- " + path
        raise Refused(f"this approval record cannot be read: {error}", where=path, hint=hint) from error


def _card(path: str, data: bytes) -> Card | None:
    """A card without its body, None where its file cannot be read."""
    try:
        page = markdown.parse(data, path)
    except Unreadable:
        return None
    return card_from(page.meta, page.body, path, page.body_line)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


class TipDesk(Desk):
    """A desk that takes its cards from the tip instead of the work tree."""

    def __init__(self, tip: Tip) -> None:
        super().__init__(tip.base)
        self.tip = tip

    def _fetch(self, card_id: str) -> Held:
        path = self.tip.card_path(card_id)
        data = self.tip.read(path) if path else None
        if path is None or data is None:
            raise Refused(f"there is no card {card_id}")
        if has_flow_links(data):
            raise Refused(f"{card_id} has its links on one line and takes no transitions", where=path)
        try:
            markdown.parse(data, path)
        except KhmsError as error:
            raise Refused(f"{card_id} cannot be read: {error.message}", where=path) from error
        return Held(path, data.decode("utf-8-sig").replace("\r\n", "\n"))


def plain(changes: Mapping[str, bytes | None], prefix: str) -> dict[str, Content]:
    """Changes of the base as changes of the repository."""
    return {prefix + path: None if data is None else (FILE, data) for path, data in changes.items()}
