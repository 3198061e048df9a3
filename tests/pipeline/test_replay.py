"""Two clones of one remote: what each decided unpublished comes together, with real git."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.check.audit import whole
from khms.config import load
from khms.errors import Refused
from khms.model.approval import candidate_sha256, card_sha256
from khms.pipeline.adopt import adopt
from khms.pipeline.approve import Result, Wish, approve
from khms.pipeline.replay import Conflict
from khms.pipeline.status import change
from khms.pipeline.sync import Synced, sync
from khms.pipeline.withhold import withhold
from khms.render import views
from khms.store import cards, markdown
from khms.store.layout import Base
from khms.store.repo import Repo

Make = Callable[..., Path]
Git = Callable[..., str]
UNIT = "2026-03-05-nightly"


def share(base: Base, **more: object) -> Synced:
    return sync(base, Repo(base.root), load(base.root), views.for_tree, **more)  # type: ignore[arg-type]


def let_in(base: Base, unit: str, *labels: str, **wish: object) -> Result:
    settings = Wish(labels=labels, everything=not labels, **wish)  # type: ignore[arg-type]
    return approve(base, Repo(base.root), load(base.root), unit, settings, views.for_base)


def set_status(base: Base, card_id: str, new: str, by: str | None = None) -> None:
    change(base, Repo(base.root), load(base.root), card_id, new, by=by, why="measured again", views=views.for_base)


@pytest.fixture
def clones(base: Base, commit: Git, add_card: Make, cloned: Callable[..., list[Base]]) -> tuple[Base, Base]:
    """Ada's and Bob's clones of one bare remote, whose base holds K-00001 to K-00003."""
    for number in (1, 2, 3):
        add_card(base, f"K-0000{number}")
    commit(base)
    adopt(base, Repo(base.root), load(base.root))
    ada, bob = cloned(base, "ada", "bob")
    return ada, bob


def needle(base: Base, words: str) -> str:
    """The id of the one card whose body holds these words."""
    found = [path for place in (base.know, base.archive) for path in place.glob("K-*.md") if words in path.read_text()]
    assert len(found) == 1, (words, found)
    return found[0].stem


def proven(base: Base, git: Git) -> None:
    """Every new card has its record, with the hash of its bytes, and every record its candidate."""
    records = [record for record in cards.approvals(base) if record.unit]
    held = {card.id: (record, card) for record in records for card in record.cards}
    assert len(held) == sum(len(record.cards) for record in records), "an id was given twice"
    for card_id, (record, card) in held.items():
        path = cards.find(base, card_id)
        assert path is not None and card_sha256(path.read_bytes()) == card.card_sha256, card_id
        assert candidate_sha256((base.root / record.unit / f"{card.label}.md").read_bytes()) == card.candidate_sha256
    assert git(base, "status", "--porcelain") == ""
    git(base, "fsck", "--strict")
    assert whole(base, Repo(base.root)).troubles == ()
    wanted = views.wanted(base, cards.shelf(base).cards)
    assert {path: (base.root / path).read_bytes() for path in wanted} == wanted


def same(one: Base, other: Base, git: Git) -> None:
    assert git(one, "rev-parse", "HEAD") == git(other, "rev-parse", "HEAD")
    assert git(one, "ls-tree", "-r", "HEAD") == git(other, "ls-tree", "-r", "HEAD")


def settled(ada: Base, bob: Base, git: Git) -> None:
    """Once Ada has what Bob published, both hold the same, and all of it proven."""
    share(ada)
    same(ada, bob, git)
    proven(bob, git)


def test_the_later_clone_gets_new_ids_and_its_links_follow(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob = clones
    add_candidate(ada, "C1", unit="u.ada", body="FIX: needle-ada\n", mark="M-00000000000a")
    commit(ada)
    assert let_in(ada, "u.ada").cards[0][1] == "K-00004"
    add_candidate(bob, "C1", unit="u.bob", body="FIX: needle-bob-one\n", mark="M-0000000000b1")
    body = "FIX: needle-bob-two, see [[C1]] and K-00004 in words\n\n```\n[[K-00004]]\n```\n> [[K-00004]] said it\n"
    links = {"derived_from": [], "supports": ["C1", "K-00002"], "contradicts": [], "supersedes": None, "refuted_by": []}
    add_candidate(bob, "C2", unit="u.bob", body=body, links=links, mark="M-0000000000b2")
    commit(bob)
    let_in(bob, "u.bob")
    assert share(ada).pushed == 2
    done = share(bob)
    assert done.ids == {"K-00004": "K-00005", "K-00005": "K-00006"} and done.left == ()
    assert needle(bob, "needle-ada") == "K-00004"
    assert needle(bob, "needle-bob-one") == "K-00005"
    page = markdown.read(bob.know / "K-00006.md", "")
    assert page.meta["links"]["supports"] == ["K-00005", "K-00002"]
    assert page.body == body.replace("[[C1]]", "[[K-00005]]")
    (record,) = [r for r in cards.approvals(bob) if r.unit.endswith("u.bob")]
    assert [card.was for card in record.cards] == [("K-00004",), ("K-00005",)]
    assert record.reviewer == "Bob <bob@example.org>" and record.parent == git(bob, "rev-parse", "HEAD~1")
    assert "Khms-Approved: K-00006" in git(bob, "log", "-1", "--format=%B")
    share(ada)
    same(ada, bob, git)
    proven(ada, git)
    proven(bob, git)
    assert share(bob).pushed == share(ada).pulled == 0


def test_a_later_unit_that_names_a_renumbered_card_follows(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob = clones
    add_candidate(ada, "C1", unit="u.ada", body="FIX: needle-ada\n", mark="absent")
    commit(ada)
    let_in(ada, "u.ada")
    share(ada)
    add_candidate(bob, "C1", unit="u.bob", body="FIX: needle-bob\n", mark="absent")
    commit(bob)
    let_in(bob, "u.bob")
    quotes = [{"source": "K-00004", "sha256": "", "text": "needle-bob, K-00004 as it was", "grade": "", "context": ""}]
    relation = {"kind": "supports", "target": "K-00004", "because": "as K-00004 says"}
    path = add_candidate(
        bob, "C1", unit="u2.bob", relation=relation, nearest=["K-00004", "K-00001"], quotes=quotes, mark="absent"
    )
    unit = path.parent / "unit.json"
    unit.write_text(json.dumps({"files": {"C1.md": candidate_sha256(path.read_bytes())}}), encoding="utf-8")
    (path.parent / "dropped").mkdir()
    (path.parent / "dropped" / "C2.md").write_text("---\nid: C2\n---\nFIX: see [[K-00004]]\n", encoding="utf-8")
    commit(bob, "a unit")
    share(bob)
    page = markdown.read(path, "")
    assert page.meta["relation"] == {"kind": "supports", "target": "K-00005", "because": "as K-00004 says"}
    assert page.meta["nearest"] == ["K-00005", "K-00001"]
    assert page.meta["quotes"][0]["source"] == "K-00005"
    assert page.meta["quotes"][0]["text"] == "needle-bob, K-00004 as it was"
    assert json.loads(unit.read_text("utf-8"))["files"]["C1.md"] == candidate_sha256(path.read_bytes())
    assert "[[K-00005]]" in (path.parent / "dropped" / "C2.md").read_text("utf-8")
    assert git(bob, "log", "-1", "--format=%s %an") == "a unit Bob"


def test_edges_are_followed_again_on_what_others_did(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob = clones
    for base, name in ((ada, "ada"), (bob, "bob")):
        add_candidate(
            base,
            unit=f"u.{name}",
            body=f"FIX: needle-{name}\n",
            mark="absent",
            relation={"kind": "contradicts", "target": "K-00003", "because": "no"},
        )
        commit(base)
        let_in(base, f"u.{name}")
    share(ada)
    share(bob)
    settled(ada, bob, git)
    page = markdown.read(bob.know / "K-00003.md", "")
    assert page.meta["status"] == "challenged" and page.meta["links"]["contradicts"] == ["K-00004", "K-00005"]
    last = cards.approvals(bob)[-1]
    assert [(t.id, t.field, t.new) for t in last.transitions if t.id == "K-00003"] == [
        ("K-00003", "links.contradicts", ["K-00004", "K-00005"])
    ]


def test_two_that_superseded_one_card_stop_and_are_named(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob = clones
    for base, name in ((ada, "ada"), (bob, "bob")):
        relation = {"kind": "supersedes", "target": "K-00003", "because": "measured"}
        add_candidate(base, unit=f"u.{name}", body=f"FIX: needle-{name}\n", mark="absent", relation=relation)
        commit(base)
        let_in(base, f"u.{name}")
    share(ada)
    before = git(bob, "rev-parse", "HEAD"), git(bob, "status", "--porcelain")
    with pytest.raises(Conflict, match=r"K-00003 was superseded twice: by K-00004.*here by K-00004") as caught:
        share(bob)
    assert "--yield K-00004" in caught.value.hint
    assert (git(bob, "rev-parse", "HEAD"), git(bob, "status", "--porcelain")) == before
    done = share(bob, yielded=frozenset({"K-00004"}))
    assert [(left.verdict, left.label) for left in done.left] == [("yielded", "C1")]
    assert (bob.inbox / "u.bob/dropped/C1.md").exists() and not (bob.inbox / "u.bob/C1.md").exists()
    settled(ada, bob, git)


def test_a_target_that_was_archived_meanwhile_withholds_the_card_and_what_names_it(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob = clones
    set_status(ada, "K-00003", "condensed", "K-00001")
    share(ada)
    relation = {"kind": "contradicts", "target": "K-00003", "because": "measured"}
    add_candidate(bob, "C1", unit="u.bob", body="FIX: needle-one\n", mark="M-0000000000c1", relation=relation)
    add_candidate(bob, "C2", unit="u.bob", body="FIX: needle-two, see [[C1]]\n", mark="M-0000000000c2")
    add_candidate(bob, "C3", unit="u.bob", body="FIX: needle-three\n", mark="M-0000000000c3")
    commit(bob)
    let_in(bob, "u.bob")
    done = share(bob)
    assert [(left.id, left.verdict) for left in done.left] == [
        ("K-00004", "target-archived"),
        ("K-00005", "withheld-target"),
    ]
    assert done.ids == {"K-00006": "K-00004"} and needle(bob, "needle-three") == "K-00004"
    assert sorted(path.name for path in (bob.inbox / "u.bob/dropped").iterdir()) == ["C1.md", "C2.md"]
    lines = [json.loads(line) for path in bob.receipts.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    assert {(r["label"], r["verdict"]) for r in lines} == {
        ("C1", "target-archived"),
        ("C2", "withheld-target"),
        ("C3", "approved"),
    }
    assert "challenged" not in (bob.archive / "K-00003.md").read_text("utf-8")
    settled(ada, bob, git)


def test_one_candidate_approved_by_both_is_one_card(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git
) -> None:
    ada, bob = clones
    add_candidate(ada, "C1", unit=UNIT, body="FIX: needle-one\n", mark="absent")
    add_candidate(ada, "C2", unit=UNIT, body="FIX: needle-two\n", mark="absent")
    commit(ada)
    share(ada)
    share(bob)
    let_in(ada, UNIT, "C2")
    let_in(bob, UNIT)
    share(ada)
    done = share(bob)
    assert done.ids == {"K-00004": "K-00005", "K-00005": "K-00004"}
    assert [(left.id, left.verdict, left.instead) for left in done.left] == [("K-00005", "already-approved", "K-00004")]
    assert needle(bob, "needle-one") == "K-00005" and needle(bob, "needle-two") == "K-00004"
    settled(ada, bob, git)


def test_transitions_rejections_and_hand_commits_are_carried(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git, write: Callable[..., Path]
) -> None:
    ada, bob = clones
    add_candidate(ada, "C1", unit="u.ada", body="FIX: needle-ada\n", mark="absent")
    commit(ada)
    let_in(ada, "u.ada")
    share(ada)
    add_candidate(bob, "C1", unit="u.bob", body="FIX: needle-bob\n", mark="absent")
    add_candidate(bob, "C2", unit="u.bob", body="FIX: not needed\n", mark="absent")
    commit(bob)
    let_in(bob, "u.bob", "C1")
    set_status(bob, "K-00001", "refuted", "K-00004")
    set_status(bob, "K-00004", "challenged", "K-00002")
    withhold(bob, Repo(bob.root), load(bob.root), "u.bob", ["C2"], "rejected", "not needed")
    script = write(bob, "tool.sh", "#!/bin/sh\n")
    script.chmod(0o755)
    (bob.root / "link").symlink_to("tool.sh")
    write(bob, "notes.md", "mine\n")
    commit(bob, "a tool and a note\n\nTicket: 9")
    done = share(bob)
    assert done.ids == {"K-00004": "K-00005"}
    assert markdown.read(bob.know / "K-00001.md", "").meta["links"]["refuted_by"] == ["K-00005"]
    assert markdown.read(bob.know / "K-00005.md", "").meta["status"] == "challenged"
    assert markdown.read(bob.know / "K-00002.md", "").meta["links"]["contradicts"] == ["K-00005"]
    assert (bob.inbox / "u.bob/dropped/C2.md").exists()
    assert git(bob, "log", "-1", "--format=%B") == "a tool and a note\n\nTicket: 9"
    assert "Set K-00005 challenged" in git(bob, "log", "--format=%s").splitlines()
    share(ada)
    same(ada, bob, git)
    proven(ada, git)
    assert (ada.root / "tool.sh").stat().st_mode & 0o100 and (ada.root / "link").is_symlink()


def test_a_conflict_in_a_carried_file_changes_nothing_and_names_it(
    clones: tuple[Base, Base], commit: Git, git: Git, write: Callable[..., Path]
) -> None:
    ada, bob = clones
    for base, text in ((ada, "one\n"), (bob, "two\n")):
        write(base, "notes.md", text)
        commit(base)
    share(ada)
    before = git(bob, "rev-parse", "HEAD")
    with pytest.raises(Conflict, match=r"notes\.md"):
        share(bob)
    assert git(bob, "rev-parse", "HEAD") == before and git(bob, "status", "--porcelain") == ""


def test_two_edits_of_one_file_that_fit_are_merged(
    clones: tuple[Base, Base], commit: Git, git: Git, write: Callable[..., Path]
) -> None:
    ada, bob = clones
    lines = [f"line {i}" for i in range(20)]
    write(ada, "notes.md", "\n".join(lines) + "\n")
    commit(ada)
    share(ada)
    share(bob)
    for base, at in ((ada, 1), (bob, 15)):
        write(base, "notes.md", "\n".join([*lines[:at], f"changed {at}", *lines[at + 1 :]]) + "\n")
        commit(base)
    share(ada)
    share(bob)
    assert (
        "changed 1\n" in (bob.root / "notes.md").read_text() and "changed 15\n" in (bob.root / "notes.md").read_text()
    )


def test_what_others_committed_here_is_merged_as_it_is(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git, write: Callable[..., Path]
) -> None:
    ada, bob = clones
    write(ada, "ada.md", "hers\n")
    commit(ada)
    share(ada)
    write(bob, "eve.md", "eve's\n")
    git(bob, "add", "eve.md")
    git(bob, "-c", "user.email=eve@example.org", "-c", "user.name=Eve", "commit", "--quiet", "-m", "eve's")
    hers = git(bob, "rev-parse", "HEAD")
    add_candidate(bob, unit="u.bob", body="FIX: needle-bob\n", mark="absent")
    commit(bob)
    let_in(bob, "u.bob")
    share(bob)
    assert git(bob, "merge-base", hers, "HEAD") == hers
    assert (bob.root / "ada.md").exists() and (bob.root / "eve.md").exists()
    share(ada)
    same(ada, bob, git)
    proven(ada, git)


def test_an_approval_that_others_build_on_is_not_made_again(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git, write: Callable[..., Path]
) -> None:
    ada, bob = clones
    for base, name in ((ada, "ada"), (bob, "bob")):
        add_candidate(base, unit=f"u.{name}", body=f"FIX: needle-{name}\n", mark="absent")
        commit(base)
        let_in(base, f"u.{name}")
    write(bob, "eve.md", "eve's\n")
    git(bob, "add", "eve.md")
    git(bob, "-c", "user.email=eve@example.org", "-c", "user.name=Eve", "commit", "--quiet", "-m", "eve's")
    share(ada)
    before = git(bob, "rev-parse", "HEAD")
    with pytest.raises(Conflict, match=r"K-00004 was given twice|changed here and by others"):
        share(bob)
    assert git(bob, "rev-parse", "HEAD") == before


def test_a_record_that_nothing_touched_stays_byte_for_byte(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git, write: Callable[..., Path]
) -> None:
    ada, bob = clones
    write(ada, "ada.md", "hers\n")
    commit(ada)
    share(ada)
    add_candidate(bob, unit="u.bob", body="FIX: needle-bob\n", mark="absent")
    commit(bob)
    let_in(bob, "u.bob")
    before = {path.name: path.read_bytes() for path in bob.approvals.glob("*.json")}
    share(bob)
    assert {path.name: path.read_bytes() for path in bob.approvals.glob("*.json")} == before


def test_a_dirty_file_in_the_way_is_named_and_nothing_is_pushed(
    clones: tuple[Base, Base], commit: Git, git: Git, write: Callable[..., Path], tmp_path: Path
) -> None:
    ada, bob = clones
    write(ada, "notes.md", "hers\n")
    commit(ada)
    share(ada)
    write(bob, "notes.md", "not committed\n")
    write(bob, "other.md", "published\n")
    git(bob, "add", "other.md")
    git(bob, "commit", "--quiet", "-m", "other")
    tip = git(tmp_path / "remote.git", "rev-parse", "main")
    with pytest.raises(Refused, match="stand in the way") as caught:
        share(bob)
    assert caught.value.where == "notes.md"
    assert git(tmp_path / "remote.git", "rev-parse", "main") == tip
    assert (bob.root / "notes.md").read_text() == "not committed\n"
    (bob.root / "notes.md").unlink()
    share(bob)
    assert (bob.root / "notes.md").read_text() == "hers\n"


def test_a_push_that_landed_before_a_kill_is_not_made_twice(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died between the push and the move: the clone still holds the old commits, the remote the new."""
    from khms.store.commit import Transaction

    ada, bob = clones
    for base, name in ((ada, "ada"), (bob, "bob")):
        add_candidate(base, "C1", unit=f"u.{name}", body=f"FIX: needle-{name}\n", mark="absent")
        commit(base)
        let_in(base, f"u.{name}")
    path = add_candidate(bob, "C1", unit="u3.bob", body="FIX: needle-edited\n", mark="absent")
    commit(bob)
    path.write_text(path.read_text("utf-8").replace("Loose ground", "A loose ground"), encoding="utf-8")
    let_in(bob, "u3.bob")
    share(ada)

    def die(self: Transaction, new: str, *, what: str) -> tuple[str, ...]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "move", die)
        with pytest.raises(KeyboardInterrupt):
            share(bob)
    add_candidate(bob, "C1", unit="u2.bob", body="FIX: needle-more, see [[K-00004]]\n", mark="absent")
    commit(bob)
    let_in(bob, "u2.bob")
    done = share(bob)
    assert done.ids == {"K-00004": "K-00005", "K-00005": "K-00006", "K-00006": "K-00007"}
    assert "[[K-00005]]" in (bob.know / "K-00007.md").read_text()
    settled(ada, bob, git)
    for name in ("ada", "bob", "edited", "more"):
        needle(bob, f"needle-{name}")


def test_replaying_two_units_of_twenty_four_cards_is_quick(
    clones: tuple[Base, Base], add_candidate: Make, commit: Git, git: Git, told: Callable[[str], None]
) -> None:
    import time

    ada, bob = clones
    add_candidate(ada, unit="u.ada", body="FIX: needle-ada\n", mark="absent")
    commit(ada)
    let_in(ada, "u.ada")
    share(ada)
    for unit in ("one.bob", "two.bob"):
        for number, word in enumerate("abcdefghijkl", 1):
            body = f"FIX: needle {word * 4} of {unit.partition('.')[0]}\n"
            add_candidate(bob, f"C{number}", unit=unit, body=body, mark="absent")
        commit(bob)
        let_in(bob, unit)
    begun = time.perf_counter()
    done = share(bob)
    told(f"replay of two units, {len(done.ids)} cards: {time.perf_counter() - begun:.2f} s")
    assert len(done.ids) == 24
    proven(bob, git)
