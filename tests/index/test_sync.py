"""A refresh makes the index what it would be if it were built from nothing, and costs what has changed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import Config, load
from khms.errors import Busy
from khms.index import current, manifest, sync
from khms.index.changes import changes
from khms.index.sources import rules
from khms.model.document import Query
from khms.store.layout import Base
from khms.store.lock import hold

Add = Callable[..., Path]
Write = Callable[..., Path]
Git = Callable[..., str]
Commit = Callable[..., str]


def ids(base: Base) -> list[tuple[str, str]]:
    """(id, path) of everything in the index."""
    reader, _ = current.opened(base)
    return sorted((document.id, document.path) for document in reader.everything())


def found(base: Base, text: str) -> list[str]:
    """The paths that a word is found in."""
    reader, _ = current.opened(base)
    return sorted(hit.document.path for hit in reader.search(Query(text), depth=50).hits)


def test_the_first_refresh_builds_everything(base: Base, add_card: Add, write: Write) -> None:
    add_card(base, "K-00001", body="Needle: driftlantern\n")
    add_card(base, "K-00002", status="superseded")
    write(base, "memory/inbox/2026-03-05-nightly/C1.md", "---\nid: C1\ntitle: a claim\n---\nDECIDED: x\n")
    write(base, "memory/inbox/2026-03-05-nightly/REPORT.md", "# Report\n")
    write(base, "memory/views/tags.md", "# Tags\n")
    write(base, "README.md", "# Read me\n")
    report = sync.refresh(base)
    assert (report.docs, report.added, report.rebuilt, report.skipped) == (4, 4, None, ())
    assert [identity for identity, _ in ids(base)] == [
        "2026-03-05-nightly/C1",
        "K-00001",
        "K-00002",
        "journal/2026-03-04",
    ]
    assert found(base, "driftlantern") == ["memory/know/K-00001.md"]


def test_nothing_changed_writes_nothing(base: Base, add_card: Add, commit: Commit) -> None:
    add_card(base)
    commit(base)
    sync.refresh(base)
    sync.refresh(base)
    before = {path: path.stat().st_mtime_ns for path in base.index.rglob("*")}
    report = sync.refresh(base)
    assert (report.added, report.updated, report.removed) == (0, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in base.index.rglob("*") if "lock" not in path.name} == {
        path: time for path, time in before.items() if "lock" not in path.name
    }


def test_an_edit_in_place_by_commit_and_without(base: Base, add_card: Add, commit: Commit) -> None:
    add_card(base, body="first words\n")
    commit(base)
    sync.refresh(base)
    add_card(base, body="second words\n")
    assert sync.refresh(base).updated == 1
    assert found(base, "second") and not found(base, "first")
    commit(base)
    assert sync.refresh(base).updated == 0
    add_card(base, body="third words\n")
    commit(base)
    assert sync.refresh(base).updated == 1
    assert found(base, "third") and not found(base, "second")


def test_a_dirty_file_that_git_restores(base: Base, add_card: Add, commit: Commit, git: Git) -> None:
    add_card(base, body="committed words\n")
    commit(base)
    add_card(base, body="tentative words\n")
    sync.refresh(base)
    git(base, "checkout", "--", ".")
    assert sync.refresh(base).updated == 1
    assert found(base, "committed") and not found(base, "tentative")


def test_an_edit_of_the_same_length_at_the_same_time(base: Base, add_card: Add) -> None:
    path = add_card(base, body="blue\n")
    sync.refresh(base)
    stamp = path.stat()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("blue", "grey"), encoding="utf-8")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    sync.refresh(base)
    assert found(base, "grey")


def test_an_edit_of_the_same_length_at_the_same_time_much_later(base: Base, add_card: Add) -> None:
    """Whoever sets a file's time cannot set the time of that change."""
    path = add_card(base, body="blue\n")
    hour = 3_600_000_000_000
    stamp = path.stat().st_mtime_ns - hour
    os.utime(path, ns=(stamp, stamp))
    sync.refresh(base)
    path.write_text(path.read_text(encoding="utf-8").replace("blue", "grey"), encoding="utf-8")
    os.utime(path, ns=(stamp, stamp))
    assert sync.refresh(base).updated == 1 and found(base, "grey")


def test_an_untracked_file_that_goes(base: Base, add_card: Add) -> None:
    path = add_card(base, "K-00009")
    sync.refresh(base)
    path.unlink()
    assert sync.refresh(base).removed == 1
    assert "K-00009" not in [identity for identity, _ in ids(base)]


def test_a_move_without_edit(base: Base, add_card: Add, commit: Commit, git: Git) -> None:
    add_card(base, "K-00001", body="Needle: lampdrift\n")
    commit(base)
    sync.refresh(base)
    (base.know / "deep").mkdir()
    git(base, "mv", "memory/know/K-00001.md", "memory/know/deep/K-00001.md")
    sync.refresh(base)
    assert found(base, "lampdrift") == ["memory/know/deep/K-00001.md"]
    commit(base)
    sync.refresh(base)
    assert found(base, "lampdrift") == ["memory/know/deep/K-00001.md"]


@pytest.mark.parametrize("committed", [True, False])
def test_two_identical_files_move_together(
    base: Base, add_card: Add, commit: Commit, git: Git, committed: bool
) -> None:
    for number in (1, 2):
        add_card(base, "K-00001", path=f"memory/know/a/{number}.md", body="Needle: lampdrift\n")
    if committed:
        commit(base)
    sync.refresh(base)
    assert found(base, "lampdrift") == ["memory/know/a/1.md", "memory/know/a/2.md"]
    (base.know / "a").rename(base.know / "b")
    report = sync.refresh(base)
    assert (report.added, report.removed) == (2, 2)
    assert found(base, "lampdrift") == ["memory/know/b/1.md", "memory/know/b/2.md"]


def test_a_rename_of_case_alone(base: Base, add_card: Add, commit: Commit, git: Git) -> None:
    add_card(base, "K-00001", path="memory/know/config.md", body="Needle: lampdrift\n")
    commit(base)
    sync.refresh(base)
    git(base, "mv", "memory/know/config.md", "memory/know/Config.md")
    for _ in range(2):
        sync.refresh(base)
        assert found(base, "lampdrift") == ["memory/know/Config.md"]
        commit(base)


def test_checking_out_another_state(base: Base, add_card: Add, commit: Commit, git: Git) -> None:
    add_card(base, "K-00001", body="old words\n")
    first = commit(base)
    sync.refresh(base)
    add_card(base, "K-00001", body="new words\n")
    add_card(base, "K-00002")
    commit(base)
    sync.refresh(base)
    git(base, "checkout", "--quiet", first)
    report = sync.refresh(base)
    assert (report.updated, report.removed) == (1, 1)
    assert found(base, "old") and not found(base, "new")
    git(base, "checkout", "--quiet", "main")
    sync.refresh(base)
    assert [identity for identity, _ in ids(base)] == ["K-00001", "K-00002", "journal/2026-03-04"]


def test_the_commit_it_stands_for_is_gone(base: Base, add_card: Add, commit: Commit, git: Git) -> None:
    add_card(base, "K-00002")
    commit(base)
    sync.refresh(base)
    git(base, "reset", "--quiet", "--hard", "HEAD~1")
    git(base, "reflog", "expire", "--expire=now", "--all")
    git(base, "gc", "--quiet", "--prune=now")
    report = sync.refresh(base)
    assert report.rebuilt and "is gone" in report.rebuilt
    assert [identity for identity, _ in ids(base)] == ["journal/2026-03-04"]


def test_what_git_ignores_is_not_indexed(base: Base, write: Write, commit: Commit) -> None:
    _notes(base, write)
    write(base, "drafts/idea.md", "# Idea\n\nlampdrift\n")
    sync.refresh(base)
    assert found(base, "lampdrift") == ["drafts/idea.md"]
    write(base, ".gitignore", ".khms/\ndrafts/\n")
    assert sync.refresh(base).removed == 1
    assert found(base, "lampdrift") == []
    write(base, ".gitignore", ".khms/\n")
    assert sync.refresh(base).added == 1
    commit(base)
    write(base, ".gitignore", ".khms/\ndrafts/\n")
    sync.refresh(base)
    assert found(base, "lampdrift") == ["drafts/idea.md"], "a tracked file is not ignored"


def test_before_the_first_commit(tmp_path: Path, write: Write, add_card: Add, commit: Commit, git: Git) -> None:
    base = Base(tmp_path / "young")
    base.root.mkdir()
    git(base.root, "init", "--quiet")
    write(base, ".gitignore", ".khms/\n")
    add_card(base, "K-00001")
    add_card(base, "K-00002")
    assert sync.refresh(base).docs == 2
    (base.know / "K-00002.md").unlink()
    assert sync.refresh(base).removed == 1
    commit(base)
    report = sync.refresh(base)
    assert (report.docs, report.updated, report.rebuilt) == (1, 0, None)


def test_a_base_below_the_top_of_its_repository(
    tmp_path: Path, write: Write, add_card: Add, commit: Commit, git: Git
) -> None:
    top = tmp_path / "project"
    base = Base(top / ".memory")
    base.root.mkdir(parents=True)
    git(top, "init", "--quiet")
    write(top, "memory/know/K-00009.md", "not of this base\n")
    write(base, "khms.toml", "[index]\nnotes = true\n")
    write(base, ".gitignore", ".khms/\n")
    write(base, "note.md", "# A note\n")
    add_card(base, "K-00001")
    commit(top)
    sync.refresh(base)
    assert ids(base) == [("K-00001", "memory/know/K-00001.md"), ("note", "note.md")]
    add_card(base, "K-00002")
    write(top, "memory/know/K-00010.md", "not of this base either\n")
    sync.refresh(base)
    commit(top)
    sync.refresh(base)
    assert [identity for identity, _ in ids(base)] == ["K-00001", "K-00002", "note"]


def test_a_base_without_git(tmp_path: Path, write: Write, add_card: Add) -> None:
    base = Base(tmp_path / "bare")
    add_card(base, "K-00001", body="first\n")
    add_card(base, "K-00002")
    assert sync.refresh(base).docs == 2
    add_card(base, "K-00001", body="second\n")
    (base.know / "K-00002.md").unlink()
    add_card(base, "K-00003")
    report = sync.refresh(base)
    assert (report.added, report.updated, report.removed) == (1, 1, 1)
    assert found(base, "second") and not found(base, "first")


def test_git_comes_and_goes(tmp_path: Path, write: Write, add_card: Add, commit: Commit, git: Git) -> None:
    base = Base(tmp_path / "changing")
    add_card(base, "K-00001")
    write(base, ".gitignore", ".khms/\n")
    sync.refresh(base)
    git(base, "init", "--quiet")
    add_card(base, "K-00002")
    commit(base)
    (base.know / "K-00001.md").unlink()
    assert sync.refresh(base).removed == 1
    assert [identity for identity, _ in ids(base)] == ["K-00002"]
    shutil.rmtree(base.root / ".git")
    report = sync.refresh(base)
    assert report.rebuilt and "no longer in a git repository" in report.rebuilt


def _notes(base: Base, write: Write) -> None:
    write(base, "khms.toml", "[index]\nnotes = true\n")


def test_notes_of_an_adopted_base(base: Base, write: Write, commit: Commit) -> None:
    _notes(base, write)
    write(base, "Garden plan.md", "# The garden\n\nlampdrift\n")
    write(base, "deep/er/soil.md", "words\n")
    write(base, "MEMORY.md", "<!-- generated by khms views -->\n# Memory\n")
    write(base, "AGENTS.md", "# My own rules\n")
    write(base, "🐘.md", "# Elephant\n")
    write(base, "data.json", "{}")
    commit(base)
    sync.refresh(base)
    assert [identity for identity, _ in ids(base)] == [
        "AGENTS",
        "Garden plan",
        "deep/er/soil",
        "journal/2026-03-04",
        "🐘",
    ]


def test_included_folders(base: Base, tmp_path: Path, write: Write, git: Git) -> None:
    far = tmp_path / "far"
    write(far, "one.md", "# One\n\nlampdrift\n")
    write(far, "sub/two.md", "# Two\n")
    write(base, "manual/three.md", "# Three\n")
    write(base, "khms.toml", '[index]\ninclude = { far = "../far", docs = "manual" }\n')
    sync.refresh(base)
    expected = [("docs/three", "manual/three.md"), ("far/one", "../far/one.md"), ("far/sub/two", "../far/sub/two.md")]
    assert ids(base)[:3] == expected
    (far / "one.md").rename(far / "uno.md")
    write(far, "sub/two.md", "# Two again\n")
    report = sync.refresh(base)
    assert (report.added, report.updated, report.removed) == (1, 1, 1)
    assert found(base, "lampdrift") == ["../far/uno.md"]
    write(far, "secret.md", "# hidden\n")
    write(far, ".gitignore", "secret.md\n")
    git(far, "init", "--quiet")
    sync.refresh(base)
    assert "far/secret" not in [identity for identity, _ in ids(base)]
    shutil.rmtree(far)
    report = sync.refresh(base)
    assert report.removed == 2 and "far" in str(report.skipped[0])


def test_other_settings_build_anew(base: Base, write: Write) -> None:
    sync.refresh(base)
    _notes(base, write)
    write(base, "note.md", "# N\n")
    report = sync.refresh(base)
    assert report.rebuilt == "the [index] settings changed" and report.docs == 2


def test_a_configuration_can_be_given(base: Base, write: Write) -> None:
    write(base, "note.md", "# N\n")
    config = Config([("test", {**load(base.root), "index.notes": True})])
    assert sync.refresh(base, config=config).docs == 2


SKIPPED = {
    "memory/know/empty.md": b"",
    "memory/know/🐘.md": b"",
    "memory/know/large.md": b"x" * 262145,
    "memory/know/markers.md": b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n",
    "memory/know/broken.md": b"---\ntitle: a\ntitle: b\n---\n",
    "memory/know/latin.md": b"caf\xe9\n",
}


def test_one_bad_file_hides_no_other_and_is_counted(base: Base, add_card: Add, write: Write, commit: Commit) -> None:
    for path, data in SKIPPED.items():
        write(base, path, data)
    add_card(base, "K-00001")
    write(base, "memory/know/biggest.md", b"y " * 131072)
    commit(base)
    for _ in range(2):
        report = sync.refresh(base)
        assert report.docs == 3
        assert [finding.path for finding in report.skipped] == sorted(SKIPPED)
        assert all(finding.message and finding.mend for finding in report.skipped)
    write(base, "memory/know/empty.md", b"no longer empty\n")
    report = sync.refresh(base)
    assert report.added == 1 and len(report.skipped) == len(SKIPPED) - 1
    write(base, "memory/know/empty.md", b"")
    assert sync.refresh(base).removed == 1


def test_the_shared_bad_files(base: Base, add_card: Add, write: Write, shared: Callable[[str], Path]) -> None:
    names = ("19-conflict-markers.md", "22-empty.md", "10-duplicate-keys.md", "12-alias-bomb.md")
    for number, name in enumerate(names):
        write(base, f"memory/know/bad-{number}.md", shared(f"cases/{name}").read_bytes())
    write(base, "memory/know/good.md", shared("cases/19b-about-conflict-markers.md").read_bytes())
    write(base, "memory/know/windows.md", shared("cases/08-bom-crlf.md").read_bytes())
    report = sync.refresh(base)
    assert [finding.path for finding in report.skipped] == [f"memory/know/bad-{n}.md" for n in range(4)]
    assert found(base, "crumbwhistle") == ["memory/know/windows.md"]


def test_links_are_followed_inside_the_base_only(base: Base, tmp_path: Path, add_card: Add, write: Write) -> None:
    outside = write(tmp_path, "secret.md", "lampdrift outside\n")
    add_card(base, "K-00001", body="lampdrift inside\n")
    (base.know / "out.md").symlink_to(outside)
    (base.know / "in.md").symlink_to("K-00001.md")
    (base.know / "gone.md").symlink_to("nowhere.md")
    (base.know / "loop.md").symlink_to("loop.md")
    report = sync.refresh(base)
    assert found(base, "lampdrift") == ["memory/know/K-00001.md"], "a card is no link"
    (base.journal / "in.md").symlink_to("../memory/know/K-00001.md")
    sync.refresh(base)
    assert ("memory/know/out.md", "KH015") in [(finding.path, finding.code) for finding in report.skipped]


@pytest.mark.parametrize("committed", [True, False])
def test_what_a_link_leads_to_changes(base: Base, write: Write, commit: Commit, committed: bool) -> None:
    write(base, "khms.toml", '[index.include]\nnotes = "notes"\nfar = "../far"\n')
    for place in ("notes", "../far"):
        target = write(base, f"{place}/held.txt", "lampdrift\n")
        (target.parent / "link.md").symlink_to("held.txt")
    if committed:
        commit(base)
    sync.refresh(base)
    assert found(base, "lampdrift") == ["../far/link.md", "notes/link.md"]
    for place in ("notes", "../far"):
        write(base, f"{place}/held.txt", "otherwise\n")
    assert sync.refresh(base).updated == 2 and found(base, "lampdrift") == []
    assert sync.refresh(base).updated == 0
    for place in ("notes", "../far"):
        (base.root / place / "held.txt").unlink()
    assert sync.refresh(base).removed == 2


def test_a_folder_that_leads_out_is_not_read(base: Base, tmp_path: Path, write: Write) -> None:
    write(tmp_path, "elsewhere/K-00001.md", "lampdrift\n")
    (base.root / "memory/lessons").symlink_to(tmp_path / "elsewhere")
    report = sync.refresh(base)
    assert found(base, "lampdrift") == []
    assert [finding.path for finding in report.skipped] == ["memory/lessons"]


def test_a_pipe_is_not_read(base: Base) -> None:
    os.mkfifo(base.know / "pipe.md")
    assert sync.refresh(base).docs == 1


def test_a_file_name_that_is_not_utf8(base: Base) -> None:
    try:
        Path(os.fsdecode(os.fsencode(base.know) + b"/caf\xe9.md")).write_bytes(b"lampdrift\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    report = sync.refresh(base)
    assert "not UTF-8" in report.skipped[0].message
    assert str(report.skipped[0]).encode()
    for _ in range(3):  # read again while its time is young, then taken as known
        assert sync.refresh(base).skipped == report.skipped


def test_a_nested_repository_is_no_document(base: Base, write: Write, git: Git) -> None:
    _notes(base, write)
    write(base, "other/readme.md", "# Not ours\n")
    git(base.root / "other", "init", "--quiet")
    git(base.root / "other", "add", "--all")
    git(base.root / "other", "commit", "--quiet", "-m", "x")
    sync.refresh(base)
    assert [identity for identity, _ in ids(base)] == ["journal/2026-03-04"]


def test_progress_counts_to_the_end(base: Base, add_card: Add) -> None:
    for number in range(1, 151):
        add_card(base, f"K-{number:05d}")
    steps: list[tuple[int, int]] = []
    sync.refresh(base, progress=lambda done, total: steps.append((done, total)))
    assert steps[0] == (0, 151) and steps[-1] == (151, 151)


def test_asked_for(base: Base) -> None:
    sync.refresh(base)
    assert sync.refresh(base, rebuild=True).rebuilt == "asked for"
    assert [path.name for path in base.index.glob("lexical-*")] == ["lexical-2"]


def test_a_second_refresh_waits_briefly_and_says_who_holds_it(base: Base) -> None:
    with hold(base.locks / sync.LOCK, "another index"), pytest.raises(Busy, match="another index"):
        sync.refresh(base, wait=0.05)


def test_a_foreign_writer_of_the_index_makes_it_busy(
    base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tantivy

    from khms.index import writer

    monkeypatch.setattr(writer, "LOCK_SECONDS", 0.05)
    sync.refresh(base)
    known = manifest.load(base.index)
    assert known
    other = tantivy.Index.open(str(base.index / known.generation)).writer(15_000_000, 1)
    add_card(base)
    with pytest.raises(Busy, match="another process writes"):
        sync.refresh(base)
    other.rollback()
    other.wait_merging_threads()
    del other
    assert sync.refresh(base).added == 1


def test_changes_names_only_what_changed(base: Base, add_card: Add, commit: Commit) -> None:
    for number in range(1, 20):
        add_card(base, f"K-{number:05d}")
    commit(base)
    sync.refresh(base)
    known = manifest.load(base.index)
    add_card(base, "K-00003", body="edited\n")
    seen = changes(base, rules(base, load(base.root)), known)
    assert (
        known is not None and seen.paths.keys() - known.seen.keys() <= {"memory/know/K-00003.md"} <= seen.paths.keys()
    )
