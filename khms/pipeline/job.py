"""What nightly and weekly do around their work: one run of a kind a base, how it ended written down, and a repository
that is fit to be written to."""

import contextlib
import os
from collections.abc import Callable
from typing import Protocol, TypeVar

from khms.errors import KhmsError, Refused
from khms.model.finding import Finding
from khms.pipeline import lastrun
from khms.store import local
from khms.store.commit import exclusive, pending
from khms.store.layout import Base
from khms.store.lock import hold
from khms.store.repo import Repo


class Ended(Protocol):
    """What a run comes to, as far as its record needs it."""

    @property
    def run(self) -> str: ...

    @property
    def problems(self) -> tuple[Finding, ...]: ...


Result = TypeVar("Result", bound=Ended)


def refuse_child(job: str) -> None:
    """Raises Refused in a process that a run started: it must not start another."""
    if os.environ.get("KHMS_BACKGROUND"):
        raise Refused("this is a run's own child, which must not start another", hint=f"run {job} by itself")


def alone(base: Base, job: str, work: Callable[[], Result]) -> Result:
    """Does `work` under the job's lock, and writes down how it ended. Raises Busy while another run is at it."""
    local.make(base)
    with hold(base.locks / f"{job}.lock", job):
        try:
            found = work()
        except Exception as error:
            with contextlib.suppress(KhmsError):
                lastrun.remember(base, job, "", str(error).partition("\n")[0] or type(error).__name__)
            raise
        errors = [str(problem) for problem in found.problems if problem.severity == "error"]
        lastrun.remember(base, job, found.run, "; ".join(errors))
    return found


def recover(repo: Repo, job: str) -> str:
    """Finishes or undoes what a killed command left in git, before anything is read; in words, what that was."""
    if pending(repo) is None:
        return ""
    with exclusive(repo, job) as tx:
        return str(tx.recovered) if tx.recovered else ""


def demand_ready(repo: Repo) -> None:
    """Raises Unavailable without an identity, Refused while git is in the middle of something or leaves files out."""
    repo.identity()
    if operation := repo.operation():
        raise Refused(f"{operation} is in progress here", where=str(repo.root), hint="finish or abort it first")
    repo.demand_whole("memory")
