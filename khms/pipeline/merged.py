"""`khms approve --merged`: what a reviewer approved in a pull request comes in when the request is merged, in a CI job,
with that reviewer recorded.

For every unit that came with the pushed commits, the git host is asked which requests brought it and who approved
them. What counts is the last word of a person who may write to the repository, who is not the request's author, and
who saw exactly the bytes that were merged; having edited the branch speaks against nobody, that is how one reviews
there. A standing request for changes, a change that no request brought, a bot's or a stranger's approval, and one of
older bytes approve nothing. Everything that pipeline.approve refuses is refused here too: a merge is no judgement of a
relation, so a candidate that still says `unjudged` needs the reviewer to have said in the branch how it stands, or
`--unjudged` in the job. All questions are asked before anything is changed.

What this rests on. Who approved is the host's word, and the host is whom the job's environment names: somebody who sets
GITHUB_ACTIONS and GITHUB_API_URL at a terminal can have any name recorded, as they can by `git -c user.name=…`.
Nothing that runs on their machine could prevent that, and a check for "a real job" would only look as if it did. So it
is refused where no job is announced, in an agent host's environment (whatever `review.allow_agents` says) and in a
background run; the commit names the request; and without signatures the record proves the procedure, not the person.
Where `review.require_signed` is on, a record needs the key that memory/signers names `ci`, which is the job's alone.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from khms.config import Config
from khms.errors import Busy, KhmsError, Refused, Unavailable
from khms.hosts import forge as hosts
from khms.hosts.forge import APPROVED, CHANGES, Forge, Job, Request, Review
from khms.pipeline import authority, letter
from khms.pipeline.approve import Result, Views, approve, pending
from khms.pipeline.authority import Attested
from khms.pipeline.ruling import Wish
from khms.store import branches, cards, inbox, remote
from khms.store.branches import Branch
from khms.store.commit import exclusive
from khms.store.inbox import Unit, unit_path
from khms.store.layout import APPROVALS, INBOX, Base
from khms.store.remote import Declined, Moved, Upstream
from khms.store.repo import Repo

PREFIX = "khms/approval/"
TRIES = 3
NAMED, ALREADY, WAITS, REFUSED = "approved", "already", "waits", "refused"
KEY = "KHMS_SIGNING_KEY"  # the variable that names the signing key's file, where no setting does


@dataclass(frozen=True, slots=True)
class One:
    """What became of one unit: `state` is approved, already, waits (its approval is in a request that is open) or
    refused; `why` says what stands against it, or which request it waits for."""

    unit: str
    state: str
    why: str = ""
    reviewer: str = ""
    request: str = ""
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """`pushed` is the commit that the remote's branch is at now, `opened` the approval request, where one was needed;
    `note` says why there was nothing to do."""

    units: tuple[One, ...] = ()
    pushed: str = ""
    opened: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        return all(one.state != REFUSED for one in self.units)


@dataclass(frozen=True, slots=True)
class Said:
    """What the job says on the way, as in `pipeline.ruling.Wish`. `span` is `A..B`, where the event's is not meant."""

    span: str = ""
    unjudged: bool = False
    accepted: frozenset[str] = frozenset()


def approve_merged(
    base: Base,
    repo: Repo,
    config: Config,
    forge: Forge,
    job: Job,
    said: Said,
    views: Views,
    env: Mapping[str, str] = os.environ,
) -> Merged:
    """Approves the merged units of the pushed range, and pushes that, or asks for it by a request of its own where the
    branch is protected. Doing it again approves nothing twice. Raises Unavailable where host, remote or history cannot
    be asked (nothing was changed), Refused outside of a job, Busy where others pushed faster, three times."""
    authority.demand_job(env)
    receiving = str(config["git.branch"]) or job.default
    if not job.branch or (receiving and job.branch != receiving):
        return Merged(note=f"{job.branch or 'a tag'} does not receive approvals")
    if repo.text("rev-parse", "--is-shallow-repository") == "true":
        raise Unavailable(
            "this clone is shallow, and the history of the units is not there",
            where=str(repo.root),
            hint="fetch-depth: 0 in the step that checks out (GitLab: GIT_DEPTH: 0)",
        )
    settings = _settings(repo, config, job, env)
    _attach(repo, job)
    up = remote.upstream(repo, settings, job.branch)
    if up is None:
        raise Unavailable("there is no remote to push the approval to", where=str(repo.root))
    for _ in range(TRIES):
        tip = _newest(repo, up)
        done = _round(base, repo, settings, forge, job, said, views, up)
        try:
            return _publish(repo, forge, job, up, tip, done)
        except Moved:
            _start_over(repo, up)
    raise Busy("others pushed faster, three times; nothing was published", hint="run the job again")


def _settings(repo: Repo, config: Config, job: Job, env: Mapping[str, str]) -> Config:
    """The settings, with the job's key where nothing else names one, and without an approval that pushes by itself."""
    own: dict[str, object] = {"git.sync": "off", "git.branch": job.branch}
    named = config["review.signing_key"] or repo.text("config", "--get", "user.signingkey", ok=(0, 1))
    if not named and env.get(KEY):
        own["review.signing_key"] = env[KEY]
    return Config([("settings", dict(config)), ("the job", own)])


def _attach(repo: Repo, job: Job) -> None:
    """Puts a HEAD that a job detached onto the branch that was pushed: no file changes, both are one commit."""
    if repo.branch() or not (head := repo.head()):
        return
    ref = f"refs/heads/{job.branch}"
    there = repo.text("rev-parse", "--verify", "--quiet", ref, ok=(0, 1))
    if there and repo.status("merge-base", "--is-ancestor", there, head):
        raise Refused(f"{job.branch} is elsewhere in this clone", where=there, hint="start the job from a fresh clone")
    repo.run("update-ref", ref, head, there or "0" * len(head))
    repo.run("symbolic-ref", "HEAD", ref)


def _newest(repo: Repo, up: Upstream) -> str:
    """Fetches the branch and brings HEAD to its newest commit; returns that."""
    tip, head = up.fetch(), repo.head()
    if tip is None or head is None:
        raise Unavailable(f"{up.remote} has no branch {up.branch}", where=str(repo.root))
    if tip != head and repo.status("merge-base", "--is-ancestor", head, tip):
        raise Refused(
            f"this clone holds commits that {up.remote} has not",
            where=head,
            hint="start the job from a fresh clone",
        )
    with exclusive(repo, "approval of what was merged") as tx:
        tx.move(tip, what=f"come to {up.branch}")
    return tip


def _start_over(repo: Repo, up: Upstream) -> None:
    """Drops the approvals that could not be pushed; they are made anew on what was pushed meanwhile."""
    tip = up.fetch()
    if tip is not None:
        with exclusive(repo, "approval of what was merged") as tx:
            tx.move(tip, what="start over on what others pushed")


# What is approved


def _round(
    base: Base, repo: Repo, config: Config, forge: Forge, job: Job, said: Said, views: Views, up: Upstream
) -> list[One]:
    """Asks about every unit, then approves those that may come in."""
    done: list[One] = []
    going: list[tuple[Unit, Attested]] = []
    records = cards.approvals(base)
    waiting = None
    for name in _units(base, repo, job, said.span):
        try:
            unit = inbox.find(base, name)
        except Refused:
            continue  # removed again
        if not pending(base, unit, records) and not unit.broken:
            done.append(One(name, ALREADY))
            continue
        waiting = _waiting(repo, up) if waiting is None else waiting
        if waiting:
            done.append(_waits(forge, job, unit, waiting))
            continue
        try:
            going.append((unit, _attested(repo, forge, job, up, unit)))
        except Refused as refusal:
            done.append(One(name, REFUSED, _one_line(refusal)))
    for unit, attested in going:
        wish = Wish(everything=True, unjudged=said.unjudged, accepted=said.accepted)
        try:
            result = approve(base, repo, config, unit.name, wish, views, attested=attested)
            done.append(One(unit.name, NAMED, "", attested.reviewer, attested.request, result))
        except Refused as refusal:
            done.append(One(unit.name, REFUSED, _one_line(refusal), attested.reviewer, attested.request))
    return done


def _one_line(error: KhmsError) -> str:
    return "; ".join(part for text in (error.message, error.where, error.hint) for part in text.splitlines() if part)


def _units(base: Base, repo: Repo, job: Job, span: str) -> list[str]:
    """The units with files that the pushed range added or changed; of a new branch all there are."""
    before, after = job.before, job.after
    if span:
        first, dots, last = span.partition("..")
        before, after = (_commit(repo, name) for name in (first, (last if dots else "") or "HEAD"))
    folder = f"{repo.prefix}{INBOX}/"
    if before:
        _commit(repo, before)
        flags = ("--name-only", "-z", "--no-renames", "--no-relative", "--no-ext-diff", "--diff-filter=d")
        out = repo.run("diff", *flags, before, after, "--", f"{INBOX}/")  # a pathspec counts from the base's folder
    else:
        out = repo.run("ls-tree", "-r", "--name-only", "-z", "--full-tree", after, "--", folder)
    names = (os.fsdecode(name) for name in out.split(b"\0") if name)
    inner = (name.removeprefix(folder) for name in names if name.startswith(folder))
    return list(dict.fromkeys(name.partition("/")[0] for name in inner if "/" in name))


def _commit(repo: Repo, name: str) -> str:
    found = repo.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128))
    if not found:
        raise Unavailable(
            f"{name} is not in this clone", where=str(repo.root), hint="the job needs the whole history: fetch-depth: 0"
        )
    return found


def _attested(repo: Repo, forge: Forge, job: Job, up: Upstream, unit: Unit) -> Attested:
    """Who approved exactly these bytes of the unit. Raises Refused where nobody did whose word counts."""
    changed = repo.dirty(unit.path)
    if changed:
        raise Refused(f"{changed[0]} is not as it was merged")
    path = repo.prefix + unit.path
    requests = _requests(repo, forge, job, unit)
    last = requests[0]
    if _tree(repo, "HEAD", path) != _tree(repo, last.merge, path):
        raise Refused(f"the unit changed after {last.url} was merged")
    reviews = [_review(repo, forge, job, up, request, path) for request in requests]
    login = reviews[0].login
    name = re.sub(r"[<>\x00-\x1f\x7f]", "", forge.name(job, login)).strip()[:100] or login
    return Attested(f"{' '.join(name.split())} <{forge.mail(job, login)}>", last.url)


def _requests(repo: Repo, forge: Forge, job: Job, unit: Unit) -> list[Request]:
    """The merged requests that brought the unit and every later change of it, the last first."""
    found: dict[int, Request] = {}
    for commit in repo.text("rev-list", "--first-parent", "HEAD", "--", unit.path).split():
        brought = [
            request
            for request in forge.requests_of(job, commit)
            if request.merged and request.base == job.branch and _holds(repo, request.merge, commit)
        ]
        if not brought:
            raise Refused(f"no merged request brought the commit {commit[:12]}, which changed the unit")
        found.setdefault(brought[0].number, brought[0])
    return list(found.values())


def _holds(repo: Repo, merge: str, commit: str) -> bool:
    """Whether the commit that a merge made is in HEAD's history, and has `commit` in its own. A host that rebases names
    the last of the commits that it made."""
    known = bool(merge) and hosts.commit_id(merge) == merge and _have(repo, merge)
    return known and not any(
        repo.status("merge-base", "--is-ancestor", *pair) for pair in ((merge, "HEAD"), (commit, merge))
    )


def _review(repo: Repo, forge: Forge, job: Job, up: Upstream, request: Request, path: str) -> Review:
    """The newest approval of the request that counts. Raises Refused, naming why each other one does not."""
    good, why = [], []
    merged = _tree(repo, request.merge, path)
    for review in forge.reviews(job, request):
        if review.state == CHANGES and review.person and forge.may_write(job, review.login):
            raise Refused(f"{review.login} asked for changes in {request.url}, and that stands")
        fault = _fault(repo, forge, job, up, request, review, path, merged)
        if fault:
            why.append(f"{review.login} {fault}")
        else:
            good.append(review)
    if not good:
        raise Refused(
            f"nobody whose word counts approved exactly these bytes in {request.url}",
            where="\n".join(why) or "nobody approved it",
            hint="approve the unit by hand: khms approve UNIT",
        )
    return max(good, key=lambda review: review.at)


def _fault(
    repo: Repo, forge: Forge, job: Job, up: Upstream, request: Request, review: Review, path: str, merged: str
) -> str:
    """Why this review does not count; empty where it does."""
    if review.state != APPROVED:
        return f"did not approve it ({review.state})"
    if not review.person:
        return "is a bot, or not of this project"
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_])?", review.login):
        return "has no plain login"
    if not request.author or review.login.lower() == request.author.lower():
        return "is the author of the request"
    if not review.commit or not _bring(repo, up, hosts.commit_id(review.commit), request.head):
        return "approved a commit that is not there any more"
    if _tree(repo, review.commit, path) != merged:
        return "approved other bytes than those that were merged"
    return "" if forge.may_write(job, review.login) else "may not write here"


def _tree(repo: Repo, commit: str, path: str) -> str:
    """The id of the unit's folder in a commit, empty where it is not there. Equal ids are equal names and bytes."""
    return repo.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:{path}", ok=(0, 1, 128))


def _have(repo: Repo, commit: str) -> bool:
    return repo.status("cat-file", "-e", f"{commit}^{{commit}}") == 0


def _bring(repo: Repo, up: Upstream, commit: str, ref: str) -> bool:
    """Whether the commit is here, after asking the remote for it: a squashed branch is in nobody's history."""
    flags = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--", up.remote)
    for wanted in (commit, ref):
        if _have(repo, commit):
            return True
        repo.ask("fetch", *flags, wanted, env=remote.environment(repo), config=remote.QUIET, seconds=up.seconds)
    return _have(repo, commit)


# Where it goes


def _publish(repo: Repo, forge: Forge, job: Job, up: Upstream, tip: str, done: list[One]) -> Merged:
    head = repo.head() or tip
    if head == tip:
        return Merged(tuple(done), note="" if done else "no unit came in with these commits")
    try:
        up.push(head, tip)
    except Declined as refusal:
        return Merged(tuple(done), opened=_propose(repo, forge, job, up, head, done, refusal))
    return Merged(tuple(done), pushed=head)


def _propose(repo: Repo, forge: Forge, job: Job, up: Upstream, head: str, done: list[One], why: Declined) -> str:
    """Opens the approval request of a protected branch; returns its URL. Its own merge brings no unit's files, so that
    it starts nothing."""
    units = [one for one in done if one.state == NAMED]
    name = PREFIX + units[0].unit
    try:
        replace(up, branch=name).push(head, None)
    except Declined as refusal:
        raise Refused(
            f"neither {up.branch} nor {name} can be pushed: {refusal.message}",
            where=why.where,
            hint="the job needs the right to write contents",
        ) from refusal
    except Moved:
        pass  # an earlier try of this job pushed it, and was stopped before it had asked
    return forge.waiting(job, name) or forge.ask(job, name, f"Approve memory: {units[0].unit}", _text(up, units))


def _text(up: Upstream, units: list[One]) -> str:
    lines = [
        f"The branch `{up.branch}` is protected, so what the reviewers approved waits here as commits. Merge it as it"
        " is: the cards, and the record of who approved which bytes, are in it.",
        "",
    ]
    for one in units:
        pieces = [f"{label} as {card}" for label, card, _ in one.result.cards] if one.result else []
        pieces += [f"{label}, which changes {card}" for label, card, _ in one.result.changed] if one.result else []
        made = ", ".join(pieces)
        lines.append(f"- `{one.unit}`: {made}; approved by {letter.inert(one.reviewer)} in {one.request}")
    return "\n".join(lines) + "\n"


def _waiting(repo: Repo, up: Upstream) -> dict[str, set[str]]:
    """The approval branches of the remote that are not merged yet: name to the units that they approve."""
    space = f"refs/remotes/{up.remote}/{PREFIX}"
    asked = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--prune", "--", up.remote)
    spec = f"+refs/heads/{PREFIX}*:{space}*"
    status, _, err = repo.ask(
        "fetch", *asked, spec, env=remote.environment(repo), config=remote.QUIET, seconds=up.seconds
    )
    if status:
        raise Unavailable(f"{up.remote} cannot be reached", where=err.decode("utf-8", "replace").strip()[-300:])
    found = {}
    for row in repo.text("for-each-ref", "--format=%(refname) %(objectname)", space).splitlines():
        ref, _, commit = row.partition(" ")
        new = branches.added(repo, Branch(ref, commit, ""), "HEAD", (APPROVALS,))
        units = {unit for data in new.values() if (unit := _unit_of(data))}
        if units:
            found[ref.removeprefix(space)] = units
    return found


def _unit_of(record: bytes) -> str:
    try:
        return str(json.loads(record)["unit"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _waits(forge: Forge, job: Job, unit: Unit, waiting: Mapping[str, set[str]]) -> One:
    """A unit while approvals wait for their merge: its own is one of them, or it would get the ids that they hold."""
    for name, units in waiting.items():
        if unit_path(unit.name) in units:
            branch = PREFIX + name
            text = "What the reviewers approved waits here as commits. Merge it as it is.\n"
            url = forge.waiting(job, branch) or forge.ask(job, branch, f"Approve memory: {name}", text)
            return One(unit.name, WAITS, f"its approval waits for the merge of {url}")
    first = next(iter(waiting))
    return One(unit.name, REFUSED, f"the approval on {PREFIX}{first} must be merged first; then run this job again")
