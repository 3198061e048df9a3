"""Every command that writes a record shares it at once in a base with a remote: the words, the signers, an adoption."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.store.layout import Base

Run = Callable[..., Any]
Git = Callable[..., str]
WORDS = "Mill Lane 7"


@pytest.fixture
def pair(
    base: Base, tmp_path: Path, add_card: Callable[..., Path], commit: Git, cloned: Callable[..., list[Base]]
) -> tuple[Base, Base, Path]:
    """Two clones of a bare remote whose base holds one card with words to be taken out."""
    add_card(base, "K-00001", body=f"It stood at {WORDS}.\n")
    commit(base)
    ada, bob = cloned(base, "ada", "bob")
    return ada, bob, tmp_path / "remote.git"


def test_a_redaction_takes_in_what_others_published_and_goes_out(
    pair: tuple[Base, Base, Path], add_card: Callable[..., Path], commit: Git, git: Git, run_khms: Run
) -> None:
    ada, bob, remote = pair
    add_card(ada, "K-00002", body=f"{WORDS} again.\n")
    commit(ada, "another card")
    git(ada, "push", "--quiet")
    done = run_khms("redact", "K-00001", "--match", WORDS, "--why", "an address", "--everywhere", cwd=bob.root)
    assert done.returncode == 0, done.stderr
    assert git(remote, "rev-parse", "main") == git(bob, "rev-parse", "HEAD")
    for card in ("K-00001", "K-00002"):
        text = git(remote, "show", f"main:memory/know/{card}.md")
        assert "[redacted]" in text and WORDS not in text
    assert git(remote, "log", "-1", "--format=%s", "main").startswith("Redact K-00001, K-00002")


def test_offline_a_redaction_stands_here_and_says_so(
    pair: tuple[Base, Base, Path], run_khms: Run, git: Git, tmp_path: Path
) -> None:
    _, bob, remote = pair
    before = git(remote, "rev-parse", "main")
    remote.rename(tmp_path / "away.git")
    done = run_khms("redact", "K-00001", "--match", WORDS, "--why", "an address", cwd=bob.root)
    assert done.returncode == 0 and "not published" in done.stderr
    assert WORDS not in (bob.know / "K-00001.md").read_text(encoding="utf-8")
    (tmp_path / "away.git").rename(remote)
    assert git(remote, "rev-parse", "main") == before
    assert run_khms("sync", cwd=bob.root).returncode == 0
    assert git(remote, "rev-parse", "main") == git(bob, "rev-parse", "HEAD") != before


def test_a_redaction_that_is_refused_publishes_nothing(pair: tuple[Base, Base, Path], run_khms: Run, git: Git) -> None:
    _, bob, remote = pair
    before = git(remote, "rev-parse", "main")
    done = run_khms("redact", "K-00001", "--match", "never said", "--why", "x", cwd=bob.root)
    assert done.returncode == 3 and git(remote, "rev-parse", "main") == before


def test_signers_and_an_adoption_go_out_too(
    pair: tuple[Base, Base, Path], run_khms: Run, git: Git, tmp_path: Path
) -> None:
    ada, bob, remote = pair
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    for base in pair[:2]:
        git(base, "config", "user.signingkey", str(key))
    for base, command in (
        (ada, ["audit", "--adopt"]),
        (bob, ["signers", "add", "bob@example.org", f"{key}.pub"]),
        (bob, ["signers", "require", "on"]),
        (bob, ["signers", "require", "off"]),
        (bob, ["signers", "remove", "bob@example.org"]),
    ):
        before = git(remote, "rev-parse", "main")
        done = run_khms(*command, cwd=base.root)
        assert done.returncode == 0, done.stderr
        assert git(remote, "rev-parse", "main") == git(base, "rev-parse", "HEAD") != before, command
    assert git(ada, "merge-base", "--is-ancestor", "HEAD", "origin/main") == ""
    audit = run_khms("audit", "--json", cwd=bob.root)
    assert json.loads(audit.stdout)["findings"] == [], audit.stdout
