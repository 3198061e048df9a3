"""Who may let something in, from where, and on which branch. The surface decides, never an argument."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from khms.config import Config
from khms.errors import Refused
from khms.hosts.environment import agent_host
from khms.store.layout import ARCHIVE, KNOW
from khms.store.repo import Repo


@dataclass(frozen=True, slots=True)
class Attested:
    """A git host's word for who approved: `reviewer` as a record names them, `request` where that can be read. Only
    `pipeline.merged` makes one, of what the host answered; no option and no variable does."""

    reviewer: str
    request: str


def demand_job(env: Mapping[str, str] = os.environ) -> None:
    """Raises Refused where a host's word cannot be asked for: in a background run, and in an agent host's environment,
    whatever the settings allow an agent to do in its own name."""
    _demand_foreground(env)
    if host := agent_host(env):
        raise Refused(
            f"this is the environment of {host}: a job of the git host takes in what a request's reviewer approved",
            hint="the job that khms hook install github writes; or a person, at a terminal: khms approve UNIT",
        )


def _demand_foreground(env: Mapping[str, str]) -> None:
    if env.get("KHMS_BACKGROUND"):
        raise Refused("a background run may only propose", hint="a person approves, at a terminal")


def reviewer(
    repo: Repo, config: Config, env: Mapping[str, str] = os.environ, *, attested: Attested | None = None
) -> str:
    """Who is approving: git's identity, `agent:<host>` where an agent is allowed to, or whom a git host attested.
    Raises Refused in a background run and in an agent host's environment, Unavailable without an identity."""
    if attested is not None:
        demand_job(env)
        return attested.reviewer
    _demand_foreground(env)
    identity = repo.identity()
    host = agent_host(env)
    if not host:
        return identity
    if not config["review.allow_agents"]:
        raise Refused(
            f"this is the environment of {host}: an agent may propose, a person approves",
            hint="run it in a terminal of your own (or, knowingly: khms config set review.allow_agents true)",
        )
    return f"agent:{host}"


def receiving_branch(repo: Repo, config: Config) -> str:
    """The branch that receives approvals: the configured one, else the remote's default, else the current one. On a
    detached HEAD it is main or master where there is one, else the branch with the newest commit; empty where the
    repository has no branch at all."""
    if config["git.branch"]:
        return str(config["git.branch"])
    default = repo.text("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD", ok=(0, 1))
    return default.removeprefix("origin/") or repo.branch() or _usual_branch(repo)


def _usual_branch(repo: Repo) -> str:
    listed = repo.text("for-each-ref", "--sort=-committerdate", "--format=%(refname:lstrip=2)", "refs/heads").split()
    return next((name for name in ("main", "master") if name in listed), listed[0] if listed else "")


def on_receiving_branch(repo: Repo, config: Config) -> bool:
    return repo.branch() == receiving_branch(repo, config)


def demand_branch(repo: Repo, config: Config, *, here: bool) -> bool:
    """Whether HEAD is the branch that receives approvals; raises Refused where it is not and `here` was not said."""
    if on_receiving_branch(repo, config):
        return True
    if not here:
        receiving = receiving_branch(repo, config)
        raise Refused(
            f"approvals belong on {receiving}, and HEAD is on {repo.branch() or 'no branch (detached)'}",
            where=str(repo.root),
            hint=f"git switch {receiving}  (or, knowingly, --here)",
        )
    return False


def demand_idle(repo: Repo) -> None:
    """Raises Refused while git is in the middle of something."""
    busy = repo.operation()
    if busy:
        raise Refused(f"{busy} is in progress here", where=str(repo.root), hint="finish or abort it first")


def demand_calm(repo: Repo) -> None:
    """As `demand_idle`, and raises Refused while cards hold changes that nobody committed. On an unborn branch nothing
    can differ from a commit."""
    demand_idle(repo)
    if repo.head() is None:
        return
    changed = repo.dirty(KNOW, ARCHIVE)
    if changed:
        shown = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        raise Refused(
            "cards hold changes that are not committed",
            where=shown,
            hint="look at them (git diff), then commit them or put them back (git checkout -- FILE)",
        )
