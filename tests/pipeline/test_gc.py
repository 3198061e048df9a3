"""`khms gc`: what goes, what never goes, and that a unit goes only when all of it is remembered elsewhere."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config, load
from khms.errors import Refused
from khms.model.ulid import new_ulid
from khms.pipeline import nightly as pipeline
from khms.pipeline.approve import approve
from khms.pipeline.gc import Swept, collect
from khms.pipeline.ruling import Wish
from khms.pipeline.withhold import withhold
from khms.store import files, lock
from khms.store.layout import Base
from khms.store.repo import Repo

Make = Callable[..., Path]
Git = Callable[..., str]
UNIT = "2026-03-05-nightly"


def gc(base: Base, settings: dict[str, Any] | None = None, **how: Any) -> Swept:
    return collect(base, Repo(base.root), Config([("test", settings or {})]), **how)


def names(swept: Swept) -> list[str]:
    return [one.name for one in swept.gone]


def aged(path: Path, days: float = 100, text: str = "x" * 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    return path


def everything(base: Base) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(base.root.rglob("*")) if path.is_file()}


def let_in(base: Base, unit: str, *labels: str) -> None:
    wish = Wish(labels=labels, unjudged=True, accepted=frozenset({"specifics"}))
    approve(base, Repo(base.root), load(base.root), unit, wish, lambda base, cards: {})


def test_a_tidy_base_has_nothing_to_remove(base: Base, git: Git) -> None:
    found = pipeline.nightly(base, Repo(base.root), Config([]))
    head = git(base, "rev-parse", "HEAD")
    assert gc(base, {"gc.unit_days": 0}, units=True).gone == ()  # C1 is pending
    assert git(base, "rev-parse", "HEAD") == head and (base.inbox / found.unit).is_dir()


def test_this_machines_leftovers_go_and_what_is_in_use_stays(base: Base) -> None:
    done = subprocess.Popen(["true"])
    done.wait()
    gone = [
        aged(base.local / f"{files.TEMPORARY}{done.pid}-x", 0),
        aged(base.root / f"memory/{files.TEMPORARY}{done.pid}-know/a.md", 0).parent,
        aged(base.log / "inject.jsonl.1"),
        aged(base.state / "sessions/old.json"),
        aged(base.state / "review/gone-unit/C1=0123.json"),
    ]
    os.utime(gone[-1].parent, (0, 0))
    kept = [
        aged(base.local / f"{files.TEMPORARY}{os.getpid()}-x", 0),
        aged(base.log / "inject.jsonl"),
        aged(base.log / "inject.jsonl.2", 1),
        aged(base.state / "sessions/new.json", 1),
        aged(base.state / "cards.json"),
        aged(base.carry / new_ulid() / "run.json"),  # a killed run: nightly goes on with it
    ]
    before = everything(base)
    assert {*names(gc(base, dry=True))} == {
        base.relative(p if p.parent.name != "gone-unit" else p.parent) for p in gone
    }
    assert everything(base) == before
    swept = gc(base)
    assert swept.freed == 50 and not any(path.exists() for path in gone) and all(path.exists() for path in kept)
    assert gc(base).gone == ()


def test_carry_of_a_published_run_goes_unless_a_run_is_at_work(base: Base) -> None:
    found = pipeline.nightly(base, Repo(base.root), Config([]))
    aged(base.carry / found.run / "run.json")
    with lock.hold(base.locks / "nightly.lock", "nightly"):
        assert gc(base).gone == ()
    assert names(gc(base)) == [f".khms/carry/{found.run}"]


def test_older_indexes_go(base: Base) -> None:
    from khms.index import manifest, sync

    sync.refresh(base)
    known = manifest.load(base.index)
    assert known
    aged(base.index / "lexical-99/x", 0)
    assert names(gc(base)) == [".khms/index/lexical-99"]
    assert (base.index / known.generation).is_dir()


def test_merged_branches_of_units_go(base: Base, git: Git, write: Make, commit: Git) -> None:
    for name, squashed in (("one", False), ("two", True), ("open", False)):
        git(base, "checkout", "-q", "-b", f"khms/inbox/{name}")
        write(base, f"memory/inbox/{name}/C1.md", "x\n")
        write(base, f"memory/receipts/{new_ulid()}.jsonl", "\n")
        commit(base, name)
        git(base, "checkout", "-q", "main")
        if name != "open":
            git(base, "merge", "-q", *(["--squash"] if squashed else ["--no-ff"]), f"khms/inbox/{name}")
            commit(base, "merged")
    git(base, "branch", "topic")
    git(base, "worktree", "add", "-q", str(base.root.parent / "tree"), "khms/inbox/one")
    assert names(gc(base)) == ["khms/inbox/two"]
    git(base, "worktree", "remove", "--force", str(base.root.parent / "tree"))
    assert names(gc(base)) == ["khms/inbox/one"]
    assert git(base, "branch", "--format=%(refname:short)").split() == ["khms/inbox/open", "main", "topic"]


@pytest.fixture
def unit(base: Base, add_candidate: Make, commit: Git) -> Base:
    for label in ("C1", "C2", "C3"):
        add_candidate(base, label, mark=f"M-0000000000{label.lower()}", body=f"FIX: the ground, says {label} alone\n")
    commit(base)
    return base


def kept(swept: Swept) -> str:
    return dict(swept.kept)[UNIT]


def test_a_finished_unit_goes_when_it_is_asked_for_and_old(unit: Base, git: Git) -> None:
    let_in(unit, UNIT, "C1", "C2")
    withhold(unit, Repo(unit.root), Config([]), UNIT, ["C3"], "rejected", "no")
    assert names(gc(unit, {"gc.unit_days": 0})) == []
    assert "0 days old, 90 are asked for" in kept(gc(unit, units=True))
    before = git(unit, "rev-parse", "HEAD")
    swept = gc(unit, {"gc.unit_days": 0}, units=True)
    assert names(swept) == [f"memory/inbox/{UNIT}"] and swept.freed > 0
    assert git(unit, "rev-parse", "HEAD~1") == before and git(unit, "status", "--porcelain") == ""
    assert not (unit.inbox / UNIT).exists()
    assert git(unit, "show", f"HEAD~1:memory/inbox/{UNIT}/C1.md").startswith("---")
    assert sorted(p.name for p in unit.know.iterdir()) == ["K-00001.md", "K-00002.md"]
    assert len(list(unit.receipts.glob("*.jsonl"))) == 2 and len(list(unit.approvals.glob("*.json"))) == 1


def test_a_refusal_is_remembered_after_its_unit_went(unit: Base, write: Make, commit: Git) -> None:
    withhold(unit, Repo(unit.root), Config([]), UNIT, [], "rejected", "no")
    gc(unit, {"gc.unit_days": 0}, units=True)
    write(unit, "journal/2026-03-04.md", "MARK[solved] the ground, says C2 alone\n")
    assert pipeline.nightly(unit, Repo(unit.root), Config([])).candidates["dropped"] == 1


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("deferred", "0 days old, 365"),
        ("by hand", "nobody recorded why C3"),
        ("uncommitted", "not committed"),
        ("old receipt", "files alone"),
        ("source", "a card names it"),
        ("branch", "a branch for it"),
        ("broken", "cannot be read"),
    ],
)
def test_what_is_not_finished_stays_with_the_reason(
    unit: Base, git: Git, commit: Git, write: Make, add_card: Make, state: str, why: str
) -> None:
    let_in(unit, UNIT, "C1", "C2")
    folder = unit.inbox / UNIT
    if state == "by hand":
        (folder / "dropped").mkdir()
        (folder / "C3.md").rename(folder / "dropped/C3.md")
        commit(unit)
    else:
        withhold(
            unit, Repo(unit.root), Config([]), UNIT, ["C3"], "deferred" if state == "deferred" else "rejected", "no"
        )
    if state == "uncommitted":
        write(unit, f"memory/inbox/{UNIT}/C1.md", (folder / "C1.md").read_text(encoding="utf-8") + "more\n")
    if state == "old receipt":
        for path in unit.receipts.glob("*.jsonl"):
            rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
            path.write_text("".join(json.dumps(row | {"claim": ""}) + "\n" for row in rows), encoding="utf-8")
        commit(unit)
    if state == "source":
        add_card(unit, "K-00009", source=f"memory/inbox/{UNIT}/C1.md line 3")
        commit(unit)
    if state == "branch":
        git(unit, "update-ref", f"refs/remotes/origin/khms/inbox/{UNIT}", "HEAD")
    if state == "broken":
        write(unit, f"memory/inbox/{UNIT}/C9.md", "---\na: b: c\n---\n")
        commit(unit)
    swept = gc(unit, {"gc.unit_days": 0}, units=True)
    assert why in kept(swept) and swept.commit is None and folder.is_dir()
    assert kept(gc(unit, {"gc.unit_days": 0}, units=True, dry=True)) == kept(swept)


def test_units_go_on_the_receiving_branch_and_in_calm(unit: Base, git: Git) -> None:
    withhold(unit, Repo(unit.root), Config([]), UNIT, [], "rejected", "no")
    settings = {"gc.unit_days": 0, "git.branch": "main"}
    (unit.root / ".git/MERGE_HEAD").write_text("0" * 40, encoding="utf-8")
    with pytest.raises(Refused, match="a merge"):
        gc(unit, settings, units=True)
    (unit.root / ".git/MERGE_HEAD").unlink()
    git(unit, "checkout", "-q", "-b", "topic")
    with pytest.raises(Refused, match="belong on main"):
        gc(unit, settings, units=True)
    assert gc(unit, settings, units=True, here=True).commit


def test_the_command(unit: Base, run_khms: Callable[..., Any]) -> None:
    withhold(unit, Repo(unit.root), Config([]), UNIT, [], "rejected", "no")
    assert "nothing to remove" in run_khms("gc").stdout
    (unit.root / "khms.toml").write_text("[gc]\nunit_days = 0\n", encoding="utf-8")
    dry = json.loads(run_khms("gc", "--units", "--dry-run", "--json").stdout)
    assert dry["dry_run"] and [one["name"] for one in dry["removed"]] == [f"memory/inbox/{UNIT}"]
    assert (unit.inbox / UNIT).is_dir()
    done = run_khms("gc", "--units")
    assert done.returncode == 0 and f"memory/inbox/{UNIT}: a finished unit" in done.stdout and "freed" in done.stdout


def test_a_branch_that_was_refused_is_not_called_merged(base: Base, git: Git, add_candidate: Make, commit: Git) -> None:
    for name, verdict in (("2026-03-06-nightly", "rejected"), ("2026-03-07-nightly", "")):
        git(base, "checkout", "-q", "-b", f"khms/inbox/{name}")
        add_candidate(base, "C1", unit=name)
        commit(base, name)
        git(base, "checkout", "-q", "main")
        if verdict:
            withhold(base, Repo(base.root), Config([]), name, (), verdict, "no")
        else:
            git(base, "merge", "-q", "--squash", f"khms/inbox/{name}")
            commit(base, "squashed")
    for dry in (True, False):
        assert [(one.what, one.name) for one in gc(base, dry=dry).gone] == [
            ("a branch that was decided unmerged", "khms/inbox/2026-03-06-nightly"),
            ("a merged branch", "khms/inbox/2026-03-07-nightly"),
        ]
