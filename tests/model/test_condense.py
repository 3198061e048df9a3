"""What could be condensed: age, what a pattern has taken up, and what never wears out."""

from typing import Any

import pytest

from khms.model.belief import Figures
from khms.model.card import Card, Links
from khms.model.condense import condensing


def card(number: int, day: str, **keys: Any) -> Card:
    return Card(f"K-{number:05d}", **{"type": "action-outcome", "date": day, **keys})


NEWEST = card(9, "2026-03-29", type="fact")


def test_weeks_count_to_the_newest_card() -> None:
    pattern = card(5, "2026-03-01", type="principle", links=Links(derived_from=("K-00002",)))
    found = condensing([card(1, "2026-03-01"), card(2, "2026-03-15"), pattern, NEWEST])
    assert found == {"K-00002": pytest.approx(2.0), "K-00001": pytest.approx(4 * 0.3)}
    assert list(found) == ["K-00002", "K-00001"], "the greatest first"
    assert condensing([card(1, "2026-03-01"), NEWEST], Figures(idle=1.0)) == {"K-00001": 4.0}


def test_only_an_active_pattern_takes_up() -> None:
    pattern = card(5, "2026-03-01", type="principle", status="refuted", links=Links(derived_from=("K-00001",)))
    assert condensing([card(1, "2026-03-22"), pattern, NEWEST]) == {"K-00001": pytest.approx(0.3)}


@pytest.mark.parametrize(
    "keys",
    [
        {"type": "fact"},
        {"type": "policy"},
        {"type": "overview"},
        {"type": "principle"},
        {"tags": ("gotcha",)},
        {"status": "refuted"},
        {"status": "superseded"},
        {"status": "condensed"},
        {"date": ""},
        {"date": "yesterday"},
        {"date": "2026-03-29"},
    ],
)
def test_what_never_wears_out(keys: dict[str, Any]) -> None:
    day = keys.pop("date", "2026-01-01")
    assert condensing([card(1, day, **keys), NEWEST]) == {}


def test_no_cards() -> None:
    assert condensing([]) == {}
