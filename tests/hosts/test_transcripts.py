"""Transcripts are read as streams: what the agent said and had done, what hooks put in, and nothing else."""

import json
import os
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import transcripts
from khms.hosts.registry import HOSTS
from khms.hosts.transcripts import base, claude_code
from khms.hosts.transcripts.base import AGENT, INJECTED, Message


def assistant(*blocks: dict[str, Any], id: str = "m1", at: str = "2026-03-04T10:00:00Z") -> str:
    message = {"id": id, "role": "assistant", "content": list(blocks)}
    return json.dumps({"type": "assistant", "timestamp": at, "message": message})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def read(path: Path) -> tuple[list[Message], Counter[str]]:
    tally: Counter[str] = Counter()
    return list(claude_code.messages(path, tally)), tally


def test_every_reader_is_that_of_a_host() -> None:
    assert set(transcripts.READERS) <= set(HOSTS)
    assert transcripts.reader("claude-code") is claude_code
    assert transcripts.reader("abacus") is None


def test_a_transcript_as_the_host_writes_it(shared: Callable[[str], Path]) -> None:
    found, tally = read(shared("real/hosts/claude-transcript.jsonl"))
    assert [(m.role, m.id) for m in found] == [
        (INJECTED, ""), (AGENT, "msg_01"), (AGENT, "msg_01"), (AGENT, "msg_02"), (AGENT, "msg_03"),
    ]  # fmt: skip
    said = [m.text for m in found]
    assert said[0] == "khms: 2 notes match"
    assert said[2].startswith("make test\n") and "DATABASE_URL" in said[4]
    assert not any("Error 1" in text or "12 passed" in text for text in said), "what tools answered is not said"
    assert tally == {"lines": 10}
    assert found[1].at < found[2].at < found[4].at


def test_what_counts_as_said(tmp_path: Path) -> None:
    tool = {
        "type": "tool_use",
        "name": "Read",
        "input": {"file_path": "/b/K-00001.md", "more": [{"deep": "words"}], "n": 3},
    }
    thinking = {"type": "thinking", "thinking": "K-00009"}
    path = tmp_path / "s.jsonl"
    lines = [
        assistant(text("first"), thinking, tool),
        json.dumps({"type": "user", "message": {"role": "user", "content": "an assistant's K-00002"}}),
        json.dumps({"type": "assistant", "message": "no object", "note": "assistant"}),
        json.dumps({"type": "assistant", "message": {"content": "plain"}}),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, tally = read(path)
    assert [m.text for m in found] == ["first\n/b/K-00001.md\nwords", "plain"]
    assert found[1].id and found[1].at == 0.0
    assert tally == {"lines": 4}


@pytest.mark.parametrize("stamp", ["", "soon", None, 7, "9999999-01-01T00:00:00Z"])
def test_a_time_that_is_none(stamp: object) -> None:
    assert base.seconds(stamp) == 0.0


def test_lines_that_cannot_be_used_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "LONGEST", 4000)
    path = tmp_path / "s.jsonl"
    good = assistant(text("words")).encode()
    long = assistant(text("x" * 9000)).encode()
    deep = b'{"assistant":' + b"[" * 1500 + b"]" * 1500 + b"}"
    bad = [b"not JSON", b"\xff\xfe", b'{"type":"assistant"', b'{"type":"assistant",}', deep, b"[1]"]
    path.write_bytes(b"\n".join([good, *bad, long, b"", good, good[:40]]))
    found, tally = read(path)
    assert [m.text for m in found] == ["words", "words"]
    assert tally == {"lines": 11, "garbage": 6, "long": 1, "torn": 1}


def test_what_is_no_file_is_an_error_and_no_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.jsonl")
    with pytest.raises(OSError, match="regular"):
        read(tmp_path / "s.jsonl")
    with pytest.raises(OSError, match="No such file"):
        read(tmp_path / "t.jsonl")


def test_sessions_lie_where_the_host_keeps_them(own_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = own_environment
    assert list(claude_code.sessions()) == []
    usual = home / ".claude/projects/-home-dev/aaa.jsonl"
    moved = home / "elsewhere/projects/-x/bbb.jsonl"
    for path in (usual, moved, usual.with_suffix("") / "subagents/agent-1.jsonl"):
        path.parent.mkdir(parents=True)
        path.write_text("", encoding="utf-8")
    assert list(claude_code.sessions()) == [("aaa", usual)]
    assert claude_code.threads(usual) == [usual, usual.with_suffix("") / "subagents/agent-1.jsonl"]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    assert list(claude_code.sessions()) == [("bbb", moved)]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    answered = json.dumps({"type": "user", "message": {"content": [{"type": "tool_result", "content": "y" * 100_000}]}})
    with path.open("w", encoding="utf-8") as file:
        for number in range(400):
            file.write(answered + "\n" + assistant(text("words"), id=f"m{number}") + "\n")
    assert path.stat().st_size > 40_000_000
    tally: Counter[str] = Counter()
    tracemalloc.start()
    try:
        count = sum(1 for _ in claude_code.messages(path, tally))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 400 and tally["lines"] == 800
    assert peak < 4_000_000
