"""Belief: the weights, who counts, and that nothing but active cards does."""

import math

from khms.model.belief import beliefs
from khms.model.card import Card, Links


def test_it_weighs_by_evidence_and_level() -> None:
    cards = {
        c.id: c
        for c in (
            Card("K-00001", "fact", evidence="measured"),
            Card("K-00002", "fact", evidence="observed", links=Links(supports=("K-00009",))),
            Card("K-00003", "fact", evidence="reported"),
            Card("K-00004", "fact", level="assumption"),
            Card("K-00005", "principle"),
            Card("K-00006", "fact", evidence="measured", status="refuted"),
            Card("K-00009", "principle", links=Links(derived_from=("K-00001", "K-00005", "K-00006", "K-77777"))),
            Card("K-00010", "policy", links=Links(contradicts=("K-00003",), refuted_by=("K-00004",))),
        )
    }
    found = beliefs(cards)
    assert sorted(found) == ["K-00005", "K-00009", "K-00010"]
    assert found["K-00009"].supporters == ("K-00001", "K-00002", "K-00005")
    assert found["K-00009"].value == math.tanh((3 + 2 + 2) / 4)
    assert found["K-00010"].value == math.tanh(-(1 + 1) / 4)
    assert found["K-00005"].value == 0.0 and str(found["K-00005"]) == "+0.00 (0 for, 0 against)"


def test_a_card_never_carries_itself() -> None:
    card = Card("K-00001", "principle", links=Links(derived_from=("K-00001",), supports=("K-00001",)))
    assert beliefs({card.id: card})[card.id].value == 0.0
