"""Which observations share a shape, and which of them are independent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import Config
from khms.model.card import Card, Links
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.shapes import Sessions, independent, shapes
from khms.store.layout import Base

SAID = (
    ("Uploader retried a full disk for ever", "A retry without a limit hid the full disk. Bound the retries."),
    ("Mail sender retries hid a wrong password", "It retried the login without a limit. Bound the retries."),
    ("Endless retries of the import hid an expired token", "It retried without a limit. Bound the retries."),
)
OTHERS = tuple(
    (title, "It is what it is.")
    for title in (
        "Hinges rust in the greenhouse", "Serif type prints thin", "Bees avoid the wall", "Yeast rises slower in cold",
        "Choir recordings clip", "The drone's compass drifts", "Danish crowns round up", "Icons are a submodule",
    )
)  # fmt: skip


def ground(
    base: Base, *, sessions: str = "abc", dates: str = "123", tags: tuple[str, ...] = ("retries",), **more: Card
) -> Ground:
    held = {}
    for at, (title, body) in enumerate((*SAID, *OTHERS), 1):
        mine = at <= len(SAID)
        name, day = (sessions[at - 1], dates[at - 1]) if mine else (f"o{at}", "9")
        held[f"K-{at:05d}"] = Card(
            f"K-{at:05d}", "fact", "observation", "active", title, tags if mine else (f"t{at}",), evidence="observed",
            source=f"session:x/{name}", date=f"2026-05-0{day}", body=body,
        )  # fmt: skip
    return Ground(base, Config([]), {**held, **{card.id: card for card in more.values()}})


def test_three_of_their_own_sessions_and_dates_are_a_shape(base: Base) -> None:
    (shape,) = shapes(ground(base))
    assert (shape.cards, shape.independent) == (("K-00001", "K-00002", "K-00003"), 3)


@pytest.mark.parametrize(("sessions", "dates"), [("aab", "123"), ("abc", "112"), ("aba", "121"), ("aaa", "123")])
def test_fewer_independent_ones_are_none(base: Base, sessions: str, dates: str) -> None:
    assert shapes(ground(base, sessions=sessions, dates=dates)) == []


def test_what_a_card_in_force_derives_from_is_said_already(base: Base) -> None:
    links = Links(derived_from=("K-00001", "K-00002"))
    said = Card("K-00050", "principle", "derived", "active", "Bound retries", links=links, date="2026-05-08")
    assert shapes(ground(base, said=said)) == []
    gone = Card("K-00050", "principle", "derived", "refuted", "Bound retries", links=links, date="2026-05-08")
    assert len(shapes(ground(base, said=gone))) == 1


def test_a_shared_tag_brings_near_what_else_is_not(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("khms.pipeline.weekly.shapes.PLAIN", 1.1)
    assert len(shapes(ground(base, tags=("retries",)))) == 1
    assert shapes(ground(base, tags=())) == []


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ([("a", "1"), ("b", "2"), ("c", "3")], 3),
        ([("a", "1"), ("a", "2"), ("b", "1")], 2),
        ([("a", "1"), ("a", "2"), ("b", "1"), ("c", "3")], 3),
        ([("a", "1"), ("b", "1"), ("c", "1")], 1),
        ([("a", ""), ("b", ""), ("c", "3")], 1),
        ([], 0),
    ],
)
def test_independent_ones_share_neither_session_nor_date(made: list[tuple[str, str]], count: int) -> None:
    assert independent(made) == count
    assert independent(reversed(made)) == count


def test_the_session_of_an_observation(base: Base, write: Callable[..., Path]) -> None:
    write(base, "journal/2026-03-04.md", "# 2026-03-04\n\nMARK[note] one (sess abc-1)\n\nMARK[note] two\n")
    known = Sessions(base)

    def of(source: str) -> str:
        return known.of(Card("K-00001", "fact", source=source))

    assert of('journal/2026-03-04.md line 3: "one"') == "session abc-1"
    assert of("session:claude-code/abc-1") != of("session:codex/abc-1")
    assert of('journal/2026-03-04.md line 5: "two"') == of("journal/2026-03-04.md") == "journal/2026-03-04.md"
    assert of("docs/plan.md line 3") == of("docs/plan.md line 9") != of("docs/other.md line 3")
    assert of("") == of("  ")
