"""The embedding model read by khms's own code: the same pieces and the same vectors as its libraries give."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from khms import resources
from khms.errors import Unavailable
from khms.index import embedding, models
from khms.index.arrays import np
from khms.index.embedding import Model, Unfit
from khms.store.layout import Base

FOLDER = resources.folder("embedding") / embedding.SHIPPED
TEXTS = [
    "The gateway drops frames when the pool is exhausted.",
    "psycopg2.OperationalError: FATAL: sorry, too many clients already\n\tat db.pool.acquire()",
    "Café Straße naïve ÆØÅ İstanbul ΑΣ ﬁle ①",
    "数据库连接池 データベース 한국어 ไทย עברית العربية",
    "a\u200bb\u00adc\x00d\x07e\x7ff\r\ng\u2028h\u3000i",
    "[PAD] and [UNK] and [CLS] are words here",
    "x" * 101 + " " + "y" * 100,
    "🐘 emoji ☃ and symbols ∑ → ≠",
    "don't user_profile_cache 2026.4.10 C:\\temp https://example.org/a?b=c#d",
    "word " * 2000,
    " ".join(f"w{n}" for n in range(700)),
    "",
    " \n\t ",
    "\ufffd",
]


@pytest.fixture(scope="module")
def model() -> Model:
    return embedding.load(FOLDER, "x")


def test_the_same_pieces_as_the_tokenizer(model: Model) -> None:
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    theirs.no_padding()
    theirs.enable_truncation(512)
    unknown = theirs.token_to_id("[UNK]")
    for text in TEXTS:
        expected = [piece for piece in theirs.encode(text, add_special_tokens=False).ids if piece != unknown]
        assert model.cut(text) == expected, text[:40]


def test_the_same_vectors_as_model2vec(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from model2vec import StaticModel

    theirs = StaticModel.from_pretrained(str(FOLDER)).encode(TEXTS)
    ours = model.encode([model.cut(text) for text in TEXTS])
    assert ours.dtype == np.float32 and ours.shape == (len(TEXTS), 256)
    assert float(np.abs(theirs - ours).max()) < 1e-6
    assert not ours[TEXTS.index("")].any()


def test_a_vector_does_not_depend_on_what_is_encoded_beside_it(model: Model) -> None:
    pieces = [model.cut(text) for text in TEXTS]
    together = model.encode(pieces * (embedding.BATCH // 2))
    assert all(np.array_equal(model.encode([ids])[0], row) for ids, row in zip(pieces, together, strict=False))


def test_a_vector_that_is_not_finite_is_none_at_all() -> None:
    table = np.array([[1.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [3e38, 3e38]], dtype=np.float32)
    found = Model("x", table, lambda text: []).encode([[0], [1], [2], [3, 3], [0, 1], []])
    assert np.isfinite(found).all()
    assert found.any(axis=1).tolist() == [True, False, False, False, True, False]


def test_as_int8_each_vector_uses_the_whole_range() -> None:
    vectors = np.array([[0.5, -0.25], [1e-3, 2e-3], [0.0, 0.0]], dtype=np.float32)
    assert embedding.quantised(vectors).tolist() == [[127, -64], [64, 127], [0, 0]]


@pytest.mark.parametrize("name", embedding.FILES)
def test_a_model_that_is_not_whole(tmp_path: Path, name: str) -> None:
    for harm in ("cut", "empty", "deleted", "folder"):
        folder = Path(shutil.copytree(FOLDER, tmp_path / harm))
        path = folder / name
        data = path.read_bytes()
        path.unlink()
        if harm == "folder":
            path.mkdir()
        elif harm != "deleted":
            path.write_bytes(data[: len(data) // 2] if harm == "cut" else b"")
        with pytest.raises(Unavailable, match="embedding model cannot be read"):
            embedding.load(folder, "x")


def test_a_model_of_another_kind_is_told_apart(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "other"))
    path = folder / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace("BertNormalizer", "NFC"), encoding="utf-8")
    with pytest.raises(Unfit, match="tokenizer"):
        embedding.load(folder, "x")


def test_the_shipped_model_is_checked_before_it_is_used(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "embedding"
    folder = Path(shutil.copytree(FOLDER, place / embedding.SHIPPED))
    monkeypatch.setattr(resources, "folder", lambda name: place)
    choice = models.chosen(base, {"recall.model": ""})
    assert choice.folder == folder and len(choice.id) == 64
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(Unavailable, match=r"model\.safetensors .* not as it was shipped"):
        models.chosen(base, {"recall.model": ""})


def test_a_model_is_hashed_once(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "mine"))
    settings = {"recall.model": str(folder)}
    models.chosen(base, settings)
    assert not base.index.exists(), "who only looks leaves nothing behind"
    base.index.mkdir(parents=True)
    first = models.chosen(base, settings)
    with monkeypatch.context() as patch:
        patch.setattr(embedding, "identity", lambda *_: pytest.fail("hashed again"))
        assert models.chosen(base, settings) == first
    os.utime(folder / "config.json")
    assert models.chosen(base, settings) == first
    (folder / "config.json").write_text('{"max_length": 16}', encoding="utf-8")
    assert models.chosen(base, settings).id != first.id


def test_the_sums_are_those_of_the_files() -> None:
    for line in (FOLDER / embedding.SUMS).read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest


def test_only_a_hub_that_is_named_as_one_is_asked(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    from model2vec import StaticModel

    asked: list[str] = []

    def from_pretrained(name: str) -> None:
        asked.append(name)
        raise OSError("no network here")

    monkeypatch.setattr(StaticModel, "from_pretrained", from_pretrained)
    with pytest.raises(Unavailable, match="no folder owner/name"):
        models.chosen(base, {"recall.model": "owner/name"})
    assert asked == []
    with pytest.raises(Unavailable, match="owner/name cannot be loaded: OSError"):
        models.load(models.chosen(base, {"recall.model": "hub:owner/name"}))
    assert asked == ["owner/name"]


def test_a_model_that_model2vec_has_to_read(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from model2vec import StaticModel

    folder = Path(shutil.copytree(FOLDER, tmp_path / "cased"))
    path = folder / "tokenizer.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"lowercase":true', '"lowercase":false'), encoding="utf-8")
    model = models.load(models.chosen(base, {"recall.model": str(folder)}))
    expected = StaticModel.from_pretrained(str(folder)).encode(["one word", "Two Words"])
    found = model.encode([model.cut("one word"), model.cut("Two Words")])
    assert float(np.abs(expected - found).max()) < 1e-6
