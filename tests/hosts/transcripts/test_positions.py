"""A position survives whatever happens to a transcript between two readings: nothing comes twice, nothing is lost."""

import itertools
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import transcripts
from khms.hosts.transcripts import logs

HOSTS = ("claude-code", "codex", "codex-old", "gemini", "copilot", "log", "gemini-old", "opencode")
GROWING = HOSTS[:6]
CHANGED = HOSTS[:7]
Read = Callable[..., Any]
Write = Callable[..., Path]


def records(host: str, path: Path, since: str) -> Any:
    reader: Any = logs if host == "log" else transcripts.reader(host.removesuffix("-old"))
    return reader.records(path, since, Counter())


@pytest.mark.parametrize("host", HOSTS)
def test_reading_goes_on_after_any_record(host: str, write: Write, read: Read) -> None:
    path = write(host)
    whole = read(host, path).said
    for number in range(1, len(whole) + 1):
        first = list(itertools.islice(records(host, path, ""), number))
        rest = read(host, path, first[-1].position)
        assert whole[number:] == rest.said, f"after {number} records"
        assert not rest.tally["anew"]


@pytest.mark.parametrize("host", GROWING)
def test_a_file_cut_anywhere_and_read_twice_is_read_once(host: str, write: Write, read: Read) -> None:
    """Whatever part of the file is there at the first reading, the last line of it torn or not."""
    path = write(host)
    data, whole = path.read_bytes(), read(host, path).said
    joined = "\n".join(text for _, text, _, _ in whole)
    ends = [place for place, byte in enumerate(data) if byte == 10]
    near = {place + step for place in ends for step in (-1, 0, 1, 2, 40)}
    for cut in sorted(near | set(range(0, len(data), 211))):
        path.write_bytes(data[:cut])
        first = read(host, path)
        path.write_bytes(data)
        second = read(host, path, first.position)
        assert not second.tally["anew"]
        if host == "log":  # a paragraph that goes on comes in two pieces
            pieces = "\n".join(text for _, text, _, _ in first.said + second.said)
            assert sorted(pieces.split()) == sorted(joined.split()), cut
        else:
            assert first.said + second.said == whole, cut


@pytest.mark.parametrize("host", GROWING)
def test_a_file_read_line_by_line_as_it_grows(host: str, write: Write, read: Read) -> None:
    path = write(host)
    whole, data = read(host, path).said, path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"")
    said, position = [], ""
    for line in data:
        with path.open("ab") as file:
            file.write(line)
        found = read(host, path, position)
        said += found.said
        position = found.position or position
    if host != "log":
        assert said == whole
    assert not read(host, path, position).said


@pytest.mark.parametrize("host", CHANGED)
@pytest.mark.parametrize("how", ["rotated", "truncated", "emptied", "rewritten", "of the same length"])
def test_a_file_that_became_another_is_read_anew(host: str, how: str, write: Write, read: Read) -> None:
    path = write(host)
    data, position = path.read_bytes(), read(host, path).position
    if how == "rotated":
        other = path.with_name("other")
        other.write_bytes(b'{"type":"x"}\n' + data if host != "gemini-old" else b'{"messages":[{"id":"z"}]}')
        os.replace(other, path)
    elif how == "rewritten":
        path.write_bytes(data.replace(b"polled", b"asked").replace(b"sum", b"total").replace(b'"g2"', b'"g22"'))
    elif how == "of the same length":
        path.write_bytes(data.replace(b"the build", b"a release").replace(b"sum", b"add").replace(b'"g2"', b'"g9"'))
    else:
        shorter = b'{"messages":[]}' if host == "gemini-old" else b""
        path.write_bytes(data[: len(data) // 3] if how == "truncated" and host != "gemini-old" else shorter)
    found = read(host, path, position)
    assert found.tally["anew"] == 1
    assert found.said == read(host, path).said


@pytest.mark.parametrize(
    "since", ["x", "-1-0", "5", "0-", "7-00000000", "9" * 5000 + "-0", "1-1+9x", "+x", "٣-00000000"]
)
@pytest.mark.parametrize("host", ["claude-code", "gemini-old", "opencode"])
def test_a_position_that_none_of_them_gave(host: str, since: str, write: Write, read: Read) -> None:
    path = write(host)
    found = read(host, path, since)
    assert found.said == read(host, path).said and found.tally["anew"] == 1


def test_a_line_is_not_waited_for_that_is_written_meanwhile(write: Write, read: Read) -> None:
    """The rest of a torn line that comes while the file is being read is none of this reading's."""
    path = write("claude-code")
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    reading = records("claude-code", path, "")
    first = [next(reading)]
    first += list(reading)
    with path.open("ab") as file:
        file.write(data[-20:])
    assert list(reading) == []
    assert not read("claude-code", path, first[-1].position).said


def test_a_call_and_its_end_on_both_sides_of_a_position(write: Write, read: Read) -> None:
    path = write("codex")
    for record in read("codex", path).records:
        assert all(later.tool for later in read("codex", path, record.position).records if later.role == "outcome")


def test_words_said_twice_are_two(write: Write, read: Read) -> None:
    response = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}
    pair = [
        {"type": "response_item", "payload": response},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "go on"}},
    ]
    data = b"".join(json.dumps(value).encode() + b"\n" for value in (*pair, *reversed(pair), *pair))
    found = read("codex", write("codex", data))
    assert [text for _, text, _, _ in found.said] == ["go on"] * 3
    assert found.tally["skipped:duplicate"] == 3


def test_a_document_gets_more_of_its_last_message(write: Write, read: Read) -> None:
    path = write("gemini-old")
    whole, held = read("gemini-old", path).said, json.loads(path.read_bytes())
    last = held["messages"][3]
    last["content"] = "later"
    said, position = [], ""
    for stop in range(1, len(held["messages"]) + 1):
        for calls in ([], last["toolCalls"]):
            shown = [*held["messages"][:stop]]
            if stop == 4:
                shown[3] = {**last, "toolCalls": calls}
            path.write_text(json.dumps({"sessionId": "abc", "messages": shown}), encoding="utf-8")
            found = read("gemini-old", path, position)
            assert not found.tally["anew"]
            said += found.said
            position = found.position or position
    assert said == [*whole[:7], ("agent", "later", "", ""), *whole[7:]]


def test_a_part_of_a_database_is_told_when_it_is_done(write: Write, read: Read) -> None:
    path = write("opencode")
    whole = read("opencode", path)

    def change(statement: str, *values: str) -> None:
        with closing(sqlite3.connect(path.parent)) as base, base:
            base.execute(statement, values)

    change("UPDATE message SET data = ? WHERE id = 'm4'", '{"role":"assistant"}')
    first = read("opencode", path)
    assert first.said == whole.said[:-1] and first.tally["torn"] == 1
    change("UPDATE part SET data = json_set(data, '$.time', json('{\"end\": 5}')) WHERE message_id = 'm4'")
    assert read("opencode", path, first.position).said == whole.said[-1:]

    change("DELETE FROM part WHERE id = (SELECT max(id) FROM part WHERE session_id = 'ses')")
    gone = read("opencode", path, whole.position)
    assert not gone.said and not gone.tally["anew"], "an answer taken back is no reason to tell all again"
    change("UPDATE message SET session_id = 'other' WHERE session_id = 'ses'")
    assert read("opencode", path, whole.position).tally == {"anew": 1}
