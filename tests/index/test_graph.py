"""A graph over many vectors: it finds what comparing them all finds, sees changes, is only ever a way there."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from khms.config import Config
from khms.index import current, graph, manifest, models, sync
from khms.index.arrays import np
from khms.index.catchup import NEW
from khms.index.extent import Part
from khms.index.manifest import Manifest
from khms.index.meaning import Meaning
from khms.index.vector import Vectors, checksum
from khms.measure import synthetic
from khms.model.document import UNREVIEWED, Query
from khms.recall.search import recall
from khms.store import files
from khms.store.layout import Base

if find_spec("usearch") is None:  # importing it here would be before onnxruntime
    pytest.skip("the extra khms[graph] is not installed", allow_module_level=True)

CARDS = 600
MINE = Config([("test", {graph.FROM: 500})])
COLD = "the engine stalls when it is cold\n"
MOTOR = "a motor that dies on frosty mornings"
Add = Callable[..., Path]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base of many cards and its index, graph and all; not in git."""
    root = tmp_path_factory.mktemp("many") / "base"
    (root / "memory" / "know").mkdir(parents=True)
    (root / "khms.toml").write_text("", encoding="utf-8")
    synthetic.fill(root, CARDS)
    assert sync.refresh(Base(root), config=MINE).graphless == ""
    return root


@pytest.fixture
def many(filled: Path, tmp_path: Path) -> Base:
    """A copy of that base: a file may be harmed in it."""
    return Base(Path(shutil.copytree(filled, tmp_path / "many", copy_function=shutil.copy2)))


def held(base: Base) -> Manifest:
    known = manifest.load(base.index)
    assert known and known.vectors
    return known


def place(base: Base) -> Path:
    """The file of the graph."""
    known = held(base)
    assert known.graph
    return known.graph.path(base.index / known.generation)


def usable(base: Base) -> bool:
    known = held(base)
    return graph.opened(base.index / known.generation, known, MINE) is not None


def channels(base: Base) -> tuple[Meaning, Meaning]:
    """By the graph, and by comparing all."""
    reader, known = current.opened(base)
    found, _ = current.meaning(base, MINE, reader, known)
    assert found is not None and known.vectors is not None
    model = models.load(models.chosen(base, MINE))
    return found, Meaning(reader, Vectors(base.index / known.generation, known.vectors), model)


def slots(meaning: Meaning, query: Query, depth: int = 20, hidden: tuple[str, ...] = ()) -> list[int]:
    return [one.slot for one in meaning.ask(query, (), depth=depth, hidden=hidden).felt]


def test_it_finds_what_comparing_all_finds(
    many: Base, told: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    by_graph, whole = channels(many)
    search = by_graph._graph.search  # type: ignore[union-attr]
    monkeypatch.setattr(by_graph._graph, "search", lambda v, n, **more: asked.append(n) or search(v, n, **more))
    shared = first = 0
    for number in range(100):
        query = Query(synthetic.question(number))
        one, other = slots(by_graph, query), slots(whole, query)
        shared += len(set(one) & set(other))
        first += one[0] == other[0]
    assert len(asked) == 100, "the graph was asked"
    assert shared >= 0.9 * 100 * 20 and first >= 90
    told(f"of the 20 nearest by comparing all, the graph finds {shared / 20:.0f} %")


def test_its_scores_are_those_of_all(many: Base) -> None:
    by_graph, whole = channels(many)
    for number in range(20):
        query = Query(synthetic.question(number))
        one, other = (m.ask(query, range(5), depth=5) for m in (by_graph, whole))
        assert one.rows == other.rows
        exact = {f.slot: f for f in other.felt}
        for felt in one.felt:
            if felt.slot in exact:
                same = exact[felt.slot]
                assert felt.apart == pytest.approx(same.apart, abs=1e-5) and felt.met == pytest.approx(same.met)
                assert felt.near == pytest.approx(same.near, abs=0.3)


def test_filters_and_shelves_hold(many: Base) -> None:
    by_graph, whole = channels(many)
    reader, _ = current.opened(many)
    for name, value in (("kind", "card"), ("tag", "gateway")):
        some = Query(synthetic.question(1), (), ((name, value),))
        found, fitting = slots(by_graph, some), set(reader.slots(some, ()))
        assert fitting and set(found) <= fitting and len(found) == 20
        assert len(set(found) & set(slots(whole, some))) >= 18
    nothing = Query(synthetic.question(1), (), (("tag", "no-such-tag"),))
    assert slots(by_graph, nothing) == []
    assert set(slots(by_graph, Query(MOTOR), hidden=(UNREVIEWED,))) <= set(reader.slots(Query(""), (UNREVIEWED,)))


def test_what_is_new_changed_or_gone_is_seen_before_the_graph_is_carried_on(many: Base, add_card: Add) -> None:
    before = held(many).graph
    add_card(many, "K-90001", title="A cold engine", body=COLD)
    sync.refresh(many, config=MINE)
    assert held(many).graph == before, "one more is no reason to write it again"
    assert next(iter(recall(many, MOTOR, config=MINE))).id == "K-90001"
    add_card(many, "K-90001", title="Invoices", body="They are rounded to whole cents\n")
    add_card(many, "K-90002", title="The same", body=COLD)
    (many.know / "K-00001.md").unlink()
    sync.refresh(many, config=MINE)
    by_graph, _ = channels(many)
    found = by_graph.documents(slots(by_graph, Query(MOTOR), 100)).values()
    assert next(iter(recall(many, MOTOR, config=MINE))).id == "K-90002"
    ids = [document.id for document in found]
    assert "K-90002" in ids and "K-00001" not in ids and len(ids) == len(set(ids))


def test_it_is_carried_on_when_much_is_new(many: Base, add_card: Add) -> None:
    first = place(many)
    for number in range(90_000, 90_080):
        add_card(many, f"K-{number}", title=f"Engine {number}", body=COLD)
    sync.refresh(many, config=MINE, vectors=NEW)
    assert place(many) == first, "a question does not wait for that"
    assert graph.due(many, held(many), MINE)
    sync.refresh(many, config=MINE)
    known = held(many)
    assert known.graph and known.vectors and known.graph.rows == known.vectors.rows and usable(many)
    assert list(first.parent.glob("graph-*")) == [place(many)] and not graph.due(many, known, MINE)


def test_under_the_line_there_is_none(many: Base) -> None:
    other = Config([("test", {graph.FROM: 100_000})])
    known = held(many)
    assert graph.opened(many.index / known.generation, known, other) is None and not graph.due(many, known, other)


@pytest.mark.parametrize("harm", ["cut", "flipped", "gone", "empty"])
def test_a_damaged_one_is_not_used_and_built_again(many: Base, harm: str) -> None:
    path = place(many)
    data = path.read_bytes()
    half = len(data) // 2
    path.unlink()
    if harm != "gone":
        path.write_bytes(
            {"cut": data[:half], "flipped": data[:half] + b"\xa5\x5a" + data[half + 2 :], "empty": b""}[harm]
        )
    assert not usable(many) and "graph-" in sync.verify(many)
    answer = recall(many, synthetic.question(3), config=MINE)
    assert answer.channel == "hybrid" and answer.hits and not answer.rebuilt
    docs = held(many).generation
    sync.refresh(many, config=MINE)
    assert usable(many) and sync.verify(many) == "" and held(many).generation == docs


@pytest.mark.parametrize("ndim", [64, 256])
def test_a_foreign_one_is_not_used_and_built_again(many: Base, ndim: int) -> None:
    """Of another dimension, which loads without a word, or of other rows, with a manifest that vouches for it."""
    index = graph._library()(ndim=ndim, metric="cos", dtype="i8")
    index.add(np.arange(9), np.ones((9, ndim), dtype=np.int8))
    path, known = place(many), held(many)
    assert known.graph
    files.write_atomic(path, bytes(index.save()))
    file = Part(path.stat().st_size, checksum(path, path.stat().st_size), manifest.mark(path)[1])
    manifest.save(many.index, replace(known, graph=replace(known.graph, file=file)))
    assert not usable(many) and recall(many, synthetic.question(3), config=MINE).channel == "hybrid"
    sync.refresh(many, config=MINE)
    assert usable(many)


def test_one_over_other_vectors_is_not_used(many: Base) -> None:
    known = held(many)
    assert known.graph
    for other in ({"of": "77"}, {"model": "x"}, {"dimension": 64}, {"rows": 10**6}):
        assert known.vectors and not graph.fits(replace(known.graph, **other), known.vectors)  # type: ignore[arg-type]


def test_without_the_library_all_are_compared_and_it_is_said(many: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("usearch", "usearch.index"):
        monkeypatch.setitem(sys.modules, name, None)
    assert not usable(many) and recall(many, synthetic.question(3), config=MINE).channel == "hybrid"
    assert sync.refresh(many, config=MINE).graphless == "usearch is not installed (pip install 'khms[graph]')"


def test_killed_while_it_is_built_nothing_is_lost(kill: ModuleType, add_card: Add) -> None:
    def prepare(folder: Path) -> None:
        (folder / "khms.toml").write_text("[recall]\nhnsw_from = 5\n", encoding="utf-8")
        for number in range(1, 9):
            add_card(Base(folder), f"K-{number:05d}", title=f"Engine {number}", body=COLD)
        sync.refresh(Base(folder), vectors=NEW)

    def between(folder: Path) -> None:
        answer = recall(Base(folder), MOTOR)
        assert answer.channel == "hybrid" and len(answer.hits) == 5 and sync.verify(Base(folder)) == ""

    def check(folder: Path) -> None:
        between(folder)
        known = held(Base(folder))
        assert known.graph and known.vectors and known.graph.rows == known.vectors.rows == 8
        assert [path.name[:6] for path in (folder / ".khms").rglob("*graph-*")] == ["graph-"]

    kill.kill_points(prepare, ["index"], check, between, twice=True)


def test_the_graph_and_the_whole_model_live_in_one_process() -> None:
    """Loaded in the wrong order the two libraries end the process with a segmentation fault."""
    pytest.importorskip("onnxruntime", reason="the extra khms[quality] is not installed")
    script = "from khms.index import graph; graph._library(); import onnxruntime; print('both')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "both\n")
