"""Questions as people type them, through the library, with the model and without: filters and phrases mean what they
say, what is on no record is said to be on none, and between hits alike the priors decide."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.index import sync
from khms.recall.search import Answer, recall
from khms.store.layout import Base

Add = Callable[..., Path]
FILLER = (
    "Payroll closes on working day three",
    "Greenhouse fans run from ten to four",
    "Boarding starts forty minutes before departure",
    "Libraries lend maps for fourteen days",
    "Choirs need more tenors than they have",
    "Bakers let dough prove overnight",
    "Tides at our pier turn twice daily",
    "Archives keep negatives in cold rooms",
)
CHANNELS = pytest.mark.parametrize("by_meaning", [True, False], ids=["both", "words"])


def ids(answer: Answer) -> list[str]:
    return [hit.id for hit in answer]


@CHANNELS
@pytest.mark.parametrize("text", ["-foo", "--error-on-warnings", "*", "**", "?", "", "   ", "NOT"])
def test_no_sign_brings_the_whole_base(base: Base, add_card: Add, text: str, by_meaning: bool) -> None:
    for number, body in enumerate(FILLER, 1):
        add_card(base, f"K-{number:05d}", title=f"T{number}", body=f"{body}\n")
    sync.refresh(base)
    assert len(recall(base, text, by_meaning=by_meaning, limit=100).hits) < len(FILLER) / 2


@pytest.fixture
def filtered(base: Base, add_card: Add, write: Callable[..., Path]) -> Base:
    write(base, "khms.toml", "[index]\nnotes = true\n")
    about: list[dict[str, Any]] = [
        {"tags": ["pumps", "gotcha"], "scope": "device:vane", "date": "2026-01-10"},
        {"tags": ["pumps"], "type": "policy", "level": "derived", "date": "2026-02-01"},
        {"tags": ["Pumps"], "status": "challenged", "date": "2026-03-31"},
    ]
    for number, keys in enumerate(about, 1):
        add_card(base, f"K-{number:05d}", title=f"Pump rule {number}", body="the pump primes slowly\n", **keys)
    write(base, "pump.md", "# Pump notes\n\nthe pump primes slowly\n")
    sync.refresh(base)
    return base


@CHANNELS
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pump tag:pumps", ["K-00001", "K-00002", "K-00003"]),
        ("pump tag:pumps tag:gotcha", ["K-00001"]),
        ("pump type:policy", ["K-00002"]),
        ("pump type:policy type:fact tag:pumps", ["K-00001", "K-00002", "K-00003"]),
        ("pump kind:note", ["pump"]),
        ("pump scope:device:vane", ["K-00001"]),
        ("pump status:challenged", ["K-00003"]),
        ("pump kind:card after:2026-02-01", ["K-00002", "K-00003"]),
        ("pump kind:card before:2026-02-01", ["K-00001"]),
        ("pump kind:card after:2026-02 before:2026-03", ["K-00002"]),
        ("tag:pumps after:2026-02-01", ["K-00002", "K-00003"]),
        ("pump tag:nowhere", []),
    ],
)
def test_filters(filtered: Base, text: str, found: list[str], by_meaning: bool) -> None:
    assert sorted(ids(recall(filtered, text, by_meaning=by_meaning))) == found


@CHANNELS
@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ('"loose ground"', ["K-00001", "K-00002"]),
        ('"ground loose"', []),
        ('"loose"', ["K-00001", "K-00002", "K-00003"]),
        ('"the loose ground"', ["K-00002"]),
        ('"LOOSE Ground"', ["K-00001", "K-00002"]),
        ('"pool.acquire"', ["K-00003"]),
        ('"失效策略"', ["K-00003"]),
        ('"失略"', []),
        ('"loose ground" "two wires"', ["K-00002"]),
        ('"ground frames fail"', []),
        ('"frames it was"', []),
    ],
)
def test_phrases_stand_side_by_side_in_title_or_body(
    base: Base, add_card: Add, phrase: str, found: list[str], by_meaning: bool
) -> None:
    add_card(base, "K-00001", title="A loose ground", body="frames fail\n")
    add_card(base, "K-00002", title="Frames", body="it was the loose ground of two wires\n")
    add_card(base, "K-00003", title="The ground is wet", body="loose: db.pool.acquire() 使用缓存失效策略\n")
    sync.refresh(base)
    assert sorted(ids(recall(base, phrase, by_meaning=by_meaning))) == found


def test_nothing_on_record_names_what_the_other_shelves_would_have_said(
    base: Base, add_card: Add, write: Callable[..., Path]
) -> None:
    """By what the model finds too, not only by words."""
    add_card(base, "K-00001", title="Payroll", body="It closes on the third working day.\n")
    write(
        base,
        "memory/inbox/u/C1.md",
        "---\nid: C1\ntitle: The automobile refuses to start in winter\n---\nIts battery dies.\n",
    )
    add_card(base, "K-00002", status="condensed", title="Brew beer", body="Let the malt rest at 65 degrees.\n")
    sync.refresh(base)
    for text, elsewhere in (
        ("automobile in winter", (("unreviewed", 1),)),
        ("car will not start when it is cold", (("unreviewed", 1),)),
        ("malt rest degrees", (("fog", 1),)),
        ("choir tenors", ()),
    ):
        answer = recall(base, text)
        assert (answer.hits, answer.elsewhere) == ((), elsewhere), text
    assert ids(recall(base, "automobile in winter", unreviewed=True)) == ["u/C1"]


def test_two_cards_alike_are_told_apart_by_project_and_grade(base: Base, add_card: Add, tmp_path: Path) -> None:
    keys = {"title": "The cache is flushed at night", "body": "the cache is flushed at night\n"}
    add_card(base, "K-00001", scope="project:pump", evidence="measured", **keys)
    add_card(base, "K-00002", scope="project:vane", evidence="reported", **keys)
    add_card(base, "K-00003", evidence="measured", **keys)
    for number, text in enumerate(FILLER, 10):
        add_card(base, f"K-{number:05d}", title=text, body=text)
    here = tmp_path / "vane"
    (here / ".git").mkdir(parents=True)
    (here / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    sync.refresh(base)
    asked = "when is the cache flushed"
    assert ids(recall(base, asked, here=here))[0] == "K-00002"
    assert ids(recall(base, asked, limit=3))[-1] == "K-00002"


def test_belief_is_told_as_show_tells_it(base: Base, add_card: Add, commit: Callable[..., str]) -> None:
    from khms.recall.lookup import look_up

    add_card(base, "K-00001", evidence="measured", body="a\n")
    add_card(base, "K-00002", links={"supports": ["K-00003"]}, body="b\n")
    believed = {"derived_from": ["K-00001"]}
    add_card(
        base, "K-00003", type="principle", level="derived", title="Flush the cache early", body="x\n", links=believed
    )
    disputed = {"derived_from": ["K-09999"], "contradicts": ["K-00001"]}
    add_card(
        base, "K-00004", type="principle", level="derived", title="Flush the cache early", body="x\n", links=disputed
    )
    commit(base)
    answer = recall(base, "flush the cache early", refresh=True, limit=2)
    assert ids(answer) == ["K-00003", "K-00004"], "the better believed of two alike first"
    for hit in answer:
        assert hit.belief == look_up(base, hit.id).belief and hit.belief is not None
        assert hit.as_json()["belief"] == look_up(base, hit.id).as_json()["belief"]
    assert answer.hits[0].belief and answer.hits[0].belief.supporters == ("K-00001", "K-00002")
    assert answer.hits[1].belief and answer.hits[1].belief.opposers == ("K-00001",)
    assert recall(base, "K-00001").hits[0].belief is None
