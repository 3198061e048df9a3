"""What a card's hash leaves out holds nothing but the plain value, wherever a card comes in or is audited."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.errors import Refused
from khms.model.cardhash import card_sha256, stray
from khms.pipeline import adopt as adoption
from khms.store.repo import Repo

Codes = Callable[..., list[tuple[str, str]]]
HEAD = "---\nid: K-00001\n{}\nlinks:\n  supports: []\n{}---\nbody\n"
EDGES = "  contradicts: []\n  refuted_by: []\n"
ODD = {
    "status: active  # take it out again": 3,
    "status: active\n# take it out again": 4,
    "status:\n- take it out": 3,
    "status:\n  note: take it out": 3,
    "status: null": 3,
    "status: take it out": 3,
    "status: active\nstatus: active": 4,
    "title: none": 1,
}
ODD_EDGES = {
    "  contradicts: []\n# it is wrong\n  refuted_by: []\n": 7,
    "  contradicts: []  # it is wrong\n": 6,
    "  contradicts:\n    note: it is wrong\n": 6,
    "  contradicts: [K-00002, it is wrong]\n": 6,
    "  contradicts: it is wrong\n": 6,
    "  contradicts:\n    - K-00002  # it is wrong\n": 7,
    "  contradicts: []\n  contradicts: []\n": 7,
    "  refuted_by: &note []\n": 6,
}
PLAIN = (
    EDGES,
    "",
    "  contradicts: [K-00002, 'K-00003']\n  refuted_by: null\n",
    "  contradicts:\n    - K-00002\n    - K-00003\n  refuted_by:\n",
    "  contradicts: K-00002\n",
    "  contradicts: [K-00002,\n    K-00003]\n",
)


@pytest.mark.parametrize("status", ODD)
def test_a_status_is_one_word(status: str) -> None:
    assert [line for line, _ in stray(HEAD.format(status, EDGES).encode())] == [ODD[status]]


@pytest.mark.parametrize("edges", ODD_EDGES)
def test_correctors_are_ids(edges: str) -> None:
    assert [line for line, _ in stray(HEAD.format("status: active", edges).encode())] == [ODD_EDGES[edges]]


@pytest.mark.parametrize("edges", PLAIN)
def test_plain_values_pass_however_they_are_written(edges: str) -> None:
    for status in ("status: active", 'status: "refuted"', "status: superseded "):
        assert stray(HEAD.format(status, edges).encode()) == []
        assert stray(b"\xef\xbb\xbf" + HEAD.format(status, edges).replace("\n", "\r\n").encode()) == []


def test_what_is_hashed_whole_leaves_nothing_out() -> None:
    assert stray(b"---\nstatus: active # x\nlinks: {contradicts: []}\n---\n") == [] == stray(b"no frontmatter # x\n")
    assert [line for line, _ in stray(b"---\nstatus: active\nlinks:  # x\n  contradicts: []\n---\n")] == [3]


def test_white_space_without_end_is_read_in_a_moment() -> None:
    for edges in ("  contradicts: [" + " " * 200_000 + "x]\n", "  contradicts:" + "\n" * 200_000 + "x\n"):
        assert stray(HEAD.format("status: active", edges).encode()) or "x\n" in edges


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("status: active", "status: active  # the slat made it worse", 5),
        ("status: active", "status:\n- the slat made it worse", 5),
        ("  contradicts: []", "  contradicts: []\n# the fix above is wrong", 0),
    ],
)
def test_words_on_the_lines_that_may_change_are_found(
    old: str, new: str, line: int, reviewed: Any, codes: Codes, report: Any
) -> None:
    path = reviewed.base.know / "K-00003.md"
    text = path.read_text(encoding="utf-8")
    if old not in text:
        old, new = "  refuted_by: []", new.replace("contradicts", "refuted_by")
    assert text.count(old) == 1
    before, right = reviewed.head(), card_sha256(path.read_bytes())
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert card_sha256(path.read_bytes()) == right, "the hash does not tell"
    found = {"uncommitted": reviewed.whole(), "staged": reviewed.staged()}
    assert "KH010" in {f.code for f in report().findings}
    reviewed.commit()
    found |= {"whole": reviewed.whole(), "range": reviewed.between(before)}
    for form, audited in found.items():
        assert ("KA004", "K-00003.md") in codes(audited), form
        (one,) = [t.finding for t in audited.troubles if "nothing else" in t.finding.message]
        assert "plain value" in one.mend and (not line or one.line == line), form


def test_a_candidate_with_a_remark_there_does_not_come_in(reviewed: Any) -> None:
    reviewed.propose("2026-03-07-nightly", "C1")
    path = reviewed.base.inbox / "2026-03-07-nightly/C1.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("status: active", "status: active  # as ever"), encoding="utf-8")
    reviewed.commit()
    with pytest.raises(Refused) as refused:
        reviewed.approve("2026-03-07-nightly")
    assert "status: active  # as ever" in refused.value.where and "one word" in refused.value.where
    path.write_text(text, encoding="utf-8")
    reviewed.commit()
    assert reviewed.approve("2026-03-07-nightly")


def test_an_older_card_with_a_remark_is_refused_by_line_and_comes_in_without(
    base: Any, add_card: Callable[..., Path], commit: Any
) -> None:
    """To take the remark out changes nothing that is hashed: the card is as old as before."""
    path = add_card(base, "K-00001")
    text = path.read_text(encoding="utf-8")
    row = next(row for row in text.split("\n") if row.startswith("status:"))
    path.write_text(text.replace(row, f"{row}  # since June"), encoding="utf-8")
    commit(base)
    line = text[: text.index("status:")].count("\n") + 1
    with pytest.raises(Refused) as refused:
        adoption.adopt(base, Repo(base.root), config.load(base.root))
    assert f"memory/know/K-00001.md:{line}: `status`" in refused.value.where and "plain value" in refused.value.hint
    path.write_text(text, encoding="utf-8")
    commit(base)
    assert adoption.adopt(base, Repo(base.root), config.load(base.root)).cards == ("K-00001",)
