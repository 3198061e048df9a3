"""Belief: the weights, who counts, and that nothing but active cards does."""

import math

from khms.config import Config
from khms.model.belief import FIGURES, Figures, beliefs, figures, weigh
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


def test_the_figures_are_settings() -> None:
    assert figures(Config([])) == figures({}) == FIGURES
    changed = figures(Config([("x", {"belief.k": 1.0, "belief.reported": 0.5})]))
    assert changed == Figures(reported=0.5, k=1.0)
    card = Card("K-00001", "fact", evidence="reported")
    assert weigh([card, card], [], changed).value == math.tanh(0.5), "each card counts once"


def test_a_contradiction_weighs_while_it_is_active() -> None:
    def of(status: str) -> float:
        cards = [
            Card("K-00001", "principle", links=Links(contradicts=("K-00002",))),
            Card("K-00002", "fact", evidence="measured", status=status, links=Links(contradicts=("K-00001",))),
        ]
        return beliefs({card.id: card for card in cards})["K-00001"].value

    assert of("active") == math.tanh(-3 / 4) and of("challenged") == of("refuted") == of("superseded") == 0.0
