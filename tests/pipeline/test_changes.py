"""Proposed changes of cards, from the unit to the record: what `khms card status` does, by an approval."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.check import audit
from khms.check.lint import lint
from khms.config import Config, load
from khms.errors import Refused, Usage
from khms.pipeline.adopt import adopt
from khms.pipeline.approve import Result, approve, pending
from khms.pipeline.docket import Docket
from khms.pipeline.letter import body as letter
from khms.pipeline.renumber import renumbered
from khms.pipeline.ruling import Wish
from khms.pipeline.status import change
from khms.pipeline.sync import sync
from khms.pipeline.unreject import unreject
from khms.pipeline.withhold import withhold
from khms.recall.search import recall
from khms.render import views
from khms.store import cards, inbox, markdown
from khms.store.layout import Base
from khms.store.receipts import ledger
from khms.store.repo import Repo

UNIT = "2026-03-05-weekly"
Make = Callable[..., Path]
Git = Callable[..., str]


def add(base: Base, label: str = "C1", *, change: Any = None, **keys: Any) -> Path:
    held = {"card": "K-00001", "was": "active", "status": "condensed", "by": "K-00002", "why": "it carries all"}
    meta: dict[str, Any] = {"id": label, "title": "A change", "date": "2026-03-05"}
    meta |= {
        "change": {**held, **change} if isinstance(change, dict) else held,
        "nearest": [],
        "quotes": [],
        "flags": [],
    }
    path = base.inbox / UNIT / f"{label}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"schema": "khms.unit/1", "run": "0" * 26, "created": "2026-03-05", "files": {}}
    (path.parent / "unit.json").write_text(json.dumps(about), encoding="utf-8")
    path.write_text(markdown.render({**meta, **keys}, "What speaks for it.\n"), encoding="utf-8")
    return path


@pytest.fixture
def ready(base: Base, add_card: Make, commit: Git) -> Base:
    add_card(base, "K-00001", title="Paint at 4 °C peels", body="On boards.\n", type="action-outcome")
    add_card(base, "K-00002", title="Paint needs warmth", body="HOLDS: at 4 °C it fails.\n", type="principle",
             level="derived", evidence=None, source=None, links={"derived_from": ["K-00001"]})  # fmt: skip
    add_card(base, "K-00003", title="Another", body="Another.\n")
    commit(base)
    adopt(base, Repo(base.root), Config([]))
    return base


def let_in(base: Base, *labels: str, **wish: Any) -> Result:
    asked = Wish(labels=labels, everything=not labels, **wish)
    return approve(base, Repo(base.root), Config([]), UNIT, asked, views.for_base)


def refused(base: Base, *labels: str, **wish: Any) -> str:
    head = Repo(base.root).head()
    with pytest.raises(Refused) as error:
        let_in(base, *labels, **wish)
    assert Repo(base.root).head() == head
    return error.value.where


def newest(base: Base) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sorted(base.approvals.glob("*.json"))[-1].read_text(encoding="utf-8"))
    return found


def assert_sound(base: Base) -> None:
    repo = Repo(base.root)
    assert [t.finding for t in audit.whole(base, repo).troubles] == []
    assert [f for f in lint(base, Config([]), repo).findings if f.severity == "error"] == []


def test_it_does_what_card_status_does(ready: Base, commit: Git, tmp_path: Path, git: Git) -> None:
    add(ready)
    commit(ready)
    git(tmp_path, "clone", "--quiet", str(ready.root), "by-hand")
    other = Base((tmp_path / "by-hand").resolve(), named=True)
    change(other, Repo(other.root), Config([]), "K-00001", "condensed", by="K-00002", why="it carries all",
           views=views.for_base)  # fmt: skip
    done = let_in(ready, "C1")
    assert done.changed == (("C1", "K-00001", "memory/archive/know/K-00001.md"),)
    path = "memory/archive/know/K-00001.md"
    assert ready.path(path).read_bytes() == other.path(path).read_bytes()
    mine, theirs = newest(ready), newest(other)
    own = ("id", "at", "parent")
    assert {k: v for k, v in mine.items() if k not in own} == {k: v for k, v in theirs.items() if k not in own}
    assert_sound(ready)
    assert "Khms-Transition: K-00001 active condensed" in git(ready, "log", "-1", "--format=%B")


def test_what_was_approved_is_pending_no_longer_and_says_so(ready: Base, commit: Git) -> None:
    add(ready)
    commit(ready)
    record = let_in(ready).record
    held = inbox.find(ready, UNIT)
    assert pending(ready, held, cards.approvals(ready)) == []
    again = let_in(ready, "C1")
    assert (again.commit, dict(again.already)) == (None, {"C1": "K-00001"})
    (receipt,) = [r for r in ledger(ready).receipts if r.label == "C1"]
    assert (receipt.verdict, receipt.run, receipt.reason) == ("approved", record, "K-00001")
    assert Docket(ready, Repo(ready.root), Config([]), UNIT).fate(
        Docket(ready, Repo(ready.root), Config([]), UNIT).read(), "C1"
    ) == "was approved: K-00001"  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"card": "K-00009"}, "there is no card K-00009"),
        ({"by": "K-00009"}, "there is no card K-00009"),
        ({"was": "challenged"}, "K-00001 is active by now"),
        ({"status": "superseded"}, "K-00002 does not supersede K-00001"),
        ({"status": "active"}, "K-00001 stands so already"),
        ({"status": "asleep"}, "must be"),
        ({"why": ""}, "`change.why`"),
        ({"by": "K-00001", "status": "challenged"}, "cannot be the cause of its own change"),
    ],
)
def test_what_cannot_be_made_is_refused_and_changes_nothing(
    ready: Base, commit: Git, wrong: dict[str, str], words: str
) -> None:
    add(ready, change=wrong)
    commit(ready)
    assert words in refused(ready, "C1")


def test_a_cause_that_is_no_longer_in_force(ready: Base, commit: Git) -> None:
    add(ready)
    commit(ready)
    change(ready, Repo(ready.root), Config([]), "K-00002", "refuted", by="K-00003", why="no", views=views.for_base)
    assert "K-00002, its cause, is refuted by now" in refused(ready, "C1")


def test_what_the_cause_does_not_carry_needs_a_waiver(ready: Base, commit: Git) -> None:
    add(ready, change={"by": "K-00003"})
    commit(ready)
    assert "C1 absorbed: K-00003 does not carry “4 °C”" in refused(ready, "C1")
    let_in(ready, "C1", waived={("absorbed", "C1"): "nobody asks for the degrees"})
    assert newest(ready)["waivers"] == [{"check": "absorbed", "label": "C1", "why": "nobody asks for the degrees"}]
    assert_sound(ready)


def test_cards_and_changes_come_in_together_with_a_record_each(ready: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(ready, "C2", unit=UNIT)
    add(ready)
    commit(ready)
    done = let_in(ready)
    assert ([c[0] for c in done.cards], [c[0] for c in done.changed]) == (["C2"], ["C1"])
    records = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(ready.approvals.glob("*.json"))]
    assert [(r["unit"], len(r["cards"]), len(r["transitions"])) for r in records[1:]] == [
        (f"memory/inbox/{UNIT}", 1, 0),
        ("", 0, 1),
    ]
    assert_sound(ready)


def test_one_approval_does_not_change_a_card_in_two_ways(ready: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(ready, "C2", unit=UNIT, relation={"kind": "contradicts", "target": "K-00001", "because": "no"})
    add(ready)
    commit(ready)
    assert "another candidate of this approval changes K-00001" in refused(ready)
    let_in(ready, "C1")
    let_in(ready, "C2")
    assert_sound(ready)


def test_a_change_takes_no_relation_and_no_strange_check(ready: Base, commit: Git) -> None:
    add(ready)
    commit(ready)
    assert "a change has no relation to settle" in refused(ready, "C1", relations={"C1": "new"})
    with pytest.raises(Usage, match="there is no check"):
        let_in(ready, "C1", waived={("absorption", "C1"): "so"})


def test_it_is_refused_remembered_and_brought_back(ready: Base, commit: Git) -> None:
    add(ready)
    add(ready, "C2", title="The same in other words")
    commit(ready)
    repo, config = Repo(ready.root), Config([])
    withhold(ready, repo, config, UNIT, ["C1"], "rejected", "the boards matter")
    assert f"{UNIT}/C1 said this and was refused: the boards matter" in refused(ready, "C2")
    unreject(ready, repo, config, UNIT, ["C1"], "they do not")
    let_in(ready, "C1")
    assert_sound(ready)


def test_a_reviewer_sees_it_like_any_candidate(ready: Base, commit: Git) -> None:
    add(ready, quotes=[{"source": "K-00001", "sha256": "", "text": "Paint at 4 °C peels", "grade": "", "context": ""}])
    commit(ready)
    docket = Docket(ready, Repo(ready.root), Config([]), UNIT)
    held = docket.read()
    review = docket.begin(held)
    assert review.current is not None
    view = docket.view(held, review, review.current)
    assert (view.faults, view.unjudged, view.relation.kind) == ((), False, "change")
    assert {o.check: o.state for o in view.outcomes} == dict.fromkeys(
        ("quotes", "screening", "refused", "absorbed"), "pass"
    )
    assert "relation: change K-00001 it carries all" in letter(held.unit)


def test_lint_names_what_is_wrong_with_the_file(ready: Base, commit: Git) -> None:
    add(ready, change={"card": "K-00009", "status": "asleep"})
    found = lint(ready, Config([]), Repo(ready.root), paths=[f"memory/inbox/{UNIT}/C1.md"]).findings
    assert {finding.code for finding in found} == {"KH001", "KH005"}
    add(ready)
    assert lint(ready, Config([]), Repo(ready.root), paths=[f"memory/inbox/{UNIT}/C1.md"]).findings == ()


def share(base: Base) -> None:
    sync(base, Repo(base.root), load(base.root), views.for_tree)


def test_two_clones_that_approve_the_same_change_and_other_cards_come_together(
    ready: Base, add_candidate: Make, commit: Git, cloned: Callable[..., list[Base]], git: Git
) -> None:
    add_candidate(ready, "C2", unit=UNIT)
    add_candidate(ready, "C3", unit=UNIT, body="FIX: the solder\n", mark="M-0123456789ac")
    add(ready)
    commit(ready)
    ada, bob = cloned(ready, "ada", "bob")
    let_in(ada, "C1", "C2")
    let_in(bob, "C1", "C3")
    share(ada)
    share(bob)
    git(ada, "pull", "--quiet")
    for base in (ada, bob):
        assert_sound(base)
        assert [p.stem for p in base.archive.glob("*.md")] == ["K-00001"]
        assert pending(base, inbox.find(base, UNIT), cards.approvals(base)) == []
        assert git(base, "status", "--porcelain") == ""
    changes = [t for record in cards.approvals(bob) for t in record.transitions if t.id == "K-00001"]
    assert [(t.field, t.old, t.new) for t in changes] == [("status", "active", "condensed")]


def test_an_unpublished_change_is_made_again_on_what_others_published(
    ready: Base, add_candidate: Make, commit: Git, cloned: Callable[..., list[Base]], git: Git
) -> None:
    add_candidate(ready, "C2", unit=UNIT)
    add(ready)
    commit(ready)
    ada, bob = cloned(ready, "ada", "bob")
    let_in(ada, "C2")
    share(ada)
    let_in(bob, "C1")
    share(bob)
    assert_sound(bob)
    assert pending(bob, inbox.find(bob, UNIT), cards.approvals(bob)) == []
    assert git(bob, "status", "--porcelain") == ""


def test_an_id_that_is_given_anew_is_renewed_in_a_proposed_change(ready: Base) -> None:
    path = add(ready, change={"why": "K-00002 carries all"})
    data = renumbered(f"memory/inbox/{UNIT}/C1.md", path.read_bytes(), {"K-00002": "K-00007"})
    held = markdown.parse(data, "C1.md").meta["change"]
    assert held == {"card": "K-00001", "was": "active", "status": "condensed", "by": "K-00007",
                    "why": "K-00002 carries all"}  # fmt: skip


def test_recall_takes_no_change_for_a_claim(ready: Base, commit: Git) -> None:
    add(ready, title="Needles about the boards")
    commit(ready)
    hits = recall(ready, "needles boards", config=Config([]), unreviewed=True, refresh=True)
    assert "K-00001" in {hit.id for hit in hits}
    assert "inbox" not in {hit.kind for hit in hits}
