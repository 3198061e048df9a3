"""An evaluation asks a real base by each channel; gates, floors and what cannot be found are told."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.config import load as config_of
from khms.errors import Usage
from khms.measure.evaluation import CHANNELS, Evaluation, evaluate, floor
from khms.measure.golden import Golden
from khms.store.layout import Base

CARDS = {
    "K-00001": ("The checksum fails on deploy", "FIX: store the archive as binary, git converts line ends.\n"),
    "K-00002": ("Poll the pressure valve every ten seconds", "RULE: 0.1 Hz, the link is narrow.\n"),
    "K-00003": ("RAIN_TZ must be set", "FIX: export RAIN_TZ=UTC in the unit file.\n"),
    "K-00004": ("Night shifts swap the dosing canister", "RULE: the chemical store is locked at night.\n"),
}


@pytest.fixture
def stocked(base: Base, add_card: Callable[..., Path], write: Callable[..., Path], commit: Callable[..., str]) -> Base:
    write(base, "khms.toml", '[index]\ninclude = {manual = "docs"}\n')
    for name, (title, body) in CARDS.items():
        add_card(base, name, title=title, body=body)
    add_card(base, "K-00009", title="Poll the valve every second", status="superseded")
    write(base, "docs/pumps/priming.md", "# Priming a pump\n\nFill the casing before the first start.\n")
    commit(base)
    return base


def line(query: str, *gold: str, **more: object) -> Golden:
    return Golden(str(more.pop("id", query)), 1, query, gold, **more)  # type: ignore[arg-type]


def ask(base: Base, *lines: Golden, **more: object) -> Evaluation:
    return evaluate(base, config_of(base.root), lines, **more)  # type: ignore[arg-type]


def test_each_channel_by_its_own_lights(stocked: Base) -> None:
    found = ask(
        stocked,
        line("RAIN_TZ", "K-00003"),
        line("priming a pump", "manual/pumps/priming"),
        line("how often do we ask the gauge of the steam line", "K-00002", kind="paraphrase"),
    )
    assert set(found.channels) == set(CHANNELS) and found.notes == {}
    assert all(held and held["recall@10"] >= 2 / 3 for held in found.channels.values())
    lexical, dense = found.channels["lexical"], found.channels["dense"]
    assert lexical and dense and lexical["recall@1"] >= 2 / 3
    assert dense["recall@10"] == 1.0, "by meaning alone every document has a place, the one without a shared word too"
    assert set(found.kinds) == {"paraphrase"}
    shape = found.as_json()
    assert shape["schema"] == "khms.eval/1" and shape["n"] == 3 and json.dumps(shape)
    assert list(shape["channels"]["hybrid"]) == ["recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10"]


def test_dense_alone_shows_what_recall_would_show(stocked: Base) -> None:
    """The archive and the journal stay out; a superseded card is never in its successor's place."""
    found = ask(stocked, line("frames failed because a ground was loose", "journal/2026-03-04"), channels=["dense"])
    assert found.channels["dense"]["recall@10"] == 0  # type: ignore[index]
    assert [(x.gold, x.why.split(" (")[0]) for x in found.lost] == [("journal/2026-03-04", "nobody has reviewed it")]
    found = ask(
        stocked,
        line("frames failed because a ground was loose", "journal/2026-03-04"),
        channels=["dense", "lexical"],
        unreviewed=True,
    )
    assert [held["recall@1"] for held in found.channels.values()] == [1, 1]  # type: ignore[index]
    assert found.lost == ()


def test_gold_that_names_nothing_is_told(stocked: Base) -> None:
    found = ask(stocked, line("x", "K-00077"), line("y", "K-00009"), line("z", "K-00001", "docs/none"))
    assert [(x.gold, x.why) for x in found.lost] == [
        ("K-00077", "there is no such document in the index"),
        ("K-00009", "it stands in the archive, and answers no question"),
        ("docs/none", "there is no such document in the index"),
    ]


def test_gates_hold_or_fail_by_rank(stocked: Base) -> None:
    found = ask(
        stocked,
        line("RAIN_TZ", "K-00003", id="a", gate=True, k=1),
        line("RAIN_TZ", "K-00001", id="b", gate=True),
        line("RAIN_TZ", "K-00001", id="c"),
        line("recipe for sourdough bread with rye", id="d", gate=True),
        line("RAIN_TZ", id="e", gate=True),
    )
    assert [(g.id, g.passed, g.k) for g in found.gates] == [
        ("a", True, 1), ("b", False, 5), ("d", True, 5), ("e", False, 5),
    ]  # fmt: skip
    assert found.gates[0].rank == 1 and not found.passed
    assert ask(stocked, line("RAIN_TZ", "K-00003", gate=True)).passed


def test_a_floor_holds_or_fails_by_channel(stocked: Base) -> None:
    lines = (line("RAIN_TZ", "K-00003"), line("recipe for sourdough bread with rye"), line("RAIN_TZ"))
    demanded = [
        floor(text, CHANNELS) for text in ("recall@1=1", "lexical:mrr@10=0.99", "silent=0.6", "dense:silent=0.1")
    ]
    found = ask(stocked, *lines, floors=demanded)
    assert [(f.channel, f.metric, f.value, f.passed) for f in found.floors] == [
        ("hybrid", "recall@1", 1.0, True),
        ("lexical", "mrr@10", 1.0, True),
        ("hybrid", "silent", 0.5, False),
        ("dense", "silent", 0.0, False),
    ]
    assert found.unrelated == 2 and not found.passed


def test_without_a_model_words_alone_are_measured(stocked: Base, write: Callable[..., Path]) -> None:
    write(stocked, "khms.toml", '[recall]\nmodel = "none"\n')
    found = ask(stocked, line("RAIN_TZ", "K-00003", gate=True), floors=[floor("dense:recall@5=0.1", CHANNELS)])
    assert found.channels["hybrid"] is None and found.channels["dense"] is None
    assert "switched off" in found.notes["dense"] and found.channels["lexical"]["mrr@10"] == 1  # type: ignore[index]
    assert found.gates[0].passed and not found.floors[0].passed and found.floors[0].value is None


@pytest.mark.parametrize(
    "text", ["recall@5", "recall@5=", "recall@5=2", "recall@5=-1", "recall@5=nan", "f1=0.5", "x:mrr@10=1"]
)
def test_a_floor_that_means_nothing(text: str) -> None:
    with pytest.raises(Usage) as caught:
        floor(text, CHANNELS)
    assert text in caught.value.message and caught.value.hint
