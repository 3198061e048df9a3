"""`khms gc`: what is no longer needed goes. This machine's leftovers at any time; units of the inbox that are finished
only when they are asked for, in one commit, so that git's history keeps them.

Never touched are journals, receipts, records, cards, carry that was not published, and whatever a run at work holds.
What a unit was refused for is remembered by the receipts; one whose receipts are too old for that stays.
"""

import contextlib
import datetime
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from khms.config import Config
from khms.errors import Busy
from khms.model.receipt import REJECTED
from khms.model.ulid import is_ulid
from khms.pipeline import authority
from khms.pipeline.approve import pending
from khms.pipeline.carry import AFTER
from khms.store import branches, cards, files, inbox, lock, tracked
from khms.store.branches import Branch
from khms.store.catalogue import catalogue
from khms.store.commit import exclusive
from khms.store.inbox import Unit, unit_path
from khms.store.layout import INBOX, RECEIPTS, Base
from khms.store.leftovers import leftovers
from khms.store.receipts import Ledger, ledger
from khms.store.repo import Repo

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Rubbish:
    """One thing that may go: what it is, its base path (of a branch its name), and its bytes."""

    what: str
    name: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Swept:
    """`kept` are units that were looked at and stay, each with the reason; `commit` is the one that removed units."""

    gone: tuple[Rubbish, ...]
    kept: tuple[tuple[str, str], ...] = ()
    commit: str | None = None
    dry: bool = False
    recovered: str = ""

    @property
    def freed(self) -> int:
        return sum(one.size for one in self.gone)


@dataclass
class Yard:
    """The base in which is swept. `dry` says that nothing may change."""

    base: Base
    repo: Repo
    config: Config
    dry: bool
    gone: list[Rubbish] = field(default_factory=list)

    @cached_property
    def receipts(self) -> Ledger:
        return ledger(self.base)

    def old(self, path: Path, days: float) -> bool:
        try:
            return path.lstat().st_mtime < time.time() - days * DAY
        except FileNotFoundError:
            return False

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Whether nobody else works on what this lock guards; it is held for the block, but in a dry run."""
        path = self.base.locks / name
        if self.dry:
            yield not lock.held(path)
            return
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lock.hold(path, "gc"))
            except Busy:
                yield False
            else:
                yield True

    def sweep(self, what: str, path: Path) -> None:
        """Removes a file or folder of this machine's."""
        size = _size(path)
        if not self.dry:
            files.remove_tree(path)
        self.gone.append(Rubbish(what, self.base.relative(path), size))


def collect(
    base: Base, repo: Repo, config: Config, *, units: bool = False, dry: bool = False, here: bool = False
) -> Swept:
    """Sweeps, or with `dry` says what would go. With `units` finished inbox units go too, in one commit. Raises Busy
    where another command commits, Refused for units on another branch than the receiving one (unless `here`)."""
    yard = Yard(base, repo, config, dry)
    for sweep in SWEEPS.values():
        sweep(yard)
    if not units:
        return Swept(tuple(yard.gone), dry=dry)
    if dry:
        going, kept = finished(yard)
        gone = [_rubbish(base, unit) for unit in going]
        return Swept((*yard.gone, *gone), tuple(kept.items()), dry=True)
    return _units(yard, here)


def _temporary(yard: Yard) -> None:
    for path in leftovers(yard.base.root):
        yard.sweep("left by a killed command", path)


def _carry(yard: Yard) -> None:
    """The carry of runs whose commit stands and which have nothing left to do. While a run is at work its carry is its
    own."""
    found = [path for path in _children(yard.base.carry) if is_ulid(path.name)]
    folders = [path for path in found if not (path / AFTER).exists()]
    if not folders:
        return
    published = {receipt.run for receipt in yard.receipts.receipts if receipt.stage == "propose"}
    with yard.alone("nightly.lock") as alone:
        for path in folders if alone else ():
            if path.name in published:
                yard.sweep("carry of a published run", path)


def _logs(yard: Yard) -> None:
    """Logs that were closed; the one in use stays."""
    for path in _children(yard.base.log):
        closed = path.name.rpartition(".")[2].isdigit()
        if closed and yard.old(path, yard.config["gc.days"]):
            yard.sweep("an old log", path)


def _states(yard: Yard) -> None:
    """Notes about sessions that ended long ago, and decisions kept for units that are gone."""
    for path in _children(yard.base.state / "sessions"):
        if yard.old(path, yard.config["gc.days"]):
            yard.sweep("state of an old session", path)
    there = {path.name.removesuffix(".md") for path in _children(yard.base.inbox)}
    for path in _children(yard.base.state / "review"):
        if path.name not in there and yard.old(path, yard.config["gc.days"]):
            yard.sweep("decisions about a unit that is gone", path)


def _index(yard: Yard) -> None:
    """Index folders that no manifest names, while nobody builds one."""
    from khms.index import manifest

    folders = [path for path in _children(yard.base.index) if path.name.startswith("lexical-")]
    if len(folders) < 2:
        return
    with yard.alone(manifest.LOCK) as alone, contextlib.suppress(manifest.Unusable):
        known = manifest.load(yard.base.index)
        for path in folders if alone and known is not None else ():
            if known is not None and path.name != known.generation:
                yard.sweep("an older index", path)


def _past(yard: Yard) -> None:
    """The base as it was, written out for a question; the next one writes it again."""
    from khms.index import past

    for path in past.old(yard.base):
        yard.sweep("the base as of an older commit", path)


def _branches(yard: Yard) -> None:
    """Local branches of units of which everything has arrived on this one, by a merge or squashed."""
    repo, head = yard.repo, yard.repo.head()
    if head is None or not authority.on_receiving_branch(repo, yard.config):
        return
    held = [branch for branch in branches.branches(yard.base) if branch.local]
    in_use = _checked_out(repo) if held else frozenset()
    for branch in held:
        if branch.ref in in_use or not _merged(repo, branch, head):
            continue
        if not yard.dry:
            repo.run("update-ref", "-d", branch.ref, branch.commit)
        yard.gone.append(Rubbish(_ended(repo, branch, head), branch.name))


def _checked_out(repo: Repo) -> frozenset[str]:
    rows = repo.text("for-each-ref", "--format=%(refname)%09%(worktreepath)", "refs/heads").splitlines()
    return frozenset(ref for ref, _, path in (row.partition("\t") for row in rows) if path)


def _ended(repo: Repo, branch: Branch, head: str) -> str:
    """How the branch came to its end: by a merge, or with its unit refused before one, which brings the unit in by a
    reviewer's own commit."""
    if repo.status("merge-base", "--is-ancestor", branch.commit, head) == 0:
        return "a merged branch"
    form = ("--no-renames", "--diff-filter=A", "--format=%B%x00")
    brought = repo.text("log", *form, head, "--", unit_path(branch.unit))
    first = brought.rstrip("\0\n").rpartition("\0")[2]
    return "a branch that was decided unmerged" if "\nKhms-Reviewer: " in first else "a merged branch"


def _merged(repo: Repo, branch: Branch, head: str) -> bool:
    """Whether all that the branch holds has arrived, what was refused on the way in the folder for it."""
    if repo.status("merge-base", "--is-ancestor", branch.commit, head) == 0:
        return True
    unit = unit_path(branch.unit)
    here = {path for folder in (unit, RECEIPTS) for path in repo.files(head, folder)}
    aside = {f"{unit}/{path.rpartition('/')[2]}" for path in here if path.startswith(_aside(unit))}
    there = {path for folder in (unit, RECEIPTS) for path in repo.files(branch.commit, folder)}
    return there <= here | aside


def _aside(unit: str) -> tuple[str, ...]:
    return tuple(f"{unit}/{section}/" for section in inbox.SECTIONS)


SWEEPS: Mapping[str, Callable[[Yard], None]] = {
    "temporary": _temporary,
    "carry": _carry,
    "logs": _logs,
    "states": _states,
    "index": _index,
    "past": _past,
    "branches": _branches,
}


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _size(path: Path) -> int:
    inner = path.rglob("*") if path.is_dir() and not path.is_symlink() else (path,)
    return sum(one.lstat().st_size for one in inner if not one.is_dir())


# units


def _units(yard: Yard, here: bool) -> Swept:
    """Removes the finished units in one commit."""
    base, repo = yard.base, yard.repo
    with exclusive(repo, "gc") as tx:
        recovered = str(tx.recovered) if tx.recovered else ""
        reviewer = authority.reviewer(repo, yard.config)
        authority.demand_branch(repo, yard.config, here=here)
        authority.demand_idle(repo)
        going, kept = finished(yard)
        if not going:
            return Swept(tuple(yard.gone), tuple(kept.items()), None, False, recovered)
        gone = [_rubbish(base, unit) for unit in going]
        changes: dict[str, bytes | None] = {path: None for unit in going for path in _files(base, unit)}
        count = f"{len(going)} finished unit{'' if len(going) == 1 else 's'}"
        listed = "".join(f"Khms-Unit: {unit.path}\n" for unit in going)
        message = f"Clear {count} away\n\nGit's history keeps them.\n\n{listed}Khms-Reviewer: {reviewer}\n"
        commit = tx.commit(changes, message, what="gc", user_hooks=True)
    return Swept((*yard.gone, *gone), tuple(kept.items()), commit, False, recovered)


def _rubbish(base: Base, unit: Unit) -> Rubbish:
    return Rubbish("a finished unit", unit.path, _size(base.path(unit.path)))


def _files(base: Base, unit: Unit) -> list[str]:
    return [unit.path] if unit.single else tracked.names(base, (unit.path,))


def finished(yard: Yard) -> tuple[list[Unit], dict[str, str]]:
    """The units that may go, and those in which nothing is pending but that stay: name -> why."""
    base = yard.base
    records = cards.approvals(base)
    sources = {card.source for card in catalogue(base).cards.values() if INBOX in card.source}
    on_branches = {branch.unit for branch in branches.branches(base)}
    going: list[Unit] = []
    kept: dict[str, str] = {}
    for unit in inbox.units(base):
        if pending(base, unit, records):
            continue
        if unit.name in on_branches:
            why = "a branch for it is still there"
        elif any(unit.path in source for source in sources):
            why = "a card names it as its source"
        else:
            why = _why_kept(yard, unit)
        if why:
            kept[unit.name] = why
        else:
            going.append(unit)
    return going, kept


def _why_kept(yard: Yard, unit: Unit) -> str:
    if unit.broken:
        return f"{unit.broken[0].path} cannot be read"
    if yard.repo.head() is None or yard.repo.dirty(unit.path):
        return "it holds what is not committed"
    reviewed = {label: r for (path, label), r in yard.receipts.reviewed().items() if path == unit.path}
    if any(receipt.verdict == REJECTED and not receipt.claim for receipt in reviewed.values()):
        return "its refusals are remembered by its files alone"
    own = [receipt for receipt in yard.receipts.receipts if receipt.unit == unit.path]
    by_run = {receipt.label for receipt in own if receipt.reason.startswith(("dropped:", "deferred:"))}
    unrecorded = [label for label in (*unit.dropped, *unit.deferred) if label not in reviewed and label not in by_run]
    if unrecorded:
        return f"nobody recorded why {', '.join(unrecorded)} was put aside"
    days = yard.config["gc.deferred_days" if unit.deferred else "gc.unit_days"]
    age = _age(unit, [receipt.at for receipt in own])
    return "" if age >= days else f"its last decision is {int(age)} days old, {days} are asked for"


def _age(unit: Unit, moments: list[str]) -> float:
    """Days since the last thing that happened to the unit; none where nothing says when that was."""
    created = unit.meta.get("created")
    said = [*moments, created if isinstance(created, str) else "", unit.name[:10]]
    ages = []
    for moment in said:
        try:
            at = datetime.datetime.fromisoformat(moment)
        except ValueError:
            continue
        ages.append((time.time() - at.timestamp()) / DAY)
    return max(min(ages), 0.0) if ages else 0.0
