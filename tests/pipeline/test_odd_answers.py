"""Nightly over what is no text: half characters in an answer, names of files in no encoding. None of it ends a run."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.hosts.headless.base import ANSWER, Enforces, Reply, Request
from khms.pipeline import commits, cursors
from khms.pipeline.asking import Asked, Asker
from khms.pipeline.bounds import Meter
from khms.pipeline.confinement import Guard
from khms.pipeline.prompts import Prompt
from khms.store.layout import Base
from tests.pipeline.scripted import Scripted
from tests.pipeline.test_nightly_sessions import CLAIM, ON, Told

FIRST, SECOND = "the vendor throttles after forty calls", "the log is reopened by its name"
LONG_AGO = 1_000_000_000.0  # git takes smaller numbers for something else than a moment


@pytest.fixture
def agent(base: Base, write: Callable[..., Path], tmp_path: Path, own_environment: Path) -> Scripted:
    write(base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[fact] {FIRST}\n\nMARK[fact] {SECOND}\n")
    folder = tmp_path / "agent"
    folder.mkdir()
    return Scripted(base, folder)


def test_half_a_character_in_an_answer_leaves_its_mark_open_and_hides_no_other(agent: Scripted) -> None:
    half = '{"verdict": "not-carded", "reason": "small \\ud800 talk"}'
    agent.plan({"when": f"MARK[fact] {FIRST}\n\n#", "answer": half}, {"answer": "card"})
    found = agent.run({"nightly.repair": False})
    assert (found.verdicts, found.open) == ({"new": 1}, 1)
    assert "surrogate" in agent.calls[1]["asked"]
    agent.plan({"answer": "card"})
    assert agent.run().verdicts == {"new": 1}


def test_the_same_in_what_was_found_in_a_session(agent: Scripted) -> None:
    told = Told(Path(os.environ["HOME"]), agent.base.root).person(CLAIM)
    mark = {"kind": "fact", "text": f"{CLAIM} \ud800", "quote": CLAIM}
    agent.plan({"when": "# The digest of", "answer": json.dumps({"marks": [mark]})}, {"answer": "card"})
    found = agent.run({**ON, "nightly.repair": False})
    assert found.verdicts == {"new": 2}
    assert any("surrogate" in problem.message for problem in found.problems)
    assert any(str(told.path) in key for key in cursors.load(agent.base))


def test_a_transcript_whose_name_is_no_text_is_read_once(agent: Scripted) -> None:
    told = Told(Path(os.environ["HOME"]), agent.base.root).person(CLAIM)
    odd = told.path.with_name(os.fsdecode(b"\xff\xfe ") + told.path.name)
    try:
        told.path.rename(odd)
    except OSError:
        pytest.skip("this file system takes no such name")
    agent.plan({"when": "# The digest of", "answer": "marks"}, {"answer": "card"})
    first = agent.run({**ON, "nightly.max_calls": 1})
    assert first.spending.stopped_by == "calls"
    assert agent.run(ON).verdicts == {"new": 2}
    assert [key for key in cursors.load(agent.base) if key.endswith(odd.name)]
    calls = len(agent.calls)
    assert agent.run(ON).decided == 0
    assert len(agent.calls) == calls
    odd.unlink()
    odd.mkdir()
    assert any("cannot be read" in problem.message for problem in agent.run(ON).problems)


def test_why_no_answer_counts_is_told_once_for_all_that_it_holds_for(agent: Scripted) -> None:
    agent.plan({"fate": "crash"})
    found = agent.run()
    (said,) = [note for note in found.notes if note.startswith("open: ")]
    assert said.count("M-") == 2
    assert "it went wrong" in said


def test_half_a_character_that_an_endpoint_says_is_kept_and_asked_about(base: Base, tmp_path: Path) -> None:
    class Agent:
        name, model = "half", "m\udc00"
        enforces = Enforces(*[""] * 6)
        asked: tuple[str, ...] = ()

        def ask(self, request: Request) -> Reply:
            request.text.encode("utf-8")
            self.asked = (*self.asked, request.text)
            text = "maybe {\ud800" if len(self.asked) < 4 else '{"yes": 1}'
            return Reply(ANSWER, text, said="\udcff", model=self.model)

    agent = Agent()
    asker = Asker(agent, Meter(), Guard(base), "run", 5.0)
    path = tmp_path / "asked.json"
    assert asker.ask(Prompt("", "what?", "run"), lambda value: [], Asked(path)) == {"yes": 1}
    assert [reply.text for reply in Asked.load(path).replies][:1] == ["maybe {?"]


def test_no_secret_of_an_answer_comes_into_git(agent: Scripted, git: Callable[..., str]) -> None:
    key = "ghp_" + "aB3dE5" * 6
    quotes = [
        {"source": f"https://example.org/{key}", "text": f"{key} stands here"},
        {"source": "journal", "text": SECOND},
    ]
    about = {"kind": "new", "nearest": key, "because": f"{key} is another matter"}
    candidate = {"title": SECOND, "type": "fact", "body": SECOND, "tags": []}
    answer = {"verdict": "new", "candidate": candidate, "quotes": quotes, "relation": about}
    refusal = {"verdict": "not-carded", "reason": f"{key} \x1b]0;title\x07" + "x" * 5000}
    agent.plan({"when": f"MARK[fact] {FIRST}\n\n#", "answer": json.dumps(refusal)}, {"answer": json.dumps(answer)})
    found = agent.run()
    assert found.verdicts == {"not-carded": 1, "new": 1}
    committed = git(agent.base, "show", found.commit)
    assert "redacted:github-token" in committed
    assert key not in committed
    assert "x" * 600 not in committed and "u001b" not in committed


def test_nor_one_of_an_answer_that_does_not_count(agent: Scripted, git: Callable[..., str]) -> None:
    key = "ghp_" + "aB3dE5" * 6
    agent.plan({"when": f"MARK[fact] {FIRST}\n\n#", "answer": json.dumps({"verdict": key})}, {"answer": "card"})
    found = agent.run({"nightly.repair": False})
    assert (found.verdicts, found.open) == ({"new": 1}, 1)
    assert key not in git(agent.base, "show", found.commit)
    assert not [note for note in found.notes if key in note]


def test_more_commits_than_one_reading_holds_are_read_by_the_next(
    base: Base, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "MOST", 2)
    for number in range(5):
        git(base, "commit", "--quiet", "--allow-empty", "-m", f"change {number}")
    read, since = [], ""
    for _ in range(3):
        for record in commits.records(base.root, since, LONG_AGO):
            read.append(record.text.partition("\n")[2])
            since = record.position
    assert read == ["make the base", *(f"change {number}" for number in range(5))]
    assert list(commits.records(base.root, since, LONG_AGO)) == []


@pytest.mark.parametrize("body", ["---\nid: C9\n---\nwords", "words\n<<<<<<< HEAD\nothers\n>>>>>>> theirs\n"])
def test_a_body_that_no_card_can_hold_is_asked_for_again(agent: Scripted, body: str) -> None:
    candidate = {"title": "a claim", "type": "fact", "body": body, "tags": []}
    quotes = [{"source": "journal", "text": FIRST}]
    answer = {"verdict": "new", "candidate": candidate, "quotes": quotes, "relation": {"kind": "new"}}
    agent.plan({"turn": 0, "answer": json.dumps(answer)}, {"turn": 1, "answer": "card"})
    assert agent.run().verdicts == {"new": 2}
    assert "no card can hold this body" in agent.calls[1]["asked"]
