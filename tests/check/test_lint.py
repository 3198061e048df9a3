"""Which files a run looks at, and what it knows of the others."""

from pathlib import Path

import pytest

from khms import config
from khms.check.lint import lint, proposed
from khms.store import cards
from khms.store.repo import Repo

UNIT = "memory/inbox/2026-03-05-nightly"


def candidate(label: str = "C1", **keys: str) -> str:
    lines = {
        "id": label,
        "type": "fact",
        "level": "observation",
        "status": "active",
        "title": "A claim",
        "evidence": "reported",
        "source": "journal/2026-03-04.md line 3",
        "date": "2026-03-04",
        "confidence": "0.5",
        **keys,
    }
    return "\n".join(["---", *(f"{key}: {value}" for key, value in lines.items()), "---", "Body.", ""])


def test_every_file_that_git_tracks_or_would_add_counts(base, add_card, write, report) -> None:
    before = report().checked
    add_card(base)
    write(base, ".khms/state/x.json", "{")
    write(base, "README.md", "# Words\n")
    assert report().checked == before + 2


def test_a_base_without_git_is_looked_at_whole(base, add_card) -> None:
    add_card(base, level="obs")
    (base.root / ".khms").mkdir()
    (base.root / ".khms" / "x.md").write_text("<<<<<<< HEAD\n", encoding="utf-8")
    findings = lint(base, config.load(base.root)).findings
    assert [finding.code for finding in findings] == ["KH010", "KH001"]


def test_an_older_base_opens_and_warns_only(shared, tmp_path, git, commit) -> None:
    import shutil

    from khms.store.layout import Base

    root = tmp_path / "older"
    shutil.copytree(shared("real/khms-base"), root)
    git(root, "init", "--quiet")
    older = Base(root)
    findings = lint(older, config.load(root), Repo(root)).findings
    assert {finding.severity for finding in findings} == {"warning"}
    assert {finding.code for finding in findings} == {"KH003", "KH009", "KH010"}


def test_an_empty_base_is_fine(base, report) -> None:
    assert report().findings == ()


def test_the_order_is_that_of_the_places(base, add_card, report) -> None:
    for number in (3, 1, 2):
        add_card(base, f"K-{number:05d}", level="obs", date="never")
    places = [(finding.path, finding.line) for finding in report().findings]
    assert places == sorted(places) and len(places) == 9


def test_progress_is_told(base, add_card, report) -> None:
    told: list[tuple[int, int]] = []
    for number in range(1, 251):
        add_card(base, f"K-{number:05d}")
    report(progress=lambda done, total: told.append((done, total)))
    assert told == [(100, 253), (200, 253)]


# paths


def test_only_the_named_files_are_told_about(base, add_card, found) -> None:
    add_card(base, "K-00001", level="obs")
    add_card(base, "K-00002", level="obs", links={"supports": ["K-00001", "K-00009"]})
    assert [name for _, name, _, _ in found(paths=["memory/know/K-00001.md"])] == ["K-00001.md"]
    assert [code for code, *_ in found(paths=["memory/know/K-00002.md"])] == ["KH001", "KH005"]
    assert len(found(paths=["memory"])) == 3
    assert found(paths=["journal"]) == []


def test_a_few_files_know_of_their_records_and_circles(base, add_card, approve, found) -> None:
    derived = {"type": "principle", "level": "derived", "evidence": None, "source": None}
    first = add_card(base, "K-00001", **derived, links={"derived_from": ["K-00002"]})
    add_card(base, "K-00002", **derived, links={"derived_from": ["K-00001"]})
    approve(first)
    path = "memory/know/K-00001.md"
    assert found("KH007", "KH010", paths=[path]) == [("KH007", "K-00001.md", 11, "error")]
    first.write_bytes(first.read_bytes() + b"more\n")
    assert [code for code, *_ in found("KH010", paths=[path])] == ["KH010"]


# staged


def test_what_is_staged_counts_as_it_is_staged(base, add_card, git, commit, found) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00003", level="obs")
    commit(base)
    assert found(staged=True) == []
    path = add_card(base, "K-00002", level="obs", links={"supports": ["K-00001"]})
    assert found(staged=True) == []
    git(base, "add", "--all")
    add_card(base, "K-00002")
    assert [(code, name) for code, name, _, _ in found(staged=True)] == [("KH001", "K-00002.md")]
    git(base, "add", "--all")
    path.write_text("broken", encoding="utf-8")
    assert found(staged=True) == []


def test_what_a_staged_card_names_must_be_staged_too(base, add_card, git, found) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00002", links={"supports": ["K-00001"]})
    git(base, "add", "memory/know/K-00002.md")
    assert [code for code, *_ in found(staged=True)] == ["KH005"]


def test_a_staged_link_and_a_staged_deletion(base, add_card, write, git, commit, found) -> None:
    path = add_card(base)
    commit(base)
    path.unlink()
    (base.root / "out.md").symlink_to("../outside.md")
    git(base, "add", "--all")
    assert [(code, name) for code, name, _, _ in found(staged=True)] == [("KH015", "out.md")]


def test_the_first_commit_can_be_looked_at(tmp_path, add_card, git) -> None:
    from khms.store.layout import Base

    root = tmp_path / "fresh"
    root.mkdir()
    git(root, "init", "--quiet")
    fresh = Base(root)
    add_card(fresh, level="obs")
    git(root, "add", "--all")
    report = lint(fresh, config.load(root), Repo(root), staged=True)
    assert [f.code for f in report.findings if f.severity == "error"] == ["KH001"]


def test_a_base_in_a_folder_of_a_repository_sees_its_own_staged_files(tmp_path, add_card, write, git) -> None:
    from khms.store.layout import Base

    git(tmp_path, "init", "--quiet")
    write(tmp_path, "code/other.md", "<<<<<<< HEAD\n")
    inner = Base(tmp_path / ".memory")
    add_card(inner, level="obs")
    git(tmp_path, "add", "--all")
    report = lint(inner, config.load(inner.root), Repo(inner.root), staged=True)
    assert [f.path for f in report.findings if f.severity == "error"] == ["memory/know/K-00001.md"]
    assert lint(inner, config.load(inner.root), Repo(inner.root)).checked == 1


# candidates


def test_a_sound_candidate(base, write, found) -> None:
    write(base, f"{UNIT}/C1.md", candidate())
    assert found() == []


def test_what_a_candidate_has_wrong(base, write, found) -> None:
    write(base, f"{UNIT}/C1.md", candidate(confidence="high"))
    write(base, f"{UNIT}/C2.md", candidate("C3"))
    write(base, f"{UNIT}/C4.md", candidate("C4", source="a call", links="{supports: [K-00009, C1, C9]}"))
    write(base, f"{UNIT}/deferred/C5.md", "no candidate at all")
    write(base, f"{UNIT}/REPORT.md", "# Report\n")
    assert found() == [
        ("KH001", "C1.md", 10, "error"),
        ("KH002", "C2.md", 2, "error"),
        ("KH003", "C4.md", 8, "warning"),
        ("KH005", "C4.md", 11, "warning"),
        ("KH005", "C4.md", 11, "warning"),
    ]


def test_a_label_resolves_in_its_unit(base, add_card, approve, write, report) -> None:
    approve(add_card(base), unit=UNIT)  # C1 of the unit became K-00001
    write(base, f"{UNIT}/C2.md", candidate("C2") + "[[C1]] [[C3]] [[C4]] [[C5]]\n")
    write(base, f"{UNIT}/C3.md", candidate("C3"))
    write(base, f"{UNIT}/deferred/C4.md", candidate("C4"))
    write(base, "memory/inbox/other/C5.md", candidate("C5"))
    said = [finding.message for finding in report().findings if finding.code == "KH005"]
    assert said == ["[[C4]]: this candidate is put aside", "[[C5]]: there is no such candidate in this unit"]


def test_an_approved_candidate_is_left_in_peace(base, add_card, approve, write, found) -> None:
    write(base, f"{UNIT}/C1.md", candidate("C2", level="obs"))
    assert found() != []
    approve(add_card(base), unit=UNIT)
    assert found() == []
    write(base, f"{UNIT}/C1.md", candidate() + "<<<<<<< HEAD\n")
    assert found() == [("KH015", "C1.md", 13, "error")]


def test_the_older_inbox_file(base, write, found) -> None:
    text = "# candidates\n\n## Cards\n\n### C1: a title\n\n```yaml\nid: C1\ntype: fact\nlevel: obs\nstatus: active\n"
    text += "date: 2026-03-04\n---\nBody with [[C2]] and [[C9]].\n```\n\n"
    text += "### C2: another\n\n```yaml\nid: C2\ntitle: a: b\n---\nBody.\n```\n"
    write(base, "memory/inbox/2026-03-05.md", text)
    assert found() == [
        ("KH001", "2026-03-05.md", 10, "error"),
        ("KH005", "2026-03-05.md", 14, "warning"),
        ("KH001", "2026-03-05.md", 21, "error"),
    ]


# notes


def test_foreign_notes_of_an_adopted_base_only_warn(base, write, found) -> None:
    write(base, "notes/broken.md", "---\ntitle: a: b\n---\n")
    write(base, "notes/conflict.md", "<<<<<<< HEAD\n")
    assert [severity for *_, severity in found()] == ["warning", "error"]
    write(base, "khms.toml", "[index]\nnotes = true\n")
    assert [severity for *_, severity in found()] == ["warning", "warning"]
    write(base, "journal/2026-03-06.md", "<<<<<<< HEAD\n")
    assert [severity for *_, severity in found()] == ["error", "warning", "warning"]


def test_odd_file_names(base, write, found) -> None:
    for name in ("memory/know/🐘.md", "memory/know/K-00001 copy.md", "memory/know/a\nb.md", "notes/🐘.md"):
        write(base, name, "")
    assert [(code, name) for code, name, _, _ in found()] == [
        ("KH001", "K-00001 copy.md"), ("KH001", "a\nb.md"), ("KH001", "🐘.md"),
    ]  # fmt: skip


# generated files


def test_a_generated_file_that_differs(base, add_card, write, found) -> None:
    add_card(base)
    write(base, "MEMORY.md", "old\n")
    differing = {"MEMORY.md": b"new\n", "memory/views/tags.md": b"never written\n"}
    assert found(generated=lambda held: differing) == [("KH016", "MEMORY.md", 1, "warning")]
    assert found(generated=lambda held: {}) == []


def test_generated_files_are_not_judged_where_a_card_is_missing(base, add_card, write, found) -> None:
    write(base, "MEMORY.md", "old\n")
    write(base, "memory/know/K-00001.md", "broken")
    assert found("KH016", generated=lambda held: {"MEMORY.md": b"new\n"}) == []
    assert found("KH016", paths=["MEMORY.md"], generated=lambda held: {"MEMORY.md": b"new\n"}) == []


# proposed


@pytest.fixture
def propose(base, add_card):  # type: ignore[no-untyped-def]
    """What lint says of a change: a card that is not there yet."""

    def run(**keys: object) -> list[tuple[str, str, str]]:
        shelf = cards.shelf(base)
        path: Path = add_card(base, "K-00009", **keys)
        changes = {base.relative(path): path.read_bytes()}
        path.unlink()
        findings = proposed(base, config.load(base.root), changes, shelf.cards)
        return [(finding.code, finding.path.rpartition("/")[2], finding.severity) for finding in findings]

    return run


def test_a_new_card_is_judged_as_if_it_were_approved(base, propose) -> None:
    assert propose() == []
    assert propose(evidence=None) == [("KH003", "K-00009.md", "error")]
    assert propose(status="refuted") == [("KH009", "K-00009.md", "error")]


def test_what_a_change_brings_along_is_there(base, add_card) -> None:
    shelf = cards.shelf(base)
    first = add_card(base, "K-00001")
    second = add_card(base, "K-00002", links={"supports": ["K-00001"]})
    changes = {base.relative(path): path.read_bytes() for path in (first, second)}
    first.unlink()
    second.unlink()
    assert proposed(base, config.load(base.root), changes, shelf.cards) == []
    del changes[base.relative(first)]
    assert [f.code for f in proposed(base, config.load(base.root), changes, shelf.cards)] == ["KH005"]


def test_a_card_moved_to_the_archive_by_the_same_change(base, add_card) -> None:
    add_card(base, "K-00001", evidence=None)  # its own old fault is nobody's business here
    shelf = cards.shelf(base)
    old = base.path("memory/know/K-00001.md").read_bytes()
    new = add_card(base, "K-00002", links={"supersedes": "K-00001"}, body="SUPERSEDES K-00001 BECAUSE: newer\n")
    changes = {
        "memory/know/K-00001.md": None,
        "memory/archive/know/K-00001.md": old.replace(b'"active"', b'"superseded"'),
        base.relative(new): new.read_bytes(),
    }
    new.unlink()
    assert proposed(base, config.load(base.root), changes, shelf.cards) == []
    del changes["memory/know/K-00001.md"], changes["memory/archive/know/K-00001.md"]
    assert [f.code for f in proposed(base, config.load(base.root), changes, shelf.cards)] == ["KH009"]


def test_a_new_card_under_an_old_id(base, add_card, propose) -> None:
    add_card(base, "K-00008", path="memory/know/K-00008.md")
    assert propose(path="memory/know/K-00009.md") == []
