"""Nightly by an agent: what each of its answers comes to, what it costs, what stops it, and what it must not do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Refused, Usage
from khms.hosts.headless.base import ANSWER, Reply
from khms.pipeline import prompts
from khms.pipeline.bounds import Meter, Stopped
from khms.store import inbox, schema
from khms.store.layout import Base
from khms.store.receipts import ledger
from tests.pipeline.scripted import Scripted

FIRST, SECOND = "the vendor throttles after forty calls", "the log is reopened by its name"


@pytest.fixture
def agent(base: Base, write: Callable[..., Path], tmp_path: Path, own_environment: Path) -> Scripted:
    write(base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[fact] {FIRST}\n\nMARK[fact] {SECOND}\n")
    folder = tmp_path / "agent"
    folder.mkdir()
    return Scripted(base, folder)


def test_an_answer_becomes_a_candidate_and_the_unit_says_what_it_cost(agent: Scripted) -> None:
    agent.plan({"answer": "card"})
    found = agent.run()
    assert (found.verdicts, found.open, found.spending.calls) == ({"new": 2}, 0, 2)
    unit = agent.unit(found)
    assert [candidate.title for candidate in unit.candidates] == [FIRST, SECOND]
    assert [quote.grade for candidate in unit.candidates for quote in candidate.quotes] == ["EXACT", "EXACT"]
    assert unit.meta["proposer"] == "command"
    assert (unit.meta["calls"], unit.meta["stopped_by"]) == (2, None)
    (model,) = unit.meta["models"]
    assert (model["name"], model["prompts"]["evaluate"]) == ("command", prompts.version("evaluate"))
    assert schema.problems("unit", unit.meta) == []
    first = agent.calls[0]["asked"]
    assert first.splitlines()[0].startswith("You keep the memory")
    assert f"[khms-run {found.run}]" in first.splitlines()
    assert agent.calls[0]["environment"]["KHMS_BACKGROUND"] == "1"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ('```json\n{"verdict": "not-carded", "reason": "it is small talk"}\n```', "not-carded"),
        ('<think>{"verdict": "attach"}</think>{"verdict": "not-carded", "reason": "no"} That is all.', "not-carded"),
        ('{"verdict": "already-carded", "card": "K-00001"}', "already-carded"),
    ],
)
def test_forms_of_an_answer(agent: Scripted, add_card: Callable[..., Path], answer: str, kind: str) -> None:
    add_card(agent.base, "K-00001")
    agent.plan({"answer": answer})
    assert agent.run().verdicts == {kind: 2}
    assert len(agent.calls) == 2


def test_an_attachment_goes_to_the_earlier_candidate(agent: Scripted) -> None:
    attach = {
        "verdict": "attach",
        "to": "C1",
        "text": "It is the log too.",
        "quotes": [{"source": "journal", "text": SECOND}],
    }
    agent.plan({"when": f"MARK[fact] {FIRST}\n\n#", "answer": "card"}, {"answer": json.dumps(attach)})
    found = agent.run()
    assert found.verdicts == {"new": 1, "attach": 1}
    (made,) = agent.unit(found).candidates
    assert [quote.text for quote in made.quotes] == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("answer", "said", "repairs"),
    [
        ("", "failed", 0),
        ("I am sorry, I cannot help with that.", "no JSON object", 0),
        ('{"verdict": "not-carded", "reason": "it is', "cut off", 1),
        ('{"verdict": "not-carded", "reason": "a"} {"verdict": "not-carded", "reason": "b"}', "2 different", 0),
        ('{"verdict": "already-carded", "card": "K-99999"}', "there is no card K-99999", 1),
        ('{"verdict": "attach", "to": "C9", "text": "", "quotes": []}', "there is no candidate C9", 1),
        ('{"verdict": "maybe"}', "maybe", 1),
    ],
    ids=["empty", "refusal", "cut", "two", "no-card", "no-candidate", "unknown"],
)
def test_an_answer_that_does_not_count_is_asked_again_with_what_was_wrong_and_then_left(
    agent: Scripted, answer: str, said: str, repairs: int
) -> None:
    agent.plan({"answer": answer})
    found = agent.run(only_mark=_first(agent))
    assert (found.verdicts, found.open) == ({}, 1)
    assert [call["turn"] for call in agent.calls] == [0, 1, 1, *[0] * repairs]
    assert said in agent.calls[1]["asked"]
    assert [call["about"] for call in agent.calls[3:]] == ["repair"] * repairs
    (kept,) = (agent.base.carry / "undecided").glob("M-*.json")
    first = json.loads(kept.read_text(encoding="utf-8"))["replies"][0]
    assert first["text"].strip() == answer or not answer


def test_a_second_try_counts(agent: Scripted) -> None:
    agent.plan({"turn": 0, "answer": "perhaps"}, {"turn": 1, "answer": "card"})
    found = agent.run()
    assert (found.verdicts, found.spending.calls) == ({"new": 2}, 4)


def test_a_repair_is_shown_the_words_and_the_fault_and_counts(agent: Scripted) -> None:
    right = '{"verdict": "not-carded", "reason": "small talk"}'
    agent.plan({"when": "# What is wrong with it", "answer": right}, {"answer": right[:-1]})
    found = agent.run()
    assert (found.verdicts, found.spending.calls) == ({"not-carded": 2}, 8)
    mend = next(call["asked"] for call in agent.calls if call["about"] == "repair")
    assert f"| {right[:-1]}" in mend
    assert "cut off" in mend
    assert agent.run({"nightly.repair": False}).open == 0


@pytest.mark.parametrize("fate", ["crash", "huge", "slow"])
def test_an_agent_that_fails_leaves_the_mark_open_and_hides_no_other(agent: Scripted, fate: str) -> None:
    agent.plan({"when": f"MARK[fact] {FIRST}\n\n#", "fate": fate}, {"answer": "card"})
    found = agent.run({"nightly.call_seconds": 2, "nightly.max_answer_bytes": 100_000})
    assert (found.verdicts, found.open) == ({"new": 1}, 1)


def test_an_agent_that_writes_into_the_base_ends_the_run_and_loses_nothing(agent: Scripted) -> None:
    agent.plan({"when": f"MARK[fact] {SECOND}\n\n#", "fate": f"write {agent.base.root}/AGENTS.md", "answer": "card"},
               {"answer": "card"})  # fmt: skip
    with pytest.raises(Refused, match=r"AGENTS\.md"):
        agent.run()
    assert list(inbox.units(agent.base)) == []
    agent.base.path("AGENTS.md").unlink()
    agent.plan({"answer": "card"})
    found = agent.run()
    assert (found.verdicts, found.resumed) == ({"new": 2}, True)
    assert [call["turn"] for call in agent.calls] == [0, 0, 0]


def test_marks_jotted_meanwhile_are_no_change_and_a_changed_line_is(agent: Scripted) -> None:
    day = agent.base.path("journal/2026-03-04.md")
    agent.plan({"fate": f"write {day}", "answer": "card"})
    assert agent.run().verdicts == {"new": 2}
    agent.base.path("journal/2026-03-05.md").write_text("# 2026-03-05\n\nMARK[note] a third thing of some kind\n")
    agent.plan({"fate": f"write {agent.base.root}/memory/know/K-00099.md", "answer": "card"})
    agent.base.path("memory/know").mkdir(parents=True, exist_ok=True)
    with pytest.raises(Refused, match="K-00099"):
        agent.run()


def test_a_hook_in_the_agents_session_does_nothing(agent: Scripted) -> None:
    agent.plan({"fate": "hook", "answer": "card"})
    assert agent.run().verdicts == {"new": 2}
    assert not (agent.base.log / "inject.jsonl").exists()


@pytest.mark.parametrize(
    ("settings", "bound"),
    [({"nightly.max_calls": 1}, "calls"), ({"nightly.call_seconds": 5, "nightly.deadline": "0.000001s"}, "deadline")],
)
def test_a_bound_ends_the_asking_and_the_rest_waits(agent: Scripted, settings: dict[str, Any], bound: str) -> None:
    agent.plan({"answer": "card"})
    found = agent.run(settings)
    assert found.spending.stopped_by == bound
    assert found.ok
    assert (sum(found.verdicts.values()), found.open) == ((1, 1) if bound == "calls" else (0, 2))
    rest = agent.run()
    assert rest.verdicts == {"new": found.open}
    assert len(agent.calls) == 2


def test_calls_at_the_same_time_come_to_the_same_unit(agent: Scripted, write: Callable[..., Path]) -> None:
    lines = "".join(f"MARK[fact] claim number {n} is about the {n}th pump\n\n" for n in range(9))
    write(agent.base, "journal/2026-03-04.md", f"# 2026-03-04\n\n{lines}")
    agent.plan({"answer": "card"})
    found = agent.run({"nightly.parallel": 4})
    assert found.verdicts == {"new": 9}
    unit = agent.unit(found)
    assert [candidate.label for candidate in unit.candidates] == [f"C{n}" for n in range(1, 10)]
    assert [candidate.title.split()[2] for candidate in unit.candidates] == [str(n) for n in range(9)]


def test_a_rehearsal_shows_what_would_be_asked_and_asks_nothing(agent: Scripted) -> None:
    agent.plan({"answer": "card"})
    found = agent.run(dry_run=True)
    assert agent.calls == []
    stages = dict(found.stages)
    asked = next(text for stage, text in stages.items() if stage.startswith("evaluate M-"))
    assert FIRST in asked
    assert "letter by letter" in stages["instructions evaluate"]
    real = agent.run()
    assert asked.split("\n") == agent.calls[0]["asked"].split(f"[khms-run {real.run}]\n\n")[1].split("\n")


def _first(agent: Scripted) -> str:
    from khms.store import journal

    return journal.days(agent.base)[0].marks[0].id


def test_every_receipt_of_a_bounded_run_names_one_mark(agent: Scripted) -> None:
    agent.plan({"answer": "card"})
    agent.run({"nightly.max_calls": 1})
    agent.run()
    marks = [receipt.mark for receipt in ledger(agent.base).receipts]
    assert len(marks) == len(set(marks)) == 2


def test_a_budget_that_the_host_tells_no_cost_for_is_said_to_bound_nothing(agent: Scripted) -> None:
    agent.plan({"answer": "card"})
    found = agent.run(budget_usd=1.5)
    assert found.verdicts == {"new": 2}
    assert any("no cost of 2 calls" in note for note in found.notes)
    with pytest.raises(Usage, match="no sum"):
        agent.run(budget_usd=0.0)


def test_a_budget_is_kept_over_a_killed_process_and_ends_the_asking() -> None:
    meter = Meter(budget_usd=1.0)
    meter.add(Reply(ANSWER, "", cost_usd=0.6))
    assert meter.allow() == float("inf")
    meter.add(Reply(ANSWER, "", cost_usd=0.6))
    with pytest.raises(Stopped) as stopped:
        meter.allow()
    assert stopped.value.bound == "budget"
    with pytest.raises(Stopped):
        meter.allow()
