"""Logs that belong to no host: paragraphs of Markdown, and JSON lines of any make."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts.transcripts import logs

Read = Callable[..., Any]
Write = Callable[..., Path]


def test_paragraphs_with_whose_words_they_are(write: Write, read: Read) -> None:
    found = read("log", write("log"))
    assert found.said == [
        ("agent", "# Tuesday", "", ""),
        ("user", "why does the sum\nfail?", "", ""),
        ("agent", "Because of this:\n```\na\nb\n```", "", ""),
        ("user", "thanks", "", ""),
    ]
    assert found.tally["skipped:chrome"] == 1, "a heading that only names who speaks"


def test_who_speaks_is_known_after_a_position(write: Write, read: Read) -> None:
    text = "## Human\n\none\n\ntwo\n\n```\nx\n\ny\n```\n"
    path = write("log", text.encode())
    first = read("log", path).records[0]
    assert first.text == "one"
    assert [role for role, *_ in read("log", path, first.position).said] == ["user", "user"]


def test_a_last_line_without_an_end_is_whole_once_it_is_left_alone(write: Write, read: Read) -> None:
    path = write("log", b"one\n\ntwo")
    found = read("log", path)
    assert [text for _, text, _, _ in found.said] == ["one"] and found.tally["torn"] == 1
    os.utime(path, (1772618400, 1772618400))
    assert [text for _, text, _, _ in read("log", path, found.position).said] == ["two"]


def test_a_paragraph_without_an_end_does_not_grow(write: Write, read: Read) -> None:
    path = write("log", b"```\n" + b"word word word\n" * 20_000)
    found = read("log", path)
    assert max(len(text) for _, text, _, _ in found.said) <= logs.PARAGRAPH + 20
    assert sum(text.count("word") for _, text, _, _ in found.said) == 60_000


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"role": "user", "content": "why"}, [("user", "why", "", "")]),
        ({"type": "assistant", "text": "because"}, [("agent", "because", "", "")]),
        ({"sender": "human", "message": "why"}, [("user", "why", "", "")]),
        ({"author": {"role": "assistant"}, "content": ["x", {"text": "y"}]}, [("agent", "y", "", "")]),
        ({"level": "info", "msg": "started"}, [("agent", "started", "", "")]),
        ({"role": "system", "content": "be brief"}, []),
        ({"role": "assistant", "content": [{"type": "thinking", "text": "hm"}]}, []),
        ({"role": "tool", "name": "sh", "content": "much output"}, [("outcome", "", "sh", "ok")]),
        ({"level": 3}, []),
        (
            {"message": {"role": "assistant", "content": [{"type": "tool_use", "name": "sh", "input": {"c": "ls"}}]}},
            [("call", "ls", "sh", "")],
        ),
    ],
)
def test_json_lines_of_any_make(line: dict[str, Any], said: list[Any], tmp_path: Path, read: Read) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert read("log", path).said == said


@pytest.mark.parametrize(
    "more", [{"ts": 1772618400}, {"timestamp": 1772618400000}, {"created_at": "2026-03-04T10:00:00+00:00"}]
)
def test_a_time_in_any_form(more: dict[str, Any], tmp_path: Path, read: Read) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(json.dumps({"role": "user", "content": "why", **more}), encoding="utf-8")
    assert read("log", path).records[0].at == 1772618400.0
