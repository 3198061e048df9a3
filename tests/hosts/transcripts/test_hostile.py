"""Files that no host would write, or that something happened to: told as far as they make sense, counted for the rest,
never waited for, and never held in memory whole."""

import json
import os
import sqlite3
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import transcripts
from khms.hosts.transcripts import base, lines, logs, words

LINED = ("claude-code", "codex", "gemini", "copilot", "log")
Read = Callable[..., Any]
Write = Callable[..., Path]


def records(host: str, path: Path) -> Any:
    reader: Any = logs if host == "log" else transcripts.reader(host.removesuffix("-old"))
    return reader.records(path, "", Counter())


@pytest.mark.parametrize("host", LINED[:4])
def test_lines_that_cannot_be_used_are_counted(
    host: str, write: Write, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read(host, write(host))
    monkeypatch.setattr(lines, "LONGEST", 4000)
    data = write(host).read_bytes()
    deep = b'{"type":' + b"[" * 1900 + b"]" * 1900 + b"}"
    bad = [b"no JSON", b"\xff\xfe{", b'{"a":"\xff"}', b'{"type":"user"', b'{"a":1,}', deep, b"[1]", b'{"a":"\0"}', b"7"]
    path = write(host, b"\n".join([*bad, b"x" * 9000, b"{" + b" " * 9000 + b"}", b"", b"\0\0", data]) + b'{"half":')
    found = read(host, path)
    assert found.said == whole.said
    assert {name: found.tally[name] for name in ("garbage", "long", "torn")} == {"garbage": 9, "long": 2, "torn": 1}
    assert found.tally["lines"] == whole.tally["lines"] + 12


@pytest.mark.parametrize("host", LINED[:4])
def test_values_of_any_kind_in_any_place(host: str, write: Write, read: Read) -> None:
    """Each value of a true transcript in turn is put in the place of each other."""
    values: list[Any] = [None, True, 7, 1e999, -1, "", "x", [], ["x"], [[]], {}, {"a": {"b": "x"}}, "\ud800"]
    for line in write(host).read_bytes().splitlines():
        record = json.loads(line)
        for value in values:
            changed = "\n".join(json.dumps(other) for other in variants(record, value)) + "\n"
            for role, text, tool, state in read(host, write(host, changed.encode())).said:
                "".join((role, text, tool, state)).encode()  # no half characters


def variants(value: Any, new: Any) -> list[Any]:
    """`value` with one of its parts replaced, for each of them."""
    if isinstance(value, dict):
        return [new, *({**value, key: part} for key in value for part in variants(value[key], new))]
    if isinstance(value, list):
        each = enumerate(value)
        return [new, *([*value[:at], part, *value[at + 1 :]] for at, old in each for part in variants(old, new))]
    return [new]


@pytest.mark.parametrize("host", ["gemini-old", "opencode"])
def test_the_same_of_a_document_and_a_database(host: str, write: Write, read: Read) -> None:
    values: list[Any] = [None, 7, "x", [], {}, "\ud800"]
    path = write(host)
    if host == "gemini-old":
        held = json.loads(path.read_bytes())
        for value in values:
            for changed in variants(held, value):
                path.write_text(json.dumps(changed), encoding="utf-8")
                read(host, path)
        return
    whole = read(host, path).said
    with closing(sqlite3.connect(path.parent, isolation_level=None)) as own:
        for identity, data in own.execute("SELECT id, data FROM part").fetchall():
            for value in values:
                for changed in variants(json.loads(data), value):
                    own.execute("UPDATE part SET data = ? WHERE id = ?", (json.dumps(changed), identity))
                    read(host, path)
            own.execute("UPDATE part SET data = ? WHERE id = ?", (data, identity))
        assert read(host, path).said == whole
        for odd in (b"\xff", None, 7, "{" * 5000):
            own.execute("UPDATE part SET data = ? WHERE id = 'p01'", (odd,))
            found = read(host, path)
            assert found.said == whole[1:] and found.tally["garbage"] + found.tally["long"] == 1


@pytest.mark.parametrize("host", [*LINED, "gemini-old", "opencode"])
def test_what_is_no_readable_file_is_an_error_and_no_wait(host: str, write: Write, tmp_path: Path) -> None:
    path = write(host)
    file, suffix = (path.parent, "/ses") if host == "opencode" else (path, "")
    file.unlink()
    with pytest.raises(OSError, match="No such file"):
        list(records(host, path))
    file.symlink_to(file)
    with pytest.raises(OSError, match="symbolic links"):
        list(records(host, path))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(OSError, match="not a regular file"):
        list(records(host, Path(f"{file}{suffix}")))
    file.unlink()
    file.mkdir()
    with pytest.raises(OSError, match=r"Is a directory|not a regular file"):
        list(records(host, Path(f"{file}{suffix}")))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
@pytest.mark.parametrize("host", [*LINED, "gemini-old", "opencode"])
def test_a_file_that_may_not_be_read(host: str, write: Write) -> None:
    path = write(host)
    (path.parent if host == "opencode" else path).chmod(0)
    with pytest.raises(OSError, match="Permission denied"):
        list(records(host, path))


def test_a_broken_database_is_an_error_with_its_reason(write: Write, own_environment: Path) -> None:
    path = write("opencode")
    whole = path.parent.read_bytes()
    for data, reason in (
        (b"", "not a database"),
        (b"no database at all", "not a database"),
        (whole[:100] + b"\xff" * (len(whole) - 100), "malformed|schema"),
        (whole[:5000], "malformed|disk image"),
    ):
        path.parent.write_bytes(data)
        with pytest.raises(OSError, match=reason):
            list(records("opencode", path))
    with pytest.raises(OSError, match=r"malformed|disk image"):
        list(records("opencode", path.parent))
    kept = own_environment / ".local/share/opencode/opencode.db"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"broken")
    reader: Any = transcripts.reader("opencode")
    assert [(found.id, found.path) for found in reader.sessions()] == [("opencode", kept)]
    kept.write_bytes(b"")
    with closing(sqlite3.connect(kept)) as empty:
        empty.execute("CREATE TABLE session (id text)")
    with pytest.raises(OSError, match="no such column"):
        list(records("opencode", kept))


@pytest.mark.parametrize("how", ["PRAGMA journal_mode=WAL", "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA user_version"])
def test_a_database_in_its_owner_s_hands(how: str, write: Write, read: Read) -> None:
    """The owner writes on, in the middle of a change, and is neither waited for nor kept waiting."""
    path = write("opencode")
    whole = read("opencode", path).said
    with closing(sqlite3.connect(path.parent, isolation_level=None, timeout=0)) as owner:
        owner.execute(how)
        if "EXCLUSIVE" in how:
            owner.execute("PRAGMA journal_mode=WAL")
        owner.execute("UPDATE session SET time_updated = 5")
        owner.execute("BEGIN EXCLUSIVE")
        owner.execute("DELETE FROM part")
        before = kept(path)
        reading = records("opencode", path)
        if "user_version" in how:  # without a log ahead a change is made in place
            with pytest.raises(OSError, match="middle of a change"):
                next(reading)
        else:
            said = [next(reading)]
            assert kept(path) == before
            owner.execute("COMMIT")
            owner.execute("UPDATE session SET time_updated = 6")
            said += list(reading)
            assert [record.text for record in said] == [text for _, text, _, _ in whole]
            before = kept(path)
            list(records("opencode", path))
        assert kept(path) == before


def kept(path: Path) -> dict[str, bytes]:
    """What the host keeps on disk; of the memory that its processes share, only whether it is there."""
    found = path.parents[1].glob("opencode.db*")
    return {file.name: b"" if file.name.endswith("-shm") else file.read_bytes() for file in found}


@pytest.mark.parametrize("host", LINED)
def test_memory_does_not_grow_with_the_file(host: str, write: Write, tmp_path: Path) -> None:
    data = write(host).read_bytes()
    if host == "gemini":  # where a message that comes again is told once
        data = data[: data.index(b"\n") + 1] + data
    filler = (
        b"y" * 100_000 + b"\n\n" if host == "log" else json.dumps({"type": "z", "z": "y" * 100_000}).encode() + b"\n"
    )
    path = write(host, b"")
    with path.open("wb") as file:
        for number in range(300):
            file.write(data.replace(b'"id": "', f'"id": "{number}'.encode()))
            file.write(filler)
    assert path.stat().st_size > 30_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in records(host, path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count > 300
    assert peak < 6_000_000, "of the 8 MiB that one line may have and the file's thirty"


def test_the_memory_of_a_process_that_reads_a_huge_line(write: Write) -> None:
    path = write("codex")
    with path.open("ab") as file:
        file.truncate(400_000_000)  # zeros without an end, as a crash may leave
    code = (
        "import re, sys\nfrom collections import Counter\nfrom pathlib import Path\n"
        "from khms.hosts.transcripts import codex\ntally = Counter()\n"
        "print(sum(1 for _ in codex.records(Path(sys.argv[1]), '', tally)), tally['torn'])\n"
        "print(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text()).group(1))"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, encoding="utf-8", check=True)
    count, kilobytes = done.stdout.splitlines()
    assert count == "12 1"
    assert int(kilobytes) < 120_000


def test_only_lines_that_tell_an_error_are_told_and_not_many() -> None:
    output = "\n".join(f"secret {number}\nerror {number}: " + "x" * 500 for number in range(100))
    told = words.error_lines(output).splitlines()
    assert len("\n".join(told)) <= words.ERROR_TEXT and told[0].startswith("error 0:")
    assert not any("secret" in line for line in told)
    many = words.error_lines("\n".join(f"error {number}" for number in range(100))).splitlines()
    assert len(many) == words.ERROR_LINES and (many[0], many[-1]) == ("error 0", "error 99")
    assert (
        words.error_lines("fine\nall good") == "" and words.error_lines("odd thing\nsecret", first=True) == "odd thing"
    )


@pytest.mark.parametrize("stamp", ["", "soon", None, True, [], "9999999-01-01T00:00:00Z", 1e400, 10**400, float("nan")])
def test_a_time_that_is_none(stamp: object) -> None:
    assert words.seconds(stamp) == 0.0
    assert words.seconds(1796048179342) == 1796048179.342
    assert base.modified(Path("/nowhere/at/all")) == 0.0
