"""`khms sync` and what the review commands do in a base with a remote, as a person calls them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.store.layout import Base

Run = Callable[..., Any]
Git = Callable[..., str]
UNIT = "2026-03-05-nightly"
JOURNAL = "# 2026-03-04\n\nMARK[solved] frames failed because a ground was loose\n"


@pytest.fixture
def pair(
    base: Base, tmp_path: Path, add_card: Callable[..., Path], commit: Git, cloned: Callable[..., list[Base]]
) -> tuple[Base, Base, Path]:
    add_card(base, "K-00001")
    commit(base)
    ada, bob = cloned(base, "ada", "bob")
    return ada, bob, tmp_path / "remote.git"


@pytest.fixture
def offer(put_candidate: Callable[..., Path], commit: Git) -> Callable[[Base, str], str]:
    def make(base: Base, words: str, label: str = "C1") -> str:
        unit = f"{UNIT}.{base.root.name}"
        put_candidate(base, label, unit=unit, body=f"FIX: the ground, says {words}\n")
        commit(base, "a unit")
        return unit

    return make


def test_approve_publishes_and_tells_the_published_ids(
    pair: tuple[Base, Base, Path], offer: Callable[..., str], run_khms: Run, git: Git
) -> None:
    ada, bob, remote = pair
    for base, words in ((ada, "someone"), (bob, "another")):
        unit = offer(base, words)
        done = run_khms("approve", unit, "C1", cwd=base.root)
        assert done.returncode == 0, done.stderr
    assert "C1 -> K-00003  memory/know/K-00003.md" in done.stdout and "not published" not in done.stderr
    assert git(remote, "rev-parse", "main") == git(bob, "rev-parse", "HEAD")
    assert (bob.know / "K-00002.md").exists()
    value = json.loads(run_khms("sync", "--json", cwd=ada.root).stdout)
    assert value["schema"] == "khms.sync/1" and value["pulled"] == 2 and value["pushed"] == 0
    again = run_khms("sync", cwd=ada.root)
    assert again.returncode == 0 and "nothing to do" in again.stdout


def test_offline_the_approval_stands_here_and_says_so(
    pair: tuple[Base, Base, Path], offer: Callable[..., str], run_khms: Run, git: Git
) -> None:
    ada, bob, remote = pair
    away = remote.with_name("away.git")
    shutil.move(remote, away)
    done = run_khms("approve", offer(bob, "bob"), "C1", cwd=bob.root)
    assert done.returncode == 0 and "C1 -> K-00002" in done.stdout
    assert "not published" in done.stderr and "khms sync" in done.stderr
    shown = run_khms("status", cwd=bob.root).stdout
    assert "2 commits not published, 1 of them approvals or transitions" in shown
    status = json.loads(run_khms("status", "--json", cwd=bob.root).stdout)["shared"]
    assert status == {"remote": "origin", "branch": "main", "approvals": 1, "ahead": 2, "behind": 0}
    assert run_khms("sync", cwd=bob.root).returncode == 4
    shutil.move(away, remote)
    assert run_khms("approve", offer(ada, "ada"), "C1", cwd=ada.root).returncode == 0
    done = run_khms("sync", cwd=bob.root)
    assert done.returncode == 0 and "K-00002 -> K-00003" in done.stdout
    for card_id, words, note in (
        ("K-00002", "says ada", "in another clone, unpublished, K-00002 meant what is now K-00003"),
        ("K-00003", "says bob", ""),
    ):
        shown = run_khms("show", card_id, cwd=bob.root).stdout
        assert words in shown and note in shown
    assert "says bob" in run_khms("recall", "ground says bob", cwd=bob.root).stdout


def test_rejections_and_transitions_go_out_at_once(
    pair: tuple[Base, Base, Path], offer: Callable[..., str], run_khms: Run, git: Git
) -> None:
    ada, _bob, remote = pair
    unit = offer(ada, "ada")
    done = run_khms("reject", unit, "C1", "--why", "not measured", cwd=ada.root)
    assert done.returncode == 0, done.stderr
    assert git(remote, "rev-parse", "main") == git(ada, "rev-parse", "HEAD")
    offer(ada, "more", "C2")
    assert run_khms("approve", unit, "C2", cwd=ada.root).returncode == 0
    done = run_khms("card", "status", "K-00001", "refuted", "--by", "K-00002", "--why", "measured", cwd=ada.root)
    assert done.returncode == 0, done.stderr
    assert git(remote, "rev-parse", "main") == git(ada, "rev-parse", "HEAD")


def test_an_id_that_became_another_on_the_way_is_asked_for_again(
    pair: tuple[Base, Base, Path], offer: Callable[..., str], run_khms: Run, git: Git, tmp_path: Path
) -> None:
    ada, bob, _remote = pair
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    (quiet / "config.toml").write_text('[git]\nsync = "off"\n', encoding="utf-8")
    env = {"KHMS_CONFIG_HOME": str(quiet)}
    assert run_khms("approve", offer(bob, "bob"), "C1", cwd=bob.root, env=env).returncode == 0
    assert run_khms("approve", offer(ada, "ada"), "C1", cwd=ada.root).returncode == 0
    status = ("card", "status", "K-00002", "refuted", "--by", "K-00001", "--why", "measured")
    done = run_khms(*status, cwd=bob.root)
    assert done.returncode == 3 and "K-00002 became K-00003" in done.stderr
    assert "refuted" not in (bob.know / "K-00002.md").read_text(encoding="utf-8")


def test_a_server_that_refuses_leaves_the_approval_here_and_says_so(
    pair: tuple[Base, Base, Path], offer: Callable[..., str], run_khms: Run, git: Git
) -> None:
    ada, _bob, remote = pair
    hook = remote / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho 'KA006: not signed' >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    (remote / "hooks/pre-receive").chmod(0o755)
    unit = offer(ada, "ada")
    hook.rename(remote / "hooks/off")
    assert run_khms("sync", cwd=ada.root).returncode == 0
    (remote / "hooks/off").rename(hook)
    done = run_khms("approve", unit, "C1", cwd=ada.root)
    assert done.returncode == 0 and "K-0000" in done.stdout
    assert "not published: origin refuses it" in done.stderr and "KA006" in done.stderr


def test_a_base_inside_a_project_shares_only_when_told(
    tmp_path: Path, git: Git, commit: Git, run_khms: Run, write: Callable[..., Path], put_candidate: Callable[..., Path]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "--quiet")
    write(project, "code.py", "x = 1\n")
    for name, text in (("khms.toml", ""), (".gitignore", ".khms/\n"), ("journal/2026-03-04.md", JOURNAL)):
        write(project, f".memory/{name}", text)
    commit(project)
    git(tmp_path, "clone", "--quiet", "--bare", str(project), "remote.git")
    git(tmp_path, "clone", "--quiet", "remote.git", "mine")
    git(tmp_path, "clone", "--quiet", "remote.git", "theirs")
    mine, theirs = Base(tmp_path / "mine/.memory"), Base(tmp_path / "theirs/.memory")
    before = git(tmp_path / "remote.git", "rev-parse", "main")
    for base, words in ((mine, "mine"), (theirs, "theirs")):
        put_candidate(base, "C1", unit=f"u.{words}", body=f"FIX: the ground, says {words}\n")
        git(base.root, "add", "--all")
        git(base.root, "commit", "--quiet", "-m", "a unit")
        done = run_khms("approve", f"u.{words}", "C1", cwd=base.root)
        assert done.returncode == 0, done.stderr
    assert git(tmp_path / "remote.git", "rev-parse", "main") == before
    write(tmp_path / "mine", "code.py", "x = 2\n")
    git(tmp_path / "mine", "commit", "--quiet", "-am", "code")
    write(tmp_path / "theirs", "more.py", "y = 1\n")
    commit(tmp_path / "theirs", "more code")
    assert run_khms("sync", cwd=mine.root).returncode == 0
    done = run_khms("sync", cwd=theirs.root)
    assert done.returncode == 0 and "K-00001 -> K-00002" in done.stdout, done.stderr
    assert (tmp_path / "theirs/code.py").read_text() == "x = 2\n" and (tmp_path / "theirs/more.py").exists()
    assert git(tmp_path / "theirs", "status", "--porcelain") == ""
