"""The audit: whether everything in a base came in through the review, as its records, its history and its signers say.

What this proves: unsigned, that the procedure was followed; with signatures required, and keys that agents cannot use,
who followed it. The rules stand in `auditing`; here is gathered what they judge.

Whatever decides whether a record counts (the signers, `[review]`) is read from the state before it came in.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from khms.check import auditing, ground, worktree
from khms.check.audited import (
    FOLDERS,
    Filed,
    Trust,
    filed,
    is_card,
    is_record,
    is_trust,
    stem,
    stood,
    trust_from,
)
from khms.check.auditing import Before, Restore, Trouble
from khms.check.changes import judge_changes
from khms.check.court import court, trusts_at
from khms.check.provenance import proposals, seen, stood_in, texts
from khms.check.seals import Arrival, Seals, Step, unreadable
from khms.model.approval import card_sha256
from khms.store import history
from khms.store.history import SUBMODULE, Log, Tree
from khms.store.layout import CONFIG, INBOX, MEMORY, SIGNERS, Base
from khms.store.repo import Repo

Progress = Callable[[str], None]
PROCEDURE, BOUNDARY = "procedure", "boundary"


@dataclass(frozen=True, slots=True)
class Report:
    """`cards` and `records` are those that were looked at, `signed` the records whose signature holds, `uncommitted`
    the files that the work tree holds otherwise than HEAD."""

    cards: int
    records: int
    signed: int
    guarantee: str
    troubles: tuple[Trouble, ...]
    uncommitted: tuple[str, ...] = ()


def whole(base: Base, repo: Repo, *, progress: Progress = lambda what: None) -> Report:
    """Audits HEAD with what the work tree holds otherwise laid over it. Raises Unavailable in a shallow clone."""
    history.demand_deep(repo)
    head = repo.head()
    over = worktree.overlay(base, repo)
    report = _whole(repo, repo.prefix, head, over, lambda path: worktree.on_disk(base, path), progress)
    gone = {stem(path) for path, held in over.items() if held is None}
    told = [_loose(t) if _is_loose(t, over, gone) else t for t in report.troubles]
    known = {(one.finding.code, one.finding.path) for one in told}
    lying = (one for one in ground.judge(ground.on_disk(base)) if (one.finding.code, one.finding.path) not in known)
    return replace(report, troubles=in_order([*told, *map(_loose, lying)]), uncommitted=tuple(sorted(over)))


def _is_read(path: str) -> bool:
    return is_trust(path) or path.startswith(tuple(f"{folder}/" for folder in (*FOLDERS, INBOX)))


def _is_loose(trouble: Trouble, over: Collection[str], gone: Collection[str]) -> bool:
    """Whether it is the work tree's doing: HEAD does not have it."""
    code = trouble.finding.code
    if code == "KA009" and trouble.id in gone:
        return True
    return trouble.finding.path in over and (code == "KA005" or not trouble.commit)


def _loose(trouble: Trouble) -> Trouble:
    finding = replace(trouble.finding, message=f"{trouble.finding.message} (not committed yet)")
    return replace(trouble, finding=finding, uncommitted=True)


def of_commit(repo: Repo, prefix: str, commit: str) -> Report:
    """Audits a commit with all that led to it."""
    history.demand_deep(repo)
    return _whole(repo, prefix, commit, {}, lambda path: None, lambda what: None)


def _whole(
    repo: Repo,
    prefix: str,
    head: str | None,
    over: Mapping[str, bytes | None],
    beside: Callable[[str], bytes | None],
    progress: Progress,
) -> Report:
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(history.log, repo, prefix, head) if head else None
        progress("reading the cards and records")
        rows = list(Tree(repo, prefix, head).rows(MEMORY, CONFIG)) if head else []
        listing = {path: blob for path, mode, blob in rows if mode != SUBMODULE and _is_read(path)}
        data = history.blobs(repo, {blob for path, blob in listing.items() if path not in over})
        state = {path: data[blob] for path, blob in listing.items() if path not in over and blob in data}
        state |= {path: held for path, held in over.items() if held is not None}
        cards = [stood(path, held) for path, held in sorted(state.items()) if is_card(path)]
        records = [filed(path, held) for path, held in sorted(state.items()) if is_record(path)]
        progress("reading the history")
        log = coming.result() if coming else Log("", ())
    like = next(iter(listing.values()), "")
    now = {path: listing.get(path, "") for path in state if is_record(path)}
    now |= {path: worktree.blob_id(state[path], like) for path in now.keys() & over.keys()}
    arrivals = log.arrivals()
    books = auditing.books(records)
    present = frozenset(card.id for card in cards)
    troubles = list(auditing.judge_cards(cards, books, _from_log(repo, log), _before(repo, prefix, arrivals, records)))
    troubles += auditing.judge_presence(books, present)
    troubles += auditing.judge_records(records, books, proposals(repo, log, state, beside))
    troubles += auditing.judge_appended(seen(log), now)
    troubles += judge_changes(books, texts(repo, log, state))
    troubles += ground.judge((path, mode) for path, mode, _ in rows)
    progress("checking the signatures")
    steps, last = _steps(repo, prefix, arrivals, records, state, over)
    judges = court(repo, {held.record.id for held in records if held.record and held.path in over})
    judges.prepare(steps)
    seals = Seals(judges.verify, judges.owners)
    for step in steps:
        troubles += seals.judge(step)
    fault = trust_from(None, state.get(CONFIG)).fault
    troubles += [unreadable(fault)] if fault else []
    judges.verifier.keep(whole=True)
    return Report(len(cards), len(records), seals.good, guarantee(last), in_order(troubles))


def guarantee(trust: Trust) -> str:
    return BOUNDARY if trust.required and trust.signed else PROCEDURE


def in_order(troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
    return tuple(sorted(troubles, key=lambda t: (t.finding.path, t.finding.line, t.finding.code, t.finding.message)))


def _from_log(repo: Repo, log: Log) -> Restore:
    """Finds the newest commit in which a card had a hash that is right."""

    def restore(card_id: str, right: frozenset[str]) -> str:
        ending = f"/{card_id}.md"
        held = [
            (commit.id, change.path, change.new)
            for commit in reversed(log.commits)
            for change in commit.changes
            if change.new and is_card(change.path) and change.path.endswith(ending)
        ]
        data = history.blobs(repo, [blob for _, _, blob in held])
        for commit, path, blob in held:
            if blob in data and card_sha256(data[blob]) in right:
                return f"git checkout {commit[:12]} -- {path}"
        return f"git log --all --oneline -- '*{ending}'"

    return restore


def _before(
    repo: Repo, prefix: str, arrivals: Sequence[tuple[history.Commit, list[history.Commit]]], records: Sequence[Filed]
) -> Before | None:
    """The cards as they stood before the base's first record; None where no record admits any without a unit."""
    wanted = {c.id for f in records if f.record and not f.record.unit for c in f.record.cards}
    if not wanted:
        return None
    for line, brought in arrivals:
        if any(is_record(change.path) and change.new for commit in brought for change in commit.changes):
            return stood_in(repo, prefix, line.parents[0], wanted) if line.parents else {}
    return stood_in(repo, prefix, arrivals[-1][0].id, wanted) if arrivals else {}


def _steps(
    repo: Repo,
    prefix: str,
    arrivals: Sequence[tuple[history.Commit, list[history.Commit]]],
    records: Sequence[Filed],
    state: Mapping[str, bytes],
    over: Mapping[str, bytes | None],
) -> tuple[list[Step], Trust]:
    """The moves of the branch that brought records or changed who may sign, and at the end what nobody committed yet;
    and what holds in the newest commit."""
    by_path = {held.path: held for held in records}
    trusts = _trusts(repo, prefix, arrivals)
    steps = []
    placed: set[str] = set()
    known: dict[str, Trust] = {}
    before = Trust()
    for line, brought in arrivals:
        moves = []
        for commit in brought:
            paths = {change.path for change in commit.changes if change.new and is_record(change.path)}
            fresh = sorted(path for path in paths if path in by_path and path not in placed)
            placed.update(fresh)
            stood = known.get(commit.parents[0], Trust()) if commit.parents else Trust()
            held = trusts[commit.id].after(stood) if commit.id in trusts else stood
            known[commit.id] = held
            if fresh or held != before or commit is line:
                moves.append(Arrival(commit.id, tuple(by_path[path] for path in fresh), held))
        after = moves[-1].after
        if after != before or any(move.records for move in moves):
            steps.append(Step(before, tuple(moves)))
        before = after
    loose = tuple(held for held in records if held.path not in placed)
    then = before
    if {SIGNERS, CONFIG} & over.keys():
        then = trust_from(state.get(SIGNERS), state.get(CONFIG)).after(before)
    if loose or then != before:
        steps.append(Step(before, (Arrival("", loose, then),)))
    return steps, before


def _trusts(
    repo: Repo, prefix: str, arrivals: Sequence[tuple[history.Commit, list[history.Commit]]]
) -> dict[str, Trust]:
    """Signers and settings at each commit that may have changed them: a merge may take either side's."""
    commits = [
        commit.id
        for _, brought in arrivals
        for commit in brought
        if len(commit.parents) != 1 or any(is_trust(change.path) for change in commit.changes)
    ]
    return trusts_at(repo, prefix, commits)
