"""When nightly is stopped, killed, rehearsed, or meets others at work."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.errors import Busy, KhmsError, Refused, Unavailable
from khms.pipeline import nightly as pipeline
from khms.pipeline import publish
from khms.pipeline.night import Result
from khms.store import inbox
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.lock import hold
from khms.store.receipts import ledger
from khms.store.repo import Repo

Write = Callable[..., Path]
Git = Callable[..., str]


def run(base: Base, settings: Mapping[str, Any] | None = None, **options: Any) -> Result:
    return pipeline.nightly(base, Repo(base.root), Config([("test", settings or {})]), **options)


def unit(base: Base, found: Result) -> Unit:
    return inbox.find(base, found.unit)


def report(base: Base, found: Result) -> str:
    return base.path(f"memory/inbox/{found.unit}/REPORT.md").read_text(encoding="utf-8")


def journal(base: Base, write: Write, *lines: str) -> None:
    write(base, "journal/2026-03-04.md", "# 2026-03-04\n\n" + "".join(f"{line}\n\n" for line in lines))


# What stops a run


def test_a_background_run_and_a_run_at_the_same_time_are_refused(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold(base.locks / "nightly.lock", "nightly"), pytest.raises(Busy):
        run(base)
    monkeypatch.setenv("KHMS_BACKGROUND", "1")
    with pytest.raises(Refused):
        run(base)
    assert not (base.state / "nightly.json").exists()


def test_git_in_the_middle_of_something_and_git_without_a_name(base: Base, git: Git, own_environment: Path) -> None:
    (base.root / ".git" / "MERGE_HEAD").write_text("0" * 40, encoding="utf-8")
    with pytest.raises(Refused, match="a merge"):
        run(base)
    (base.root / ".git" / "MERGE_HEAD").unlink()
    (own_environment / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n", encoding="utf-8")
    with pytest.raises(Unavailable):
        run(base)
    assert list(base.inbox.iterdir()) == []


# A run that was killed


def killed(base: Base, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that ended before its commit; returns the folder of what it carries."""

    def gone(*args: Any) -> str:
        raise Unavailable("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(publish, "commit", gone)
        with pytest.raises(Unavailable):
            run(base)
    (folder,) = base.carry.iterdir()
    return folder


THREE = (
    "MARK[note] one claim about the station",
    "MARK[note] another matter altogether",
    "MARK[note] One claim about the station.",
)


def test_a_broken_carried_decision_is_named_and_made_anew_with_what_hangs_on_it(
    base: Base, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal(base, write, *THREE)
    folder = killed(base, monkeypatch)
    first = next(path for path in folder.glob("M-*.json") if '"label": "C1"' in path.read_text(encoding="utf-8"))
    first.write_bytes(b"{")
    found = run(base)
    assert (found.run, found.resumed, found.verdicts) == (folder.name, True, {"new": 2, "attach": 1})
    assert [problem.path for problem in found.problems] == [base.relative(first)]
    held = {receipt.label for receipt in ledger(base).receipts}
    assert held == {candidate.label for candidate in unit(base, found).candidates} == {"C2", "C3"}
    assert base.relative(first) in report(base, found)


def test_what_was_decided_about_a_mark_that_is_gone_goes_with_it(
    base: Base, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal(base, write, *THREE)
    killed(base, monkeypatch)
    journal(base, write, *THREE[1:])
    found = run(base)
    assert found.verdicts == {"new": 2}
    assert list(base.carry.iterdir()) == []


def test_what_was_decided_is_published_whatever_the_next_run_looks_at(
    base: Base, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(base, monkeypatch)
    write(base, "journal/2026-03-05.md", "MARK[note] the second day\n")
    write(base, "journal/2026-03-06.md", "MARK[note] the third day\n")
    found = run(base, since="2026-03-06")
    assert found.verdicts == {"new": 2}
    assert run(base).verdicts == {"new": 1}


# Dry run


def test_a_dry_run_shows_what_each_stage_would_be_handed_and_writes_nothing(base: Base, write: Write, git: Git) -> None:
    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in base.root.rglob("*") if path.is_file()}

    before = everything()
    found = run(base, dry_run=True)
    assert everything() == before
    names = [stage.split(" ")[0] for stage, _ in found.stages]
    assert names[:3] == ["collect", "evaluate", "verify"]
    stages = dict(found.stages)
    assert "# The MARK: M-" in stages[next(name for name in stages if name.startswith("evaluate M-"))]
    published = {name.removeprefix("publish "): text for name, text in stages.items() if name.startswith("publish ")}
    run(base)
    for path, text in published.items():
        if path.endswith("C1.md"):
            assert base.path(path).read_text(encoding="utf-8") == text


def test_a_dry_run_with_nothing_open(base: Base) -> None:
    run(base)
    assert [stage for stage, _ in run(base, dry_run=True).stages] == ["collect"]


# Others at work at the same time


def test_a_line_added_while_the_run_commits_is_kept(base: Base, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(base, "journal/2026-03-05.md", "MARK[note] read by the run\n")
    original = publish.changes

    def late(*args: Any) -> dict[str, bytes | None]:
        with base.path("journal/2026-03-05.md").open("a", encoding="utf-8") as file:
            file.write("MARK[note] added while it ran\n")
        return original(*args)

    monkeypatch.setattr(publish, "changes", late)
    run(base)
    monkeypatch.undo()
    text = base.path("journal/2026-03-05.md").read_text(encoding="utf-8")
    assert text == "MARK[note] read by the run\nMARK[note] added while it ran\n"
    assert Repo(base.root).blob("HEAD", "journal/2026-03-05.md") == b"MARK[note] read by the run\n"
    assert run(base).verdicts == {"new": 1}


def test_marks_that_another_run_decided_meanwhile_are_not_decided_twice(
    base: Base, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = publish.take_along

    def meanwhile(repo: Repo, night: Any) -> Any:
        (mark,) = night.decisions
        line = {"mark": mark, "stage": "propose", "verdict": "new", "run": "01", "at": "2026-03-04T00:00:00+00:00"}
        write(base, "memory/receipts/01.jsonl", json.dumps(line) + "\n")
        return original(repo, night)

    monkeypatch.setattr(publish, "take_along", meanwhile)
    with pytest.raises(Busy):
        run(base)
    monkeypatch.undo()
    found = run(base)
    assert (found.decided, found.unit) == (0, "")
    assert list(base.carry.iterdir()) == []


def test_a_full_disk_is_one_clear_error_and_the_run_is_gone_on_with(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise Unavailable("cannot write: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(publish, "commit", full)
        with pytest.raises(KhmsError, match="No space"):
            run(base)
    found = run(base)
    assert (found.resumed, found.verdicts) == (True, {"new": 1})
