"""What an agent must not touch while it is asked, and whose word lets it be asked at all."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import load
from khms.errors import Refused
from khms.pipeline.confinement import Guard, demand_trust
from khms.store import trust
from khms.store.layout import Base
from khms.store.repo import Repo

Git = Callable[..., str]
PROGRAM = '[nightly]\nproposer = "command"\ncommand = "touch somewhere"\n[nightly.logs]\nx = "/etc/passwd"\n'


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("# the agent was here\n")


@pytest.mark.parametrize(
    "name",
    [
        "memory/know/K-00001.md",
        "khms.toml",
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/config.worktree",
        ".git/info/attributes",
        ".git/info/grafts",
        ".git/info/sparse-checkout",
        ".git/objects/info/alternates",
        ".git/refs/replace/0123456789012345678901234567890123456789",
        ".git/refs/heads/khms/inbox/2026-03-04-nightly",
        ".git/refs/remotes/origin/khms/inbox/2026-03-04-nightly",
        ".khms/carry/found/2026-03-04.0123456789ab.json",
        ".khms/state/cursors.json",
    ],
)
def test_what_a_call_must_leave_alone(base: Base, name: str) -> None:
    guard = Guard(base, Repo(base.root))
    with guard.watch():
        pass
    with pytest.raises(Refused, match=Path(name).name), guard.watch():
        put(base.root / name)


def test_what_may_change_meanwhile(base: Base, git: Git) -> None:
    with Guard(base, Repo(base.root)).watch():
        put(base.journal / "2026-03-04.md")
        put(base.log / "inject.jsonl")
        git(base.root, "branch", "somebody/at-work")


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".git/config", ".git/worktrees/linked/config.worktree"])
def test_a_linked_work_tree_is_guarded_with_what_it_shares(base: Base, git: Git, tmp_path: Path, name: str) -> None:
    git(base.root, "worktree", "add", "--quiet", tmp_path / "linked", "-b", "linked")
    here = Base(tmp_path / "linked")
    guard = Guard(here, Repo(here.root))
    with pytest.raises(Refused, match=Path(name).name), guard.watch():
        put(base.root / name)
    with pytest.raises(Refused, match=r"\.git"), guard.watch():
        (here.root / ".git").write_text((here.root / ".git").read_text(encoding="utf-8") + "\n", encoding="utf-8")


def test_a_stranger_configuration_asks_no_agent_until_it_is_trusted_and_again_when_it_changed(
    base: Base, write: Callable[..., Path], own_environment: Path
) -> None:
    found = Base(base.root)  # by walking up, which is nobody's word
    demand_trust(found, load(base.root))
    write(base, "khms.toml", PROGRAM)
    with pytest.raises(Refused, match=r"nightly\.command, nightly\.logs, nightly\.proposer"):
        demand_trust(found, load(base.root))
    trust.record(found, Repo(base.root))
    demand_trust(found, load(base.root))
    write(base, "khms.toml", PROGRAM.replace("somewhere", "elsewhere"))
    with pytest.raises(Refused, match="changed"):
        demand_trust(found, load(base.root))
    demand_trust(base, load(base.root))
