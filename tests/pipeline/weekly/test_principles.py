"""What becomes of an agent's answers about shapes: checked, kept, offered like any other candidate."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.check import audit
from khms.config import Config
from khms.hosts.headless.base import ANSWER, LIMIT, Enforces, Reply, Request
from khms.pipeline import propose as proposers
from khms.pipeline.approve import approve
from khms.pipeline.propose import ByAgent
from khms.pipeline.ruling import Wish
from khms.pipeline.weekly.week import Result
from khms.render import views
from khms.store import cards, inbox
from khms.store.layout import Base
from khms.store.repo import Repo

Propose = Callable[..., Result]
KEY = "shape K-00011 K-00012 K-00013"
GOOD: dict[str, Any] = {
    "verdict": "principle",
    "title": "A retry without a limit hides the first error",
    "holds": "What is retried without a limit hides why it failed.",
    "limits": "Seen in three programs that write no count of their tries.",
    "implications": "Bound the retries and log the last error.",
    "tags": ["retries", "never-heard-of"],
    "quotes": [
        {"source": "K-00011", "text": "A retry without a limit hid the full disk for two hours."},
        {"source": "K-00012", "text": "The sender retried the login without a limit"},
        {"source": "K-00013", "text": "The import retried without a limit."},
    ],
}


class Scripted:
    """Answers with what it was given, in that order, and remembers what it was asked."""

    name, model = "scripted", "model-1"
    enforces = Enforces("yes", "yes", "yes", "yes", "yes", "yes")

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[Request] = []

    def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        return self.replies.pop(0)


def said(value: object, **more: Any) -> Reply:
    text = value if isinstance(value, str) else json.dumps(value)
    return Reply(ANSWER, text, cost_usd=0.25, tokens=(900, 90), model="model-1", **more)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    def make(*replies: Reply) -> Scripted:
        made = Scripted(*replies)
        monkeypatch.setitem(proposers.PROPOSERS, "scripted", lambda config: ByAgent(made))
        return made

    return make


@pytest.fixture
def good(planted: Base) -> dict[str, Any]:
    """An answer that counts: it names one of the cards that it was shown as the nearest."""
    from khms.pipeline.weekly.ground import ground
    from khms.pipeline.weekly.past import Past
    from khms.pipeline.weekly.principles import _near
    from khms.pipeline.weekly.shapes import shapes

    under = ground(planted, Config([]), Past(), None, 0)
    (shape,) = shapes(under)
    near = _near(under, shape)[0]
    return {**GOOD, "relation": {"kind": "new", "nearest": near, "because": "it is about another matter"}}


SETTINGS = {"nightly.proposer": "scripted", "nightly.repair": False}


def about(base: Base, unit: str) -> Any:
    return json.loads(base.path(f"memory/inbox/{unit}/unit.json").read_text(encoding="utf-8"))


def test_a_principle_is_offered_first_and_can_be_approved(
    planted: Base, propose: Propose, agent: Callable[..., Scripted], good: dict[str, Any]
) -> None:
    asked = agent(said(good))
    found = propose(planted, SETTINGS)
    assert about(planted, found.unit)["offers"]["C1"] == KEY
    assert (found.cost.calls, found.cost.cost_usd, about(planted, found.unit)["cost_usd"]) == (1, 0.25, 0.25)
    (request,) = asked.asked
    assert request.text.startswith("[khms-run ")
    assert all(f"## K-000{n} " in request.text for n in (11, 12, 13))
    candidate = inbox.find(planted, found.unit).candidate("C1")
    assert candidate is not None and candidate.flags == ()
    assert candidate.meta["tags"] == ["retries"]
    assert [quote.grade for quote in candidate.quotes] == ["EXACT"] * 3
    done = approve(planted, Repo(planted.root), Config([]), found.unit, Wish(labels=("C1",)), views.for_base)
    card = cards.load(planted, done.cards[0][2])
    assert (card.type, card.links.derived_from) == ("principle", ("K-00011", "K-00012", "K-00013"))
    assert [line.partition(":")[0] for line in card.body.splitlines()] == ["HOLDS", "LIMITS", "IMPLICATIONS"]
    assert audit.whole(planted, Repo(planted.root)).troubles == ()
    assert propose(planted, SETTINGS).cost.calls == 0  # the shape is said now


def test_an_answer_that_does_not_count_is_asked_for_again_with_the_reason(
    planted: Base, propose: Propose, agent: Callable[..., Scripted], good: dict[str, Any]
) -> None:
    few = {**good, "quotes": [*good["quotes"][:2], {"source": "K-00001", "text": "The zinc was scratched when"}]}
    lost = {**good, "relation": {"kind": "supersedes", "target": "K-00099", "because": "so"}}
    asked = agent(said(few), said(lost), said(good))
    found = propose(planted, SETTINGS)
    assert about(planted, found.unit)["offers"]["C1"] == KEY
    assert "K-00001 is none of the observations" in asked.asked[1].text
    assert "there is no card K-00099 among those shown" in asked.asked[2].text


def test_no_principle_and_no_answer_leave_the_shape_in_the_report(
    planted: Base, propose: Propose, agent: Callable[..., Scripted]
) -> None:
    agent(said({"verdict": "none", "reason": "only two of them agree"}))
    found = propose(planted, {**SETTINGS, "weekly.max_cards": 9})
    report = planted.path(f"memory/inbox/{found.unit}/REPORT.md").read_text(encoding="utf-8")
    assert "the proposer finds no principle in it: only two of them agree" in report
    assert "khms card new principle --open --tag retries --derived-from K-00011" in report
    asked = agent()
    assert propose(planted, SETTINGS).unit == ""
    assert asked.asked == []


def test_prose_three_times_over_is_no_answer(planted: Base, propose: Propose, agent: Callable[..., Scripted]) -> None:
    agent(*(said("I would rather not say.") for _ in range(3)))
    found = propose(planted, SETTINGS)
    report = planted.path(f"memory/inbox/{found.unit}/REPORT.md").read_text(encoding="utf-8")
    assert "the proposer gave no answer that counts" in report
    assert found.offers["principles"] == 0


def test_what_the_answer_makes_up_is_flagged(
    planted: Base, propose: Propose, agent: Callable[..., Scripted], good: dict[str, Any]
) -> None:
    agent(said({**good, "holds": "After 17 minutes it hides the error."}))
    found = propose(planted, SETTINGS)
    candidate = inbox.find(planted, found.unit).candidate("C1")
    assert candidate is not None and candidate.flags == ("specifics",)


def test_a_usage_limit_ends_the_asking_and_keeps_all_else(
    planted: Base, propose: Propose, agent: Callable[..., Scripted]
) -> None:
    agent(Reply(LIMIT, "used up", resets="noon"))
    found = propose(planted, SETTINGS)
    assert found.cost.stopped_by == "usage limit"
    assert found.ok and found.candidates["published"] == 8
    report = planted.path(f"memory/inbox/{found.unit}/REPORT.md").read_text(encoding="utf-8")
    assert "not every shape was asked about" in report and "(until noon)" in report


def test_a_budget_that_bounds_nothing_is_told(
    planted: Base, propose: Propose, agent: Callable[..., Scripted], good: dict[str, Any]
) -> None:
    agent(Reply(ANSWER, json.dumps(good), model="model-1"))
    found = propose(planted, SETTINGS, budget_usd=5.0)
    assert any("which the budget cannot bound" in note for note in found.notes)


def test_an_answer_that_was_paid_for_is_kept_over_a_kill(
    planted: Base,
    propose: Propose,
    agent: Callable[..., Scripted],
    good: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from khms.pipeline.weekly import run

    first = agent(said(good))

    def killed(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run, "_publish", killed)
        with pytest.raises(KeyboardInterrupt):
            propose(planted, SETTINGS)
    assert len(first.asked) == 1
    second = agent()
    found = propose(planted, SETTINGS)
    assert second.asked == [] and found.resumed
    assert about(planted, found.unit)["offers"]["C1"] == KEY
    assert found.cost.cost_usd == 0.25
    assert not list((planted.carry / "weekly").iterdir())


def test_a_dry_run_shows_the_prompt_and_asks_nobody(
    planted: Base, propose: Propose, agent: Callable[..., Scripted]
) -> None:
    asked = agent()
    found = propose(planted, SETTINGS, dry_run=True)
    assert asked.asked == []
    shown = dict(found.stages)[f"ask {KEY}"]
    template = Path(__file__).parents[3] / "templates/prompts/weekly-principle.md"
    assert shown.startswith(template.read_text(encoding="utf-8"))
    assert "| Uploader retried a full disk for ever" in shown
