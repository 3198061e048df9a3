"""What became of what was injected, from a log and from transcripts written here, record by record."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from khms.hooks import injectlog, sessions
from khms.index import sync
from khms.measure import attribution, decisions
from khms.measure.usage import Usage, usage
from khms.model.digest import session_key
from khms.model.frame import framed
from khms.store.layout import Base

NOON = datetime(2026, 3, 4, 12, 0, 0).timestamp()
Add = Callable[..., Path]


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(NOON + seconds)) + f".{int(seconds * 1000) % 1000:03}Z"


class World:
    """A base, its log, and the transcripts of one host, written line by line at seconds after noon."""

    def __init__(self, base: Base, home: Path) -> None:
        self.base, self.projects = base, home / ".claude/projects"

    def log(self, at: float, session: str, *cards: str, **more: Any) -> None:
        told = {"decision": "inject", "cards": list(cards)} if cards else {"decision": "silent", "reason": "threshold"}
        line = {"at": stamp(at), "host": "claude-code", "moment": "prompt", "session": session_key(session), "ms": 20.0}
        path = self.base.log / "inject.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, **told, **more}) + "\n")

    def path(self, session: str, agent: str = "") -> Path:
        path = self.projects / "-proj" / f"{session}.jsonl"
        path = path.with_suffix("") / "subagents" / f"agent-{agent}.jsonl" if agent else path
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, session: str, record: dict[str, Any], agent: str = "") -> None:
        with self.path(session, agent).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def says(self, session: str, at: float, id: str, text: str, agent: str = "") -> None:
        content = [{"type": "text", "text": text}]
        record = {"type": "assistant", "timestamp": stamp(at), "message": {"id": id, "content": content}}
        self.write(session, record, agent)

    def sees(self, session: str, at: float, *cards: str, agent: str = "") -> None:
        shown = {"type": "hook_additional_context", "content": [framed("/base", [f"{card} words" for card in cards])]}
        self.write(session, {"type": "attachment", "timestamp": stamp(at), "attachment": shown}, agent)

    def usage(self, since: str = "", left_alone: Callable[[str], bool] = lambda _: False) -> Usage:
        return usage(self.base, since=since, left_alone=left_alone)


@pytest.fixture
def world(base: Base, own_environment: Path, add_card: Add, commit: Callable[..., str]) -> World:
    add_card(base, "K-00001", title="The checksum fails on deploy")
    add_card(base, "K-00002", title="Poll the valve slowly")
    commit(base)
    sync.refresh(base)
    return World(base, own_environment)


def test_the_log_s_own_key_is_found_again(base: Base) -> None:
    assert sessions.key("some session") == session_key("some session")
    injectlog.write(base, {"host": "h", "decision": "silent", "reason": "empty", "session": sessions.key("s")})
    (held,) = decisions.read(base).decisions
    assert (held.session, held.reason, held.day) == (session_key("s"), "empty", time.strftime("%Y-%m-%d"))


def test_named_in_the_next_three_messages_and_not_in_the_fourth(world: World) -> None:
    world.log(0, "s", "K-00001", "K-00002")
    world.says("s", -5, "m0", "K-00001 before it was told")
    world.says("s", 1, "m1", "let me look")
    world.says("s", 2, "m1", "another piece of the same message")
    world.says("s", 3, "m2", "hm")
    world.says("s", 4, "m3", "as K-00001 says")
    world.says("s", 5, "m4", "and K-00002")
    found = world.usage()
    assert (found.injections, found.total.pointers, found.total.attributed, found.total.named) == (1, 2, 2, 1)
    assert found.named_by == {"id": 1} and found.unattributed == {}
    assert {name: [(c.name, c.pointers, c.named) for c in counts] for name, counts in found.by.items()} == {
        "event": [("prompt", 2, 1)],
        "host": [("claude-code", 2, 1)],
        "kind": [("card", 2, 1)],
        "day": [("2026-03-04", 2, 1)],
    }


def test_by_title_by_path_and_of_no_document_that_is_known(world: World) -> None:
    world.log(0, "s", "K-00001", "K-00002", "gone/for-good")
    world.says("s", 1, "m1", "Poll the valve slowly, then. The checksum fails on deploy.")
    found = world.usage()
    assert found.named_by == {"title": 2}
    assert [(c.name, c.pointers) for c in found.by["kind"]] == [("(not in the index)", 1), ("card", 2)]


def test_a_message_that_had_begun_before_is_none_of_the_next(world: World) -> None:
    """A tool call's hook speaks while the message that holds the call is still being written down."""
    world.log(1, "s", "K-00001", moment="pre-shell")
    world.says("s", 0, "m1", "I run it")
    world.says("s", 2, "m1", "K-00001 was meant all along")
    assert world.usage().unattributed == {attribution.SILENT: 1}
    world.says("s", 3, "m2", "K-00001")
    assert world.usage().total.named == 1


def test_what_a_sub_agent_was_told_is_looked_for_there(world: World) -> None:
    world.log(0, "s", "K-00001", moment="pre-shell")
    world.says("s", 1, "m1", "nothing of it")
    world.says("s", 1, "a1", "K-00001", agent="x")
    assert world.usage().total.named == 0, "without a trace of it there, the session's own conversation counts"
    world.path("s", "x").unlink()
    world.sees("s", 0, "K-00001", agent="x")
    world.says("s", 1, "a1", "K-00001", agent="x")
    assert world.usage().total.named == 1


def test_what_cannot_be_told_has_its_reason(world: World) -> None:
    world.log(0, "", "K-00001")
    world.log(0, "elsewhere", "K-00001")
    world.log(0, "other", "K-00001", host="abacus")
    world.log(0, "mute", "K-00001")
    world.says("mute", -1, "m1", "K-00001")
    world.log(0, "secret", "K-00001")
    world.says("secret", 1, "m1", "K-00001")
    world.log(0, "pipe", "K-00001", "K-00002")
    world.path("pipe").mkdir()
    found = world.usage(left_alone=lambda session: session == "secret")
    assert found.unattributed == {
        attribution.UNREADABLE: 2,
        attribution.LEFT_ALONE: 1,
        attribution.NO_READER: 1,
        attribution.NO_SESSION: 1,
        attribution.SILENT: 1,
        attribution.NOT_FOUND: 1,
    }
    assert (found.total.pointers, found.total.attributed, found.total.named) == (7, 0, 0)
    assert found.total.share is None


def test_silence_is_counted_by_its_reason(world: World) -> None:
    world.log(0, "s")
    world.log(1, "s")
    world.log(2, "s", decision="silent", reason="window")
    world.log(3, "s", decision="inject", reason="", cards=[])
    found = world.usage()
    assert (found.silent, found.injections, found.bare) == ({"threshold": 2, "window": 1}, 1, 1)


def test_the_log_is_read_with_those_before_it(world: World) -> None:
    world.log(0, "s", "K-00001")
    log = world.base.log
    (log / "inject.jsonl").rename(log / "inject.jsonl.1")
    (log / "inject.jsonl.2").write_text('{"at":"2026-03-01T12:00:00.000Z","decision":"silent","reason":"x"}\n')
    world.log(60, "s")
    with (log / "inject.jsonl").open("ab") as file:
        file.write(
            b'garbage\n[]\n{"decision":"inject"}\n{"at":"now","decision":"x"}\n{"moment":"upkeep"}\n{"at":"2026-'
        )
    held = decisions.read(world.base)
    assert [d.reason for d in held.decisions] == ["x", "", "threshold"]
    assert (held.first, held.unreadable) == ("2026-03-01", 5)
    late = world.usage(since="2026-03-04")
    assert (late.injections, late.log.first, len(late.log.decisions)) == (1, "2026-03-01", 2)
    assert world.usage(since="2026-03-05").injections == 0


def test_arms_are_compared_by_what_would_have_been(world: World) -> None:
    for session, arm, said in (("t1", "injection", "K-00001"), ("t2", "injection", "x"), ("c1", "control", "x")):
        cards = {"cards": ["K-00001"]} if arm == "injection" else {"withheld": ["K-00001"], "reason": "control"}
        decision = "inject" if arm == "injection" else "silent"
        line = {"decision": decision, "experiment": "e1", "arm": arm, "cards": [], **cards}
        world.log(0, session, **line)
        world.says(session, 1, "m1", said)
    world.log(1, "c1", experiment="e1", arm="control")
    world.log(2, "c1", "K-00002", experiment="e1", arm="control", classes=["delete"])
    found = world.usage()
    assert [(a.experiment, a.arm, a.sessions, a.decisions, a.count.pointers, a.count.named) for a in found.arms] == [
        ("e1", "control", 1, 3, 1, 0),
        ("e1", "injection", 2, 2, 2, 1),
    ]
    assert (found.total.pointers, found.silent) == (3, {"control": 1, "threshold": 1}), "withheld is not injected"


def test_lines_of_transcripts_that_make_no_sense_are_counted(world: World) -> None:
    world.log(0, "s", "K-00001")
    world.path("s").write_bytes(b"garbage\n")
    world.says("s", 1, "m1", "K-00001")
    with world.path("s").open("ab") as file:
        file.write(b'{"type":"assistant","mess')
    found = world.usage()
    assert found.total.named == 1
    assert found.read.lines == {"lines": 3, "used": 1, "garbage": 1, "torn": 1} and found.read.transcripts == 1


def test_what_another_host_s_agent_named(world: World, own_environment: Path) -> None:
    """Given to a tool and said; what the user said, and what a tool put out, names nothing."""
    thread = "01a2aaaa-51b3-7a82-8e40-1b8883c50001"
    path = own_environment / f".codex/sessions/2026/03/04/rollout-2026-03-04T12-00-00-{thread}.jsonl"
    path.parent.mkdir(parents=True)
    world.log(0, thread, "K-00001", "K-00002", host="codex")
    for at, item in enumerate(
        [
            {"type": "message", "role": "user", "content": "K-00002?"},
            {"type": "function_call", "id": "f", "name": "sh", "call_id": "c", "arguments": '{"cmd": "cat K-00001"}'},
            {"type": "function_call_output", "call_id": "c", "output": "Exit code: 1\nOutput:\nerror K-00002"},
            {"type": "message", "role": "assistant", "id": "a", "content": "so it is"},
        ]
    ):
        record = {"type": "response_item", "timestamp": stamp(at + 1), "payload": item}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    found = world.usage()
    assert (found.total.attributed, found.total.named, found.by["host"][0].name) == (2, 1, "codex")
    path.rename(path.with_suffix(".jsonl.zst"))
    assert world.usage().unattributed == {attribution.UNREADABLE: 2}


def test_a_session_with_two_transcripts_and_many_injections(world: World) -> None:
    for number in range(50):
        world.log(number * 10, "s", "K-00001")
        world.says("s", number * 10 + 1, f"m{number}", "K-00001" if number % 2 else "x")
        world.says("s", number * 10 + 2, f"n{number}", "y")
        world.says("s", number * 10 + 3, f"o{number}", "z")
    found = world.usage()
    assert (found.total.attributed, found.total.named) == (50, 25)
