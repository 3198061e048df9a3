"""Vectors that come later than their documents, from another model, or not at all; and what an answer says of it."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms import resources
from khms.config import Config
from khms.index import catchup, current, embedding, manifest, models, sync
from khms.index.catchup import ALL, LATER, NEW
from khms.index.vector import Vectors
from khms.recall.search import recall
from khms.store.layout import Base

Add = Callable[..., Path]


def with_vectors(base: Base) -> set[str]:
    """The paths of the documents that have vectors."""
    reader, known = current.opened(base)
    if known.vectors is None:
        return set()
    slots = Vectors(base.index / known.generation, known.vectors).slots.tolist()
    return {document.path for document in reader.at_slots(slots).values()}


def records(base: Base) -> int:
    known = manifest.load(base.index)
    assert known
    return known.vectors.documents if known.vectors else 0


def test_what_waits_is_found_by_its_words_and_catches_up(base: Base, add_card: Add) -> None:
    add_card(base, "K-00001", title="The kitchen is painted blue", body="it was red\n")
    sync.refresh(base)
    add_card(base, "K-00002", title="lampdrift", body="The engine stalls in the cold\n")
    report = sync.refresh(base, vectors=LATER)
    assert (report.docs, report.waiting, report.wordless) == (3, 1, "")
    assert with_vectors(base) == {"journal/2026-03-04.md", "memory/know/K-00001.md"}
    answer = recall(base, "lampdrift")
    assert next(iter(answer)).id == "K-00002" and answer.channel == "hybrid"
    assert answer.note and answer.note.startswith("1 new document by words alone")
    answer = recall(base, "a motor that dies on a frosty morning", refresh=True)
    assert answer.note is None and "memory/know/K-00002.md" in with_vectors(base)
    assert sync.refresh(base).waiting == 0


def test_an_index_built_without_vectors_gets_them_all(base: Base, add_card: Add) -> None:
    add_card(base, "K-00001", body="lampdrift\n")
    assert sync.refresh(base, vectors=LATER).waiting == 2
    answer = recall(base, "lampdrift")
    assert (answer.channel, [hit.id for hit in answer]) == ("lexical", ["K-00001"])
    assert answer.note == "by words alone: there are no vectors yet (khms index makes them)"
    assert sync.refresh(base, vectors=NEW).waiting == 0 and len(with_vectors(base)) == 2


def test_a_question_does_not_wait_for_thousands(base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 5):
        add_card(base, f"K-{number:05d}", body="lampdrift\n")
    sync.refresh(base, vectors=LATER)
    monkeypatch.setattr(catchup, "MOST_ON_THE_WAY", 3)
    assert recall(base, "lampdrift", refresh=True).channel == "lexical"
    assert sync.refresh(base).waiting == 0


def test_documents_that_went_before_their_vectors_came(base: Base, add_card: Add) -> None:
    path = add_card(base, "K-00001")
    add_card(base, "K-00002")
    sync.refresh(base, vectors=LATER)
    path.unlink()
    add_card(base, "K-00002", body="another text\n")
    sync.refresh(base)
    assert with_vectors(base) == {"memory/know/K-00002.md", "journal/2026-03-04.md"}
    assert records(base) == 2 and sync.verify(base) == ""


def test_the_dead_are_cleared_when_they_are_many(base: Base, add_card: Add) -> None:
    for number in range(6):
        add_card(base, "K-00001", body=f"version {number}\n")
        sync.refresh(base)
        assert records(base) <= 3
    assert with_vectors(base) == {"memory/know/K-00001.md", "journal/2026-03-04.md"} and sync.verify(base) == ""
    known = manifest.load(base.index)
    assert known and known.vectors
    names = [path.name for path in (base.index / known.generation).glob("vectors-*")]
    assert names == [f"vectors-{known.vectors.name}"]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder with a model that differs from the shipped one."""
    folder = Path(shutil.copytree(resources.folder("embedding") / embedding.SHIPPED, tmp_path / "other"))
    config = folder / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace("512", "400"), encoding="utf-8")
    return folder


def settings(**values: object) -> Config:
    return Config([("test", {f"recall.{name}": value for name, value in values.items()})])


def test_vectors_of_two_models_never_meet(base: Base, add_card: Add, other: Path) -> None:
    add_card(base, "K-00001", body="lampdrift\n")
    sync.refresh(base)
    first = manifest.load(base.index)
    add_card(base, "K-00002", body="lampdrift\n")
    mine = settings(model=str(other))
    answer = recall(base, "lampdrift", refresh=True, config=mine)
    assert {hit.id for hit in answer} == {"K-00001", "K-00002"} and answer.channel == "lexical"
    assert answer.note == "by words alone: the vectors are another model's (khms index makes new ones)"
    assert records(base) == 2, "a question leaves the old ones as they are"
    sync.refresh(base, config=mine)
    now = manifest.load(base.index)
    assert first and first.vectors and now and now.vectors and now.vectors.model != first.vectors.model
    assert now.generation == first.generation and len(with_vectors(base)) == 3
    assert recall(base, "lampdrift", config=mine).channel == "hybrid"
    assert recall(base, "lampdrift").channel == "lexical"


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("none", "switched off (recall.model)"),
        ("/nowhere/at/all", "there is no folder /nowhere/at/all"),
        (".", "the embedding model cannot be read"),
    ],
)
def test_without_a_model_words_alone_answer(base: Base, add_card: Add, model: str, why: str) -> None:
    add_card(base, "K-00001", body="lampdrift\n")
    report = sync.refresh(base, config=settings(model=model))
    assert report.docs == 2 and why in report.wordless
    answer = recall(base, "lampdrift", refresh=True, config=settings(model=model))
    assert [hit.id for hit in answer] == ["K-00001"] and answer.channel == "lexical"
    assert answer.note and answer.note.startswith(f"by words alone: {why}")


@pytest.mark.parametrize("missing", ["numpy", "numkong"])
def test_without_a_library_words_alone_answer(
    base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    add_card(base, "K-00001", body="lampdrift\n")
    monkeypatch.delitem(sys.modules, "khms.index.arrays", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    answer = recall(base, "lampdrift", refresh=True)
    assert [hit.id for hit in answer] == ["K-00001"] and answer.channel == "lexical"
    assert answer.note == f"by words alone: {missing} is not installed"
    monkeypatch.undo()
    assert recall(base, "lampdrift", refresh=True).channel == "hybrid"


def test_damaged_vectors_are_made_anew(base: Base, add_card: Add) -> None:
    add_card(base, "K-00001", body="lampdrift\n")
    sync.refresh(base)
    for part in ("vectors", "pieces", "records"):
        (path,) = base.index.glob(f"lexical-*/{part}-*")
        path.write_bytes(path.read_bytes()[:-1])
        answer = recall(base, "lampdrift")
        assert [hit.id for hit in answer] == ["K-00001"] and answer.channel == "lexical" and part in str(answer.note)
        assert part in sync.verify(base)
        answer = recall(base, "lampdrift", refresh=True)
        assert answer.channel == "hybrid" and part in answer.rebuilt
        assert sync.verify(base) == "" and len(with_vectors(base)) == 2


def test_the_texts_that_are_read_again_are_the_same(base: Base, add_card: Add, write: Callable[..., Path]) -> None:
    write(base, "khms.toml", "[index]\nnotes = true\n")
    add_card(base, "K-00001", body="lampdrift\n")
    section = "nothing of note here\n\n" * 150
    write(base, "soil.md", f"# Soil\n\n{section}## Acid\n\n{section}## Lime\n\n{section}")
    sync.refresh(base, vectors=LATER)
    sync.refresh(base)
    later = rows(base)
    sync.refresh(base, rebuild=True)
    assert rows(base) == later and len({path for path, _ in later}) == 3


def rows(base: Base) -> dict[tuple[str, int], bytes]:
    """The vectors of each document."""
    reader, known = current.opened(base)
    assert known.vectors
    held = Vectors(base.index / known.generation, known.vectors)
    found = reader.at_slots(held.slots.tolist())
    return {
        (found[slot].path, found[slot].line): held.rows[held.row_ends[at] : held.row_ends[at + 1]].tobytes()
        for at, slot in enumerate(held.slots.tolist())
        if slot in found
    }


def test_a_model_is_not_loaded_where_nothing_waits(base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    add_card(base)
    sync.refresh(base)
    monkeypatch.setattr(models, "load", lambda *_: pytest.fail("loaded"))
    monkeypatch.setattr(catchup, "load", lambda *_: pytest.fail("loaded"))
    assert sync.refresh(base, vectors=ALL).waiting == 0


@pytest.fixture
def no_catching_up(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No text is read a second time: vectors come from the texts that the refresh has at hand, or not at all."""
    monkeypatch.setattr(catchup, "_texts", lambda *_: pytest.fail("read again"))
    return monkeypatch


@pytest.mark.parametrize("mode", [NEW, ALL])
def test_a_small_refresh_makes_its_vectors_on_the_way(
    base: Base, add_card: Add, no_catching_up: pytest.MonkeyPatch, mode: str
) -> None:
    gone = add_card(base, "K-00001", body="lampdrift\n")
    add_card(base, "K-00002", body="it was red\n")
    add_card(base, "K-00003", body="the kitchen\n")
    sync.refresh(base)
    if mode == ALL:  # which keeps to no limit
        no_catching_up.setattr(catchup, "MOST_ON_THE_WAY", 1)
    gone.unlink()
    add_card(base, "K-00002", body="it is blue now\n")
    add_card(base, "K-00004", body="The engine stalls in the cold\n")
    report = sync.refresh(base, vectors=mode)
    assert (report.added, report.updated, report.removed) == (1, 1, 1)
    assert (report.waiting, report.wordless) == (0, "") and sync.verify(base) == ""
    small = rows(base)
    assert len(small) == 4 and ("memory/know/K-00001.md", 1) not in small
    no_catching_up.undo()
    sync.refresh(base, rebuild=True)
    assert rows(base) == small


def test_what_waits_already_is_left_to_catching_up(base: Base, add_card: Add) -> None:
    """Vectors stand in the order of their slots: what came without keeps what comes after it waiting."""
    add_card(base, "K-00001")
    sync.refresh(base)
    add_card(base, "K-00002", body="lampdrift\n")
    sync.refresh(base, vectors=LATER)
    add_card(base, "K-00003", body="the kitchen\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sync, "catch_up", lambda base, rules, known, *_: known.vectors)
        patch.setattr(models, "load", lambda *_: pytest.fail("loaded"))
        assert sync.refresh(base, vectors=NEW).waiting == 2
    sync.refresh(base)
    held = rows(base)
    sync.refresh(base, rebuild=True)
    assert rows(base) == held and len(held) == 4


def test_a_question_makes_no_thousands_of_vectors_on_its_way(
    base: Base, add_card: Add, no_catching_up: pytest.MonkeyPatch
) -> None:
    add_card(base, "K-00001")
    sync.refresh(base)
    no_catching_up.setattr(catchup, "MOST_ON_THE_WAY", 1)
    for number in (2, 3):
        add_card(base, f"K-{number:05d}", body="lampdrift\n")
    assert sync.refresh(base, vectors=NEW).waiting == 2 and records(base) == 2
    no_catching_up.undo()
    assert sync.refresh(base, vectors=ALL).waiting == 0 and len(with_vectors(base)) == 4


def test_what_only_may_have_changed_counts_for_nothing(
    base: Base, add_card: Add, no_catching_up: pytest.MonkeyPatch
) -> None:
    """A base may hold thousands of files that no commit vouches for: each is looked at, and few are read."""
    for number in range(1, 6):
        add_card(base, f"K-{number:05d}")
    for _ in range(2):  # the second is long enough after the files were written to take their times at their word
        sync.refresh(base)
    no_catching_up.setattr(catchup, "MOST_ON_THE_WAY", 2)
    add_card(base, "K-00009", body="The engine stalls in the cold\n")
    assert sync.refresh(base, vectors=NEW).waiting == 0 and "memory/know/K-00009.md" in with_vectors(base)
