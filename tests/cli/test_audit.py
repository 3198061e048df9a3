"""`khms audit` and `khms signers` as commands: what they print, and how they end."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
UNIT = "2026-03-05-nightly"


@pytest.fixture
def kb(base: Base, put_candidate: Any, commit: Any, run_khms: Run) -> Base:
    """A base with one approved card."""
    put_candidate(base)
    commit(base)
    done = run_khms("approve", UNIT, "C1")
    assert done.returncode == 0, done.stderr
    return base


def test_clean_and_which_guarantee_holds(kb: Base, run_khms: Run) -> None:
    done = run_khms("audit")
    assert done.returncode == 0, done.stderr
    assert "1 card, 1 record, 0 signed: all came in through the review" in done.stdout
    assert "the procedure was followed, not who followed it" in done.stdout
    value = json.loads(run_khms("audit", "--json").stdout)
    assert value == {
        "schema": "khms.audit/1", "cards": 1, "records": 1, "signed": 0, "guarantee": "procedure",
        "uncommitted": [], "findings": [],
    }  # fmt: skip


def test_a_finding_is_told_with_its_way_out(
    kb: Base, run_khms: Run, add_card: Callable[..., Path], commit: Any
) -> None:
    add_card(kb, "K-00009")
    done = run_khms("audit")
    assert done.returncode == 1
    assert "memory/know/K-00009.md" in done.stdout and "KA001" in done.stdout and "not committed yet" in done.stdout
    assert "khms approve UNIT C1" in done.stdout and "1 file as the work tree has it" in done.stdout
    commit(kb)
    done = run_khms("audit", "--range", "HEAD~1..HEAD", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert done.returncode == 1 and finding["code"] == "KA001" and finding["id"] == "K-00009"
    for span in ("HEAD~1..", "HEAD~1...HEAD"):
        assert run_khms("audit", "--range", span).returncode == 1
    assert run_khms("audit", "--range", "HEAD~2..HEAD~1").returncode == 0


def test_wrong_calls(kb: Base, run_khms: Run) -> None:
    assert run_khms("audit", "--range", "HEAD").returncode == 2
    assert run_khms("audit", "--staged", "--adopt").returncode == 2
    done = run_khms("audit", "--range", "nothing..HEAD")
    assert done.returncode == 3 and "there is no commit 'nothing'" in done.stderr


def _hook(kb: Base) -> None:
    """Has git audit what is staged before each commit."""
    hook = kb.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    program = Path(sys.executable).parent / "khms"
    hook.write_text(f"#!/bin/sh\nexec {program} audit --staged\n", encoding="utf-8")
    hook.chmod(0o755)


def test_staged_in_a_commit_of_one_file(kb: Base, run_khms: Run, add_card: Any, git: Any, write: Any) -> None:
    """A pre-commit hook sees the staging area that `git commit FILE` makes for itself."""
    _hook(kb)
    add_card(kb, "K-00009")
    write(kb, "journal/2026-03-05.md", "# 2026-03-05\n")
    git(kb, "add", "--all")
    git(kb, "commit", "--quiet", "-m", "the journal alone", "journal/2026-03-05.md")
    done = subprocess.run(["git", "commit", "-m", "all"], cwd=kb.root, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "KA001" in done.stdout + done.stderr


def test_an_approval_passes_its_own_pre_commit_hook(kb: Base, run_khms: Run, put_candidate: Any, commit: Any) -> None:
    put_candidate(kb, "C2")
    commit(kb)
    _hook(kb)
    done = run_khms("approve", UNIT, "C2")
    assert done.returncode == 0, done.stderr


def test_annotations(kb: Base, run_khms: Run, add_card: Callable[..., Path]) -> None:
    add_card(kb, "K-00009")
    done = run_khms("audit", "--annotate", "github")
    assert done.returncode == 1 and done.stdout.startswith("::error file=memory/know/K-00009.md,")


def test_adoption(base: Base, run_khms: Run, add_card: Callable[..., Path], commit: Any) -> None:
    for number in (1, 2):
        add_card(base, f"K-0000{number}")
    commit(base)
    assert run_khms("audit").returncode == 1
    assert run_khms("audit", "--adopt", env={"CLAUDECODE": "1"}).returncode == 3
    done = run_khms("audit", "--adopt")
    assert done.returncode == 0 and "2 cards older than khms admitted, K-00001 to K-00002" in done.stdout
    assert run_khms("audit").returncode == 0
    assert "nothing to admit" in run_khms("audit", "--adopt").stdout


def test_outside_of_git(tmp_path: Path, run_khms: Run) -> None:
    (tmp_path / "base" / "memory" / "know").mkdir(parents=True)
    assert run_khms("audit", cwd=tmp_path / "base").returncode == 4


def test_the_whole_way_of_signatures(
    kb: Base, run_khms: Run, put_candidate: Any, commit: Any, git: Any, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    done = run_khms("signers", "require", "on")
    assert done.returncode == 3 and "khms signers add" in done.stderr
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    assert run_khms("signers", "add", "ada@example.org", key).returncode == 2, "a private key"
    done = run_khms("signers", "add", "ada@example.org", f"{key}.pub", env={"CLAUDECODE": "1"})
    assert done.returncode == 3 and "a person says" in done.stderr
    done = run_khms("signers", "add", "ada@example.org", f"{key}.pub")
    assert done.returncode == 0 and "not signed: there was no signer before" in done.stdout
    assert "already" in run_khms("signers", "add", "ada@example.org", f"{key}.pub").stdout
    done = run_khms("signers", "require", "on")
    assert done.returncode == 4 and "git config --global user.signingkey" in done.stderr
    git(kb, "config", "user.signingkey", str(key))
    done = run_khms("signers", "require", "on")
    assert done.returncode == 0 and "(signed)" in done.stdout
    shown = run_khms("signers", "list").stdout
    assert "ada@example.org" in shown and "SHA256:" in shown and "a signature is required" in shown
    put_candidate(kb, "C2")
    commit(kb)
    assert run_khms("approve", UNIT, "C2").returncode == 0
    value = json.loads(run_khms("audit", "--json").stdout)
    assert (value["guarantee"], value["signed"], value["findings"]) == ("boundary", 2, [])
    assert run_khms("config", "set", "review.allow_agents", "true").returncode == 0
    assert git(kb, "status", "--porcelain") == "" and run_khms("audit").returncode == 0
    assert run_khms("signers", "remove", "ada@example.org").returncode == 3
    assert run_khms("signers", "require", "off").returncode == 0
    assert run_khms("signers", "remove", "ada@example.org").returncode == 0
    done = run_khms("audit")
    assert done.returncode == 0, done.stdout
    assert json.loads(run_khms("signers", "list", "--json").stdout)["signers"] == []


def test_a_shallow_clone_ends_with_four(kb: Base, run_khms: Run, git: Any, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{kb.root}", "shallow")
    done = run_khms("audit", cwd=tmp_path / "shallow")
    assert done.returncode == 4 and "git fetch --unshallow" in done.stderr
