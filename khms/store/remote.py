"""The remote that a base is shared through: what it holds, and putting a commit there if nobody was faster.

No call prompts, and each is given up after a time. A push names the commit that the branch must still be at, and that
commit is always one that the new one descends from: nobody's work is ever pushed away. What the repository's own
configuration may decide here is only where the remote is. Entries of it that name a program, or that decide who sees
the user's credentials on the way, are refused in a base that its user did not trust: such a folder can come from
anywhere, its `.git/config` with it. The user's own configuration is the user's word.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from khms.config import Config
from khms.errors import Refused, Unavailable
from khms.store.repo import SAFE, GitFailed, Repo

PROTOCOLS = "file:git:http:https:ssh"
QUIET = (*SAFE, "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.ext.allow=never")
INBOX_BRANCHES = "refs/heads/khms/inbox"
_OWN = re.compile(
    r"core\.(?:sshcommand|gitproxy|askpass)|credential\.(?:.*\.)?helper|protocol\.(?:.*\.)?allow"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)|http\.(?:.*\.)?(?:proxy|sslverify|sslcainfo|sslcapath|sslcert)"
    r"|url\..*\.(?:insteadof|pushinsteadof)",
    re.IGNORECASE,
)
_LOST_RACE = (
    *("fetch first", "non-fast-forward", "stale info", "failed to update ref", "cannot lock ref"),
    *("incorrect old value", "failed to lock", "reference already exists", "remote ref updated since checkout"),
)


class Offline(Unavailable):
    """The remote cannot be reached, or does not know this user."""


class Declined(Refused):
    """The remote was reached and its own rules refuse the commit; `where` holds its words."""


class Moved(Exception):
    """Someone else pushed meanwhile."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a branch is shared: `branch` as the remote calls it, `seconds` what one exchange may take."""

    repo: Repo
    remote: str
    branch: str
    seconds: float

    @property
    def tracking(self) -> str:
        """The local ref that holds what the last fetch saw."""
        return f"refs/remotes/{self.remote}/{self.branch}"

    def seen(self) -> str | None:
        """The commit that the branch was at when last fetched or pushed, None where it never was."""
        return self.repo.text("rev-parse", "--verify", "--quiet", f"{self.tracking}^{{commit}}", ok=(0, 1)) or None

    def fetch(self) -> str | None:
        """Brings in the branch and the delivered inbox units; returns the branch's commit, None where the remote has no
        such branch yet. Raises Offline, and Refused where the branch was rewritten there."""
        ours = f"refs/heads/{self.branch}:{self.tracking}"
        units = f"+{INBOX_BRANCHES}/*:refs/remotes/{self.remote}/khms/inbox/*"
        flags = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
        try:
            self._exchange("fetch", *flags, "--", self.remote, ours, units)
        except GitFailed as error:
            said = error.where
            if "couldn't find remote ref" in said and self.seen() is None:
                return None
            if "couldn't find remote ref" in said:
                raise Refused(
                    f"{self.remote} no longer has the branch {self.branch}",
                    where=said,
                    hint=f"if that is right: git update-ref -d {self.tracking}, then khms sync pushes it anew",
                ) from error
            if "[rejected]" in said:
                raise Refused(
                    f"{self.branch} was rewritten on {self.remote}: commits that were published are gone there",
                    where=self.tracking,
                    hint=f"ask who did it; then take their history: git fetch {self.remote}, git rebase --onto "
                    f"{self.remote}/{self.branch} {self.tracking}",
                ) from error
            raise self._offline(error) from error
        return self.seen()

    def push(self, new: str, expected: str | None) -> None:
        """Puts `new` there if the branch is still at `expected` (None: not there yet), of which it is a descendant.
        Raises Moved where it is not, Declined where the server's own rules say no, Offline where it cannot be asked."""
        target = f"refs/heads/{self.branch}"
        flags = ("--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")
        lease = f"--force-with-lease={target}:{expected or ''}"
        try:
            self._exchange("push", *flags, lease, "--", self.remote, f"{new}:{target}")
        except GitFailed as error:
            rejected = re.search(r"\[(remote )?rejected\] \((.*)\)", error.where)
            if rejected is None:
                if any(said in error.where for said in _LOST_RACE):
                    raise Moved from error
                raise self._offline(error) from error
            if any(said in rejected[2] for said in _LOST_RACE):
                raise Moved from error
            raise Declined(
                f"{self.remote} refuses it: {rejected[2]}",
                where=_words(error.where),
                hint="mend what it names, then run khms sync",
            ) from error

    def _exchange(self, *args: str) -> None:
        status, out, err = self.repo.ask(*args, env=environment(self.repo), config=QUIET, seconds=self.seconds)
        if status:
            lines = [line for line in (err + out).decode("utf-8", "replace").splitlines() if line.strip()]
            fatal = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:")) or "rejected" in line]
            message = (fatal or lines or [f"git {args[0]} was given up after {self.seconds:.0f} s"])[0]
            raise GitFailed(message.removeprefix("fatal: "), status, where="\n".join(lines))

    def _offline(self, error: GitFailed) -> Offline:
        return Offline(
            f"{self.remote} cannot be reached: {error.message}",
            where=_words(error.where),
            hint="check the network and your access to it, then run khms sync",
        )


def _words(said: str) -> str:
    """What the other side said, at most a dozen lines."""
    lines = [line.removeprefix("remote: ").rstrip() for line in said.splitlines() if line.startswith("remote:")]
    return "\n".join((lines or said.splitlines())[-12:])


def environment(repo: Repo) -> dict[str, str]:
    """The variables under which git may talk to a remote: no password is asked for, and only protocols of git's own.
    A program that the user set for the purpose stays."""
    found = {"GIT_ALLOW_PROTOCOL": os.environ.get("GIT_ALLOW_PROTOCOL") or PROTOCOLS}
    if not os.environ.get("GIT_ASKPASS"):
        found["GIT_ASKPASS"] = "true"
    if os.environ.get("GIT_SSH") and not os.environ.get("GIT_SSH_COMMAND"):
        return found
    command = os.environ.get("GIT_SSH_COMMAND") or repo.text("config", "--get", "core.sshCommand", ok=(0, 1)) or "ssh"
    if PurePath(command.split()[0]).name == "ssh":
        command += " -oBatchMode=yes"
    return {**found, "GIT_SSH_COMMAND": command}


def upstream(repo: Repo, config: Config, branch: str = "") -> Upstream | None:
    """Where `branch` (the receiving one; without it HEAD's) is shared: its configured upstream, else origin, else the
    only remote there is; None where there is no remote."""
    branch = branch or str(config["git.branch"]) or repo.branch()
    remotes = repo.text("remote").split()
    if not remotes or not branch:
        return None
    named = repo.text("config", "--get", f"branch.{branch}.remote", ok=(0, 1))
    merges = repo.text("config", "--get", f"branch.{branch}.merge", ok=(0, 1))
    seconds = float(config["git.seconds"])
    if named in remotes:
        return Upstream(repo, named, merges.removeprefix("refs/heads/") or branch, seconds)
    if "origin" not in remotes and len(remotes) > 1:
        raise Refused(
            f"which remote shares {branch}? there are {', '.join(remotes)}",
            where=str(repo.root),
            hint=f"git branch --set-upstream-to REMOTE/{branch} {branch}",
        )
    return Upstream(repo, "origin" if "origin" in remotes else remotes[0], branch, seconds)


def demand_plain(repo: Repo) -> None:
    """Raises Refused where the repository's own configuration, which may have come with it, decides what git runs or
    whom it shows the user's credentials to. Asked where the base is not trusted."""
    rows = repo.run("config", "--list", "-z", "--show-scope", "--includes").decode("utf-8", "replace").split("\0")
    names: Sequence[str] = [
        row.partition("\n")[0]
        for scope, row in zip(rows[::2], rows[1::2], strict=False)
        if scope in ("local", "worktree")
    ]
    found = sorted({name for name in names if _OWN.fullmatch(name)})
    if found:
        raise Refused(
            f"the repository's own configuration decides how its remote is reached: {', '.join(found)}",
            where=str(repo.common / "config"),
            hint="look at it; if it is yours: khms trust, or move it to your own configuration (git config --global)",
        )
