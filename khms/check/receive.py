"""The audit of a push, inside a server's pre-receive hook: every base in what is pushed, before a branch moves.

A branch that receives approvals, and holds records or signers, neither goes away nor back, and is judged from its own
tip. Those are HEAD's branch, `main`, `master`, and the one that a base's own `git.branch` names. Where none of these
holds any (HEAD may point nowhere), nobody can tell which branch receives, and every one that does is kept like that.
Where there are several, signatures are judged by the signers of the first, so that a key that was taken back there
opens no side door.

Any other branch, `khms/inbox/*` and `khms/approval/*` always among them, comes and goes and may be rebased.
It is judged from where it parted with the first that receives, by that one's signers, and never by itself alone: a base
with a history of its own is refused where there is a guarded one already.
"""

import posixpath
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from khms.check import audit, audit_change
from khms.check.audit import Report
from khms.check.auditing import Trouble, trouble
from khms.errors import Usage
from khms.store import history
from khms.store.history import Tree
from khms.store.layout import APPROVALS, CONFIG, SIGNERS
from khms.store.repo import Repo

HEADS = "refs/heads/"
USUAL = (HEADS + "main", HEADS + "master")
FORM = "%(objectname) %(refname)"
SEALS = ("KA006", "KA007", "KA008")
PASSING = ("khms/inbox/", "khms/approval/")
ASIDE = (
    "; where it is another branch that receives, tell the server, whose HEAD has to name it: "
    "git symbolic-ref HEAD refs/heads/NAME"
)


@dataclass(frozen=True, slots=True)
class Update:
    """One line that git hands to the hook; `old` and `new` are empty for a branch that is made or removed."""

    ref: str
    old: str
    new: str


def updates(text: str) -> list[Update]:
    """The lines `old new ref`; raises Usage for anything else."""
    found = []
    for line in text.splitlines():
        words = line.split(" ", 2)
        if len(words) != 3:
            raise Usage("a line of a push is: OLD NEW REF", where=line[:200], hint="run this in a pre-receive hook")
        old, new = ("" if history.is_zero(word) else word for word in words[:2])
        found.append(Update(words[2], old, new))
    return found


def received(repo: Repo, pushed: Sequence[Update]) -> Report:
    """Audits what is pushed. Paths are those of the repository."""
    branches = [update for update in pushed if update.ref.startswith(HEADS)]
    heads = _Heads(repo, {update.ref: update.old for update in branches})
    reports = []
    troubles: list[Trouble] = []
    for update in branches:
        own = heads.is_kept(update)
        told = list(_kept(repo, update)) if own else []
        many = len(branches) > 1
        if update.new:
            base = update.old if own else heads.first(update)
            if not own and base:
                told += _orphan(repo, update, base)
            held = list(_bases(repo, update.new, base))
            first = heads.first(update) if own else base
            sealed = held if first == base else list(_bases(repo, update.new, first))
            reports += sealed
            told += (one for report in sealed for one in report.troubles)
            told += (one for report in held for one in report.troubles if one.finding.code not in SEALS)
        troubles += [_named(one, update.ref) if many else one for one in dict.fromkeys(told)]
    guarantee = audit.BOUNDARY if reports and all(r.guarantee == audit.BOUNDARY for r in reports) else audit.PROCEDURE
    counts = (sum(r.cards for r in reports), sum(r.records for r in reports), sum(r.signed for r in reports))
    return Report(*counts, guarantee, tuple(troubles))


def _named(one: Trouble, ref: str) -> Trouble:
    finding = replace(one.finding, message=f"{ref.removeprefix(HEADS)}: {one.finding.message}")
    return replace(one, finding=finding)


@dataclass(frozen=True)
class _Heads:
    """The branches of the repository as they are before the push; `olds` is what the push says of those it moves."""

    repo: Repo
    olds: Mapping[str, str]

    @cached_property
    def receiving(self) -> dict[str, str]:
        """The branches that are known to receive approvals and hold records, HEAD's first: full name -> tip."""
        head = self.repo.text("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
        names = [name for name in (head, *USUAL) if name]
        found: dict[str, str] = {}
        for name in names:  # grows while it is walked: a base may name another branch
            tip = self._tip(name)
            if name not in found and tip and is_guarded(self.repo, tip):
                found[name] = tip
                names += [HEADS + said for said in _said(self.repo, tip)]
        return found

    def _tip(self, name: str) -> str:
        if name in self.olds:
            return self.olds[name]
        return self.repo.text("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1, 128))

    def is_kept(self, update: Update) -> bool:
        """Whether the branch stays and goes on from its tip."""
        if not update.old or not is_guarded(self.repo, update.old):
            return False
        if update.ref in self.receiving:
            return True
        name = update.ref.removeprefix(HEADS)
        if name in _said(self.repo, update.old):
            return True
        return not self.receiving and not name.startswith(PASSING)

    def first(self, update: Update) -> str:
        """The state whose signers count; empty where there is none. Where no branch is known to receive, the branch's
        own, or that of the nearest one that could."""
        if self.receiving:
            return next(iter(self.receiving.values()))
        if self.is_kept(update):
            return update.old
        rows = (row.split(" ", 1) for row in self.repo.text("for-each-ref", f"--format={FORM}", HEADS).splitlines())
        named = {tip: name for tip, name in rows if not name.removeprefix(HEADS).startswith(PASSING)}
        tips = [tip for tip in named if is_guarded(self.repo, tip)]
        if not tips:
            return self._tip("HEAD")
        return min(tips, key=lambda tip: int(self.repo.text("rev-list", "--count", update.new, f"^{tip}")))


def is_guarded(repo: Repo, commit: str) -> bool:
    """Whether a base in this commit has approval records or signers."""
    return any(Tree(repo, prefix, commit).listing(APPROVALS, SIGNERS) for prefix in history.own_bases(repo, commit))


def _said(repo: Repo, commit: str) -> set[str]:
    """The branches that the bases in this commit name as the one that receives approvals."""
    settings = (Tree(repo, prefix, commit).read(CONFIG).get(CONFIG, b"") for prefix in history.own_bases(repo, commit))
    return {said for held in settings if (said := _branch(held))}


def _orphan(repo: Repo, update: Update, base: str) -> Iterator[Trouble]:
    """A base whose history has nothing in common with the one that is there."""
    held = history.own_bases(repo, update.new)
    if held and is_guarded(repo, base) and history.merge_base(repo, base, update.new) is None:
        name = update.ref.removeprefix(HEADS)
        message = f"{name} brings a base with a history of its own, without the records that are here"
        mend = "begin the branch from the one that receives approvals: git switch -c NAME origin/main"
        yield trouble("KA005", held[0] + APPROVALS, message, mend)


def _branch(settings: bytes) -> str:
    try:
        said = tomllib.loads(settings.decode("utf-8-sig")).get("git", {}).get("branch", "")
    except (ValueError, AttributeError, RecursionError):  # a number of many thousand digits is a ValueError
        return ""
    return said if isinstance(said, str) else ""


def _kept(repo: Repo, update: Update) -> Iterator[Trouble]:
    """The branch that receives approvals stays, and goes on from its tip."""
    name = update.ref.removeprefix(HEADS)
    if update.old and not update.new:
        message = f"this push removes {name}, a branch that receives approvals, and its records with it"
        mend = f"leave the branch{ASIDE}"
        yield trouble("KA005", APPROVALS, message, mend)
    elif update.old and repo.status("merge-base", "--is-ancestor", update.old, update.new):
        message = f"this push rewinds {name}, a branch that receives approvals: its tip would be lost"
        mend = f"git pull --rebase (or khms sync), then push without --force{ASIDE}"
        yield trouble("KA005", APPROVALS, message, mend)


def _bases(repo: Repo, new: str, old: str) -> Iterator[Report]:
    """A report for every base that is, or was, in the tree. Without a state before, the whole history is judged."""
    prefixes = {*history.own_bases(repo, new), *(history.own_bases(repo, old) if old else ())}
    for prefix in sorted(prefixes):
        report = audit_change.between(repo, prefix, old, new) if old else audit.of_commit(repo, prefix, new)
        yield replace(report, troubles=tuple(_placed(report.troubles, prefix)))


def _placed(troubles: Iterable[Trouble], prefix: str) -> Iterator[Trouble]:
    for one in troubles:
        yield replace(one, finding=replace(one.finding, path=posixpath.normpath(prefix + one.finding.path)))
