"""Delivery under SIGKILL at every writing primitive: one branch, one push, one request, each MARK decided once."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from khms.store import branches, journal
from khms.store.layout import Base
from khms.store.receipts import ledger

Git = Callable[..., str]
COMMAND = ["--root", ".", "nightly"]
JOURNAL = """# 2026-03-04

MARK[decision] cache the price list for one hour, because the vendor throttles
MARK[note] it is so
MARK[decision] cache the price list for one hour, because the vendor throttles
"""
# Keeps what it was asked in the base's git folder, which every round starts with anew.
GH = """#!{python}
import json, os, sys
place = ".git/gh.json"
requests = json.load(open(place)) if os.path.exists(place) else []
args = sys.argv[1:]
sys.stdin.read()
head = args[args.index("--head") + 1]
if args[1] == "list":
    print(json.dumps([one for one in requests if one["head"] == head]))
else:
    tip = os.popen("git --git-dir=.git/hub.git rev-parse refs/heads/" + head).read().strip()
    url = "https://github.com/ada/garden/pull/%d" % (len(requests) + 1)
    requests.append({{"head": head, "url": url, "state": "OPEN", "headRefOid": tip}})
    json.dump(requests, open(place, "w"))
    print(url)
"""


@pytest.fixture
def prepare(
    git: Git, write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], None]:
    program = write(tmp_path, "bin/gh", GH.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")

    def fill(folder: Path) -> None:
        write(folder, "khms.toml", '[nightly]\ndeliver = "pr"\n')
        write(folder, ".gitignore", ".khms/\n")
        write(folder, "journal/2026-03-03.md", "# 2026-03-03\n\nprose only\n")
        git(folder, "init", "--quiet")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", "start")
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", ".git/hub.git")
        git(folder, "config", f"url.{folder}/.git/hub.git.insteadOf", "https://github.com/ada/garden.git")
        git(folder, "remote", "add", "origin", "https://github.com/ada/garden.git")
        git(folder, "push", "--quiet", "-u", "origin", "main")
        write(folder, "journal/2026-03-04.md", JOURNAL)

    return fill


def judge(folder: Path, git: Git) -> None:
    base = Base(folder)
    receipts = [receipt for receipt in ledger(base).receipts if receipt.stage == "propose"]
    expected = {mark.id for day in journal.days(base) for mark in day.marks}
    assert len(expected) == 3
    assert Counter(receipt.mark for receipt in receipts) == Counter(expected)
    assert len({receipt.run for receipt in receipts}) == 1
    local = [branch for branch in branches.branches(base) if branch.local]
    (branch,) = local
    hub = folder / ".git" / "hub.git"
    assert git(hub, "for-each-ref", "--format=%(refname)", "refs/heads/khms").split() == [branch.ref]
    assert git(hub, "rev-parse", branch.ref) == branch.commit
    (request,) = json.loads((folder / ".git" / "gh.json").read_text(encoding="utf-8"))
    assert (request["head"], request["headRefOid"]) == (branch.name, branch.commit)
    assert not list(base.inbox.glob("*"))
    history = base.path("memory/history").glob("*.md")
    assert sum(path.read_text(encoding="utf-8").count("nightly decided 3 MARKs") for path in history) == 1
    assert git(folder, "status", "--porcelain", "--", "memory", "journal") == ""
    assert git(folder, "show", "HEAD:journal/2026-03-04.md") == JOURNAL.strip()
    assert "missing" not in git(folder, "fsck", "--no-dangling")
    assert not (folder / ".git" / "index.lock").exists()
    assert not list((folder / ".khms" / "carry").iterdir())


def test_killed_at_every_third_point_and_run_again(
    kill: ModuleType, prepare: Callable[[Path], None], git: Git, told: Callable[[str], None]
) -> None:
    points = kill.kill_points(prepare, COMMAND, lambda folder: judge(folder, git), kill.foreign_commit, step=3)
    told(f"nightly with a pull request: {points} kill points")
    assert points > 25


def test_killed_twice_at_the_same_point(kill: ModuleType, prepare: Callable[[Path], None], git: Git) -> None:
    kill.kill_points(prepare, COMMAND, lambda folder: judge(folder, git), step=11, first=2, twice=True)
