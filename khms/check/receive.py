"""The audit of a push, inside a server's pre-receive hook: every base in what is pushed, before a branch moves.

The branch that receives approvals neither goes away nor back, and is judged against its own tip. Any other branch is
judged against it, from where they parted; `khms/inbox/*` and all others may come and go.
"""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from khms.check import audit, audit_change
from khms.check.audit import Report
from khms.check.auditing import Trouble, trouble
from khms.errors import Usage
from khms.store import history
from khms.store.history import Tree
from khms.store.layout import APPROVALS, CONFIG
from khms.store.repo import Repo

HEADS = "refs/heads/"


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
    receiving, tip = _receiving(repo)
    reports = []
    troubles: list[Trouble] = []
    for update in branches:
        own = update.ref in receiving
        told = list(_kept(repo, update)) if own else []
        many = len(branches) > 1
        if update.new:
            base = (update.old if own else "") or tip
            for report in _bases(repo, update.new, base):
                reports.append(report)
                told += report.troubles
        troubles += [_named(one, update.ref) if many else one for one in told]
    guarantee = audit.BOUNDARY if reports and all(r.guarantee == audit.BOUNDARY for r in reports) else audit.PROCEDURE
    counts = (sum(r.cards for r in reports), sum(r.records for r in reports), sum(r.signed for r in reports))
    return Report(*counts, guarantee, tuple(troubles))


def _named(one: Trouble, ref: str) -> Trouble:
    finding = replace(one.finding, message=f"{ref.removeprefix(HEADS)}: {one.finding.message}")
    return replace(one, finding=finding)


def _receiving(repo: Repo) -> tuple[frozenset[str], str]:
    """The branches that receive approvals, and the tip of the first one that is there (empty: none is)."""
    head = repo.text("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    tip = repo.head() or ""
    names = [head] if head else []
    for prefix in history.own_bases(repo, tip) if tip else ():
        said = _branch(Tree(repo, prefix, tip).read(CONFIG).get(CONFIG, b""))
        if said:
            names.append(HEADS + said)
    for name in names:
        tip = tip or repo.text("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1, 128))
    return frozenset(names), tip


def _branch(settings: bytes) -> str:
    try:
        said = tomllib.loads(settings.decode("utf-8-sig")).get("git", {}).get("branch", "")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError, RecursionError):
        return ""
    return said if isinstance(said, str) else ""


def _kept(repo: Repo, update: Update) -> Iterator[Trouble]:
    """The branch that receives approvals stays, and goes on from its tip."""
    name = update.ref.removeprefix(HEADS)
    if update.old and not update.new:
        message = f"this push removes {name}, the branch that receives approvals, and its records with it"
        mend = "leave the branch; another one receives approvals after git.branch in khms.toml said so"
        yield trouble("KA005", APPROVALS, message, mend)
    elif update.old and repo.status("merge-base", "--is-ancestor", update.old, update.new):
        message = f"this push rewinds {name}, the branch that receives approvals: its tip would be lost"
        mend = "git pull --rebase (or khms sync), then push without --force"
        yield trouble("KA005", APPROVALS, message, mend)


def _bases(repo: Repo, new: str, old: str) -> Iterator[Report]:
    """A report for every base that is, or was, in the tree. Without a state before, the whole history is judged."""
    prefixes = {*history.own_bases(repo, new), *(history.own_bases(repo, old) if old else ())}
    for prefix in sorted(prefixes):
        report = audit_change.between(repo, prefix, old, new) if old else audit.of_commit(repo, prefix, new)
        yield replace(report, troubles=tuple(_placed(report.troubles, prefix)))


def _placed(troubles: Iterable[Trouble], prefix: str) -> Iterator[Trouble]:
    for one in troubles:
        yield replace(one, finding=replace(one.finding, path=prefix + one.finding.path))
