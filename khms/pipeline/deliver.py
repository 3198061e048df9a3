"""How a unit reaches its reviewers: on the current branch (`commit`), or on a branch of its own that is left here
(`branch`), pushed (`push`), or pushed and put before them as a pull request (`pr`).

A unit's own branch, `khms/inbox/<unit>`, is one commit on top of the branch that receives approvals: the unit, its
receipts and events, nothing else. Its receipts decide the MARKs from then on (`store.receipts`), wherever the branch
goes. What nobody has to review stays on the current branch as ever: the journal as it was read, and the day's history,
one line that two branches of one day would both add to. Where the journal comes to the reviewers later than the unit,
the lines kept with each quote stand for it (`pipeline.quotes`).

Order, each step gone on with after a kill: branch, journal and history, push, request. Whether a step was done is told
by what it leaves: the ref, the run's line in the history, the remote-tracking ref, the host's list of requests.
`.khms/state/delivery.json` only spares asking, and keeps a request that a person closed from being opened again.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from khms.config import Config
from khms.errors import KhmsError, Refused
from khms.hosts import forge as hosts
from khms.hosts import forges, program
from khms.hosts.forge import Failed, Forge, Place
from khms.model.finding import Finding
from khms.pipeline import authority, letter, publish
from khms.pipeline.night import Night
from khms.store import branches, files, local, remote, trust
from khms.store.branches import PREFIX, Branch, branch_ref
from khms.store.commit import Transaction
from khms.store.inbox import unit_path
from khms.store.layout import EVENTS, INBOX, RECEIPTS, Base
from khms.store.remote import Moved, Upstream
from khms.store.repo import Repo

COMMIT, BRANCH, PUSH, PR = "commit", "branch", "push", "pr"
BY_HAND = "by hand"


def mode(base: Base, config: Config) -> str:
    """How units are delivered. Raises Refused where a base that was found by walking up, and that its user did not
    trust, asks for more than a commit: it may have come from anywhere, its remote with it."""
    wanted = str(config["nightly.deliver"])
    if wanted != COMMIT and config.origin("nightly.deliver") == str(base.config) and trust.why_not(base):
        raise Refused(
            f"this base's own configuration asks to deliver by {wanted}, and you did not trust it",
            where=str(base.config),
            hint="look at it, then: khms trust",
        )
    return wanted


def _upstream(repo: Repo, config: Config) -> Upstream | None:
    receiving = authority.receiving_branch(repo, config)
    return remote.upstream(repo, config, receiving) if receiving else None


def look(base: Base, repo: Repo, config: Config) -> str:
    """Fetches what the remote has, units on branches included, before anything is decided; returns a remark where that
    failed, for a night without network is still a night."""
    if mode(base, config) not in (PUSH, PR):
        return ""
    try:
        up = _upstream(repo, config)
        if up is not None:
            up.fetch()
    except KhmsError as error:
        return f"not fetched: {error.message}"
    return ""


# The branch


def parent(base: Base, repo: Repo, config: Config) -> str | None:
    """The commit that a unit's branch starts from; None where units are committed on the current branch, or nothing is
    there to start from.

    What will be pushed starts where the remote's branch was last seen, and not from commits that are here alone: a
    request would publish them. What stays here starts from the local branch, unless the remote's is as new."""
    wanted = mode(base, config)
    if wanted == COMMIT:
        return None
    seen = None
    with contextlib.suppress(Refused):  # which of several remotes is not told: `send` says so
        up = _upstream(repo, config)
        seen = up.seen() if up else None
    name = authority.receiving_branch(repo, config)
    here = repo.text("rev-parse", "--verify", "--quiet", f"refs/heads/{name}^{{commit}}", ok=(0, 1)) or repo.head()
    if seen is None or here is None:
        return seen or here
    newer = repo.status("merge-base", "--is-ancestor", here, seen) == 0
    return seen if newer or wanted in (PUSH, PR) else here


def taken(base: Base, repo: Repo, onto: str) -> frozenset[str]:
    """The names that a new unit cannot have: those of units on branches, and those in the commit it starts from."""
    names = {branch.unit for branch in branches.branches(base)}
    return frozenset(names | _units(repo, onto))


def _units(repo: Repo, commit: str) -> set[str]:
    folder = f"{repo.prefix}{INBOX}/"
    out = repo.run("ls-tree", "-z", "--name-only", "--full-tree", commit, "--", folder)
    return {os.fsdecode(name).removeprefix(folder).removesuffix(".md") for name in out.split(b"\0") if name}


def on_its_branch(tx: Transaction, base: Base, night: Night, onto: str) -> tuple[Night, str]:
    """Makes the unit's branch, then commits journal and history on the current one; returns the night with its branch,
    and the branch's commit."""
    night = replace(night, branch=PREFIX + night.unit)
    commit = tx.commit_to(branch_ref(night.unit), onto, publish.proposal(night), publish.message(night))
    publish.note(tx, night.run, publish.diary(base, night), frozenset(night.journal))
    return night, commit


# The way to the reviewers


@dataclass(frozen=True, slots=True)
class Sent:
    """What was done, and what failed and is tried again by the next run."""

    notes: tuple[str, ...] = ()
    failed: tuple[Finding, ...] = ()


def send(base: Base, repo: Repo, config: Config) -> Sent:
    """Pushes, and puts before the reviewers, every unit's branch that was not yet; each is tried once. Raises nothing
    for what fails on the way: the branch stands, and so does what was pushed."""
    wanted = mode(base, config)
    if wanted not in (PUSH, PR):
        return Sent()
    try:
        up = _upstream(repo, config)
        open_ones = list(_undelivered(base, repo, up)) if up else []
    except KhmsError as error:
        return Sent(failed=(_finding(PREFIX, error),))
    if up is None:
        return Sent(notes=("there is no remote to push to: git remote add origin URL",))
    notes: list[str] = []
    failed: list[Finding] = []
    held = _state(base)
    for branch in open_ones:
        done = held.get(branch.name, {})
        try:
            if not done.get("pushed"):
                notes += _push(base, repo, config, up, branch)
                done = _keep(base, held, branch, pushed=branch.commit)
            if wanted == PR and not done.get("request"):
                url, said = _request(repo, up, branch)
                notes.append(said)
                _keep(base, held, branch, pushed=branch.commit, request=url)
        except KhmsError as error:
            failed.append(_finding(branch.name, error))
    return Sent(tuple(notes), tuple(failed))


def _finding(where: str, error: KhmsError) -> Finding:
    said = " ".join(error.message.split())
    return Finding("delivery", "error", where, 0, f"not delivered: {said}", "the next khms nightly tries again")


def _undelivered(base: Base, repo: Repo, up: Upstream) -> Iterator[Branch]:
    """The local branches whose unit is neither here in the work tree nor in what the remote's branch holds: once it was
    merged, or refused, there is nothing to deliver."""
    seen = up.seen()
    merged = _units(repo, seen) if seen else set()
    for branch in branches.branches(base):
        if branch.local and branch.unit not in merged and not os.path.lexists(base.inbox / branch.unit):
            yield branch


def _push(base: Base, repo: Repo, config: Config, up: Upstream, branch: Branch) -> list[str]:
    """Pushes the branch unless the remote has it. Raises KhmsError where it holds more than its unit (somebody's
    unpublished commits, say), and where the remote says no."""
    target = replace(up, branch=branch.name)
    if target.seen() is not None:
        return []
    seen = up.seen()
    if seen is None:
        raise Refused(f"{up.remote} has no branch {up.branch} that was fetched: push that one first")
    if trust.why_not(base):
        remote.demand_plain(repo)
    unit = f"{repo.prefix}{unit_path(branch.unit)}/"
    allowed = (unit, f"{repo.prefix}{RECEIPTS}/", f"{repo.prefix}{EVENTS}/")
    out = repo.run("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", f"{seen}...{branch.commit}")
    more = [os.fsdecode(name) for name in out.split(b"\0") if name and not os.fsdecode(name).startswith(allowed)]
    if more:
        raise Refused(f"the branch holds more than its unit ({more[0]}): look at it, and push it yourself")
    try:
        target.push(branch.commit, None)
    except Moved as error:
        raise Refused(f"{up.remote} has another branch of this name") from error
    return [f"pushed {branch.name} to {up.remote}"]


def _request(repo: Repo, up: Upstream, branch: Branch) -> tuple[str, str]:
    """(URL, what to say) of the request for the branch: the one there is, else a new one, else how a person opens it.
    Raises Failed with the words of the host's program."""
    place = hosts.place_of(repo.text("config", "--get", f"remote.{up.remote}.url", ok=(0, 1)))
    forge = forges.serving(place) if place else None
    if place is None or forge is None:
        return BY_HAND, f"{branch.name} is pushed; open a pull request for it by hand, onto {up.branch}"
    if not program.there(forge.PROGRAM):
        url = forge.page(place, branch.name, up.branch)
        return BY_HAND, f"{branch.name} is pushed; {forge.PROGRAM} is not here, so open the request yourself: {url}"
    return _opened(repo, forge, place, up, branch)


def _opened(repo: Repo, forge: Forge, place: Place, up: Upstream, branch: Branch) -> tuple[str, str]:
    def run(name: str, *args: str, stdin: str = "") -> tuple[int, str, str]:
        return program.run(name, *args, stdin=stdin, folder=repo.root)

    try:
        url = forge.opened(run, place, branch.name, branch.commit)
        if url:
            return url, f"{branch.name} awaits review: {url}"
        unit = branches.unit(repo, branch)
        url = forge.open(run, place, branch.name, up.branch, letter.title(unit.name), letter.body(unit))
    except Failed as error:
        raise Failed(f"{branch.name} is pushed, and {forge.PROGRAM} says: {' '.join(error.message.split())}") from error
    return url or BY_HAND, f"{branch.name} awaits review: {url or forge.page(place, branch.name, up.branch)}"


# What was done already, as far as this machine knows


def _state(base: Base) -> dict[str, dict[str, str]]:
    try:
        value: Any = files.read_json(base.state / "delivery.json")
    except (OSError, ValueError):
        return {}
    rows = value.items() if isinstance(value, dict) else ()
    return {str(name): dict(row) for name, row in rows if isinstance(row, dict)}


def _keep(base: Base, held: dict[str, dict[str, str]], branch: Branch, **done: str) -> dict[str, str]:
    held[branch.name] = done
    there = {other.name for other in branches.branches(base)}
    local.make(base)
    kept = {name: row for name, row in held.items() if name in there}
    files.write_atomic(base.state / "delivery.json", (json.dumps(kept, indent=2) + "\n").encode("utf-8"))
    return done
