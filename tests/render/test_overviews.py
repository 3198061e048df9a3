"""The views that this machine keeps for itself: every card where it belongs, the same bytes from the same cards."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from khms.model.card import Card, Links
from khms.render.overviews import FOLDER, overviews
from khms.store import cards
from khms.store.layout import Base


def card(number: int, **keys: Any) -> Card:
    folder = "archive/know" if keys.get("status") in ("superseded", "condensed") else "know"
    held = {"type": "fact", "title": f"Claim {number}", "date": "2026-03-04", "evidence": "measured", **keys}
    return Card(f"K-{number:05d}", path=f"memory/{folder}/K-{number:05d}.md", **held)


SHELF = [
    card(1, type="action-outcome", date="2026-01-07"),
    card(2, scope="device:pump"),
    card(3, type="principle", links=Links(derived_from=("K-00001",)), scope="universal"),
    card(4, type="principle", title="[x](javascript:y) <b>", links=Links(derived_from=("K-00001", "K-00002"))),
    card(5, status="superseded"),
    card(6, links=Links(supersedes=("K-00005",))),
]


def page(name: str, shelf: list[Card] = SHELF) -> str:
    return overviews({held.id: held for held in shelf})[f"{FOLDER}/{name}.md"].decode()


def test_by_type_the_most_believed_first() -> None:
    lines = page("types").splitlines()
    assert lines[1] == "# Cards by type"
    assert [line for line in lines if line.startswith("## ")] == [
        "## principle (2)",
        "## action-outcome (1)",
        "## fact (2)",
    ]
    believed = [re.findall(r"K-\d{5}", line)[0] for line in lines if "belief" in line]
    assert believed == ["K-00004", "K-00003"] and "belief +0.91 (2 for, 0 against)" in page("types")
    assert "K-00005" not in page("types"), "what lies in the archive stands nowhere"


def test_by_scope() -> None:
    lines = [line for line in page("scopes").splitlines() if line.startswith("## ")]
    assert lines == ["## device:pump (1)", "## no scope (3)", "## universal (1)"]


def test_what_could_be_condensed() -> None:
    rows = [line for line in page("condense").splitlines() if line.startswith("- ")]
    assert len(rows) == 1 and "K-00001" in rows[0] and rows[0].endswith("(8.0, a pattern says it)")
    assert "Nothing is old enough yet." in page("condense", SHELF[1:])


def test_links() -> None:
    assert "- K-00006 Claim 6\n  - supersedes K-00005: Claim 5 \\[SUPERSEDED\\]" in page("graph")


def test_titles_are_only_words() -> None:
    for name in ("types", "scopes", "graph"):
        assert not re.search(r"(?<!\\)(?:\]\(javascript|<b>)", page(name)), name


def test_the_same_cards_give_the_same_bytes() -> None:
    mixed = SHELF[:]
    random.Random(3).shuffle(mixed)
    assert overviews({c.id: c for c in mixed}) == overviews({c.id: c for c in SHELF})
    assert overviews({}) == overviews({}) and all(overviews({}).values())


def test_every_link_leads_to_its_card(base: Base, add_card: Callable[..., Path]) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00002", type="principle", level="derived", links={"derived_from": ["K-00001"]})
    for path, data in overviews(cards.shelf(base).cards).items():
        for target in re.findall(r"\]\(([^)]+)\)", data.decode()):
            assert (base.path(path).parent / target).resolve().is_file(), (path, target)
