"""Transcripts as the hosts write them: every line is told or counted with its reason."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

Read = Callable[..., Any]
Shared = Callable[[str], Path]
ASKED = ("user", "Why does make test fail on CI?")
ANSWERED = ("agent", "Tests need DATABASE_URL set.")
FAILED = ("outcome", "make: *** [test] Error 1")
ROLES = {
    "claude": ["injected", "user", "agent", "call", "outcome", "call", "outcome", "agent"],
    "codex": ["injected", "user", "call", "outcome", "call", "outcome", "agent"],
    "gemini": ["injected", "user", "call", "outcome", "call", "outcome", "agent"],
    "copilot": ["injected", "user", "call", "outcome", "outcome", "agent"],
}


@pytest.mark.parametrize("host", ROLES)
def test_a_sample_of_each_host(host: str, shared: Shared, read: Read) -> None:
    found = read("claude-code" if host == "claude" else host, shared(f"real/hosts/{host}-transcript.jsonl"))
    assert [role for role, *_ in found.said] == ROLES[host]
    assert found.said[0][1] == "khms: 2 notes match"
    assert {ASKED, FAILED, ANSWERED} <= {(role, text) for role, text, _, _ in found.said}
    assert next(state for role, *_, state in found.said if role == "outcome") == "exit 2"
    assert not found.tally.keys() & {"garbage", "long", "torn"}


def test_a_sample_of_opencode_put_back_into_a_database(shared: Shared, tmp_path: Path, read: Read) -> None:
    rows = shared("real/hosts/opencode-transcript.jsonl").read_text(encoding="utf-8").splitlines()
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as base, base:
        base.execute("CREATE TABLE session (id, parent_id, directory, time_created, time_updated)")
        base.execute("CREATE TABLE message (id, session_id, time_created, data)")
        base.execute("CREATE TABLE part (id, message_id, session_id, time_created, data)")
        for number, row in enumerate(map(json.loads, rows)):
            own = [row["id"], row["session_id"], row.get("time_created", number), json.dumps(row["data"])]
            if row["table"] == "part":
                own.insert(1, row["message_id"])
            base.execute(f"INSERT INTO {row['table']} VALUES ({', '.join('?' * len(own))})", own)
            session = row["session_id"]
        base.execute("INSERT INTO session VALUES (?, NULL, '/w', 1, 1)", [session])
    found = read("opencode", tmp_path / "opencode.db" / session)
    roles = ["injected", "user", "call", "outcome", "call", "outcome", "agent"]
    assert [role for role, *_ in found.said] == roles
    assert {FAILED, ANSWERED} <= {(role, text) for role, text, _, _ in found.said}
    assert found.tally["lines"] == sum('"table": "part"' in row for row in rows)


def test_samples_of_hosts_without_a_reader_are_read_as_logs(shared: Shared, read: Read) -> None:
    known = {*ROLES, "opencode"}
    for path in sorted(shared("real/hosts").glob("*-transcript.jsonl")):
        if path.name.removesuffix("-transcript.jsonl") not in known:
            found = read("log", path)
            assert found.tally["used"] == found.tally["lines"] > 0
            assert {"user", "agent", "call"} <= {role for role, *_ in found.said}
