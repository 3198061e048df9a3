"""A journal file that cannot be taken as it is hides no other, and its MARKs stay open until it is mended."""

import os
from collections.abc import Callable

import pytest

from khms.config import load
from khms.pipeline.nightly import nightly
from khms.store.layout import Base
from khms.store.receipts import ledger
from khms.store.repo import Repo

CONFLICT = b"""# 2026-05-01

<<<<<<< HEAD
MARK[solved] ours ran at 5 bar all night
=======
MARK[solved] theirs ran at 6 bar all night
>>>>>>> topic
"""


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (b"2026-05-01.md", CONFLICT, "merge conflict stands on line 3"),
        (b"2026-05-01\xff.md", b"MARK[solved] the name of this file has an odd byte\n", "no plain name"),
    ],
)
def test_it_is_named_and_the_others_are_decided(
    base: Base, commit: Callable[..., str], name: bytes, data: bytes, said: str
) -> None:
    path = os.fsencode(base.journal) + b"/" + name
    with open(path, "wb") as file:
        file.write(data)
    result = nightly(base, Repo(base.root), load(base.root))
    assert [said in problem.message for problem in result.problems] == [True]
    assert not result.ok and result.decided == 1
    assert len(ledger(base).receipts) == 1
    os.unlink(path)


def test_a_kind_may_be_any_word_and_old_line_ends_are_read(base: Base) -> None:
    (base.journal / "2026-05-01.md").write_bytes(b"MARK[\xf0\x9f\x90\x98] elephants\rMARK[a|b] pipes\r")
    result = nightly(base, Repo(base.root), load(base.root))
    assert result.ok and result.decided == 3
