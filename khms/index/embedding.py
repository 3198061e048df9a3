"""The embedding model: a table of one vector a word piece. A text's vector is the mean of its pieces' vectors.

The one that ships with khms is read here without any model library: a tokenizer's vocabulary and one block of int8,
mapped and not loaded. Nothing here ever reaches for a network; a folder that is not there is an error.
"""

from __future__ import annotations

import contextlib
import os
from functools import cached_property
from itertools import chain
from pathlib import Path

from khms.errors import Unavailable
from khms.index.pieces import WordPieces
from khms.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from numpy import float32, int8
    from numpy.typing import NDArray

SHIPPED = "khms-en-256"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
SUMS = "SHA256SUMS"
BATCH = 64  # texts that are encoded at once
_TABLES = {"I8": "int8", "F32": "float32", "F16": "float16"}


class Unfit(Exception):
    """There are files of a model, and khms does not read such a one by itself."""


class Model:
    """`id` is the hash of its files. `table` has a row for each piece. `cut` gives a text's pieces as far as the model
    looks at it."""

    kind = "words"  # by which ranking knows what its figures mean
    # Mean and spread of a question's cosines by each reading (khms/index/meaning.py), as they lie over the development
    # sets.
    usual: tuple[tuple[float, float], ...] = ((0.55, 0.06), (0.27, 0.085), (0.0, 0.11))
    at_once = 512  # chunks that are gathered before they are encoded and written

    def __init__(self, identity: str, table: NDArray[Any], cut: Callable[[str], list[int]]) -> None:
        self.id, self.table, self.cut = identity, table, cut

    @property
    def dimension(self) -> int:
        return int(self.table.shape[1])

    @cached_property
    def common(self) -> NDArray[Any] | None:
        """The direction of the mean of all vectors: what they share says nothing of any text. None where they share
        none."""
        from khms.index.arrays import np

        wide = np.int32 if self.table.dtype == np.int8 else np.float64
        mean = self.table.sum(axis=0, dtype=wide).astype(np.float64)
        direction: NDArray[Any] = mean / max(float(np.sqrt(mean @ mean)), 1e-9)
        return direction

    def encode(self, pieces: Sequence[Sequence[int]]) -> NDArray[float32]:
        """The unit vector of each text, given by its pieces; zero where it has none, or where it is not finite."""
        from khms.index.arrays import np

        found = np.zeros((len(pieces), self.dimension), dtype=np.float32)
        for start in range(0, len(pieces), BATCH):
            some = pieces[start : start + BATCH]
            sums = self._sums(some)
            lengths = np.sqrt(np.square(sums, dtype=np.float64).sum(axis=1))
            good = np.isfinite(lengths) & (lengths > 0)
            found[start : start + len(some)][good] = sums[good] / lengths[good, None]
        return found

    def _sums(self, pieces: Sequence[Sequence[int]]) -> NDArray[float32]:
        """The sum of each text's piece vectors, as counts times vectors: five times as fast as adding them up, and
        exact where the vectors are whole numbers."""
        from khms.index.arrays import np

        sizes = [len(ids) for ids in pieces]
        flat = np.fromiter(chain.from_iterable(pieces), dtype=np.intp, count=sum(sizes))
        seen, column = np.unique(flat, return_inverse=True)
        if not len(seen):
            return np.zeros((len(pieces), self.dimension), dtype=np.float32)
        cells = np.repeat(np.arange(len(pieces)) * len(seen), sizes) + column
        counts = np.bincount(cells, minlength=len(pieces) * len(seen)).reshape(len(pieces), len(seen))
        rows = self.table[seen].astype(np.float32)
        rows[~np.isfinite(rows).all(axis=1)] = 0.0  # or it would spoil every text of the batch
        with np.errstate(over="ignore", invalid="ignore"):
            product: NDArray[float32] = counts.astype(np.float32) @ rows
        return product


def quantised(vectors: NDArray[float32]) -> NDArray[int8]:
    """Each vector as int8, scaled by its own greatest part. Only its direction counts, and so scaled it keeps the most:
    of the true 50 nearest .99 are found, .94-.96 with one scale for all."""
    from khms.index.arrays import np

    most = np.abs(vectors).max(axis=1, keepdims=True)
    whole: NDArray[int8] = np.rint(vectors * (127.0 / np.maximum(most, 1e-30))).astype(np.int8)
    return whole


def load(folder: Path, identity: str) -> Model:
    """The model in `folder`. Raises Unavailable where its files are not there or not whole, Unfit where it is of a kind
    that is not read here."""
    try:
        config = files.read_json(folder / "config.json")
        with _uncollected():
            tokenizer = files.read_json(folder / "tokenizer.json")
        cutter = _pieces(tokenizer)
        table = _table(folder / "model.safetensors")
        longest = config.get("max_length", 512)
        vocabulary = tokenizer["model"]["vocab"]
        if len(vocabulary) != len(table):
            raise Unfit("its tokenizer and its vectors do not go together")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unavailable(
            f"the embedding model cannot be read: {type(error).__name__}", where=str(folder), hint="install khms again"
        ) from error
    return Model(identity, table, _Cutter(cutter, vocabulary, longest).cut)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would look through 30,000 new strings again and again: a fifth of the
    time."""
    import gc

    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class _Cutter:
    """model2vec reads so many characters of a text as `longest` pieces of median length have, then so many pieces."""

    def __init__(self, pieces: WordPieces, vocabulary: Mapping[str, int], longest: int | None) -> None:
        self._pieces, self._vocabulary, self._longest = pieces, vocabulary, longest

    @cached_property
    def _characters(self) -> int:
        lengths = sorted(map(len, self._vocabulary))
        half = len(lengths) // 2
        median = lengths[half] if len(lengths) % 2 else (lengths[half - 1] + lengths[half]) / 2
        return int(median) * (self._longest or 0)

    def cut(self, text: str) -> list[int]:
        if self._longest is None:
            return self._pieces.cut(text)
        if len(text) > self._longest:
            text = text[: self._characters]
        return self._pieces.cut(text, self._longest)


def _pieces(tokenizer: Mapping[str, Any]) -> WordPieces:
    """The cutter that a tokenizer.json describes, if it is BERT's uncased one."""
    model, normalizer = tokenizer["model"], tokenizer["normalizer"] or {}
    as_bert = (
        model["type"] == "WordPiece"
        and model["continuing_subword_prefix"] == "##"
        and normalizer.get("type") == "BertNormalizer"
        and normalizer["lowercase"]
        and normalizer["strip_accents"] in (None, True)
        and normalizer["clean_text"]
        and normalizer["handle_chinese_chars"]
        and (tokenizer["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
    )
    if not as_bert:
        raise Unfit("its tokenizer is not BERT's uncased one")
    special = tuple(token["content"] for token in tokenizer["added_tokens"])
    return WordPieces(model["vocab"], model["unk_token"], special)


def _table(path: Path) -> NDArray[Any]:
    """The vectors of a safetensors file: its only block, mapped."""
    import json

    from khms.index.arrays import np

    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length)) if length < 1 << 20 else {}
    header.pop("__metadata__", None)
    if set(header) != {"embeddings"}:
        raise Unfit("it holds more than a table of vectors")
    block = header["embeddings"]
    (begin, end), shape = block["data_offsets"], tuple(block["shape"])
    if block["dtype"] not in _TABLES:
        raise Unfit(f"its vectors are {block['dtype']}")
    kind = np.dtype(_TABLES[block["dtype"]])
    if len(shape) != 2 or end - begin != shape[0] * shape[1] * kind.itemsize:
        raise ValueError("the block is not of its own shape")
    mapped = np.memmap(path, dtype=kind, mode="r", offset=8 + length + begin, shape=shape)
    return mapped.view(np.ndarray)  # a slice of a memmap object costs ten times as much


def identity(folder: Path, names: Iterable[str] = FILES) -> str:
    """The hash of a model's files. Raises Unavailable where one is missing."""
    import hashlib

    whole = hashlib.sha256()
    for name in names:
        try:
            whole.update(hashlib.sha256(files.read(folder / name)).digest())
        except OSError as error:
            raise Unavailable(
                f"the embedding model cannot be read: {os.strerror(error.errno or 0)}", where=str(folder / name)
            ) from error
    return whole.hexdigest()
