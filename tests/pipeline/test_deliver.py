"""A unit on a branch of its own, pushed, and put before the reviewers: what is where, and that no MARK is decided twice
whatever becomes of the branch."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.errors import Refused
from khms.pipeline import deliver, publish
from khms.pipeline import nightly as pipeline
from khms.pipeline.night import Result
from khms.pipeline.withhold import withhold
from khms.store import branches, inbox
from khms.store.layout import Base
from khms.store.receipts import ledger
from khms.store.repo import Repo

Git = Callable[..., str]
Write = Callable[..., Path]
Commit = Callable[..., str]
Gh = Callable[..., dict[str, Any]]


def settings(mode: str, **more: Any) -> Config:
    return Config([("test", {"nightly.deliver": mode, **more})])


def run(base: Base, mode: str = "branch", **options: Any) -> Result:
    return pipeline.nightly(base, Repo(base.root), settings(mode), **options)


def changed(git: Git, where: Base | Path, commit: str) -> list[str]:
    return git(where, "show", "--name-only", "--format=", commit).split("\n")


def test_the_branch_holds_the_unit_and_its_receipts_and_the_current_one_what_nobody_reviews(
    base: Base, git: Git, write: Write
) -> None:
    write(base, "journal/2026-03-05.md", "MARK[req] the operator wants the battery shown\n")
    write(base, "staged.txt", "mine\n")
    git(base, "add", "staged.txt")
    before = git(base, "rev-parse", "HEAD")
    found = run(base)
    branch = f"khms/inbox/{found.unit}"
    assert (found.branch, found.commit) == (branch, git(base, "rev-parse", branch))
    assert git(base, "rev-parse", f"{branch}^") == before
    unit = f"memory/inbox/{found.unit}"
    assert changed(git, base, branch) == [
        *(f"{unit}/{name}" for name in ("C1.md", "C2.md", "REPORT.md", "unit.json")),
        f"memory/receipts/{found.run}.jsonl",
    ]
    assert git(base, "branch", "--show-current") == "main"
    assert git(base, "rev-parse", "HEAD^") == before
    day = found.unit.partition("-nightly")[0]
    assert changed(git, base, "HEAD") == ["journal/2026-03-05.md", f"memory/history/{day}.md"]
    assert f"in {unit} on branch {branch} (run {found.run})" in (base.path(f"memory/history/{day}.md")).read_text()
    assert git(base, "status", "--porcelain") == "A  staged.txt"
    assert list(base.inbox.iterdir()) == []


def test_a_mark_on_a_branch_is_decided_here_and_in_every_clone_that_fetched_it(
    base: Base, git: Git, hosted: Callable[[Base], Path], tmp_path: Path
) -> None:
    hosted(base)
    first = run(base, "push")
    assert run(base, "push").decided == 0
    git(base, "branch", "--quiet", "-D", first.branch)
    assert run(base, "push").decided == 0  # the remote-tracking branch still tells
    git(base, "pack-refs", "--all")
    assert [receipt.run for receipt in ledger(base).receipts] == [first.run]
    git(tmp_path, "clone", "--quiet", "https://github.com/ada/garden.git", "other")
    assert run(Base((tmp_path / "other").resolve(), named=True), "push").decided == 0


def test_refs_that_only_git_can_read(base: Base, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(base)
    (base.root / ".git" / "reftable").mkdir()
    assert [branch.unit for branch in branches.branches(base)] == [found.unit]
    assert run(base).decided == 0


def test_what_is_pushed_starts_from_what_is_published(base: Base, git: Git, hosted: Any, commit: Commit) -> None:
    remote = hosted(base)
    published = git(base, "rev-parse", "HEAD")
    commit(base, "nobody's business yet")
    found = run(base, "push")
    assert git(remote, "rev-parse", f"{found.branch}^") == published
    assert found.notes == (f"pushed {found.branch} to origin",)
    assert git(remote, "branch", "--format=%(refname:short)").split() == [found.branch, "main"]


def test_a_branch_that_holds_more_than_its_unit_is_not_pushed(
    base: Base, git: Git, hosted: Any, commit: Commit, write: Write
) -> None:
    remote = hosted(base)
    write(base, "diary.txt", "not for others\n")
    commit(base, "private")
    found = run(base, "branch")
    assert run(base, "push").problems[0].message.startswith("not delivered: the branch holds more than its unit (diary")
    assert found.branch not in git(remote, "branch")


def test_a_branch_that_stays_here_starts_from_the_newer_of_both(base: Base, git: Git, hosted: Any, commit: Any) -> None:
    hosted(base)
    ahead = commit(base, "here only")
    assert git(base, "rev-parse", f"{run(base).branch}^") == ahead
    git(base, "push", "--quiet")
    git(base, "reset", "--quiet", "--hard", "HEAD^")
    base.path("journal/2026-03-05.md").write_text("MARK[note] the second day\n", encoding="utf-8")
    assert git(base, "rev-parse", f"{run(base).branch}^") == git(base, "rev-parse", "origin/main")


def test_without_a_candidate_and_on_an_unborn_branch_the_commit_is_made_here(
    base: Base, write: Write, tmp_path: Path, git: Git
) -> None:
    write(base, "journal/2026-03-04.md", "MARK[note] it is so\n")
    found = run(base)
    assert (found.unit, found.branch, found.verdicts) == ("", "", {"not-carded": 1})
    assert f"memory/receipts/{found.run}.jsonl" in changed(git, base, "HEAD")
    fresh = tmp_path / "fresh"
    write(fresh, "khms.toml", "")
    write(fresh, "journal/2026-03-04.md", "MARK[note] the first words of a base\n")
    git(fresh, "init", "--quiet")
    assert (run(Base(fresh.resolve(), named=True)).branch, git(fresh, "branch")) == ("", "* main")


def test_a_base_below_the_top_of_its_repository(tmp_path: Path, git: Git, write: Write, commit: Commit) -> None:
    root = tmp_path / "project" / ".memory"
    git(tmp_path, "init", "--quiet", "project")
    write(root, "khms.toml", "")
    write(root, "journal/2026-03-04.md", "MARK[note] the first words of a base\n")
    commit(tmp_path / "project")
    base = Base(root.resolve(), named=True)
    found = run(base)
    assert changed(git, base, found.branch)[0] == f".memory/memory/inbox/{found.unit}/C1.md"
    assert run(base).decided == 0
    assert inbox.folder_of(f"memory/inbox/{found.unit}", {}).candidates == ()
    (branch,) = branches.unmerged(base).values()
    assert [candidate.label for candidate in branches.unit(Repo(base.root), branch).candidates] == ["C1"]


@pytest.mark.parametrize("way", ["merge", "squash", "rebase"])
def test_edited_merged_and_its_branch_deleted_nothing_is_decided_twice(
    base: Base, git: Git, hosted: Any, tmp_path: Path, way: str
) -> None:
    hosted(base)
    found = run(base, "push")
    git(tmp_path, "clone", "--quiet", "https://github.com/ada/garden.git", "reviewer")
    there = tmp_path / "reviewer"
    git(there, "switch", "--quiet", found.branch)
    file = there / f"memory/inbox/{found.unit}/C1.md"
    file.write_text(file.read_text(encoding="utf-8").replace("kind: unjudged", "kind: new"), encoding="utf-8")
    git(there, "commit", "--quiet", "-am", "judge it")
    git(there, "switch", "--quiet", "main")
    git(there, "commit", "--quiet", "--allow-empty", "-m", "meanwhile")
    if way == "merge":
        git(there, "merge", "--quiet", "--no-ff", found.branch)
    elif way == "squash":
        git(there, "merge", "--quiet", "--squash", found.branch)
        git(there, "commit", "--quiet", "-m", "squashed")
    else:
        git(there, "rebase", "--quiet", "main", found.branch)
        git(there, "switch", "--quiet", "main")
        git(there, "merge", "--quiet", "--ff-only", found.branch)
    git(there, "push", "--quiet", "origin", "main", f":{found.branch}")
    git(base, "fetch", "--quiet", "--prune", "origin")
    git(base, "rebase", "--quiet", "origin/main")
    git(base, "branch", "--quiet", "-D", found.branch)
    assert branches.branches(base) == []
    again = run(base, "push")
    assert (again.decided, again.problems, again.notes) == (0, (), ())
    assert "kind: new" in base.path(f"memory/inbox/{found.unit}/C1.md").read_text(encoding="utf-8")


def test_a_request_that_was_closed_is_recorded_before_its_branch_goes(
    base: Base, git: Git, hosted: Any, run_khms: Callable[..., Any]
) -> None:
    hosted(base)
    found = run(base, "push")
    listed = run_khms("inbox", "list")
    assert f"on branch origin/{found.branch}" in listed.stdout
    assert json.loads(run_khms("inbox", "list", "--json").stdout)["units"][0]["branch"] == f"origin/{found.branch}"
    shown = run_khms("inbox", "show", found.unit).stdout
    assert "frames failed because a ground was loose" in shown
    assert f"on branch origin/{found.branch}" in shown
    refused = run_khms("approve", found.unit, "--all")
    assert (refused.returncode, "is not merged" in refused.stderr, "git checkout" in refused.stderr) == (3, True, True)
    assert run_khms("reject", found.unit, "C1", "--why", "no").returncode == 2
    done = run_khms("reject", found.unit, "--why", "it was the cable")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"git branch -D {found.branch}" in done.stdout
    git(base, "branch", "--quiet", "-D", found.branch)
    git(base, "update-ref", "-d", f"refs/remotes/origin/{found.branch}")
    assert {(r.stage, r.verdict) for r in ledger(base).receipts} == {("propose", "new"), ("review", "rejected")}
    assert inbox.find(base, found.unit).dropped == ("C1",)
    assert inbox.find(base, found.unit).candidates == ()
    base.path("journal/2026-03-05.md").write_text("MARK[note] Frames failed because a ground was loose.\n")
    assert run(base, "commit").candidates == {"published": 0, "deferred": 0, "dropped": 1}


def test_a_unit_whose_candidates_were_all_withheld_on_its_branch_is_recorded_too(base: Base, git: Git) -> None:
    found = run(base)
    git(base, "switch", "--quiet", found.branch)
    folder = base.path(f"memory/inbox/{found.unit}")
    (folder / "dropped").mkdir()
    (folder / "C1.md").rename(folder / "dropped" / "C1.md")
    git(base, "add", "--all", "memory")
    git(base, "commit", "--quiet", "-m", "leave it out")
    git(base, "switch", "--quiet", "main")
    done = withhold(base, Repo(base.root), Config([]), found.unit, [], "rejected", "nothing in it")
    assert (done.branch, done.moved, bool(done.commit)) == (found.unit, (), True)
    git(base, "branch", "--quiet", "-D", found.branch)
    assert run(base).decided == 0


def test_a_name_that_a_branch_has_is_taken(base: Base, git: Git, write: Write) -> None:
    first = run(base)
    write(base, "journal/2026-03-05.md", "MARK[note] the second day\n")
    second = run(base)
    assert second.unit == f"{first.unit}-2"
    git(base, "branch", "--quiet", f"khms/inbox/{first.unit}-3", "main")  # somebody's, without the unit
    write(base, "journal/2026-03-06.md", "MARK[note] the third day\n")
    assert run(base).unit == f"{first.unit}-4"


def test_a_broken_receipt_on_a_branch_stops_the_run(base: Base, git: Git, write: Write, commit: Commit) -> None:
    git(base, "switch", "--quiet", "-c", "khms/inbox/odd")
    write(base, "memory/receipts/01.jsonl", "{\n")
    commit(base)
    git(base, "switch", "--quiet", "main")
    with pytest.raises(Refused, match="receipt") as error:
        run(base)
    assert "delete the branch" in error.value.hint


# Requests


def test_a_request_is_opened_once_and_what_a_candidate_says_in_it_is_inert(
    base: Base, hosted: Any, gh: Gh, write: Write
) -> None:
    hosted(base)
    hostile = (
        "@ada fixes #1 and closes ada/garden#2, GH-3; ```` <!-- x --> ![i](https://evil.example/x.png) [skip ci] "
        "<img src=x> https://evil.example !4 ~bug /approve"
    )
    write(base, "journal/2026-03-05.md", f"MARK[note] {hostile}\n")
    found = run(base, "pr")
    (request,) = gh()["requests"]
    assert (request["head"], request["state"]) == (found.branch, "OPEN")
    assert f"{found.branch} awaits review: https://github.com/ada/garden/pull/1" in found.notes
    _, created = gh()["asked"]
    assert created["quiet"] == ["1", "1"]
    args = created["args"]
    assert args[args.index("--title") + 1] == f"Review memory proposals: {found.unit}"
    assert (args[args.index("--base") + 1], args[args.index("--repo") + 1]) == ("main", "github.com/ada/garden")
    body = created["body"]
    assert "evil" in body
    for acting in ("@ada", "#1", "#2", "#3", "GH-3", "<!--", "![", "[skip", "<img", "://evil", "!4", "~bug"):
        assert acting not in body, acting
    inside = False
    for line in body.split("\n"):
        if line.startswith("```"):
            inside = not inside
        elif "evil" in line or "frames failed" in line:
            assert inside and line.startswith("| ")
    assert not inside
    assert run(base, "pr").notes == ()
    assert len(gh()["asked"]) == 2


def test_a_request_that_is_open_already_is_found_and_a_closed_one_is_not_opened_again(
    base: Base, hosted: Any, gh: Gh, git: Git
) -> None:
    hosted(base)
    found = run(base, "push")
    tip = git(base, "rev-parse", found.branch)
    row = {"head": found.branch, "url": "https://github.com/ada/garden/pull/9", "state": "CLOSED", "headRefOid": tip}
    gh(requests=[row])
    again = run(base, "pr")
    assert again.notes == (f"{found.branch} awaits review: https://github.com/ada/garden/pull/9",)
    assert [asked["args"][1] for asked in gh()["asked"]] == ["list"]


def test_when_gh_fails_branch_and_push_stand_and_the_next_run_tries_again_once(
    base: Base, hosted: Any, gh: Gh, git: Git
) -> None:
    remote = hosted(base)
    gh(broken=True)
    found = run(base, "pr")
    assert found.branch in git(remote, "branch")
    (problem,) = found.problems
    assert problem.message.endswith("is pushed, and gh says: HTTP 401: Bad credentials")
    assert "\n" not in str(problem)
    state = json.loads((base.state / "nightly.json").read_text(encoding="utf-8"))
    assert (state["ok"], state["success"]) == (False, None)
    gh(broken=False)
    assert run(base, "pr").problems == ()
    assert len(gh()["requests"]) == 1


def test_without_gh_the_address_is_said_and_said_once(
    base: Base, hosted: Any, monkeypatch: pytest.MonkeyPatch, git: Git
) -> None:
    hosted(base)
    monkeypatch.setattr("khms.hosts.program.there", lambda name: False)
    found = run(base, "pr")
    assert f"https://github.com/ada/garden/compare/main...khms/inbox/{found.unit}?expand=1" in found.notes[-1]
    assert run(base, "pr").notes == ()


def test_a_remote_of_no_known_host_and_none_at_all(base: Base, git: Git, tmp_path: Path) -> None:
    found = run(base, "pr")
    assert found.notes == ("there is no remote to push to: git remote add origin URL",)
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "plain.git")
    git(base, "remote", "add", "origin", str(tmp_path / "plain.git"))
    assert "origin has no branch main" in run(base, "pr").problems[0].message
    git(base, "push", "--quiet", "origin", f"{found.commit}^:refs/heads/main")
    git(base, "fetch", "--quiet", "origin")
    assert "open a pull request for it by hand" in run(base, "pr").notes[-1]


def test_two_remotes_of_which_none_is_named(base: Base, git: Git) -> None:
    for name in ("one", "two"):
        git(base, "remote", "add", name, f"https://{name}.example/ada/garden.git")
    found = run(base, "pr")
    assert found.branch in git(base, "branch")
    assert found.notes == ("not fetched: which remote shares main? there are one, two",)
    assert [problem.message for problem in found.problems] == [
        "not delivered: which remote shares main? there are one, two"
    ]


def test_an_unreachable_remote_fails_one_step_and_loses_nothing(base: Base, git: Git, hosted: Any) -> None:
    remote = hosted(base)
    remote.rename(remote.with_name("away.git"))
    found = run(base, "push")
    assert found.notes[0].startswith("not fetched: ")
    assert [problem.path for problem in found.problems] == [found.branch]
    remote.with_name("away.git").rename(remote)
    assert run(base, "push").notes == (f"pushed {found.branch} to origin",)


def test_a_base_that_nobody_trusted_does_not_push_by_its_own_word(base: Base, write: Write, git: Git) -> None:
    write(base, "khms.toml", '[nightly]\ndeliver = "push"\n')
    found = Base(base.root)
    config = Config([(str(found.config), {"nightly.deliver": "push"})])
    with pytest.raises(Refused, match="did not trust"):
        pipeline.nightly(found, Repo(base.root), config)
    assert deliver.mode(base, config) == "push"


def test_a_run_killed_after_its_branch_was_made_notes_the_night_once(
    base: Base, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(base, "journal/2026-03-05.md", "MARK[req] the operator wants the battery shown\n")

    def gone(*args: Any) -> Mapping[str, bytes]:
        raise Refused("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(publish, "note", gone)
        with pytest.raises(Refused):
            run(base)
    again = run(base)
    assert (again.resumed, again.decided, again.candidates["published"]) == (True, 2, 2)
    assert again.branch
    (history,) = base.path("memory/history").iterdir()
    text = history.read_text(encoding="utf-8")
    assert text.count("nightly decided 2 MARKs of 2026-03-04 to 2026-03-05: 2 new; 2 published, 0 deferred") == 1
    assert git(base, "status", "--porcelain") == ""
    assert run(base).decided == 0
