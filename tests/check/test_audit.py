"""What slips past the review is found by every form of the audit, with the sentence that says how to do it right."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from khms.check.receive import received, updates
from khms.model.approval import Approved, Transition, candidate_sha256, card_sha256
from khms.model.ulid import new_ulid
from khms.store.layout import Base
from khms.store.repo import Repo

Codes = Callable[..., list[tuple[str, str]]]
Attack = Callable[[Any, Callable[..., Path]], str]


def slipped_in(held: Any, add_card: Callable[..., Path]) -> str:
    return add_card(held.base, "K-00009").name


def changed_byte(held: Any, add_card: Callable[..., Path]) -> str:
    path = held.base.know / "K-00001.md"
    path.write_text(path.read_text(encoding="utf-8").replace("says", "said"), encoding="utf-8")
    return str(path.name)


def changed_links(held: Any, add_card: Callable[..., Path]) -> str:
    path = held.base.know / "K-00001.md"
    path.write_text(path.read_text(encoding="utf-8").replace("tags: []", "tags: [a]"), encoding="utf-8")
    return str(path.name)


def used_id_again(held: Any, add_card: Callable[..., Path]) -> str:
    held.propose("2026-03-07-nightly", "C1")
    first = held.record(sorted(p.relative_to(held.base.root).as_posix() for p in held.base.approvals.glob("*"))[0])
    candidate = (held.base.inbox / "2026-03-07-nightly/C1.md").read_bytes()
    entry = Approved("K-00001", "C1", candidate_sha256(candidate), first.cards[0].card_sha256)
    forged = replace(first, id=new_ulid(), unit="memory/inbox/2026-03-07-nightly", cards=(entry,), transitions=())
    return str(Path(held.file(forged)).name)


def two_files(held: Any, add_card: Callable[..., Path]) -> str:
    (held.base.archive / "K-00001.md").write_bytes((held.base.know / "K-00001.md").read_bytes())
    return "K-00001.md"


def forged_record(held: Any, add_card: Callable[..., Path]) -> str:
    card = add_card(held.base, "K-00009")
    first = held.record(sorted(p.relative_to(held.base.root).as_posix() for p in held.base.approvals.glob("*"))[0])
    entry = Approved("K-00009", "C7", "0" * 64, card_sha256(card.read_bytes()))
    return str(Path(held.file(replace(first, id=new_ulid(), cards=(entry,), transitions=()))).name)


def status_by_hand(held: Any, add_card: Callable[..., Path]) -> str:
    path = held.base.know / "K-00003.md"
    path.write_text(path.read_text(encoding="utf-8").replace("status: active", "status: refuted"), encoding="utf-8")
    return str(path.name)


def edge_taken_out(held: Any, add_card: Callable[..., Path]) -> str:
    path = held.base.know / "K-00001.md"
    text = path.read_text(encoding="utf-8")
    assert "[K-00003]" in text
    path.write_text(text.replace("[K-00003]", "[]"), encoding="utf-8")
    return str(path.name)


def moved_by_hand(held: Any, add_card: Callable[..., Path]) -> str:
    (held.base.archive / "K-00002.md").rename(held.base.know / "K-00002.md")
    return "K-00002.md"


def changed_record(held: Any, add_card: Callable[..., Path]) -> str:
    path = sorted(held.base.approvals.glob("*.json"))[0]
    path.write_text(path.read_text(encoding="utf-8").replace("Ada Tester", "Bob Tester"), encoding="utf-8")
    return str(path.name)


def removed_record(held: Any, add_card: Callable[..., Path]) -> str:
    path = sorted(held.base.approvals.glob("*.json"))[1]
    path.unlink()
    return str(path.name)


def removed_card(held: Any, add_card: Callable[..., Path]) -> str:
    (held.base.know / "K-00003.md").unlink()
    return "K-00003"


def unreadable_record(held: Any, add_card: Callable[..., Path]) -> str:
    return str(Path(held.file(replace(held.record(_records(held)[0]), id="x"))).name)


def removed_settings(held: Any, add_card: Callable[..., Path]) -> str:
    held.base.config.unlink()
    return "khms.toml"


def _records(held: Any) -> list[str]:
    return sorted(path.relative_to(held.base.root).as_posix() for path in held.base.approvals.glob("*.json"))


# what was done: the code, words of the message, words of the mend
ATTACKS: dict[Attack, tuple[str, str, str]] = {
    slipped_in: ("KA001", "no approval record lets K-00009 in", "khms approve UNIT C1"),
    changed_byte: ("KA002", "not what was approved", "a correction is a new card that supersedes it"),
    changed_links: ("KA002", "not what was approved", "git checkout"),
    used_id_again: ("KA003", "K-00001 was given before", "approve again"),
    two_files: ("KA003", "a second file carries the id K-00001", "inbox unit"),
    forged_record: ("KA009", "no unit ever held a candidate with that hash", "inbox unit and approve it there"),
    status_by_hand: ("KA004", "its status is refuted, and the records say active", "khms card status K-00003"),
    edge_taken_out: ("KA004", "links.contradicts has none, and the records say K-00003", "khms card status K-00001"),
    moved_by_hand: ("KA004", "it lies in know/", "git mv memory/know/K-00002.md memory/archive/know/K-00002.md"),
    changed_record: ("KA005", "changed after it came in", "git checkout"),
    removed_record: ("KA005", "removed after it came in", "git checkout"),
    unreadable_record: ("KA009", "cannot be read", "written by khms alone"),
    removed_settings: ("KA008", "khms.toml was removed", "git checkout"),
}


def test_what_came_in_through_the_review_is_clean(reviewed: Any, codes: Codes) -> None:
    report = reviewed.whole()
    assert codes(report) == []
    assert (report.cards, report.records, report.signed, report.guarantee) == (4, 2, 0, "procedure")
    assert codes(reviewed.between("HEAD~1")) == [] and codes(reviewed.staged()) == []


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_it_is_found(attack: Attack, reviewed: Any, add_card: Callable[..., Path], codes: Codes, git: Any) -> None:
    """In the work tree, staged, committed, as a range and as a push."""
    code, said, mend = ATTACKS[attack]
    before = reviewed.head()
    name = attack(reviewed, add_card)
    reports = {"whole, uncommitted": reviewed.whole(), "staged": reviewed.staged()}
    reviewed.commit("an innocent title")
    reports |= {"whole": reviewed.whole(), "range": reviewed.between(before)}
    line = f"{before} {reviewed.head()} refs/heads/main\n"
    reports["receive"] = received(Repo(reviewed.base.root), updates(line))
    for form, report in reports.items():
        hits = [one for one in report.troubles if one.finding.code == code and one.finding.path.endswith(name)]
        assert hits, f"{form}: {codes(report)}"
        finding = hits[0].finding
        assert said in finding.message and mend in finding.mend, f"{form}: {finding}"
        assert hits[0].uncommitted == (form == "whole, uncommitted") or form == "whole, uncommitted", form
        others = {one.finding.code for one in report.troubles} - {code}
        assert others <= {"KA001", "KA002", "KA004", "KA009"}, form  # what a missing record leaves without proof


def test_a_card_that_is_gone_is_missed(reviewed: Any, add_card: Any, codes: Codes) -> None:
    before = reviewed.head()
    removed_card(reviewed, add_card)
    loose = reviewed.whole()
    assert [(t.finding.code, t.id, t.uncommitted) for t in loose.troubles] == [("KA009", "K-00003", True)]
    assert "K-00003, which this record names, is gone" in loose.troubles[0].finding.message
    reviewed.commit()
    assert codes(reviewed.whole()) and not reviewed.whole().troubles[0].uncommitted
    assert [t.id for t in reviewed.between(before).troubles] == ["K-00003"]


def test_the_sentence_restores_the_card(reviewed: Any, add_card: Any, git: Any) -> None:
    changed_byte(reviewed, add_card)
    reviewed.commit()
    mend = reviewed.whole().troubles[0].finding.mend
    command = mend.partition(": ")[2].partition(";")[0].split()
    assert command[:2] == ["git", "checkout"]
    git(reviewed.base, *command[1:])
    assert reviewed.whole().troubles == ()


def test_ignored_and_passed_over_files_are_read_too(reviewed: Any, add_card: Any, codes: Codes, git: Any) -> None:
    (reviewed.base.root / ".git/info/exclude").write_text("K-00009.md\n", encoding="utf-8")
    slipped_in(reviewed, add_card)
    assert codes(reviewed.whole()) == [("KA001", "K-00009.md")]
    git(reviewed.base, "update-index", "--assume-unchanged", "memory/know/K-00001.md")
    changed_byte(reviewed, add_card)
    assert codes(reviewed.whole()) == [("KA002", "K-00001.md"), ("KA001", "K-00009.md")]


def test_a_sparse_checkout_removes_nothing(reviewed: Any, codes: Codes, git: Any) -> None:
    git(reviewed.base, "sparse-checkout", "set", "--no-cone", "/memory/inbox/", "/khms.toml")
    assert not reviewed.base.know.exists()
    assert codes(reviewed.whole()) == []


def test_the_same_lines_with_other_ends_are_the_same_card(reviewed: Any, codes: Codes) -> None:
    path = reviewed.base.know / "K-00001.md"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    reviewed.commit()
    assert codes(reviewed.whole()) == []


def test_a_base_in_a_projects_folder(tmp_path: Path, base: Any, git: Any, codes: Codes, reviewed_class: Any) -> None:
    """All forms work below a prefix, and see nothing of the project's own files."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "--quiet")
    inner = project / ".memory"
    for name in ("memory", "journal", "khms.toml"):
        inner.mkdir(exist_ok=True)
        (base.root / name).rename(inner / name)
    (project / "memory").mkdir()
    (project / "memory/know").write_text("no folder\n", encoding="utf-8")
    made = reviewed_class(Base(inner.resolve(), named=True), git)
    for folder in ("memory/know", "memory/archive/know", "memory/approvals", "memory/inbox"):
        (inner / folder).mkdir(parents=True, exist_ok=True)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "-m", "start")
    made.propose("2026-03-05-nightly", "C1")
    made.approve("2026-03-05-nightly")
    assert made.repo.prefix == ".memory/" and codes(made.whole()) == []
    before = made.head()
    path = made.base.know / "K-00001.md"
    path.write_text(path.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert codes(made.whole()) == codes(made.staged()) == [("KA002", "K-00001.md")]
    made.commit()
    assert codes(made.whole()) == codes(made.between(before)) == [("KA002", "K-00001.md")]
    line = f"{before} {made.head()} refs/heads/main\n"
    assert received(Repo(project), updates(line)).troubles[0].finding.path == ".memory/memory/know/K-00001.md"


def test_json_says_what_and_whose(reviewed: Any, add_card: Any) -> None:
    slipped_in(reviewed, add_card)
    (one,) = reviewed.whole().troubles
    value = json.loads(json.dumps(one.as_json()))
    assert value["id"] == "K-00009" and value["problem"] == "no record" and value["uncommitted"] is True
    assert {"code", "severity", "path", "line", "message", "mend", "commit"} <= value.keys()


def test_lint_says_the_same_of_a_cards_hash(reviewed: Any, add_card: Callable[..., Path], report: Any) -> None:
    """KH010 and the audit agree: a card without a record, a changed one, one that was redacted on the record."""
    slipped_in(reviewed, add_card)
    changed_byte(reviewed, add_card)
    path = reviewed.base.know / "K-00003.md"
    old = card_sha256(path.read_bytes())
    path.write_text(path.read_text(encoding="utf-8").replace("says", "[redacted]"), encoding="utf-8")
    change = Transition("K-00003", "card_sha256", old, card_sha256(path.read_bytes()), "a name stood there")
    first = reviewed.record(_records(reviewed)[0])
    reviewed.file(replace(first, id=new_ulid(), unit="", cards=(), transitions=(change,)))
    linted = {f.path.rpartition("/")[2]: f.severity for f in report().findings if f.code == "KH010"}
    audited = {t.finding.path.rpartition("/")[2]: t.finding.code for t in reviewed.whole().troubles}
    assert linted == {"K-00001.md": "error", "K-00009.md": "warning"}
    assert audited == {"K-00001.md": "KA002", "K-00009.md": "KA001"}
