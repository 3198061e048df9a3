"""A weekly run over a planted base: exactly what was planted comes out, twice the same bytes, and what a reviewer
approves leaves lint and audit green."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from khms.check import audit
from khms.check.lint import lint
from khms.config import Config
from khms.errors import Busy, Refused, Usage
from khms.pipeline.approve import Result as Approved
from khms.pipeline.approve import approve, pending
from khms.pipeline.ruling import Wish
from khms.pipeline.weekly import carried
from khms.pipeline.weekly.week import Result
from khms.pipeline.withhold import withhold
from khms.render import views
from khms.store import cards, inbox
from khms.store.layout import Base
from khms.store.lock import hold
from khms.store.markdown import read
from khms.store.repo import Repo

Git = Callable[..., str]
Propose = Callable[..., Result]
Offers = Callable[[Base, str], dict[str, str]]
ALL = {
    "K-00038 superseded by K-00039",
    "K-00031 superseded as K-00032 says",
    "K-00033 challenged by K-00034",
    "K-00036 superseded as K-00037 says",
    "K-00044 challenged by K-00043",
    "K-00045 challenged by K-00046",
    "K-00047 challenged by K-00048",
    "K-00061 condensed by K-00066",
}
TOLD = {
    "against K-00041 K-00042",
    "against K-00043 K-00044",
    "against K-00045 K-00046",
    "against K-00047 K-00048",
    "against K-00063 K-00065",
    "shape K-00011 K-00012 K-00013",
}


def about(base: Base, unit: str) -> Any:
    return json.loads(base.path(f"memory/inbox/{unit}/unit.json").read_text(encoding="utf-8"))


def text(base: Base, unit: str, name: str = "REPORT.md") -> str:
    return base.path(f"memory/inbox/{unit}/{name}").read_text(encoding="utf-8")


def let_in(base: Base, unit: str, *labels: str, **wish: Any) -> Approved:
    asked = Wish(labels=labels, everything=not labels, **wish)
    return approve(base, Repo(base.root), Config([]), unit, asked, views.for_base)


def statuses(base: Base) -> dict[str, str]:
    return {card.id: card.status for card in cards.shelf(base).cards.values() if card.status != "active"}


def assert_sound(base: Base) -> None:
    repo = Repo(base.root)
    assert [t.finding for t in audit.whole(base, repo).troubles] == []
    assert [f for f in lint(base, Config([]), repo).findings if f.severity == "error"] == []


def test_exactly_what_was_planted_is_offered_and_told(planted: Base, propose: Propose, offers: Offers) -> None:
    found = propose(planted)
    assert set(offers(planted, found.unit)) == ALL
    assert set(about(planted, found.unit)["told"]) == TOLD
    assert found.candidates == {"published": 8, "dropped": 0}
    assert found.offers == {"supersessions": 4, "contradictions": 3, "principles": 0, "condensations": 1}
    unit = inbox.find(planted, found.unit)
    assert not unit.broken
    problems = lint(planted, Config([]), Repo(planted.root), paths=[unit.path]).findings
    assert [str(problem) for problem in problems] == []


def test_the_report_says_what_would_tell_them_apart_and_how_to_write_the_principle(
    planted: Base, propose: Propose
) -> None:
    said = text(planted, propose(planted).unit)
    command = "khms card new principle --open --tag retries"
    assert f"{command} --derived-from K-00011 --derived-from K-00012 --derived-from K-00013\n" in said
    assert "read `conf/broker.toml` as it is now. It is 30 s (K-00043) or 90 s (K-00044)." in said
    assert "bring about once what K-00042 names (`a reed is boiled`)" in said
    assert "| evidence | measured, 2026-04-06, active | reported, 2026-05-27, active |" in said
    assert "| rests on it | K-00066 | nothing |" in said


def test_a_run_that_is_made_again_writes_the_same_bytes(planted: Base, propose: Propose, tmp_path: Path) -> None:
    carried.begin(planted)
    other = tmp_path / "other"
    shutil.copytree(planted.root, other)
    second = Base(other.resolve(), named=True)
    one, two = propose(planted), propose(second)
    assert one.resumed and one.unit == two.unit

    def files(base: Base) -> dict[str, bytes]:
        folder = base.path(f"memory/inbox/{one.unit}")
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert files(planted) == files(second)
    assert not list((planted.carry / "weekly").iterdir())


def test_what_awaits_review_is_not_offered_twice(planted: Base, propose: Propose, git: Git) -> None:
    first = propose(planted)
    head = git(planted, "rev-parse", "HEAD")
    again = propose(planted)
    assert (again.unit, again.commit, again.candidates["published"]) == ("", "", 0)
    assert git(planted, "rev-parse", "HEAD") == head != git(planted, "rev-parse", "HEAD~1")
    assert [path.name for path in planted.inbox.iterdir()] == [first.unit]


def test_the_approval_of_all_leaves_lint_and_audit_green(planted: Base, propose: Propose, git: Git) -> None:
    before = statuses(planted)
    assert before == {}
    unit = propose(planted).unit
    done = let_in(planted, unit)
    assert {label for label, _, _ in done.cards} == {"C2", "C4"}
    assert {label for label, _, _ in done.changed} == {"C1", "C3", "C5", "C6", "C7", "C8"}
    archived = dict.fromkeys(("K-00031", "K-00032", "K-00036", "K-00037", "K-00038"), "superseded")
    challenged = dict.fromkeys(("K-00033", "K-00044", "K-00045", "K-00047"), "challenged")
    assert statuses(planted) == {**archived, **challenged, "K-00061": "condensed"}
    assert git(planted, "status", "--porcelain") == ""
    assert_sound(planted)
    held = inbox.find(planted, unit)
    assert pending(planted, held, cards.approvals(planted)) == []
    again = let_in(planted, unit)
    assert again.commit is None and again.already["C8"] == "K-00061"
    following = propose(planted)
    assert following.candidates == {"published": 0, "dropped": 0}
    told = set(about(planted, following.unit)["told"]) - TOLD if following.unit else set()
    assert told == {"against K-00033 K-00034"}  # it says by a link now what no link said before


def test_a_refused_change_is_not_offered_again_even_when_its_unit_is_gone(
    planted: Base, propose: Propose, offers: Offers, git: Git
) -> None:
    first = propose(planted).unit
    label = offers(planted, first)["K-00061 condensed by K-00066"]
    withhold(planted, Repo(planted.root), Config([]), first, [label], "rejected", "the two boards matter")
    (planted.inbox / "2026-11-01-weekly").mkdir()
    git(planted, "rm", "-r", "--quiet", f"memory/inbox/{first}")
    git(planted, "commit", "--quiet", "-m", "clear the inbox")
    second = propose(planted).unit
    assert set(offers(planted, second)) == ALL - {"K-00061 condensed by K-00066"}
    assert f"{first}/{label} said this and was refused: the two boards matter" in text(planted, second)


def test_what_is_over_the_cap_comes_with_the_next_run(planted: Base, propose: Propose, offers: Offers) -> None:
    seen: list[str] = []
    for late in (5, 2, 0):
        found = propose(planted, max_cards=3)
        assert found.late == late
        seen += offers(planted, found.unit)
    assert sorted(seen) == sorted(ALL)


def test_without_a_model_the_other_steps_work_and_the_report_says_so(
    planted: Base, propose: Propose, offers: Offers
) -> None:
    found = propose(planted, {"recall.model": "none"})
    assert set(offers(planted, found.unit)) == ALL
    assert set(about(planted, found.unit)["told"]) == {key for key in TOLD if not key.startswith("shape")}
    assert "shapes were not looked for" in text(planted, found.unit)


def test_a_base_without_anything_to_say_gets_no_unit(base: Base, propose: Propose, git: Git) -> None:
    head = git(base, "rev-parse", "HEAD")
    found = propose(base)
    assert (found.unit, found.ok) == ("", True)
    assert git(base, "rev-parse", "HEAD") == head
    assert json.loads((base.state / "weekly.json").read_text(encoding="utf-8"))["ok"] is True


def test_a_card_that_cannot_be_read_is_named_and_hides_nothing(
    planted: Base, propose: Propose, offers: Offers, write: Callable[..., Path], commit: Git
) -> None:
    write(planted, "memory/know/K-00099.md", "---\nid: K-00099\nid: K-00099\n---\n")
    commit(planted)
    found = propose(planted)
    assert [problem.path for problem in found.problems] == ["memory/know/K-00099.md"]
    assert set(offers(planted, found.unit)) == ALL


def test_one_run_at_a_time_none_in_the_background_and_no_odd_bounds(
    base: Base, propose: Propose, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.locks.mkdir(parents=True)
    with hold(base.locks / "weekly.lock", "weekly"), pytest.raises(Busy):
        propose(base)
    for odd in ({"max_cards": -1}, {"deadline": "soon"}, {"budget_usd": -1.0}):
        with pytest.raises(Usage):
            propose(base, **odd)
    monkeypatch.setenv("KHMS_BACKGROUND", "1")
    with pytest.raises(Refused):
        propose(base)


def test_a_dry_run_shows_the_bytes_and_writes_nothing(planted: Base, propose: Propose, git: Git) -> None:
    def there() -> list[Path]:
        return sorted(path for path in planted.root.rglob("*") if not {".git", ".khms"} & {*path.parts})

    before = there()
    found = propose(planted, dry_run=True)
    assert there() == before
    assert not (planted.carry / "weekly").exists()
    shown = {stage.rpartition("/")[2]: held for stage, held in found.stages}
    real = propose(planted)
    assert shown["C8.md"] == text(planted, real.unit, "C8.md")
    assert git(planted, "status", "--porcelain") == ""


def test_a_unit_on_a_branch_of_its_own(planted: Base, propose: Propose, git: Git) -> None:
    settings: Mapping[str, Any] = {"nightly.deliver": "branch"}
    found = propose(planted, settings)
    assert found.branch == f"khms/inbox/{found.unit}"
    assert not (planted.inbox / found.unit).exists()
    changed = git(planted, "diff", "--name-only", f"main...{found.branch}").splitlines()
    assert {Path(name).parts[:3] for name in changed} == {("memory", "inbox", found.unit)}
    assert f"(run {found.run})" in git(planted, "show", "HEAD", "--", "memory/history")
    assert propose(planted, settings).unit == ""
    git(planted, "merge", "--quiet", "-m", "merge the unit", found.branch)
    let_in(planted, found.unit)
    assert_sound(planted)


def test_a_change_in_a_later_state_of_the_card_is_refused(planted: Base, propose: Propose, offers: Offers) -> None:
    from khms.pipeline.status import change

    unit = propose(planted).unit
    change(planted, Repo(planted.root), Config([]), "K-00061", "refuted", by="K-00001", why="a mix-up",
           views=views.for_base)  # fmt: skip
    with pytest.raises(Refused, match="nothing was approved") as error:
        let_in(planted, unit, offers(planted, unit)["K-00061 condensed by K-00066"])
    assert "K-00061 is refuted by now" in error.value.where


def test_the_card_that_comes_again_keeps_what_it_was(planted: Base, propose: Propose, offers: Offers) -> None:
    unit = propose(planted).unit
    label = offers(planted, unit)["K-00031 superseded as K-00032 says"]
    (made,) = let_in(planted, unit, label).cards
    old, new = cards.load(planted, "memory/archive/know/K-00032.md"), cards.load(planted, made[2])
    assert set(new.links.supersedes) == {"K-00031", "K-00032"}
    same = replace(new, id=old.id, status=old.status, links=old.links, body=old.body, path=old.path,
                   body_line=old.body_line, meta=old.meta)  # fmt: skip
    assert same == old
    assert new.body.endswith(old.body)
    page = read(planted.path(made[2]), made[2])
    assert "quotes" not in page.meta and "relation" not in page.meta
