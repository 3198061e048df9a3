"""Nightly over agents' sessions: what is read of them, what never is, and what comes of the MARKs that are found."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.errors import Refused
from khms.hosts.transcripts import base as transcripts
from khms.model.frame import framed, run_marker
from khms.pipeline import cursors
from khms.store.layout import Base
from tests.pipeline.scripted import Scripted

SESSION = "0b7f6a52-6c0e-4c3e-9a60-5a8f4d2f7a11"
CLAIM = "LEARNT we keep the vendor's price list for one hour, because it throttles"
ON = {"nightly.transcripts": "claude-code"}


class Told:
    """A session of Claude Code, written record by record as the host does."""

    def __init__(self, home: Path, cwd: Path, session: str = SESSION) -> None:
        self.path = home / ".claude" / "projects" / "-some-folder" / f"{session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._common = {"cwd": str(cwd), "sessionId": session, "isSidechain": False, "version": "2.1.332"}
        self._number = 0

    def write(self, record: dict[str, Any], at: float | None = None) -> "Told":
        self._number += 1
        stamp = datetime.fromtimestamp(at or time.time(), UTC).isoformat().replace("+00:00", "Z")
        whole = {**record, **self._common, "uuid": f"{self._number:036d}", "timestamp": stamp}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(whole) + "\n")
        return self

    def person(self, text: str, at: float | None = None) -> "Told":
        return self.write({"type": "user", "promptSource": "user", "message": {"role": "user", "content": text}}, at)

    def agent(self, text: str) -> "Told":
        content = [{"type": "text", "text": text}]
        return self.write(
            {"type": "assistant", "message": {"id": f"m{self._number}", "role": "assistant", "content": content}}
        )


@pytest.fixture
def agent(base: Base, write: Callable[..., Path], tmp_path: Path, own_environment: Path) -> Scripted:
    write(base, "journal/2026-03-04.md", "# 2026-03-04\n\nprose only\n")
    folder = tmp_path / "agent"
    folder.mkdir()
    made = Scripted(base, folder)
    made.plan({"when": "# The digest of", "answer": "marks"}, {"answer": "card"})
    return made


@pytest.fixture
def home(own_environment: Path) -> Path:
    return Path(os.environ["HOME"])


def test_a_mark_that_nobody_wrote_is_found_quoted_and_becomes_a_candidate(agent: Scripted, home: Path) -> None:
    Told(home, agent.base.root).person("Why do prices lag?").agent("Looking.").person(CLAIM)
    found = agent.run(ON)
    assert (found.verdicts, found.open) == ({"new": 1}, 0)
    (made,) = agent.unit(found).candidates
    assert str(made.meta["source"]).startswith(f"session:claude-code/{SESSION}: ")
    (quote,) = made.quotes
    assert (quote.source, quote.grade) == (f"session:claude-code/{SESSION}", "EXACT")
    assert CLAIM in quote.context
    assert len(quote.sha256) == 64
    assert [call["about"].partition("/")[0] for call in agent.calls] == ["session:claude-code", made.mark]
    assert "Why do prices lag?" in agent.calls[1]["asked"]


def test_what_was_read_is_not_read_again_and_what_is_new_is(agent: Scripted, home: Path) -> None:
    told = Told(home, agent.base.root).person(CLAIM)
    agent.run(ON)
    calls = len(agent.calls)
    assert agent.run(ON).decided == 0
    assert len(agent.calls) == calls
    told.person("LEARNT the log is opened anew after each rotation")
    assert agent.run(ON).verdicts == {"new": 1}
    assert CLAIM not in agent.calls[calls]["asked"]


def test_a_lost_cursor_costs_a_reading_and_no_second_card(agent: Scripted, home: Path) -> None:
    Told(home, agent.base.root).person(CLAIM)
    agent.run(ON)
    (agent.base.state / cursors.NAME).unlink()
    found = agent.run(ON)
    assert (found.decided, found.unit) == (0, "")


def test_sessions_that_are_not_for_this_base_are_left(agent: Scripted, home: Path, tmp_path: Path) -> None:
    old = time.time() - 30 * 86400
    Told(home, tmp_path, "11111111-0000-4000-8000-000000000000").person(CLAIM)
    Told(home, agent.base.root, "22222222-0000-4000-8000-000000000000").person(CLAIM)
    own = Told(home, agent.base.root, "33333333-0000-4000-8000-000000000000")
    own.person(f"Be brief.\n\n{run_marker('0' * 26)}\n\n{CLAIM}").agent(CLAIM)
    late = Told(home, agent.base.root, "44444444-0000-4000-8000-000000000000").person(CLAIM, old)
    os.utime(late.path, (old, old))
    found = agent.run(ON, left_alone=lambda session: session.startswith("2222"))
    assert agent.calls == []
    assert found.decided == 0
    (line,) = (note for note in found.notes if note.startswith("sessions and logs"))
    assert "1 older, 1 left alone, 1 of other bases, 1 khms's own" in line


def test_a_session_that_tells_no_folder_is_not_called_another_base(agent: Scripted, home: Path) -> None:
    path = Told(home, agent.base.root).path
    path.write_text('{"type": "summary", "summary": "a day of work"}\n', encoding="utf-8")
    (line,) = (note for note in agent.run(ON).notes if note.startswith("sessions and logs"))
    assert line == "sessions and logs: 1 that tell no folder; 0 chunks to look through"


def test_a_session_without_a_folder_of_its_own_counts_where_a_hook_pointed_to_it(
    agent: Scripted, home: Path, tmp_path: Path
) -> None:
    told = Told(home, tmp_path).person(CLAIM)
    pointer = {"host": "claude-code", "session": SESSION, "transcript": str(told.path), "cwd": str(tmp_path)}
    (agent.base.local / "run").mkdir(parents=True)
    (agent.base.local / "run" / "digest-0.json").write_text(json.dumps(pointer), encoding="utf-8")
    assert agent.run(ON).verdicts == {"new": 1}


def test_what_khms_put_into_a_session_never_comes_back(agent: Scripted, home: Path) -> None:
    pointer = framed("/some/base", ["K-00042 LEARNT the card that a hook showed"])
    told = Told(home, agent.base.root)
    told.write({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [pointer]}})
    told.person(f"{pointer}\nWhat of this is true?").agent(f"The pointer says:\n{pointer}\nI will look.")
    assert agent.run(ON).decided == 0
    (call,) = agent.calls
    assert "What of this is true?" in call["asked"]
    assert "I will look." in call["asked"]
    assert "the card that a hook showed" not in call["asked"]


def test_secrets_of_a_session_reach_no_agent(agent: Scripted, home: Path) -> None:
    Told(home, agent.base.root).person("LEARNT the key is sk-abcdefghijklmnopqrstuvwxyz123456 for the vendor's gate")
    agent.run(ON)
    assert "sk-abcdef" not in json.dumps(agent.calls)


def test_a_mark_whose_quote_is_nowhere_and_one_that_is_written_already_are_left_out(
    agent: Scripted, home: Path, write: Callable[..., Path]
) -> None:
    write(agent.base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[decision] {CLAIM}\n")
    Told(home, agent.base.root).person(CLAIM)
    marks = [
        {"kind": "fact", "text": "pumps fail in the cold", "quote": "the pumps always fail in winter"},
        {"kind": "decision", "text": CLAIM, "quote": CLAIM},
    ]
    agent.plan({"when": "# The digest of", "answer": json.dumps({"marks": marks})}, {"answer": "card"})
    found = agent.run(ON)
    assert found.verdicts == {"new": 1}
    said = [note for note in found.notes if note.startswith("left out")]
    assert len(said) == 2
    assert "does not stand in the digest" in said[0]
    assert "says it" in said[1]


def test_the_session_of_a_written_mark_stands_beside_it(
    agent: Scripted, home: Path, write: Callable[..., Path]
) -> None:
    write(agent.base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[fact] the vendor throttles (sess {SESSION})\n")
    Told(home, agent.base.root).person("We saw 429 after forty calls.").agent("khms mark fact: the vendor throttles")
    Told(home, agent.base.root).agent("And now to something else.")
    agent.run({**ON, "nightly.generate": False})
    (call,) = agent.calls
    assert f"source session:claude-code/{SESSION}" in call["asked"]
    assert "We saw 429 after forty calls." in call["asked"]
    assert "something else" not in call["asked"]


def test_the_pieces_that_a_bound_leaves_wait_for_the_next_run(agent: Scripted, home: Path) -> None:
    first = Told(home, agent.base.root, "11111111-0000-4000-8000-000000000000")
    for number in range(4):
        first.person(f"LEARNT claim number {number} is about the {number}th pump " + "and more " * 200)
    second = Told(home, agent.base.root, "22222222-0000-4000-8000-000000000000")
    second.person("LEARNT the second session has a claim of its own")
    settings = {**ON, "nightly.chunk_chars": 2000, "nightly.max_chunks": 2}
    marks: list[str] = []
    for _ in range(3):
        found = agent.run(settings)
        marks += [c.title for c in agent.unit(found).candidates] if found.unit else []
    assert len(marks) == len(set(marks)) == 5
    digests = [call["about"] for call in agent.calls if call["about"].startswith("session:")]
    assert len(digests) == 5


def test_a_limit_in_the_middle_loses_no_piece(agent: Scripted, home: Path) -> None:
    told = Told(home, agent.base.root)
    for number in range(3):
        told.person(f"LEARNT claim number {number} is about the {number}th pump " + "and more " * 200)
    settings = {**ON, "nightly.chunk_chars": 2000}
    bounded = agent.run({**settings, "nightly.max_calls": 1})
    assert bounded.spending.stopped_by == "calls"
    assert bounded.decided == 0
    rest = agent.run(settings)
    assert rest.verdicts == {"new": 3}


def test_status_counts_the_marks_that_were_found_and_wait(agent: Scripted, home: Path) -> None:
    from khms.measure.status import status

    Told(home, agent.base.root).person(CLAIM)
    agent.run({**ON, "nightly.max_calls": 1})
    settings = Config([])
    assert status(agent.base, settings).open_marks == 1
    agent.run(ON)
    assert status(agent.base, settings).open_marks == 0


def test_an_answer_about_a_piece_that_does_not_count_is_told_and_hides_no_other(agent: Scripted, home: Path) -> None:
    Told(home, agent.base.root, "11111111-0000-4000-8000-000000000000").person("LEARNT one claim about a pump")
    Told(home, agent.base.root, "22222222-0000-4000-8000-000000000000").person("LEARNT another claim about a valve")
    agent.plan({"when": "| person", "answer": "marks"}, {"answer": "card"})
    agent.plan({"when": "about a pump\n", "answer": '{"marks": 3}'}, {"when": "# The digest of", "answer": "marks"},
               {"when": "# What is wrong", "answer": "no"}, {"answer": "card"})  # fmt: skip
    found = agent.run(ON)
    assert found.verdicts == {"new": 1}
    assert any("no answer counts" in str(problem) for problem in found.problems)


def test_logs_and_commits_are_sources_too(agent: Scripted, tmp_path: Path, git: Callable[..., str]) -> None:
    log = tmp_path / "notes.md"
    log.write_text("# Monday\n\nLEARNT the log says that the valve is the newer one\n", encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "--quiet")
    git(
        project,
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "Fix the pump",
        "-m",
        "LEARNT the pump needs forty seconds to start",
    )
    settings = {"nightly.logs": {"notes": str(log)}, "nightly.repositories": {"project": str(project)}}
    found = agent.run(settings)
    assert found.verdicts == {"new": 2}
    sources = {quote.source for made in agent.unit(found).candidates for quote in made.quotes}
    assert sources == {"session:log/notes", "session:git/project"}
    assert agent.run(settings).decided == 0
    git(project, "commit", "--quiet", "--allow-empty", "-m", "LEARNT the pump was replaced by a fan")
    assert agent.run(settings).verdicts == {"new": 1}


def test_an_unreadable_transcript_is_told_and_hides_no_other(agent: Scripted, home: Path) -> None:
    bad = Told(home, agent.base.root, "11111111-0000-4000-8000-000000000000").path
    bad.mkdir()
    Told(home, agent.base.root, "22222222-0000-4000-8000-000000000000").person(CLAIM)
    found = agent.run(ON)
    assert found.verdicts == {"new": 1}
    assert any("11111111" in str(problem) for problem in found.problems)


def test_the_rules_read_no_session(agent: Scripted, home: Path) -> None:
    Told(home, agent.base.root).person(CLAIM)
    found = agent.run({**ON, "nightly.proposer": "rules"})
    assert found.decided == 0
    assert not (agent.base.state / cursors.NAME).exists()


def test_a_rehearsal_shows_digest_and_question(agent: Scripted, home: Path) -> None:
    Told(home, agent.base.root).person(CLAIM)
    stages = dict(agent.run(ON, dry_run=True).stages)
    assert agent.calls == []
    assert any(stage.startswith("collect session:") and CLAIM in text for stage, text in stages.items())
    assert any(stage.startswith("generate session:") and "| person" in text for stage, text in stages.items())
    assert not agent.base.carry.exists() or not list(agent.base.carry.iterdir())


def test_records_have_the_roles_that_a_digest_tells() -> None:
    from khms.pipeline import digest

    tell = digest.tell
    record = transcripts.Record
    assert tell(record(transcripts.USER, "1", 0, "hello")) == "person: hello"
    assert tell(record(transcripts.CALL, "1", 0, "make test\nmore", "Bash")) == "tool Bash: make test"
    assert tell(record(transcripts.OUTCOME, "1", 0, "", "Bash", "ok")) == ""
    assert tell(record(transcripts.OUTCOME, "1", 0, "no rule", "Bash", "exit 2")) == "tool Bash ended: exit 2\nno rule"
    assert tell(record(transcripts.INJECTED, "1", 0, "a pointer")) == ""
    assert tell(record(transcripts.AGENT, "1", 0, "x" * 5000)).endswith("[1000 characters are left out]")


def test_a_unit_from_sessions_is_approved_and_audited_where_the_session_is_gone(agent: Scripted, home: Path) -> None:
    told = Told(home, agent.base.root).person(CLAIM)
    found = agent.run(ON)
    told.path.unlink()
    for command in (["approve", found.unit, "--all"], ["lint"], ["audit"]):
        ended = subprocess.run(
            [sys.executable, "-m", "khms", "--root", str(agent.base.root), *command],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
    (card,) = agent.base.path("memory/know").glob("K-*.md")
    assert f"session:claude-code/{SESSION}" in card.read_text(encoding="utf-8")


def test_a_run_for_one_mark_goes_on_with_the_pieces_of_a_killed_one(
    agent: Scripted, home: Path, write: Callable[..., Path]
) -> None:
    from khms.store import journal

    write(agent.base, "journal/2026-03-04.md", "# 2026-03-04\n\nMARK[fact] the vendor is slow on Mondays\n")
    Told(home, agent.base.root).person(CLAIM)
    agent.plan(
        {"when": "# The digest of", "answer": "marks"},
        {"when": "price list", "fate": f"write {agent.base.root}/AGENTS.md", "answer": "card"},
        {"answer": "card"},
    )
    with pytest.raises(Refused):
        agent.run(ON)
    agent.base.path("AGENTS.md").unlink()
    agent.plan({"when": "# The digest of", "answer": "marks"}, {"answer": "card"})
    (mark,) = journal.days(agent.base)[0].marks
    assert agent.run(ON, only_mark=mark.id).verdicts == {"new": 2}
    assert [call["about"].startswith("session:") for call in agent.calls].count(True) == 1
    assert agent.run(ON).decided == 0
