"""Sessions are found where the hosts keep them, and what is kept in a form that is not read says so."""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import transcripts
from khms.hosts.transcripts import codex

Read = Callable[..., Any]
Write = Callable[..., Path]
THREAD = "01a2aaaa-51b3-7a82-8e40-1b8883c50001"
KEPT = {
    "claude-code": (".claude", "CLAUDE_CONFIG_DIR", "", "projects/-w/abc.jsonl", "abc"),
    "codex": (".codex", "CODEX_HOME", "", f"sessions/2026/03/04/rollout-2026-03-04T10-00-00-{THREAD}.jsonl", THREAD),
    "gemini": (".gemini", "GEMINI_CLI_HOME", ".gemini", "tmp/w/chats/session-2026-03-04T10-00-abc.jsonl", "abc"),
    "copilot": (".copilot", "COPILOT_HOME", "", "session-state/abc/events.jsonl", "abc"),
    "opencode": (".local/share", "XDG_DATA_HOME", "", "opencode/opencode.db", "ses"),
}


@pytest.mark.parametrize("host", KEPT)
def test_sessions_lie_where_the_host_keeps_them(
    host: str, own_environment: Path, monkeypatch: pytest.MonkeyPatch, write: Write, read: Read
) -> None:
    usual, variable, below, name, identity = KEPT[host]
    reader: Any = transcripts.reader(host)
    assert list(reader.sessions()) == []
    made = write(host)
    made = made.parent if host == "opencode" else made
    elsewhere = own_environment / "elsewhere"
    for root in (own_environment / usual, elsewhere / below):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(made.read_bytes())
        os.utime(root / name, (1772618400, 1772618400))
        if host == "gemini":
            (root / "tmp/w/.project_root").write_text("/w", encoding="utf-8")
    for root in (own_environment / usual, elsewhere / below):
        (found,) = reader.sessions()
        place = root / name / "ses" if host == "opencode" else root / name
        assert (found.host, found.id, found.path, found.modified) == (host, identity, place, 1772618400.0)
        assert reader.cwd(found) == "/w"
        assert len(read(host, found.path).said) == 12
        monkeypatch.setenv(variable, str(elsewhere))


@pytest.mark.parametrize("host", [host for host in KEPT if host != "opencode"])
def test_what_stands_where_a_session_should(host: str, own_environment: Path) -> None:
    """A folder and a link to itself come as sessions, for reading them to tell what is wrong."""
    usual, _, _, name, _ = KEPT[host]
    path = own_environment / usual / name
    path.mkdir(parents=True)
    reader: Any = transcripts.reader(host)
    (found,) = reader.sessions()
    assert found.path == path and reader.cwd(found) == ""
    path.rmdir()
    path.symlink_to(path)
    (found,) = reader.sessions()
    assert found.modified == 0.0 and reader.cwd(found) == ""
    with pytest.raises(OSError, match="symbolic links"):
        list(reader.records(found.path, "", Counter()))


def test_what_codex_put_away_or_packed_is_found_and_not_read(own_environment: Path, write: Write) -> None:
    root = own_environment / ".codex"
    away = root / f"archived_sessions/rollout-2026-03-04T10-00-00-{THREAD}.jsonl"
    packed = root / f"sessions/2026/03/04/rollout-2026-03-04T11-00-00-{THREAD}.jsonl.zst"
    for path in (away, packed):
        path.parent.mkdir(parents=True)
        path.write_bytes(write("codex").read_bytes())
    assert [(found.id, found.path) for found in codex.sessions()] == [(THREAD, away), (THREAD, packed)]
    for path, reason in ((away, codex.ARCHIVED), (packed, codex.COMPRESSED)):
        with pytest.raises(OSError, match=reason):
            list(codex.records(path, "", Counter()))


def test_gemini_s_project_from_its_list_and_a_sub_agent_s_thread(own_environment: Path, write: Write) -> None:
    root = own_environment / ".gemini"
    chats = root / "tmp/w/chats"
    (chats / "abc").mkdir(parents=True)
    reader: Any = transcripts.reader("gemini")
    for name in ("session-1.jsonl", "abc/side.jsonl"):
        (chats / name).write_bytes(write("gemini").read_bytes())
    (root / "projects.json").write_text(json.dumps({"projects": {"/other": "o", "/w": "w"}}), encoding="utf-8")
    (found,) = reader.sessions()
    assert reader.cwd(found) == "/w"
    assert reader.threads(found.path) == [found.path, chats / "abc/side.jsonl"]
    (root / "projects.json").write_text("[" * 9000, encoding="utf-8")
    assert reader.cwd(found) == ""
