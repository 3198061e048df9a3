"""Records are only ever added, whatever git did to get where it is; and what is honest survives what git does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.check import audit, audit_change
from khms.errors import Unavailable
from khms.store.layout import Base
from khms.store.repo import Repo

Codes = Callable[..., list[tuple[str, str]]]


def records(base: Base) -> list[Path]:
    return sorted(base.approvals.glob("*.json"))


def side(held: Any, git: Any, name: str = "side") -> None:
    git(held.base, "switch", "--quiet", "-c", name)


def back(held: Any, git: Any, *how: str) -> None:
    git(held.base, "switch", "--quiet", "main")
    git(held.base, "merge", "--quiet", "--no-ff", "--no-edit", *how, "side")


def test_a_change_that_was_undone_is_found(reviewed: Any, codes: Codes) -> None:
    before, path = reviewed.head(), records(reviewed.base)[0]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Ada Tester", "Bob Tester"), encoding="utf-8")
    changed = reviewed.commit()
    path.write_text(text, encoding="utf-8")
    reviewed.commit()
    for report in (reviewed.whole(), reviewed.between(before)):
        assert codes(report) == [("KA005", path.name)]
        assert f"changed by {changed[:12]} and put back" in report.troubles[0].finding.message


def test_a_removal_that_was_undone_is_no_fault(reviewed: Any, codes: Codes) -> None:
    before, path = reviewed.head(), records(reviewed.base)[0]
    data = path.read_bytes()
    path.unlink()
    reviewed.commit()
    path.write_bytes(data)
    reviewed.commit()
    assert codes(reviewed.whole()) == codes(reviewed.between(before)) == []


def test_a_record_that_came_and_went_within_the_range_is_found(reviewed: Any, codes: Codes, git: Any) -> None:
    before = reviewed.head()
    reviewed.propose("2026-03-07-nightly", "C1")
    path = reviewed.approve("2026-03-07-nightly")
    for gone in (path, "memory/know/K-00005.md"):
        git(reviewed.base, "rm", "--quiet", gone)
    reviewed.commit()
    name = path.rpartition("/")[2]
    assert codes(reviewed.whole()) == codes(reviewed.between(before)) == [("KA005", name)]


def test_a_merge_that_edits_a_record_itself(reviewed: Any, codes: Codes, git: Any) -> None:
    before = reviewed.head()
    side(reviewed, git)
    reviewed.propose("2026-03-07-nightly", "C1")
    reviewed.approve("2026-03-07-nightly")
    path = records(reviewed.base)[2]
    git(reviewed.base, "switch", "--quiet", "main")
    git(reviewed.base, "merge", "--quiet", "--no-ff", "--no-commit", "side")
    path.write_text(path.read_text(encoding="utf-8").replace("Ada Tester", "Bob Tester"), encoding="utf-8")
    reviewed.commit("merge")
    assert ("KA005", path.name) in codes(reviewed.whole())
    assert ("KA005", path.name) in codes(reviewed.between(before))


def test_a_merge_that_takes_our_side_only(reviewed: Any, codes: Codes, git: Any) -> None:
    before = reviewed.head()
    side(reviewed, git)
    reviewed.propose("2026-03-07-nightly", "C1")
    name = reviewed.approve("2026-03-07-nightly").rpartition("/")[2]
    back(reviewed, git, "--strategy", "ours")
    assert not (reviewed.base.approvals / name).exists()
    assert codes(reviewed.whole()) == codes(reviewed.between(before)) == [("KA005", name)]


def test_the_proof_survives_squash_rebase_and_the_archive(reviewed: Any, codes: Codes, git: Any) -> None:
    side(reviewed, git)
    reviewed.propose(
        "2026-03-07-nightly", "C1", relation={"kind": "supersedes", "target": "K-00001", "because": "seen"}
    )
    reviewed.approve("2026-03-07-nightly")
    git(reviewed.base, "switch", "--quiet", "main")
    (reviewed.base.journal / "2026-03-08.md").write_text("# 2026-03-08\n", encoding="utf-8")
    reviewed.commit("meanwhile")
    git(reviewed.base, "switch", "--quiet", "-c", "rebased", "side")
    git(reviewed.base, "rebase", "--quiet", "main")
    assert codes(reviewed.whole()) == codes(reviewed.between("main")) == []
    git(reviewed.base, "switch", "--quiet", "main")
    git(reviewed.base, "merge", "--quiet", "--squash", "side")
    assert codes(reviewed.staged()) == []
    reviewed.commit("squashed")
    assert (reviewed.base.archive / "K-00001.md").exists()
    assert codes(reviewed.whole()) == codes(reviewed.between("HEAD~1")) == []


def test_a_range_whose_start_went_on_is_judged_from_where_they_parted(
    reviewed: Any, codes: Codes, git: Any, add_card: Callable[..., Path]
) -> None:
    side(reviewed, git)
    add_card(reviewed.base, "K-00009")
    reviewed.commit()
    git(reviewed.base, "switch", "--quiet", "main")
    reviewed.propose("2026-03-07-nightly", "C1")
    reviewed.approve("2026-03-07-nightly")
    assert codes(reviewed.between("main", "side")) == [("KA001", "K-00009.md")]


def test_a_candidate_that_left_the_tree_is_found_in_the_history(reviewed: Any, codes: Codes, git: Any) -> None:
    git(reviewed.base, "rm", "-r", "--quiet", "memory/inbox")
    before = reviewed.commit()
    assert codes(reviewed.whole()) == []
    git(reviewed.base, "switch", "--quiet", "--orphan", "fresh")
    git(reviewed.base, "checkout", before, "--", ".")
    reviewed.commit("the history is gone, and the candidates with it")
    assert {code for code, _ in codes(reviewed.whole())} == {"KA009"}


def test_a_repository_without_a_commit(base: Base, codes: Codes, git: Any, add_card: Callable[..., Path]) -> None:
    git(base, "update-ref", "-d", "HEAD")
    add_card(base)
    report = audit.whole(base, Repo(base.root))
    assert codes(report) == [("KA001", "K-00001.md")] and report.troubles[0].uncommitted
    git(base, "add", "--all")
    assert codes(audit_change.staged(base, Repo(base.root))) == [("KA001", "K-00001.md")]


def test_a_shallow_clone_is_refused(reviewed: Any, tmp_path: Path, git: Any) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{reviewed.base.root}", "shallow")
    shallow = Base((tmp_path / "shallow").resolve())
    with pytest.raises(Unavailable, match="shallow") as caught:
        audit.whole(shallow, Repo(shallow.root))
    assert caught.value.exit_code == 4 and "--unshallow" in caught.value.hint
    with pytest.raises(Unavailable):
        audit_change.between(Repo(shallow.root), "", "HEAD", "HEAD")


def test_neither_settings_nor_grafts_hide_history(reviewed: Any, codes: Codes, git: Any) -> None:
    path = records(reviewed.base)[0]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Ada Tester", "Bob Tester"), encoding="utf-8")
    changed = reviewed.commit()
    path.write_text(text, encoding="utf-8")
    tip = reviewed.commit()
    for name, value in {
        "log.showRoot": "false", "log.showSignature": "true", "diff.renames": "copies", "diff.relative": "true",
        "log.diffMerges": "off", "color.ui": "always", "core.quotePath": "true",
    }.items():  # fmt: skip
        git(reviewed.base, "config", name, value)
    info = reviewed.base.root / ".git/info"
    info.mkdir(exist_ok=True)
    (info / "grafts").write_text(f"{tip} {git(reviewed.base, 'rev-parse', changed + '~1')}\n", encoding="utf-8")
    git(reviewed.base, "replace", changed, changed + "~1")
    assert codes(reviewed.whole()) == [("KA005", path.name)]


def test_the_index_that_git_names_is_the_one_that_is_judged(
    reviewed: Any, codes: Codes, git: Any, add_card: Callable[..., Path], tmp_path: Path, monkeypatch: Any
) -> None:
    """`git commit FILE` has a staging area of its own."""
    add_card(reviewed.base, "K-00009")
    other = tmp_path / "index"
    with monkeypatch.context() as patched:
        patched.setenv("GIT_INDEX_FILE", str(other))
        git(reviewed.base, "read-tree", "HEAD")
        git(reviewed.base, "add", "memory/know/K-00009.md")
    assert codes(audit_change.staged(reviewed.base, reviewed.repo)) == []
    assert codes(audit_change.staged(reviewed.base, reviewed.repo, str(other))) == [("KA001", "K-00009.md")]


def test_an_adoption_by_hand_admits_nothing_newer(reviewed: Any, codes: Codes, add_card: Callable[..., Path]) -> None:
    from dataclasses import replace

    from khms.model.approval import Approved, candidate_sha256, card_sha256
    from khms.model.ulid import new_ulid

    before = reviewed.head()
    data = add_card(reviewed.base, "K-00009").read_bytes()
    first = reviewed.record(records(reviewed.base)[0].relative_to(reviewed.base.root).as_posix())
    entry = Approved("K-00009", "K-00009", candidate_sha256(data), card_sha256(data))
    reviewed.file(replace(first, id=new_ulid(), unit="", cards=(entry,), transitions=()))
    assert codes(reviewed.whole()) == codes(reviewed.staged()) == [("KA001", "K-00009.md")]
    reviewed.commit()
    for report in (reviewed.whole(), reviewed.between(before)):
        assert codes(report) == [("KA001", "K-00009.md")]
        assert "older than khms" in report.troubles[0].finding.message


def test_a_record_with_odd_values_is_a_finding(reviewed: Any, codes: Codes) -> None:
    path = records(reviewed.base)[0]
    value = json.loads(path.read_text(encoding="utf-8"))
    name = "0" * 25
    for number, odd in enumerate(({"cards": 5}, {"reviewer": ["x"]}, {"transitions": [{"id": {}}]}, {"at": None})):
        held = reviewed.base.approvals / f"{name}{number}.json"
        held.write_text(json.dumps({**value, **odd, "id": f"{name}{number}"}), encoding="utf-8")
    (reviewed.base.approvals / f"{name}8.json").write_text("[" * 100_000, encoding="utf-8")
    (reviewed.base.approvals / f"{name}9.json").write_bytes(b"\xff\xfe{}")
    assert {code for code, _ in codes(reviewed.whole())} == {"KA009"} and len(reviewed.whole().troubles) == 6
