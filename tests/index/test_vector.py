"""The files of vectors: what is put in comes out, they only grow, and damage shows."""

from dataclasses import replace
from pathlib import Path

import pytest

from khms import resources
from khms.index import embedding, vector
from khms.index.arrays import np
from khms.index.embedding import Model
from khms.index.extent import PARTS, Extent, extent_from
from khms.index.lexical import Damaged
from khms.index.vector import Feed, Vectors, begun, compacted
from khms.model.document import Document


@pytest.fixture(scope="module")
def model() -> Model:
    return embedding.load(resources.folder("embedding") / embedding.SHIPPED, "m")


def document(number: int, body: str) -> Document:
    return Document(f"K-{number:05d}", "card", f"memory/know/K-{number:05d}.md", 1, f"Card {number}", body)


BODIES = {
    3: "the pool is exhausted under load",
    4: "",
    7: "\n".join(f"line {n} of a long card about sensors and frames" for n in range(40)),
    9: "tighten the loose ground",
}


def filled(folder: Path, model: Model, extent: Extent | None = None, bodies: dict[int, str] = BODIES) -> Extent:
    feed = Feed(folder, extent or begun("1", model), model)
    for slot, body in bodies.items():
        feed.add(slot, document(slot, body))
    return feed.finish()


def contents(folder: Path, extent: Extent) -> dict[int, tuple[bytes, bytes]]:
    """By slot, the rows and the pieces."""
    held = Vectors(folder, extent)
    return {
        int(slot): (
            held.rows[held.row_ends[at] : held.row_ends[at + 1]].tobytes(),
            held.pieces[held.piece_ends[at] : held.piece_ends[at + 1]].tobytes(),
        )
        for at, slot in enumerate(held.slots)
    }


def test_what_is_put_in_comes_out(tmp_path: Path, model: Model) -> None:
    extent = filled(tmp_path, model)
    held = Vectors(tmp_path, extent)
    assert extent.upto == 10 and extent.documents == 4 and extent.rows == len(held.rows) == 5
    assert held.slots.tolist() == [3, 4, 7, 9] and np.diff(held.row_ends).tolist() == [1, 1, 2, 1]
    at = held.slots.tolist().index(9)
    pieces = model.cut("Card 9\ntighten the loose ground")
    assert held.pieces[held.piece_ends[at] : held.piece_ends[at + 1]].tolist() == sorted(set(pieces))
    assert np.array_equal(held.rows[held.row_ends[at]], embedding.quantised(model.encode([pieces]))[0])
    assert extent_from(extent.as_json()) == extent


def test_a_document_without_a_word_the_model_knows_has_no_record(tmp_path: Path, model: Model) -> None:
    feed = Feed(tmp_path, begun("1", model), model)
    feed.add(0, replace(document(0, "\u0fd0\u0fd0"), title=""))
    feed.add(1, replace(document(1, ""), title=""))
    extent = feed.finish()
    assert (extent.documents, extent.rows, extent.upto) == (0, 0, 2)
    assert not list(tmp_path.glob("*-1")) and len(Vectors(tmp_path, extent).rows) == 0


def test_in_steps_as_at_once(tmp_path: Path, model: Model) -> None:
    for name in ("once", "steps"):
        (tmp_path / name).mkdir()
    once = filled(tmp_path / "once", model)
    steps = begun("1", model)
    for slot, body in BODIES.items():
        steps = filled(tmp_path / "steps", model, steps, {slot: body})
    for part in PARTS:
        assert (tmp_path / "once" / f"{part}-1").read_bytes() == (tmp_path / "steps" / f"{part}-1").read_bytes()
        assert once.part(part).crc == steps.part(part).crc


def test_what_is_written_behind_the_end_is_not_seen_and_is_overwritten(tmp_path: Path, model: Model) -> None:
    first = filled(tmp_path, model)
    before = contents(tmp_path, first)
    reader = Vectors(tmp_path, first)
    rows = reader.rows.copy()
    filled(tmp_path, model, first, {11: "a refresh that died before its manifest"})
    assert contents(tmp_path, first) == before and np.array_equal(reader.rows, rows)
    assert vector.damage(tmp_path, first, thorough=True) == ""
    second = filled(tmp_path, model, first, {11: "what it says now"})
    (tmp_path / "anew").mkdir()
    assert contents(tmp_path, second) == contents(
        tmp_path / "anew", filled(tmp_path / "anew", model, None, {**BODIES, 11: "what it says now"})
    )


def test_the_dead_are_left_out_of_a_copy(tmp_path: Path, model: Model) -> None:
    extent = filled(tmp_path, model)
    before = contents(tmp_path, extent)
    made = compacted(Vectors(tmp_path, extent), [7, 9, 12], "2")
    assert contents(tmp_path, made) == {slot: before[slot] for slot in (7, 9)}
    assert (made.name, made.upto, made.rows) == ("2", extent.upto, 3)
    assert vector.damage(tmp_path, made, thorough=True) == ""
    assert contents(tmp_path, filled(tmp_path, model, made, {12: "more"})).keys() == {7, 9, 12}
    none = compacted(Vectors(tmp_path, extent), [], "3")
    assert (none.documents, none.rows) == (0, 0)


@pytest.mark.parametrize("part", PARTS)
def test_damage_shows(tmp_path: Path, model: Model, part: str) -> None:
    extent = filled(tmp_path, model)
    path = extent.path(tmp_path, part)
    data = path.read_bytes()
    for harmed in (data[:-1], data[: len(data) // 2] + b"\xff" + data[len(data) // 2 + 1 :], b"", None):
        path.unlink(missing_ok=True)
        if harmed is not None:
            path.write_bytes(harmed)
        with pytest.raises(Damaged, match=f"{part}-1 was changed" if harmed and len(harmed) == len(data) else "cut"):
            Vectors(tmp_path, extent)
    path.write_bytes(data + b"more")
    Vectors(tmp_path, extent)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", "../x"),
        ("dimension", 0),
        ("dimension", 255),
        ("piece_bytes", 3),
        ("upto", -1),
        ("records", [13, 0, 0]),
        ("vectors", [-256, 0, 0]),
        ("pieces", [1, 2]),
    ],
)
def test_an_extent_that_cannot_be(tmp_path: Path, model: Model, key: str, value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        extent_from({**filled(tmp_path, model).as_json(), key: value})
