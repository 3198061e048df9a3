"""What a reviewer refused is remembered: nightly withholds what says the same, approval asks for a word, `unreject`
takes it back."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import Config, load
from khms.errors import Refused, Usage
from khms.pipeline import nightly as pipeline
from khms.pipeline.approve import approve
from khms.pipeline.refusals import refusals
from khms.pipeline.ruling import Wish
from khms.pipeline.unreject import unreject
from khms.pipeline.withhold import withhold
from khms.store import inbox
from khms.store.layout import Base
from khms.store.receipts import ledger
from khms.store.repo import Repo

UNIT = "2026-03-05-nightly"
Make = Callable[..., Path]
Git = Callable[..., str]
SAID = "FIX: the **ground** was tightened with a torque wrench until it clicked twice\n"


def refuse(base: Base, *labels: str, unit: str = UNIT, why: str = "it was the cable") -> None:
    withhold(base, Repo(base.root), Config([]), unit, labels, "rejected", why)


def let_in(base: Base, label: str, unit: str = UNIT, **wish: object) -> str:
    settings = Wish(labels=(label,), unjudged=True, accepted=frozenset({"specifics"}), **wish)  # type: ignore[arg-type]
    return approve(base, Repo(base.root), load(base.root), unit, settings, lambda base, cards: {}).cards[0][1]


def lines(base: Base) -> list[dict[str, str]]:
    found = [path.read_text(encoding="utf-8").splitlines() for path in sorted(base.receipts.glob("*.jsonl"))]
    return [json.loads(line) for rows in found for line in rows]


@pytest.fixture
def refused(base: Base, add_candidate: Make, commit: Git) -> Base:
    add_candidate(base, "C1", body=SAID)
    add_candidate(base, "C2", mark="M-0000000000c2", body="FIX: something else was done\n")
    commit(base)
    refuse(base, "C1")
    return base


def test_the_receipt_carries_the_claim_without_its_form(refused: Base) -> None:
    (line,) = lines(refused)
    assert line["verdict"] == "rejected" and line["reason"] == "it was the cable"
    assert line["claim"] == "the ground was tightened with a torque wrench until it clicked twice"


def test_a_key_in_a_refused_claim_is_not_kept(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base, "C1", body="FIX: the key AKIAQ3EGRTY7XPLM2WVN was renewed\n")
    commit(base)
    refuse(base, "C1")
    (line,) = lines(base)
    assert "q3egrty7xplm2wvn" not in line["claim"].lower() and "[redacted:aws-key]" in line["claim"]


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("The ground was tightened with a torque wrench until it clicked twice.", "dropped"),
        ("the ground was then firmly tightened with a torque wrench until it clicked twice", "published"),
        ("the ground was not tightened with a torque wrench until it clicked twice", "published"),
    ],
)
def test_nightly_withholds_what_says_the_same(refused: Base, write: Make, text: str, fate: str) -> None:
    write(refused, "journal/2026-03-04.md", f"MARK[solved] {text}\n")
    found = pipeline.nightly(refused, Repo(refused.root), Config([]))
    assert found.candidates[fate] == 1
    receipt = next(r for r in ledger(refused).receipts if r.run == found.run)
    if fate == "dropped":
        assert receipt.reason.startswith(f"dropped: refused: {UNIT}/C1 said this and was refused: it was the cable")
        made = refused.path(f"memory/inbox/{found.unit}/dropped/C1.md").read_text(encoding="utf-8")
        assert f"refused-as:{UNIT}/C1" in made
        report = refused.path(f"memory/inbox/{found.unit}/REPORT.md").read_text(encoding="utf-8")
        assert f"{UNIT}/C1 said this and was refused: it was the cable" in report
        assert f"khms unreject {UNIT} C1" in report
    assert pipeline.nightly(refused, Repo(refused.root), Config([])).decided == 0


def test_a_share_of_words_counts_from_the_setting_on(refused: Base, write: Make) -> None:
    write(
        refused,
        "journal/2026-03-04.md",
        "MARK[solved] the ground was then firmly tightened with a torque wrench until it clicked twice\n",
    )
    found = pipeline.nightly(refused, Repo(refused.root), Config([("test", {"nightly.same_jaccard": 0.8})]))
    assert found.candidates["dropped"] == 1


def test_the_memory_outlives_the_file(refused: Base, write: Make, git: Git, commit: Git) -> None:
    git(refused, "rm", "-r", "-q", "memory/inbox")
    commit(refused)
    write(
        refused,
        "journal/2026-03-04.md",
        "MARK[solved] the ground was tightened with a torque wrench until it clicked twice\n",
    )
    assert pipeline.nightly(refused, Repo(refused.root), Config([])).candidates["dropped"] == 1


def test_an_older_receipt_is_completed_from_the_file(refused: Base) -> None:
    (path,) = refused.receipts.glob("*.jsonl")
    line = json.loads(path.read_text(encoding="utf-8"))
    del line["claim"]
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    memory = refusals(refused, ledger(refused))
    assert [held.name for held in memory.same(SAID, 0.9)] == [f"{UNIT}/C1"]
    refused.path(f"memory/inbox/{UNIT}/dropped/C1.md").unlink()
    assert len(refusals(refused, ledger(refused))) == 0


def test_two_clones_that_refused_the_same_merge_without_a_conflict(refused: Base, git: Git, commit: Git) -> None:
    git(refused, "branch", "other", "HEAD~1")
    git(refused, "checkout", "-q", "other")
    withhold(refused, Repo(refused.root), Config([]), UNIT, ["C1"], "rejected", "never measured", here=True)
    git(refused, "checkout", "-q", "main")
    git(refused, "merge", "-q", "other", "-m", "both")
    (held,) = refusals(refused, ledger(refused)).same(SAID, 0.9)
    assert held.why == "never measured"  # the later one


def test_a_file_moved_back_by_hand_is_not_approved_by_accident(refused: Base) -> None:
    unit = refused.inbox / UNIT
    (unit / "dropped/C1.md").rename(unit / "C1.md")
    with pytest.raises(Refused) as error:
        let_in(refused, "C1")
    assert f"{UNIT}/C1 said this and was refused: it was the cable" in error.value.where
    assert f"khms unreject {UNIT} C1" in error.value.where
    assert let_in(refused, "C1", waived={("refused", "C1"): "it was measured after all"}) == "K-00001"
    record = json.loads(next(refused.approvals.glob("*.json")).read_text(encoding="utf-8"))
    assert record["waivers"] == [{"check": "refused", "label": "C1", "why": "it was measured after all"}]


def test_approving_a_refused_one_names_the_way_back(refused: Base) -> None:
    with pytest.raises(Refused) as error:
        let_in(refused, "C1")
    assert f"khms unreject {UNIT} C1" in error.value.hint


def test_a_text_that_says_something_else_by_now_comes_in(refused: Base) -> None:
    unit = refused.inbox / UNIT
    text = (unit / "dropped/C1.md").read_text(encoding="utf-8")
    (unit / "C1.md").write_text(text.replace("tightened", "replaced by a copper one"), encoding="utf-8")
    (unit / "dropped/C1.md").unlink()
    assert let_in(refused, "C1") == "K-00001"


def test_unreject_brings_the_candidate_back_in_one_commit(refused: Base, git: Git, write: Make) -> None:
    before = git(refused, "rev-parse", "HEAD")
    done = unreject(refused, Repo(refused.root), Config([]), UNIT, ["C1"], "measured after all")
    assert done.moved == (("C1", f"memory/inbox/{UNIT}/C1.md"),)
    assert git(refused, "rev-parse", "HEAD~1") == before
    assert git(refused, "status", "--porcelain") == ""
    assert not (refused.inbox / UNIT / "dropped").exists()
    assert [line["verdict"] for line in lines(refused)] == ["rejected", "unrejected"]
    assert let_in(refused, "C1") == "K-00001"
    assert unreject(refused, Repo(refused.root), Config([]), UNIT, ["C1"], "").already == ("C1",)


def test_after_unreject_nothing_is_withheld_for_it(refused: Base, write: Make) -> None:
    unreject(refused, Repo(refused.root), Config([]), UNIT, ["C1"], "")
    write(
        refused,
        "journal/2026-03-04.md",
        "MARK[solved] the ground was tightened with a torque wrench until it clicked twice\n",
    )
    found = pipeline.nightly(refused, Repo(refused.root), Config([]))
    assert found.candidates["published"] == 1
    made = inbox.find(refused, found.unit).candidates[0]
    assert f"awaits-review:{UNIT}/C1" in made.flags  # it is pending again, and said so


def test_refused_again_it_is_refused(refused: Base) -> None:
    unreject(refused, Repo(refused.root), Config([]), UNIT, ["C1"], "")
    refuse(refused, "C1", why="no, really")
    (held,) = refusals(refused, ledger(refused)).same(SAID, 0.9)
    assert held.why == "no, really"


def test_what_cannot_be_taken_back_is_refused(refused: Base, git: Git) -> None:
    with pytest.raises(Usage, match="refused: C1"):
        unreject(refused, Repo(refused.root), Config([]), UNIT, [], "")
    with pytest.raises(Refused, match="no reviewer refused C2"):
        unreject(refused, Repo(refused.root), Config([]), UNIT, ["C1", "C2"], "")
    (refused.inbox / UNIT / "C1.md").write_text("another text\n", encoding="utf-8")
    with pytest.raises(Refused, match="with another text"):
        unreject(refused, Repo(refused.root), Config([]), UNIT, ["C1"], "")
    assert len(lines(refused)) == 1


def test_a_unit_that_was_cleared_away_is_known_by_its_receipts(refused: Base, git: Git, commit: Git) -> None:
    git(refused, "rm", "-r", "-q", "memory/inbox")
    commit(refused)
    assert unreject(refused, Repo(refused.root), Config([]), UNIT, ["C1"], "").gone == ("C1",)
    assert len(refusals(refused, ledger(refused))) == 0


def test_a_single_file_unit_remembers_and_takes_back_by_receipt(base: Base, commit: Git) -> None:
    head = "id: C1\ntype: fact\nlevel: observation\nstatus: active\ntags: []\nscope: universal\nevidence: reported\n"
    text = f"---\n{head}source: journal/2026-03-04.md\ndate: 2026-03-04\nlinks: {{}}\n---\nThe ground was loose.\n"
    (base.inbox / "2026-03-01.md").write_text(text, encoding="utf-8")
    commit(base)
    refuse(base, "C1", unit="2026-03-01")
    assert len(refusals(base, ledger(base)).same("the ground was loose", 0.9)) == 1
    unreject(base, Repo(base.root), Config([]), "2026-03-01", ["C1"], "")
    assert len(refusals(base, ledger(base))) == 0
    refuse(base, "C1", unit="2026-03-01")  # pending again, so it can be refused again
    assert [line["verdict"] for line in lines(base)] == ["rejected", "unrejected", "rejected"]


@pytest.mark.parametrize("act", ["reject", "defer", "unreject"])
def test_a_reviewer_decides_on_the_receiving_branch_and_in_calm(refused: Base, git: Git, act: str) -> None:
    repo = Repo(refused.root)

    def run(here: bool = False) -> object:
        if act == "unreject":
            return unreject(refused, repo, load(refused.root), UNIT, ["C1"], "", here=here)
        return withhold(
            refused,
            repo,
            load(refused.root),
            UNIT,
            ["C2"],
            {"reject": "rejected", "defer": "deferred"}[act],
            "x",
            here=here,
        )

    (refused.root / ".git/MERGE_HEAD").write_text("0" * 40, encoding="utf-8")
    with pytest.raises(Refused, match="a merge is in progress"):
        run()
    (refused.root / ".git/MERGE_HEAD").unlink()
    (refused.root / "khms.toml").write_text('[git]\nbranch = "main"\n', encoding="utf-8")
    git(refused, "checkout", "-q", "-b", "topic")
    with pytest.raises(Refused, match="approvals belong on main"):
        run()
    assert run(here=True)
