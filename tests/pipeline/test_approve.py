"""Approval: all or nothing, every fault named, and what the one commit holds."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import load
from khms.errors import KhmsError, Refused, Unavailable, Usage
from khms.model.approval import candidate_sha256, card_sha256
from khms.pipeline.approve import Result, approve
from khms.pipeline.ruling import Wish
from khms.pipeline.withhold import withhold
from khms.store import markdown
from khms.store.layout import Base
from khms.store.repo import Repo

UNIT = "2026-03-05-nightly"
Make = Callable[..., Path]
Git = Callable[..., str]


def let_in(base: Base, *labels: str, unit: str = UNIT, **wish: object) -> Result:
    settings = Wish(labels=labels, everything=not labels, **wish)  # type: ignore[arg-type]
    return approve(base, Repo(base.root), load(base.root), unit, settings, lambda base, cards: {})


def refusal(base: Base, *labels: str, unit: str = UNIT, **wish: object) -> KhmsError:
    before = state(base)
    with pytest.raises(KhmsError) as caught:
        let_in(base, *labels, unit=unit, **wish)
    assert state(base) == before, "a refusal changes nothing"
    return caught.value


def state(base: Base) -> tuple[str, dict[str, bytes]]:
    files = {
        base.relative(p): p.read_bytes() for p in sorted(base.root.rglob("*")) if p.is_file() and ".git" not in p.parts
    }
    return (base.root / ".git/refs/heads/main").read_text(encoding="utf-8"), files


def record(base: Base) -> dict[str, object]:
    (path,) = base.approvals.glob("*.json")
    value: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return value


def test_a_candidate_becomes_a_card_with_its_proof(base: Base, add_candidate: Make, commit: Git, git: Git) -> None:
    path = add_candidate(base, x_own="kept: as it was", body="FIX: tighten it\n\n---\n\nand a rule\n")
    commit(base)
    result = let_in(base, "C1")
    assert result.cards == (("C1", "K-00001", "memory/know/K-00001.md"),)
    data = (base.know / "K-00001.md").read_bytes()
    page = markdown.parse(data)
    assert page.meta["id"] == "K-00001" and page.meta["x_own"] == "kept: as it was"
    assert not {"mark", "confidence", "nearest", "relation", "quotes", "flags"} & set(page.meta)
    assert page.body == "FIX: tighten it\n\n---\n\nand a rule\n"
    held = record(base)
    assert held["unit"] == f"memory/inbox/{UNIT}" and held["reviewer"] == "Ada Tester <ada@example.org>"
    assert held["parent"] == git(base, "rev-parse", "HEAD~1")
    assert held["cards"] == [
        {
            "id": "K-00001",
            "label": "C1",
            "candidate_sha256": candidate_sha256(path.read_bytes()),
            "card_sha256": card_sha256(data),
            "was": [],
        }
    ]
    assert path.exists() and git(base, "status", "--porcelain") == ""
    assert "Khms-Approved: K-00001" in git(base, "log", "-1", "--format=%B")


def test_approving_again_says_so(base: Base, add_candidate: Make, commit: Git, git: Git) -> None:
    add_candidate(base)
    commit(base)
    let_in(base, "C1")
    head = git(base, "rev-parse", "HEAD")
    again = let_in(base, "C1")
    assert again.commit is None and again.already == {"C1": "K-00001"}
    assert let_in(base).commit is None
    assert git(base, "rev-parse", "HEAD") == head


def test_a_reviewers_edit_counts_and_is_committed(base: Base, add_candidate: Make, commit: Git, git: Git) -> None:
    path = add_candidate(base)
    commit(base)
    path.write_text(path.read_text(encoding="utf-8").replace("Loose ground", "A loose ground"), encoding="utf-8")
    let_in(base, "C1")
    assert "A loose ground" in git(base, "show", "HEAD:memory/know/K-00001.md")
    assert "A loose ground" in git(base, "show", f"HEAD:memory/inbox/{UNIT}/C1.md")


def test_labels_become_ids_in_structured_places_only(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base, "C1")
    body = "HOLDS: see [[C1]] and [[C1|that one]], not `[[C1]]`\n\n```\n[[C1]]\n```\n\n> C1 said it\n"
    links = {"derived_from": ["C1"], "supports": [], "contradicts": [], "supersedes": None, "refuted_by": []}
    add_candidate(base, "C2", body=body, links=links, type="principle", level="derived")
    commit(base)
    assert "C2 names C1" in refusal(base, "C2").where
    let_in(base, "C1")
    let_in(base, "C2", waived={("specifics", "C2"): ""}, why="the code span shows the form of a link")
    page = markdown.read(base.know / "K-00002.md", "")
    assert page.meta["links"]["derived_from"] == ["K-00001"]
    assert page.body == body.replace("see [[C1]] and [[C1|", "see [[K-00001]] and [[K-00001|")


def test_superseding_archives_the_old_card(
    base: Base, add_card: Make, add_candidate: Make, commit: Git, git: Git
) -> None:
    add_card(base, "K-00007")
    add_candidate(base, relation={"kind": "supersedes", "target": "K-00007", "because": "measured: it was\nthe cable"})
    commit(base)
    before = card_sha256((base.know / "K-00007.md").read_bytes())
    result = let_in(base, "C1")
    assert result.cards[0][1] == "K-00008"
    old = base.archive / "K-00007.md"
    assert not (base.know / "K-00007.md").exists() and markdown.read(old, "").meta["status"] == "superseded"
    assert card_sha256(old.read_bytes()) == before
    page = markdown.read(base.know / "K-00008.md", "")
    assert page.meta["links"]["supersedes"] == "K-00007"
    assert page.body.startswith("SUPERSEDES K-00007 BECAUSE: measured: it was the cable\n")
    assert [(t.id, t.field, t.new) for t in result.transitions] == [("K-00007", "status", "superseded")]
    assert git(base, "status", "--porcelain") == ""


def test_contradicting_challenges_and_links_both_ways(
    base: Base, add_card: Make, add_candidate: Make, commit: Git
) -> None:
    add_card(base, "K-00001")
    add_candidate(base, relation={"kind": "contradicts", "target": "K-00001", "because": "it holds when cold"})
    commit(base)
    result = let_in(base, "C1")
    old, new = markdown.read(base.know / "K-00001.md", ""), markdown.read(base.know / "K-00002.md", "")
    assert old.meta["status"] == "challenged" and old.meta["links"]["contradicts"] == ["K-00002"]
    assert new.meta["status"] == "active" and new.meta["links"]["contradicts"] == ["K-00001"]
    assert [(t.field, t.old, t.new) for t in result.transitions] == [
        ("links.contradicts", [], ["K-00001"]),
        ("links.contradicts", [], ["K-00002"]),
        ("status", "active", "challenged"),
    ]


def test_two_candidates_of_one_unit_may_contradict(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base, "C1")
    links = {"derived_from": [], "supports": [], "contradicts": ["C1"], "supersedes": None, "refuted_by": []}
    add_candidate(base, "C2", links=links)
    commit(base)
    let_in(base)
    first = markdown.read(base.know / "K-00001.md", "")
    assert first.meta["links"]["contradicts"] == ["K-00002"] and first.meta["status"] == "challenged"
    assert record(base)["cards"][0]["card_sha256"] == card_sha256((base.know / "K-00001.md").read_bytes())  # type: ignore[index]


def test_one_fault_refuses_all_and_every_fault_is_named(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base, "C1")
    quote = {"source": "journal", "text": "words that stand in no source at all", "grade": "EXACT"}
    add_candidate(base, "C2", quotes=[quote])
    add_candidate(base, "C3", relation={"kind": "unjudged"})
    add_candidate(base, "C4", title="absent")
    commit(base)
    said = refusal(base)
    assert isinstance(said, Refused) and said.exit_code == 3
    for part in ("C2 quotes:", f"{UNIT}/C2.md:", "C3 relations:", "--unjudged"):
        assert part in said.where
    assert "C1" not in said.where
    assert "title" in refusal(base, "C4").where


def test_a_broken_candidate_is_named_and_hides_no_other(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base, "C1")
    add_candidate(base, "C2").write_text("---\nid: C2\ntitle: a: b\n---\nx\n", encoding="utf-8")
    commit(base)
    assert "C2.md:3" in refusal(base).where
    assert let_in(base, "C1").cards[0][1] == "K-00001"


def test_without_labels_the_call_is_wrong(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base)
    commit(base)
    with pytest.raises(Usage, match="pending: C1"):
        approve(base, Repo(base.root), load(base.root), UNIT, Wish(), lambda base, cards: {})
    assert "no inbox unit" in refusal(base, "C1", unit="elsewhere").message
    assert "no candidate C9" in refusal(base, "C9").message


def test_a_relation_is_settled_by_the_reviewer(base: Base, add_card: Make, add_candidate: Make, commit: Git) -> None:
    add_card(base, "K-00001")
    for label in ("C1", "C2", "C3"):
        add_candidate(base, label, relation={"kind": "unjudged"}, nearest=["K-00001"])
    commit(base)
    assert "perhaps" in refusal(base, "C1", relations={"C1": "perhaps"}).where
    let_in(base, "C1", relations={"C1": "supports:K-00001"})
    assert markdown.read(base.know / "K-00002.md", "").meta["links"]["supports"] == ["K-00001"]
    let_in(base, "C2", relations={"C2": "new"})
    let_in(base, "C3", unjudged=True)
    assert sorted(path.stem for path in base.know.glob("*.md")) == [f"K-0000{n}" for n in (1, 2, 3, 4)]


def test_a_reviewer_gives_the_reason_of_a_correction(
    base: Base, add_card: Make, add_candidate: Make, commit: Git
) -> None:
    add_card(base, "K-00001")
    add_candidate(base, relation={"kind": "unjudged"}, nearest=["K-00001"])
    commit(base)
    settled = {"C1": "supersedes:K-00001"}
    assert "--why" in refusal(base, "C1", relations=settled).where
    let_in(base, "C1", relations=settled, why="measured again")
    page = markdown.read(base.know / "K-00002.md", "")
    assert page.body.startswith("SUPERSEDES K-00001 BECAUSE: measured again\n")


def test_a_target_that_cannot_be_superseded_refuses(
    base: Base, add_card: Make, add_candidate: Make, commit: Git
) -> None:
    add_card(base, "K-00001", status="superseded")
    add_candidate(base, "C1", relation={"kind": "supersedes", "target": "K-00001", "because": "x"})
    add_candidate(base, "C2", relation={"kind": "supersedes", "target": "K-00099", "because": "x"})
    commit(base)
    assert "K-00001" in refusal(base, "C1").where
    assert "K-00099" in refusal(base, "C2").where


def test_a_waiver_is_recorded_and_a_secret_cannot_be_waived(base: Base, add_candidate: Make, commit: Git) -> None:
    quote = {"source": "journal", "text": "words that stand in no source at all", "grade": "ABSENT"}
    add_candidate(base, "C1", quotes=[quote])
    key = "ghp_" + "a1B2" * 9
    add_candidate(base, "C2", body=f"FIX: use {key}\n")
    commit(base)
    let_in(base, "C1", waived={("quotes", "C1"): ""}, why="the log is gone, I saw it")
    assert record(base)["waivers"] == [{"check": "quotes", "label": "C1", "why": "the log is gone, I saw it"}]
    said = refusal(base, "C2", waived={("screening", "C2"): ""}, why="I want it")
    assert key not in str(said)


def test_an_agent_and_a_background_run_may_not_approve(
    base: Base, add_candidate: Make, commit: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_candidate(base, "C1")
    add_candidate(base, "C2")
    commit(base)
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "claude-code" in refusal(base, "C1").message
    (base.root / "khms.toml").write_text("[review]\nallow_agents = true\n", encoding="utf-8")
    let_in(base, "C1")
    assert record(base)["reviewer"] == "agent:claude-code"
    monkeypatch.delenv("CLAUDECODE")
    monkeypatch.setenv("KHMS_BACKGROUND", "1")
    assert "background" in refusal(base, "C2").message


def test_cards_that_nobody_committed_and_a_merge_refuse(
    base: Base, add_card: Make, add_candidate: Make, commit: Git, git: Git
) -> None:
    add_card(base, "K-00001")
    add_candidate(base)
    commit(base)
    card = base.know / "K-00001.md"
    card.write_text(card.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert "K-00001" in refusal(base, "C1").where
    git(base, "checkout", "--", ".")
    (base.root / ".git" / "MERGE_HEAD").write_text(git(base, "rev-parse", "HEAD") + "\n", encoding="utf-8")
    assert "a merge is in progress" in refusal(base, "C1").message


def test_another_branch_needs_here(base: Base, add_candidate: Make, commit: Git, git: Git) -> None:
    add_candidate(base)
    (base.root / "khms.toml").write_text('[git]\nbranch = "main"\n', encoding="utf-8")
    commit(base)
    git(base, "switch", "--quiet", "-c", "side")
    assert "--here" in refusal(base, "C1").hint
    assert let_in(base, "C1", here=True).commit == git(base, "rev-parse", "side")
    assert not (base.root / "MEMORY.md").exists()


def test_without_an_identity_the_two_commands_are_named(
    base: Base, add_candidate: Make, commit: Git, own_environment: Path
) -> None:
    add_candidate(base)
    commit(base)
    (own_environment / ".gitconfig").unlink()
    said = refusal(base, "C1")
    assert isinstance(said, Unavailable) and "user.email" in said.hint


def test_ids_continue_after_everything_that_ever_was(
    base: Base, add_card: Make, add_candidate: Make, commit: Git
) -> None:
    add_card(base, "K-00003")
    add_card(base, "K-00012", status="superseded")
    (base.root / "tools").mkdir()
    (base.root / "tools/.next_id").write_text("13", encoding="utf-8")
    add_candidate(base)
    commit(base)
    assert let_in(base, "C1").cards[0][1] == "K-00013"
    assert (base.root / "tools/.next_id").read_text(encoding="utf-8") == "14"
    (base.know / "K-00013.md").unlink()
    add_candidate(base, "C2")
    commit(base)
    assert let_in(base, "C2").cards[0][1] == "K-00014"


def test_what_was_refused_or_put_off_is_moved_and_may_come_back(base: Base, add_candidate: Make, commit: Git) -> None:
    for label in ("C1", "C2", "C3"):
        add_candidate(base, label)
    commit(base)
    config, repo = load(base.root), Repo(base.root)
    withhold(base, repo, config, UNIT, ["C1"], "rejected", "never measured")
    withhold(base, repo, config, UNIT, ["C2"], "deferred", "")
    folder = base.inbox / UNIT
    assert (folder / "dropped/C1.md").is_file() and (folder / "deferred/C2.md").is_file()
    assert "no candidate C1" in refusal(base, "C1").message
    (folder / "deferred/C2.md").rename(folder / "C2.md")
    assert [card[0] for card in let_in(base).cards] == ["C2", "C3"]
    with pytest.raises(Usage):
        withhold(base, repo, config, UNIT, ["C1"], "rejected", " ")


def test_hostile_paths_lead_nowhere(base: Base, add_candidate: Make, commit: Git, tmp_path: Path) -> None:
    add_candidate(base, "C1")
    outside = tmp_path / "outside.md"
    outside.write_text((base.inbox / UNIT / "C1.md").read_text(encoding="utf-8"), encoding="utf-8")
    (base.inbox / UNIT / "C2.md").symlink_to(outside)
    commit(base)
    assert "out of the base" in refusal(base).where
    for name in ("../../etc", "..", "/etc", "."):
        assert "no inbox unit" in refusal(base, "C1", unit=name).message


@pytest.mark.parametrize(
    ("label", "keys", "words"),
    [
        ("C1", {"id": "../../../x"}, "its id is '../../../x'"),
        ("C1", {"id": "K-00001"}, "its id is 'K-00001'"),
        ("C1", {"id": "C2"}, "its id is 'C2'"),
        ("C1", {"id": "absent"}, "it has no id"),
        ("notes", {}, "'notes' is no label"),
        ("C1", {"flags": "5"}, "`flags`"),
        ("C1", {"mark": "../../x"}, "`mark`"),
        ("C1", {"confidence": "often"}, "`confidence`"),
        ("C1", {"quotes": ["words without a source"]}, "`quotes[0]`"),
        ("C1", {"status": "superseded"}, "a new card cannot be superseded"),
        ("C1", {"status": "refuted"}, "a new card cannot be refuted"),
        ("C1", {"status": "challenged"}, "a new card cannot be challenged"),
        ("C1", {"body": "\n \n"}, "its body says nothing"),
        ("C1", {"body": "\n**QUOTES:**\n"}, "its body says nothing"),
    ],
)
def test_a_candidate_that_is_not_in_form_is_refused_at_its_own_line(
    base: Base, add_candidate: Make, commit: Git, label: str, keys: dict[str, object], words: str
) -> None:
    path = add_candidate(base, label, **keys)
    commit(base)
    said = refusal(base, label)
    assert isinstance(said, Refused) and words in said.where
    place = said.where[said.where.index(f"{UNIT}/{label}.md:") :].split(":")
    key = next(iter(keys), "id")
    lines = path.read_text(encoding="utf-8").split("\n")
    if key != "body" and keys.get(key) != "absent":
        assert lines[int(place[1]) - 1].startswith(f"{key}:")


def test_an_old_candidate_without_a_mark_and_one_that_disputes_come_in(
    base: Base, add_card: Make, add_candidate: Make, commit: Git
) -> None:
    add_card(base, "K-00001")
    add_candidate(base, "C1", mark=None)
    links = {"derived_from": [], "supports": [], "contradicts": ["K-00001"], "supersedes": None, "refuted_by": []}
    add_candidate(base, "C2", status="challenged", links=links)
    commit(base)
    assert len(let_in(base).cards) == 2


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"waived": {("foo", "C1"): ""}}, "no check foo"),
        ({"accepted": frozenset({"bogus"})}, "no check bogus"),
        ({"waived": {("quotes", "C9"): ""}}, "C9 is not among"),
        ({"waived": {("quotes", "C2"): ""}}, "C2 is not among"),
        ({"relations": {"C7": "new"}}, "C7 is not among"),
    ],
)
def test_what_the_approval_does_not_have_is_a_wrong_call(
    base: Base, add_candidate: Make, commit: Git, wish: dict[str, object], words: str
) -> None:
    add_candidate(base, "C1")
    add_candidate(base, "C2")
    commit(base)
    said = refusal(base, "C1", why="so", **wish)
    assert isinstance(said, Usage) and words in said.message
    assert "quotes, specifics" in said.hint or said.hint.endswith(": C1")


def test_a_waiver_that_nothing_called_for_is_not_recorded(base: Base, add_candidate: Make, commit: Git) -> None:
    quote = {"source": "journal", "text": "words that stand in no source at all", "grade": "ABSENT"}
    add_candidate(base, "C1", quotes=[quote])
    commit(base)
    waived = dict.fromkeys([("quotes", "C1"), ("specifics", "C1"), ("screening", "C1")], "")
    result = let_in(base, "C1", waived=waived, why="I saw it")
    assert [w["check"] for w in record(base)["waivers"]] == ["quotes"]  # type: ignore[attr-defined]
    assert result.unneeded == ("screening:C1", "specifics:C1")


def test_a_detached_head_is_another_branch(base: Base, add_candidate: Make, commit: Git, git: Git) -> None:
    add_candidate(base)
    commit(base)
    git(base, "checkout", "--quiet", "--detach")
    said = refusal(base, "C1")
    assert isinstance(said, Refused) and "git switch main" in said.hint and "--here" in said.hint
    assert let_in(base, "C1", here=True).commit == git(base, "rev-parse", "HEAD")
    assert git(base, "rev-parse", "main") != git(base, "rev-parse", "HEAD")


def test_a_detached_head_in_a_repository_without_branches(
    base: Base, add_candidate: Make, commit: Git, git: Git
) -> None:
    add_candidate(base)
    commit(base)
    git(base, "checkout", "--quiet", "--detach")
    git(base, "branch", "--quiet", "-D", "main")
    assert let_in(base, "C1").commit == git(base, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("said", "words", "mend"),
    [
        ("bogus", "'bogus' is no relation", "one of: new, supports"),
        ("supersedes:K-00001,K-00002", "'K-00001,K-00002' is not the id of one card", "--relation C1="),
        ("supports", "it supports nothing", "--relation C1="),
        ("new:K-00001", "it is new and names K-00001", "--relation C1="),
        ("supersedes:C1", "it supersedes itself", "--relation C1="),
        ("supersedes:C2", "it supersedes C2, which is no card yet", "--relation C1="),
        ("supersedes:C9", "it supersedes C9, and there is no such card", "--relation C1="),
        ("contradicts:K-00099", "it contradicts K-00099, and there is no such card", "--relation C1="),
        ("supersedes:../x", "'../x' is not the id of one card", "--relation C1="),
    ],
)
def test_a_relation_that_cannot_be_is_one_fault_with_its_mend(
    base: Base, add_card: Make, add_candidate: Make, commit: Git, said: str, words: str, mend: str
) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00002")
    add_candidate(base, "C1")
    add_candidate(base, "C2")
    commit(base)
    faults = refusal(base, "C1", "C2", relations={"C1": said}, why="measured again")
    assert faults.message.startswith("one fault") and f"{UNIT}/C1.md" in faults.where
    assert words in faults.where and mend in faults.where and "--waive" not in faults.where


@pytest.mark.parametrize("name", ["supports", "contradicts", "supersedes", "derived_from"])
def test_links_to_itself_are_told_at_the_candidate(base: Base, add_candidate: Make, commit: Git, name: str) -> None:
    path = add_candidate(base, links={name: ["C1"]})
    commit(base)
    said = refusal(base, "C1")
    assert said.message.startswith("one fault") and f"links.{name} names itself" in said.where
    line = path.read_text(encoding="utf-8").split("\n").index("links:") + 1
    assert f"{UNIT}/C1.md:{line}" in said.where


def test_replacing_what_comes_in_with_it_is_told_at_the_candidate(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base, "C1")
    add_candidate(base, "C2", links={"supersedes": "C1"}, body="SUPERSEDES C1 BECAUSE: better\nFIX: the ground\n")
    commit(base)
    said = refusal(base)
    assert "it supersedes C1, which comes in with it" in said.where and "memory/know" not in said.where


def test_a_rejection_keeps_no_mark_that_is_none(base: Base, add_candidate: Make, commit: Git) -> None:
    add_candidate(base, mark="../../x")
    commit(base)
    withhold(base, Repo(base.root), load(base.root), UNIT, ["C1"], "rejected", "it names no MARK")
    (path,) = base.receipts.glob("*.jsonl")
    assert json.loads(path.read_text(encoding="utf-8"))["mark"] == ""
