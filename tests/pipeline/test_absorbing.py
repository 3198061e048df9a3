"""What would be lost if one card stood for another."""

from dataclasses import replace

import pytest

from khms.model.card import Card, Links
from khms.pipeline.absorbing import lacking

OLD = Card(
    "K-00001", "action-outcome", title="Paint at 4 °C peels", body="Seen in `logs/paint.txt`.\n", date="2026-01-05"
)
BY = Card(
    "K-00009", "principle", "derived", title="Paint needs warmth", body="HOLDS: at 4 °C it peels, see logs/paint.txt\n",
    links=Links(derived_from=("K-00001", "K-00002")),
)  # fmt: skip


def lost(old: Card = OLD, by: Card = BY, *others: Card, leaving: tuple[str, ...] = ()) -> list[str]:
    return lacking(old, by, {card.id: card for card in (old, by, *others)}, leaving)


def test_nothing_is_lost_where_every_mark_and_link_is_there() -> None:
    assert lost() == []
    assert lost(replace(OLD, body="On 2026-01-05 in `logs/paint.txt`.\n")) == []  # its own date needs no place


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("It took 9 days.", "9 days"),
        ("Call `paint.dry()` first.", "paint.dry()"),
        ("See /srv/boards/list.csv.", "/srv/boards/list.csv"),
        ("ValueError: too cold", "ValueError: too cold"),
    ],
)
def test_a_mark_that_stands_nowhere_else_is_named(body: str, what: str) -> None:
    assert lost(replace(OLD, body=body)) == [what]
    beside = Card("K-00002", "fact", title="Another", body=body)
    assert lost(replace(OLD, body=body), BY, beside) == []
    assert lost(replace(OLD, body=body), BY, beside, leaving=("K-00002",)) == [what]
    assert lost(replace(OLD, body=body), BY, replace(beside, status="refuted")) == [what]


def test_links_are_carried_in_both_directions() -> None:
    other = Card("K-00005", "fact", title="Another")
    for name in ("derived_from", "supports", "contradicts"):
        old = replace(OLD, links=Links(**{name: ("K-00005",)}))
        assert lost(old, BY, other) == [f"its links.{name} K-00005"]
        assert lost(old, BY, replace(other, status="superseded", path="memory/archive/know/K-00005.md")) == []
        assert lost(old, replace(BY, links=Links(("K-00001",), ("K-00005",))), other) == []
    resting = replace(other, links=Links(derived_from=("K-00001",)))
    assert lost(OLD, BY, resting) == ["the links.derived_from of K-00005"]
    assert lost(OLD, BY, replace(resting, links=Links(derived_from=("K-00001", "K-00009")))) == []
    against = replace(other, links=Links(contradicts=("K-00001",)))
    assert lost(OLD, BY, against) == ["the links.contradicts of K-00005"]
    assert lost(replace(OLD, links=Links(supersedes=("K-00005",))), BY, replace(other, status="superseded")) == [
        "its links.supersedes K-00005"
    ]
