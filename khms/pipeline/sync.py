"""`khms sync`: what was decided here and what others published become one line of commits, and the remote has it.

The push is the lock: it succeeds only if the remote's branch is still where the fetch found it. Until it did, nothing
of the user's changes: the replayed commits hang on no ref. Then the branch moves, all or nothing. A run that was killed
in between is made good by the next one, which finds the note of what it had pushed: no candidate is approved twice.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from khms.config import Config
from khms.errors import Busy, Refused, Unavailable, Usage
from khms.model.card import is_card_id
from khms.pipeline import authority, renumber
from khms.pipeline.replay import Left, Views
from khms.pipeline.replay import replay as again
from khms.store import files, pushed, remote, trust
from khms.store.commit import Transaction, exclusive
from khms.store.layout import APPROVALS, INBOX, Base
from khms.store.pushed import Pushed
from khms.store.remote import Moved, Upstream
from khms.store.repo import Repo
from khms.store.tree import difference

LONGEST = 2.0  # seconds between two tries
Say = Callable[[str], None]


class Crowded(Busy):
    """Others pushed faster, each time."""


@dataclass(frozen=True, slots=True)
class Synced:
    """`pulled` and `pushed` count commits, `ids` maps unpublished ids to the published ones, `left` is what did not
    come in, `kept` names files that someone wrote to in that moment, which stay as they are. `commit` is where both
    sides are now, None where neither has any."""

    remote: str
    branch: str
    commit: str | None
    pulled: int = 0
    pushed: int = 0
    tries: int = 1
    ids: dict[str, str] = field(default_factory=dict)
    left: tuple[Left, ...] = ()
    kept: tuple[str, ...] = ()
    recovered: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the receiving branch stands to what the last fetch or push saw of its remote; no network is asked.
    `approvals` counts the unpublished records, `ahead` and `behind` commits."""

    remote: str
    branch: str
    approvals: int
    ahead: int
    behind: int


def standing(repo: Repo, config: Config) -> Standing | None:
    """None where the base has no remote, or HEAD is not the branch that is shared."""
    branch = authority.receiving_branch(repo, config)
    there = remote.upstream(repo, config, branch)
    head = repo.head()
    if there is None or head is None or repo.branch() != branch:
        return None
    seen = there.seen()
    changed = difference(repo, seen, head)
    folder = f"{repo.prefix}{APPROVALS}/"
    new = [path for path, (was, shall) in changed.items() if was is None and shall and path.startswith(folder)]
    behind = _count(repo, head, seen) if seen else 0
    return Standing(there.remote, there.branch, len(new), _count(repo, seen, head), behind)


def sync(
    base: Base,
    repo: Repo,
    config: Config,
    views: Views,
    *,
    say: Say = lambda text: None,
    yielded: frozenset[str] = frozenset(),
) -> Synced:
    """Brings the receiving branch and its remote together. Raises Refused where a person must act first (nothing was
    changed then), Unavailable without a remote or where it cannot be reached, Busy where others were faster each time.
    `yielded` are unpublished cards, or cards with unpublished changes, that shall not come in."""
    there = demand_upstream(base, repo, config)
    _demand_known(yielded)
    tries = int(config["git.tries"])
    recovered = ""
    for attempt in range(1, tries + 1):
        try:
            with exclusive(repo, "sync") as tx:
                recovered = recovered or str(tx.recovered or "")
                done = _once(tx, base, repo, config, there, views, yielded, say)
        except Moved:
            say(f"{there.remote} moved meanwhile (try {attempt} of {tries})")
            if attempt < tries:
                time.sleep(random.SystemRandom().uniform(0.0, min(LONGEST, 0.1 * 2**attempt)))
            continue
        return replace(done, tries=attempt, recovered=recovered)
    raise Crowded(
        f"{there.remote} kept moving: {tries} pushes came too late",
        where=f"{there.remote} {there.branch}",
        hint="run khms sync again; nothing was changed here",
    )


def demand_upstream(base: Base, repo: Repo, config: Config) -> Upstream:
    """Where the receiving branch is shared. Raises Refused or Unavailable where it cannot be synced from here."""
    if repo.text("rev-parse", "--is-shallow-repository") == "true":
        raise Unavailable(
            "this clone is shallow: what it shares with others cannot be told",
            where=str(repo.root),
            hint="git fetch --unshallow",
        )
    branch = authority.receiving_branch(repo, config)
    there = remote.upstream(repo, config, branch)
    if there is None:
        raise Unavailable(
            "this base has no remote to share it through",
            where=str(repo.root),
            hint="git remote add origin ADDRESS, then khms sync",
        )
    busy = repo.operation()
    if busy:
        raise Refused(f"{busy} is in progress here", where=str(repo.root), hint="finish or abort it first")
    if not authority.on_receiving_branch(repo, config):
        at = repo.branch() or "no branch (detached)"
        raise Refused(
            f"{branch} is what is shared, and HEAD is on {at}", where=str(repo.root), hint=f"git switch {branch}"
        )
    if trust.why_not(base):
        remote.demand_plain(repo)
    return there


def _demand_known(yielded: frozenset[str]) -> None:
    odd = sorted(name for name in yielded if not is_card_id(name))
    if odd:
        raise Usage(f"{', '.join(odd)} is no card's id", hint="--yield K-00042")


def _once(
    tx: Transaction,
    base: Base,
    repo: Repo,
    config: Config,
    there: Upstream,
    views: Views,
    yielded: frozenset[str],
    say: Say,
) -> Synced:
    """One try: fetch, replay, push, move. Raises Moved where someone else pushed in between."""
    say(f"fetching {there.branch} from {there.remote}")
    onto = there.fetch()
    head = repo.head()
    before = _landed(repo, onto, head)
    new, ids, left = head, dict[str, str](), tuple[Left, ...]()
    if before is not None:
        ids, left = dict(before.told["ids"]), tuple(Left(**one) for one in before.told["left"])
    if onto is not None and (head is None or _has(repo, onto, head) or (before and before.head == head)):
        new = onto
    elif head is not None and onto is not None and not _has(repo, head, onto):
        authority.demand_calm(repo)
        since = before.head if before else ""
        say(f"making {_count(repo, since or onto, head)} unpublished commits again on what others published")
        work = again(base, repo, config, head, onto, there.branch, views, yielded, since, ids)
        new, ids, left = work.tip.commit, work.ids, (*left, *work.left)
        _demand_committed(base, repo, ids)
    if new is None:
        return Synced(there.remote, there.branch, None)
    if new != head:
        tx.demand_movable(new)
    pulled = _count(repo, head, onto) if onto else 0
    count = _count(repo, onto, new)
    if new != onto:
        say(f"pushing {count} commits to {there.remote}")
        if head is not None and new != head:
            pushed.note(repo, Pushed(head, new, {"ids": ids, "left": [asdict(one) for one in left]}))
        there.push(new, onto)
    kept = tx.move(new, what="sync") if new != head else ()
    pushed.forget(repo)
    return Synced(there.remote, there.branch, new, pulled, count, ids=ids, left=left, kept=kept)


def _landed(repo: Repo, onto: str | None, head: str | None) -> Pushed | None:
    """What a run that died had published of HEAD's commits, before it could bring the branch there."""
    held = pushed.noted(repo)
    if held is None or onto is None or head is None:
        return None
    fits = _has(repo, onto, held.new) and _has(repo, head, held.head) and not _has(repo, head, held.new)
    return held if fits else None


def _has(repo: Repo, commit: str, ancestor: str) -> bool:
    return repo.status("merge-base", "--is-ancestor", ancestor, commit) == 0


def _count(repo: Repo, without: str | None, commit: str) -> int:
    """How many commits `commit` has that `without` lacks."""
    return int(repo.text("rev-list", "--count", f"{without}..{commit}" if without else commit))


def _demand_committed(base: Base, repo: Repo, ids: Mapping[str, str]) -> None:
    """Raises Refused where a candidate that is not committed names a card that gets another id: nobody would renew it
    there."""
    found = []
    for path in repo.dirty(INBOX) if ids else ():
        try:
            data = files.read(base.path(path))
        except OSError:
            continue
        if renumber.mentions(path, data, ids):
            found.append(path)
    if found:
        raise Refused(
            "candidates that are not committed name cards that get other ids",
            where=", ".join(found),
            hint="git add and commit them, then run khms sync",
        )
