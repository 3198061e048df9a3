"""A damaged or foreign index is seen and built anew; one that may not be written still answers."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import KhmsError, Unavailable
from khms.index import current, manifest, sync
from khms.model.document import Query
from khms.recall.search import Answer, recall
from khms.store.layout import Base

Add = Callable[..., Path]
Commit = Callable[..., str]


def ids(base: Base) -> list[tuple[str, str]]:
    """(id, path) of everything in the index."""
    reader, _ = current.opened(base)
    return sorted((document.id, document.path) for document in reader.everything())


def found(base: Base, text: str) -> list[str]:
    """The paths that a word is found in."""
    reader, _ = current.opened(base)
    return sorted(hit.document.path for hit in reader.search(Query(text), depth=50).hits)


def test_a_damaged_index_is_seen_and_built_anew(base: Base, add_card: Add) -> None:
    add_card(base, "K-00001", body="Needle: lampdrift\n")
    sync.refresh(base)

    def folder() -> Path:
        known = manifest.load(base.index)
        assert known
        return base.index / known.generation

    def cut(suffix: str) -> None:
        path = next(folder().glob(f"*{suffix}"))
        path.write_bytes(path.read_bytes()[:-1])

    harms: list[Callable[[], object]] = [
        lambda: (folder() / "meta.json").write_text("{", encoding="utf-8"),
        lambda: (folder() / "meta.json").unlink(),
        lambda: cut(".idx"),
        lambda: cut(".store"),
        lambda: next(folder().glob("*.term")).unlink(),
        lambda: shutil.rmtree(folder()),
        lambda: (base.index / manifest.NAME).write_text("{", encoding="utf-8"),
        lambda: (base.index / manifest.NAME).write_text("[]", encoding="utf-8"),
        lambda: (base.index / manifest.NAME).write_text('{"schema": "khms.index/1"}', encoding="utf-8"),
        lambda: _set(base, "version", 99),
        lambda: _set(base, "schema", "other/1"),
        lambda: _set(base, "generation", "../../etc"),
        lambda: _set(base, "seen", [1]),
        lambda: _set(base, "stored", {}),
    ]
    for number, harm in enumerate(harms):
        harm()
        report = sync.refresh(base)
        assert report.rebuilt, number
        assert "\n" not in report.rebuilt
        assert found(base, "lampdrift") == ["memory/know/K-00001.md"]
        assert sync.verify(base) == ""
        assert sync.refresh(base).rebuilt is None


def _set(base: Base, key: str, value: object) -> None:
    path = base.index / manifest.NAME
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), key: value}), encoding="utf-8")


def test_a_reader_never_takes_damage_for_an_empty_answer(base: Base, add_card: Add) -> None:
    add_card(base)
    with pytest.raises(Unavailable, match="no index yet"):
        current.opened(base)
    sync.refresh(base)
    known = manifest.load(base.index)
    assert known
    path = next((base.index / known.generation).glob("*.idx"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    with pytest.raises(Unavailable, match="cannot be used"):
        current.opened(base)
    path.write_bytes(whole)
    current.opened(base)
    (base.index / known.generation / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(Unavailable, match="cannot be used"):
        current.opened(base)


def test_flipped_bytes_are_found_by_the_thorough_look(base: Base, add_card: Add) -> None:
    add_card(base)
    sync.refresh(base)
    assert sync.verify(base) == ""
    known = manifest.load(base.index)
    assert known
    path = next((base.index / known.generation).glob("*.idx"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    assert "was changed" in sync.verify(base)


def test_a_refresh_that_died_before_its_manifest_is_seen(base: Base, add_card: Add) -> None:
    sync.refresh(base)
    before = (base.index / manifest.NAME).read_bytes()
    path = add_card(base)
    sync.refresh(base)
    (base.index / manifest.NAME).write_bytes(before)
    path.unlink()
    assert sync.refresh(base).rebuilt
    assert [identity for identity, _ in ids(base)] == ["journal/2026-03-04"]


def test_deleting_the_index_is_harmless(base: Base, add_card: Add) -> None:
    add_card(base)
    sync.refresh(base)
    shutil.rmtree(base.local)
    report = sync.refresh(base)
    assert report.docs == 2 and report.rebuilt is None


def test_removing_every_document_leaves_none(base: Base, add_card: Add, commit: Commit) -> None:
    add_card(base, body="lampdrift\n")
    commit(base)
    sync.refresh(base)
    shutil.rmtree(base.know)
    shutil.rmtree(base.journal)
    report = sync.refresh(base)
    assert (report.docs, report.removed) == (0, 2) and found(base, "lampdrift") == []


def test_readers_keep_their_index_during_a_rebuild(base: Base, add_card: Add) -> None:
    add_card(base, body="lampdrift\n")
    sync.refresh(base)
    reader, _ = current.opened(base)
    sync.refresh(base, rebuild=True)
    assert [hit.document.id for hit in reader.search(Query("lampdrift"), depth=5).hits] == ["K-00001"]


def test_a_read_only_index_answers_and_refuses_to_be_written(
    base: Base, add_card: Add, as_nobody: Callable[..., tuple[list[str], KhmsError | None]]
) -> None:
    add_card(base, body="lampdrift\n")
    sync.refresh(base)

    def prepare(copy: Base) -> None:
        add_card(copy, body="driftlamp\n")
        (copy.know / "K-00001.md").chmod(0o644)
        subprocess.run(["chmod", "-R", "a-w", str(copy.index)], check=True)

    def act(copy: Base) -> tuple[list[str], KhmsError | None]:
        before = found(copy, "lampdrift")
        try:
            sync.refresh(copy)
        except KhmsError as error:
            return before, error
        return before, None

    before, error = as_nobody(base, prepare, act)
    assert before == ["memory/know/K-00001.md"]
    assert isinstance(error, Unavailable) and "Permission denied" in error.message and "permission" in error.hint


def test_an_unreadable_file_is_skipped_and_counted(
    base: Base, add_card: Add, as_nobody: Callable[..., tuple[sync.Report, sync.Report]]
) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00002")
    first, second = as_nobody(
        base,
        lambda copy: (copy.know / "K-00001.md").chmod(0),
        lambda copy: (sync.refresh(copy), sync.refresh(copy)),
    )
    assert first.docs == second.docs == 2
    (skipped,) = second.skipped
    assert skipped == first.skipped[0]
    assert skipped.path == "memory/know/K-00001.md" and "Permission denied" in skipped.message


def test_a_base_that_may_not_be_written_is_not_called_behind(
    base: Base, add_card: Add, as_nobody: Callable[..., Answer]
) -> None:
    add_card(base, body="lampdrift\n")
    sync.refresh(base)

    def act(copy: Base) -> Answer:
        for path in (copy.root, *copy.root.rglob("*")):
            if ".git" not in path.parts and ".khms" not in path.parts:
                os.utime(path, (1_700_000_000, 1_700_000_000))
        sync.refresh(copy)
        subprocess.run(["chmod", "-R", "a-w", str(copy.root)], check=True)
        try:
            return recall(copy, "lampdrift", refresh=True)
        finally:
            subprocess.run(["chmod", "-R", "u+w", str(copy.root)], check=True)

    answer = as_nobody(base, lambda copy: None, act)
    assert [hit.id for hit in answer] == ["K-00001"]
    assert "cannot write" in answer.failed and answer.behind == ""
