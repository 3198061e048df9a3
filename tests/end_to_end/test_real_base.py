"""A base that older tools made opens and works as it is: lint, index, its golden set, its single-file inbox."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "object"]


@pytest.fixture
def older(shared: Callable[[str], Path], tmp_path: Path, git: Callable[..., str]) -> Path:
    folder = Path(shutil.copytree(shared("real/khms-base"), tmp_path / "older"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "as it was")
    return folder


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and not {".git", ".khms"} & set(path.parts))
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_lint_has_warnings_only(older: Path, run_khms: Callable[..., object], git: Callable[..., str]) -> None:
    done = run_khms("lint", "--json", cwd=older)
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    report = json.loads(done.stdout)  # type: ignore[attr-defined]
    assert report["checked"] >= 10
    assert {finding["severity"] for finding in report["findings"]} == {"warning"}
    assert {finding["code"] for finding in report["findings"]} >= {"KH003", "KH010"}
    assert git(older, "status", "--porcelain") == ""


def test_its_golden_set_is_answered(older: Path, run_khms: Callable[..., object], git: Callable[..., str]) -> None:
    run_khms("index", cwd=older)
    for line in (older / "golden.jsonl").read_text(encoding="utf-8").splitlines():
        want = json.loads(line)
        done = run_khms("recall", want["query"], "--limit", want["k"], "--json", cwd=older)
        hits = json.loads(done.stdout)["hits"]  # type: ignore[attr-defined]
        assert set(want["gold"]) <= {hit["id"] for hit in hits}, want
    assert git(older, "status", "--porcelain") == ""


def test_its_inbox_is_approved_as_it_is(older: Path, run_khms: Callable[..., object], git: Callable[..., str]) -> None:
    before = hashes(older)
    done = run_khms("approve", "2026-03-05", "--all", "--json", cwd=older)
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    answer = json.loads(done.stdout)  # type: ignore[attr-defined]
    assert [(card["label"], card["id"]) for card in answer["cards"]] == [("C1", "K-00010"), ("C2", "K-00011")]
    after = hashes(older)
    changed = {path for path in before if before[path] != after.get(path)}
    assert changed == {"tools/.next_id"}
    assert (older / "tools/.next_id").read_text(encoding="utf-8").strip() == "12"
    made = set(after) - set(before)
    assert all(path.startswith(("memory/", "MEMORY.md")) for path in made)
    assert {path for path in made if "/know/" in path} == {"memory/know/K-00010.md", "memory/know/K-00011.md"}
    text = (older / "memory/know/K-00011.md").read_text(encoding="utf-8")
    assert "derived_from: [K-00010]" in text
    assert "title: count what was produced against what was stored, at each hop" in text
    assert git(older, "status", "--porcelain") == ""
    assert "Khms-Approved: K-00011" in git(older, "log", "-1", "--format=%B")
    again = run_khms("approve", "2026-03-05", "--all", cwd=older)
    assert again.returncode == 0 and "nothing is pending" in again.stdout  # type: ignore[attr-defined]
    assert run_khms("lint", cwd=older).returncode == 0  # type: ignore[attr-defined]


def test_it_works_before_anything_was_committed(
    older: Path, run_khms: Callable[..., object], git: Callable[..., str]
) -> None:
    shutil.rmtree(older / ".git")
    git(older, "init", "--quiet")
    done = run_khms("approve", "2026-03-05", "C1", "C2", cwd=older)
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    assert "K-00010" in git(older, "ls-files") and "K-00009" not in git(older, "ls-files")
    assert ".khms" not in git(older, "status", "--porcelain")
