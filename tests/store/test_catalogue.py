"""The kept catalogue answers as reading every card would, whatever happened to the files in between."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.model.claim import claim, key
from khms.store import cards, catalogue
from khms.store.layout import Base


def assert_as_read(base: Base) -> None:
    held = catalogue.catalogue(base)
    read = cards.shelf(base).cards
    assert held.cards == {i: dataclasses.replace(card, body="", meta={}) for i, card in read.items()}
    assert {i for ids in held.claims.values() for i in ids} == set(read)
    assert all(card.id in held.claims[key(claim(card.body))] for card in read.values())


def test_it_is_kept_and_notices_every_change(
    base: Base, add_card: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "FEW", 0)
    monkeypatch.setattr(catalogue, "REST", 0)
    paths = [add_card(base, f"K-0000{n}", links={"supports": ["K-00001"]}) for n in (1, 2, 3)]
    assert_as_read(base)
    kept = json.loads((base.state / "cards.json").read_text(encoding="utf-8"))
    assert len(kept["cards"]) == 3
    old = paths[0].stat()
    paths[0].write_text(paths[0].read_text(encoding="utf-8").replace("K-00001 says", "K-00001 said"), encoding="utf-8")
    os.utime(paths[0], ns=(old.st_atime_ns, old.st_mtime_ns))
    paths[1].unlink()
    add_card(base, "K-00004")
    assert_as_read(base)
    for damage in ("{", "[" * 100_000, json.dumps({"schema": 2, "cards": {"x": [1]}})):
        (base.state / "cards.json").write_text(damage, encoding="utf-8")
        assert_as_read(base)
