"""One conversation in every dialect is one conversation; what hooks, hosts and sub-agents put in is nobody's words."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import transcripts
from khms.model.frame import framed

FRAME = framed("/home/dev/base", ["K-00007 Poll the valve slowly (memory/know/K-00007.md)"])
PROMPT = "why does the build fail <on> CI?"
SAID = [
    ("injected", FRAME, "", ""),
    ("user", PROMPT, "", ""),
    ("agent", "I run it.", "", ""),
    ("call", "make test", "sh", ""),
    ("outcome", "make: *** [test] Error 1", "sh", "exit 2"),
    ("call", "notes.txt", "look", ""),
    ("outcome", "", "look", "ok"),
    ("call", "gone.txt", "look", ""),
    ("outcome", "gone.txt is not there", "look", "failed"),
    ("agent", "The valve was polled too fast.", "", ""),
    ("user", "thanks", "", ""),
    ("agent", "Glad to.", "", ""),
]
HOSTS = ("claude-code", "codex", "codex-old", "gemini", "gemini-old", "copilot", "opencode")
Read = Callable[..., Any]
Write = Callable[..., Path]


def test_every_host_has_its_reader() -> None:
    assert tuple(transcripts.READERS) == ("claude-code", "codex", "gemini", "copilot", "opencode")
    assert all(transcripts.reader(host) for host in transcripts.READERS)
    assert transcripts.reader("abacus") is None


@pytest.mark.parametrize("host", HOSTS)
def test_the_same_is_told_of_the_same_conversation(host: str, write: Write, read: Read) -> None:
    found = read(host, write(host))
    expected = SAID[1:] if host == "codex-old" else SAID  # which did not tell what a hook had added
    assert found.said == expected
    assert not found.tally["garbage"] and not found.tally["torn"]
    times = [record.at for record in found.records]
    assert times == sorted(times) and times[0] > 0
    answer = [record.id for record in found.records if record.text == "I run it."]
    assert answer[0] and all(record.id for record in found.records if record.role != "injected")


@pytest.mark.parametrize("host", HOSTS)
def test_nothing_that_was_thought_or_put_out_is_told(host: str, write: Write, read: Read) -> None:
    told = repr(read(host, write(host)).records)
    assert not any(hidden in told for hidden in ("'hm'", "secret", "collected", "bye", "You are", "session_context"))


def replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {key: replaced(part, old, new) for key, part in value.items()}
    return [replaced(part, old, new) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("host", HOSTS[:-1])
@pytest.mark.parametrize("broken", [False, True], ids=["whole", "without its end"])
def test_what_khms_put_in_never_comes_back(host: str, broken: bool, write: Write, read: Read) -> None:
    """Wherever the host, or whoever repeats it, has put the text: amid a prompt, an answer, a tool's input."""
    shown = FRAME.replace("[/khms]", "\n\n") if broken else FRAME
    path = write(host)
    lines = path.read_bytes().splitlines()
    for word in ("thanks", "Glad to.", "make test", "polled too fast"):
        lines = [json.dumps(replaced(json.loads(line), word, f"a {word}\n{shown}\nz")).encode() for line in lines]
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = read(host, path)
    roles = Counter(role for role, *_ in found.said)
    assert (roles["user"], roles["agent"], roles["call"]) == (2, 3, 3)
    for role, text, _, _ in found.said:
        if role != "injected":
            assert "K-00007" not in text and "[khms]" not in text, (role, text)
        if "thanks" in text or "Glad" in text:
            assert text.startswith("a ") and text.endswith("z"), "the words around it stay"


def test_what_khms_put_in_never_comes_back_of_a_database(write: Write, read: Read) -> None:
    path = write("opencode")
    with closing(sqlite3.connect(path.parent)) as base, base:
        base.execute("UPDATE part SET data = replace(data, 'thanks', ?)", (json.dumps(f"{FRAME} so")[1:-1],))
    found = read("opencode", path)
    assert [text for role, text, _, _ in found.said if role == "user"] == [PROMPT, " so"]


def test_what_a_sub_agent_was_told_is_nobody_s_word(write: Write, read: Read, tmp_path: Path) -> None:
    path = write("opencode")
    reader: Any = transcripts.reader("opencode")
    assert reader.threads(path) == [path, path.with_name("child")]
    assert read("opencode", path.with_name("child")).said == [("agent", "what the sub-agent says", "", "")]

    own = tmp_path / "s.jsonl"
    side = tmp_path / "s/subagents/agent-1.jsonl"
    side.parent.mkdir(parents=True)
    values = [
        {"type": "user", "isSidechain": True, "message": {"content": "look into it"}},
        {"type": "assistant", "isSidechain": True, "message": {"content": "I looked"}},
    ]
    for where in (own, side):
        where.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    reader = transcripts.reader("claude-code")
    assert reader.threads(own) == [own, side]
    assert read("claude-code", own).tally == {"lines": 2, "skipped:sidechain": 2}
    assert read("claude-code", side).said == [("agent", "I looked", "", "")]

    data = write("codex").read_bytes().replace(b'"source": "cli"', b'"source": {"subagent": "review"}')
    assert set(read("codex", write("codex", data)).tally) == {"lines", "skipped:sidechain"}
    data = write("gemini").read_bytes().replace(b'"kind": "main"', b'"kind": "subagent"')
    assert {role for role, *_ in read("gemini", write("gemini", data)).said} == {"injected", "agent", "call", "outcome"}
    data = write("copilot").read_bytes().replace(b'"data": {', b'"data": {"parentToolCallId": "c", ')
    assert not read("copilot", write("copilot", data)).said


@pytest.mark.parametrize(
    ("more", "text", "reason"),
    [
        ({"isMeta": True}, "Caveat", "chrome"),
        ({"isCompactSummary": True}, "we did this", "summary"),
        ({}, "This session is being continued from a previous conversation that ran out", "chrome"),
        ({}, "<command-name>/clear</command-name>", "chrome"),
        ({}, "<local-command-stdout>x</local-command-stdout>", "chrome"),
        ({}, "<task-notification>x", "chrome"),
        ({}, "[Request interrupted by user]", "chrome"),
        ({}, "<system-reminder>be brief</system-reminder>", "chrome"),
        ({"promptSource": "poll_event"}, "look again", "chrome"),
    ],
)
def test_what_claude_code_wrote_into_the_user_s_mouth(
    more: dict[str, Any], text: str, reason: str, write: Write, read: Read
) -> None:
    line = {"type": "user", "message": {"role": "user", "content": text}, **more}
    found = read("claude-code", write("claude-code", json.dumps(line).encode() + b"\n"))
    assert found.tally == {"lines": 1, f"skipped:{reason}": 1}


def test_reminders_amid_a_person_s_words_are_cut_out(write: Write, read: Read) -> None:
    content = [{"type": "text", "text": "<system-reminder>a</system-reminder>why\n<system-reminder>b"}]
    line = {"type": "user", "message": {"role": "user", "content": content}}
    assert read("claude-code", write("claude-code", json.dumps(line).encode() + b"\n")).said == [
        ("user", "why", "", "")
    ]


def test_gemini_cuts_out_files_and_keeps_the_last_write(write: Write, read: Read) -> None:
    asked = "read @a\n--- Content from referenced files ---\nsecret\n--- End of content ---"
    values = [
        {"id": "u", "type": "user", "content": [{"text": asked}]},
        {"id": "m", "type": "gemini", "content": "The val"},
        {"$set": {"lastUpdated": "x"}},
        {"id": "m", "type": "gemini", "content": [{"text": "The valve."}, {"text": "hm", "thought": True}]},
        {"$rewindTo": "u"},
        {"id": "i", "type": "info", "content": "update"},
    ]
    found = read("gemini", write("gemini", "".join(json.dumps(value) + "\n" for value in values).encode()))
    assert found.said == [("user", "read @a", "", ""), ("agent", "The valve.", "", "")]
    assert found.tally["skipped:rewritten"] == 1
