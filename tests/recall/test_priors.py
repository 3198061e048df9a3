"""What a document is worth by itself: each prior alone, and that all of them stay small."""

from itertools import product
from pathlib import Path

import pytest

from khms.config import Config
from khms.index.lexical import BY_ID
from khms.model.card import EVIDENCE
from khms.model.document import Document
from khms.recall import priors, rank
from khms.recall.project import at_hand
from khms.recall.rank import Ranked
from khms.store.layout import Base

FIGURES = priors.figures(Config([]))
HERE = frozenset(("vane", "project:vane"))


def card(identity: str = "K-1", **keys: str) -> Document:
    return Document(identity, "card", f"memory/know/{identity}.md", 1, identity, **{"status": "active", **keys})  # type: ignore[arg-type]


def worth(document: Document, belief: float = 0.0) -> float:
    return priors.worth(document, FIGURES, HERE) * priors.of_belief(belief, FIGURES.belief)


def test_better_evidence_is_worth_more() -> None:
    grades = [worth(card(evidence=grade)) for grade in EVIDENCE]
    assert grades == sorted(grades, reverse=True) and len(set(grades)) == 3
    assert worth(card(evidence="measured", level="assumption")) < grades[-1]
    assert worth(card()) == worth(Document("n", "note", "n.md", 1, "t")) == 1.0


def test_the_project_at_hand_comes_before_others() -> None:
    def of(scope: str, here: frozenset[str] = HERE) -> float:
        return priors.of_scope(scope, here, 0.03)

    assert of("project:vane") == of("Project:Vane ") == of("device:vane") == of("vane") == 1.03
    assert of("") == of("universal") == of("device:pump") == of("host:ci") == of("pump") == 1.0
    assert of("project:pump") == 0.97
    assert of("project:pump", frozenset()) == of("project:vane", frozenset()) == 1.0


def test_belief_raises_and_lowers() -> None:
    assert worth(card(), -1.0) < worth(card(), -0.2) < worth(card()) < worth(card(), 0.5) < worth(card(), 1.0)


def test_all_together_decide_among_neighbours_only() -> None:
    """The best by every prior is worth less than a tenth more than a plain card, and so is the worst less."""
    best = worth(card(evidence="measured", scope="project:vane"), 1.0)
    worst = worth(card(level="assumption", scope="project:pump"), -1.0)
    assert 1.0 < best < 1.1 and 0.9 < worst < 1.0


@pytest.mark.parametrize("status", ["refuted", "superseded", "challenged"])
def test_a_named_card_stays_first_whatever_it_is_worth(status: str) -> None:
    poor = card("K-1", status=status, level="assumption", scope="project:pump")
    good = card("K-2", evidence="measured", scope="project:vane")
    hits = [Ranked(good, float, 9.0, 0), Ranked(poor, float, 0.1, BY_ID)]
    assert [hit.document.id for hit in rank.weighed(hits, worth)] == ["K-1", "K-2"]


def test_a_hit_keeps_all_but_its_strength() -> None:
    hit = Ranked(card(status="refuted"), float, 2.0, 1, 3, 4, "note", 0.7, 9)
    (weighed,) = rank.weighed([hit], worth)
    assert weighed.strength == 2.0 * FIGURES.refuted
    assert weighed == Ranked(hit.document, float, weighed.strength, 1, 3, 4, "note", 0.7, 9)


def test_an_episode_fades_and_importance_holds_it() -> None:
    assert priors.of_age(1.0, 0) == 1.0 and priors.of_age(0.0, 0) == 0.7
    assert priors.of_age(1.0, 10) == pytest.approx(2.718281828**-0.3)
    assert priors.of_age(0.5, 30) == pytest.approx(0.85 * 2.718281828**-0.9)
    days = [priors.of_age(0.4, day) for day in range(200)]
    assert days == sorted(days, reverse=True) and days[-1] > 0
    assert priors.of_age(9.0, -3) == 1.0 and priors.of_age(-9.0, 0) == 0.7
    for importance, day in product((0.0, 0.5, 1.0), (0, 100)):
        assert priors.of_age(importance, day, floor=1.0, decay=0.0) == 1.0


def test_the_project_is_the_repository_one_works_in(tmp_path: Path) -> None:
    """By its folder; a further work tree has the name of the first; the base's own repository is no project."""
    config = Config([])
    for name in ("own", "Vane"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    tree = tmp_path / "vane-fix"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {tmp_path}/Vane/.git/worktrees/fix\n", encoding="utf-8")
    (tmp_path / "Vane" / ".git" / "worktrees" / "fix").mkdir(parents=True)
    (tmp_path / "Vane" / ".git" / "worktrees" / "fix" / "commondir").write_text("../..\n", encoding="utf-8")
    deep = tmp_path / "Vane" / "src"
    deep.mkdir()
    own = Base((tmp_path / "own").resolve())
    assert at_hand(own, config) == at_hand(own, config, own.root) == frozenset()
    assert at_hand(own, config, deep) == at_hand(own, config, tree) == {"vane"}
    inside = Base((tmp_path / "Vane" / ".memory").resolve())
    assert at_hand(inside, config) == {"vane"}
    named = Config([("x", {"recall.scope": "project:Pump"})])
    assert at_hand(own, named, deep) == {"project:pump", "pump"}
