"""Each step between the search and the answer, by itself."""

from dataclasses import replace

import pytest

from khms.config import Config
from khms.index.lexical import BY_ID, Found, Scored
from khms.model.document import Document
from khms.recall import priors, rank
from khms.recall.rank import Ranked

PRIORS = priors.figures(Config([]))


def card(identity: str, status: str = "active", **keys: object) -> Document:
    folder = "archive/know" if status in ("superseded", "condensed") else "know"
    made = Document(identity, "card", f"memory/{folder}/{identity}.md", 1, identity, status=status)
    return replace(made, **keys)  # type: ignore[arg-type]


def hit(document: Document, strength: float = 1.0, exact: int = 0) -> Ranked:
    return Ranked(document, lambda: strength / 10, strength, exact, lexical_rank=1)


def weighed(hits: list[Ranked]) -> list[Ranked]:
    return rank.weighed(hits, lambda document: priors.worth(document, PRIORS))


def ids(hits: list[Ranked]) -> list[str]:
    return [hit.document.id for hit in hits]


def test_one_channel_gives_its_ranks() -> None:
    found = rank.fuse(Found((Scored(card("K-1"), 0.9, 5.0, 0), Scored(card("K-2"), 0.4, 2.0, 0)), {}))
    assert [(h.lexical_rank, h.dense_rank, h.score) for h in found] == [(1, None, 0.9), (2, None, 0.4)]


def test_the_best_section_stands_for_its_document() -> None:
    note = Document("n", "note", "n.md", 1, "first")
    found = rank.once([hit(replace(note, line=9), 3.0), hit(note, 2.0), hit(replace(note, kind="card"), 1.0)])
    assert [(h.document.kind, h.document.line) for h in found] == [("note", 9), ("card", 1)]


def test_active_before_challenged_before_refuted() -> None:
    found = weighed([hit(card("K-3", "refuted")), hit(card("K-2", "challenged")), hit(card("K-1"))])
    assert ids(found) == ["K-1", "K-2", "K-3"]


def test_a_much_better_match_is_not_hidden_by_its_status() -> None:
    assert ids(weighed([hit(card("K-1"), 1.0), hit(card("K-2", "challenged"), 3.0)])) == ["K-2", "K-1"]


def test_an_exact_match_comes_first_whatever_its_status() -> None:
    assert ids(weighed([hit(card("K-1"), 9.0), hit(card("K-2", "refuted"), 1.0, BY_ID)])) == ["K-2", "K-1"]


def test_a_successor_takes_the_place() -> None:
    old, new, other = card("K-1", "superseded"), card("K-2"), card("K-3")
    found = rank.succeeded([hit(old, 5.0), hit(other, 3.0)], lambda _: (new,))
    found = weighed(rank.visible(found, include_fog=False))
    assert ids(found) == ["K-2", "K-3"]
    assert found[0].note == "supersedes K-1, which matched" and found[0].score == 0.5
    assert found[0].lexical_rank is None


def test_a_successor_that_matched_too_keeps_the_better_of_both() -> None:
    old, new = card("K-1", "superseded"), card("K-2")
    found = rank.succeeded([hit(old, 5.0), hit(new, 1.0)], lambda _: (new,))
    (only,) = rank.visible(found, include_fog=False)
    assert (only.document.id, only.strength, only.lexical_rank) == ("K-2", 5.0, 1)
    found = rank.succeeded([hit(new, 5.0), hit(old, 1.0)], lambda _: (new,))
    (only,) = rank.visible(found, include_fog=False)
    assert (only.document.id, only.strength) == ("K-2", 5.0)


@pytest.mark.parametrize("strength", [0.1, 5.0, 50.0])
@pytest.mark.parametrize("exact", [0, BY_ID])
def test_the_old_card_never_stands_before_its_successor_nor_alone(strength: float, exact: int) -> None:
    old, new = card("K-1", "superseded"), card("K-2")
    found = rank.succeeded([hit(old, strength, exact)], lambda _: (new,))
    assert ids(weighed(rank.visible(found, include_fog=True))) == ["K-2", "K-1"]


def test_fog_is_shown_where_it_is_asked_for_or_named() -> None:
    gone, condensed, live = card("K-1", "superseded"), card("K-2", "condensed"), card("K-3")
    hits = [hit(gone), hit(condensed), hit(live)]
    assert ids(rank.visible(hits, include_fog=False)) == ["K-3"]
    assert ids(rank.visible(hits, include_fog=True)) == ["K-1", "K-2", "K-3"]
    assert ids(rank.visible([hit(condensed, 1.0, BY_ID)], include_fog=False)) == ["K-2"]


def test_an_older_base_keeps_superseded_cards_beside_the_others() -> None:
    old = card("K-1", "superseded", path="memory/know/K-1.md")
    assert rank.visible([hit(old)], include_fog=False) == []


def test_nothing_is_on_record_where_nothing_is_about_it() -> None:
    weak = [replace(hit(card("K-1")), evidence=0.2), replace(hit(card("K-2")), evidence=0.1)]
    assert rank.on_record(weak, 0.3) == [] and rank.on_record(weak, 0.2) == weak and rank.on_record([], 0.0) == []
    assert rank.on_record([replace(weak[0], exact=1)], 0.9) == [replace(weak[0], exact=1)]


def test_what_is_far_behind_and_shares_no_word_is_left_out() -> None:
    best, word, near, far = (
        replace(hit(card(f"K-{number}"), strength), lexical_rank=place)
        for number, (strength, place) in enumerate([(4.0, 1), (0.1, 2), (2.0, None), (1.9, None)], 1)
    )
    assert rank.on_record([best, word, near, far], 0.3) == [best, word, near]


@pytest.mark.parametrize(
    ("document", "flags"),
    [
        (card("K-1"), ()),
        (card("K-1", "refuted"), ("REFUTED",)),
        (card("K-1", "challenged", tags=("gotcha",)), ("CHALLENGED", "gotcha")),
        (card("K-1", "superseded"), ("SUPERSEDED", "fog")),
        (card("K-1", "condensed"), ("CONDENSED", "fog")),
        (Document("u/C1", "inbox", "memory/inbox/u/C1.md", 1, "t", status="waiting"), ("UNREVIEWED",)),
        (Document("journal/d", "journal", "journal/d.md", 1, "t"), ("UNREVIEWED",)),
        (Document("n", "note", "n.md", 1, "t", status="refuted"), ()),
    ],
)
def test_flags(document: Document, flags: tuple[str, ...]) -> None:
    assert rank.flags(document) == flags
