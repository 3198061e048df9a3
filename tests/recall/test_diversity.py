"""Near-duplicates make room for what says something else, and nothing else moves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import Config
from khms.index.lexical import BY_ID
from khms.model.document import Document
from khms.recall import diversity
from khms.recall.diversity import by_words, jaccard, spread
from khms.recall.rank import Ranked
from khms.recall.search import recall
from khms.store.layout import Base

SHARE, LEAST = Config([])["recall.diversity"], Config([])["recall.alike"]


def hit(name: str, strength: float, exact: int = 0, **keys: object) -> Ranked:
    return Ranked(Document(name, "card", f"{name}.md", 1, name, **keys), float, strength, exact)  # type: ignore[arg-type]


def order(hits: list[Ranked], pairs: dict[str, float], most: int = 5) -> str:
    """The names after spreading; `pairs` gives the likeness of two hits by their names."""

    def alike(place: int) -> list[float]:
        one = hits[place].document.id
        return [pairs.get("".join(sorted((one, other.document.id))), 0.0) for other in hits]

    found = spread(hits, alike, most=most, share=SHARE, least=LEAST)
    assert sorted(map(id, found)) == sorted(map(id, hits))
    return "".join(one.document.id for one in found)


def test_near_duplicates_go_behind_what_says_something_else() -> None:
    hits = [hit("a", 5.0), hit("b", 4.9), hit("c", 4.8), hit("d", 3.0), hit("e", 2.5)]
    assert order(hits, {"ab": 0.95, "ac": 0.9, "bc": 0.9}) == "adecb"
    assert order(hits, {"ab": 0.95}) == "acdeb"


def test_a_common_subject_is_no_duplicate() -> None:
    assert order([hit("a", 5.0), hit("b", 4.9), hit("c", 1.0)], {"ab": LEAST - 0.01, "bc": 0.5}) == "abc"


def test_a_duplicate_still_comes_before_what_hardly_matches() -> None:
    assert order([hit("a", 5.0), hit("b", 5.0), hit("c", 0.5)], {"ab": 0.8}) == "abc"


def test_a_correction_is_no_duplicate_of_what_it_corrects() -> None:
    for rel in ("contradicts", "supersedes", "refuted_by"):
        linked = hit("b", 4.9, links=((rel, "a"),))
        assert order([hit("a", 5.0), linked, hit("c", 3.0)], {"ab": 0.99}) == "abc"
        assert order([linked, hit("a", 4.8), hit("c", 3.0)], {"ab": 0.99}) == "bac"
    supported = hit("b", 4.9, links=(("supports", "a"),))
    assert order([hit("a", 5.0), supported, hit("c", 3.0)], {"ab": 0.99}) == "acb"


def test_a_successor_stays_before_what_it_replaced() -> None:
    """However alike it is to a third card."""
    old = hit("o", 3.9)
    new = Ranked(Document("n", "card", "n.md", 1, "n"), float, 4.0, 0, note="supersedes o, which matched")
    assert order([hit("a", 5.0), new, old], {"an": 0.99}) == "ano"


def test_what_the_question_names_stays_first() -> None:
    assert order([hit("a", 1.0, BY_ID), hit("b", 1.0, BY_ID), hit("c", 9.0)], {"ab": 1.0, "ac": 1.0}) == "abc"


def test_only_the_pool_moves() -> None:
    hits = [hit(name, 9.0 - place) for place, name in enumerate("abcdefgh")]
    assert order(hits, {"ab": 1.0, "ac": 1.0, "ad": 1.0}, most=1) == "abcdefgh"
    assert order(hits, dict.fromkeys(("ab", "ac", "ad", "ae", "af"), 1.0), most=2)[:2] == "ag"
    assert order([*hits[:6], hit("x", 3.0), hit("y", 2.9), *hits[6:]], {"ab": 1.0}, most=2)[-2:] == "gh"
    assert order(hits, {}, most=3) == "abcdefgh" and order(hits[:1], {}) == "a" and order([], {}) == ""
    assert order([hit("b", 0.0), hit("a", 0.0)], {"ab": 1.0}) == "ba", "the newest first, where nothing was asked"


def test_words_tell_likeness_where_titles_agree() -> None:
    texts = {"The valve sticks": "at three bar it stays shut", "Other": "at three bar it stays shut"}
    hits = [hit("The valve sticks", 2.0), hit("The valve sticks", 1.0), hit("Other", 1.0)]
    asked: list[str] = []

    def text_of(one: Ranked) -> str:
        asked.append(one.document.title)
        return texts[one.document.title]

    assert by_words(hits, text_of)(0) == [0.0, 1.0, 0.0]
    assert "Other" not in asked, "no file is read for a title of its own"
    assert jaccard(frozenset("ab"), frozenset("bc")) == pytest.approx(1 / 3) and jaccard(frozenset(), frozenset()) == 0


@pytest.mark.parametrize("by_meaning", [True, False])
def test_five_reports_of_one_thing_do_not_fill_the_page(
    base: Base, add_card: Callable[..., Path], by_meaning: bool
) -> None:
    for number in range(1, 7):
        body = f"The vane sticks below zero because ice forms on its bearing. Seen again in week {number}.\n"
        add_card(base, f"K-{number:05d}", title="The vane sticks in the cold", body=body)
    add_card(base, "K-00007", title="A heated bearing keeps the vane free", body="Heat the bearing of the vane.\n")
    add_card(base, "K-00008", title="Valves want four bar", body="At three bar the valve stays shut.\n")
    found = recall(base, "the vane sticks below zero: ice on its bearing", refresh=True, by_meaning=by_meaning, limit=4)
    assert [one.id for one in found][1] == "K-00007", [one.id for one in found]
    assert len(found.hits) == 4


def test_the_likeness_of_thousands_is_not_computed() -> None:
    assert len(diversity.pool([hit("a", 1.0)] * 900, 1000)) == 200
