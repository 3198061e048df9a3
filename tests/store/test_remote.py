"""Which remote and branch share a base, and what git may do on the way there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import load
from khms.errors import Refused
from khms.store import remote
from khms.store.layout import Base
from khms.store.remote import Upstream, upstream
from khms.store.repo import Repo

Git = Callable[..., str]


def found(base: Base, branch: str = "") -> Upstream | None:
    return upstream(Repo(base.root), load(base.root), branch)


def test_the_branchs_own_upstream_else_origin_else_the_only_one(base: Base, git: Git) -> None:
    assert found(base) is None
    git(base, "remote", "add", "backup", "nowhere")
    held = found(base)
    assert held is not None and (held.remote, held.branch) == ("backup", "main")
    git(base, "remote", "add", "team", "nowhere")
    with pytest.raises(Refused, match="which remote shares main"):
        found(base)
    git(base, "remote", "add", "origin", "nowhere")
    held = found(base)
    assert held is not None and held.tracking == "refs/remotes/origin/main"
    git(base, "config", "branch.main.remote", "team")
    git(base, "config", "branch.main.merge", "refs/heads/memory")
    held = found(base)
    assert held is not None and (held.remote, held.branch, held.seen()) == ("team", "memory", None)
    git(base, "config", "branch.main.remote", ".")  # a local branch is no place to share
    held = found(base)
    assert held is not None and held.remote == "origin"


def test_a_base_pulled_and_pushed_under_another_name(base: Base, git: Git, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(base, "remote", "add", "team", str(tmp_path / "remote.git"))
    git(base, "config", "branch.main.remote", "team")
    git(base, "config", "branch.main.merge", "refs/heads/memory")
    held = found(base)
    assert held is not None and held.fetch() is None
    head = git(base, "rev-parse", "HEAD")
    held.push(head, None)
    assert git(tmp_path / "remote.git", "rev-parse", "memory") == head == held.seen()
    with pytest.raises(remote.Moved):
        held.push(git(base, "commit-tree", "HEAD^{tree}", "-m", "x"), None)


def test_a_push_never_takes_anything_away(base: Base, git: Git, tmp_path: Path) -> None:
    """The branch went back on the remote after the fetch: what was taken out there is not put in again."""
    git(tmp_path, "clone", "--quiet", "--bare", str(base.root), "remote.git")
    git(base, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(base, "commit", "--quiet", "--allow-empty", "-m", "second")
    held = found(base)
    assert held is not None
    first, second = git(base, "rev-parse", "HEAD~1"), git(base, "rev-parse", "HEAD")
    held.push(second, first)
    git(base, "commit", "--quiet", "--allow-empty", "-m", "third")
    git(tmp_path / "remote.git", "update-ref", "refs/heads/main", first)
    with pytest.raises(remote.Moved):
        held.push(git(base, "rev-parse", "HEAD"), second)
    assert git(tmp_path / "remote.git", "rev-parse", "main") == first


def test_nobody_is_asked_for_a_password(base: Base, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo(base.root)
    assert remote.environment(repo) == {
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    }
    git(base, "config", "--global", "core.sshCommand", "/usr/bin/ssh -i key")
    assert remote.environment(repo)["GIT_SSH_COMMAND"] == "/usr/bin/ssh -i key -oBatchMode=yes"
    monkeypatch.setenv("GIT_SSH_COMMAND", "plink -batch")
    monkeypatch.setenv("GIT_ASKPASS", "mine")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https")
    assert remote.environment(repo) == {"GIT_ALLOW_PROTOCOL": "https", "GIT_SSH_COMMAND": "plink -batch"}


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("core.sshCommand", True),
        ("credential.helper", True),
        ("credential.https://example.org.helper", True),
        ("remote.origin.uploadpack", True),
        ("http.proxy", True),
        ("http.https://example.org/.sslVerify", True),
        ("url.https://example.org/.insteadOf", True),
        ("remote.origin.url", False),
        ("http.https://example.org/.extraheader", False),
        ("branch.main.remote", False),
    ],
)
def test_what_of_a_repositorys_own_configuration_is_refused(base: Base, git: Git, name: str, refused: bool) -> None:
    git(base, "config", "--global", name, "the user's own word counts")
    remote.demand_plain(Repo(base.root))
    git(base, "config", name, "x")
    if refused:
        with pytest.raises(Refused, match="own configuration decides"):
            remote.demand_plain(Repo(base.root))
    else:
        remote.demand_plain(Repo(base.root))
