"""The user's crontab: our lines come and go, every other byte stays."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.hosts.schedulers import cron
from khms.hosts.schedulers.base import Entry, When
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
REAL = shutil.which("crontab", path="/usr/bin:/usr/local/bin:/bin")
USER = "nobody"
FOREIGN = (
    b"# mine; 15 3 * * * khms schedule run nightly --record /x.json\r\n"
    b"MAILTO=ada@example.org\n\n"
    b'LABEL = "a b"\n'
    b"*/5\t* * * 1-5 date +\\%F >/dev/null # \xc3\xa9 \xff\n"
    b"@daily true\r\n"
    b"\t \n"
)


def own(table: bytes | None) -> list[bytes]:
    return [line for line in (table or b"").split(b"\n") if b" schedule run " in line and not line.startswith(b"#")]


class Real:
    """The real program, on the table of a user who has none."""

    def __init__(self, program: Path) -> None:
        text = f'#!/bin/sh\nexec "{REAL}" -u {USER} "$@"\n'
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def read(self) -> bytes | None:
        if subprocess.run([str(REAL), "-u", USER, "-l"], capture_output=True, check=False).returncode:
            return None
        env = {**os.environ, "VISUAL": "cat"}  # `-l` shows a carriage return as `\\r`
        return subprocess.run([str(REAL), "-u", USER, "-e"], capture_output=True, env=env, check=True).stdout

    def write(self, content: bytes) -> None:
        subprocess.run([str(REAL), "-u", USER, "-"], input=content, check=True)


@pytest.fixture(params=["scripted", "real"])
def table(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Iterator[Any]:
    """A crontab of a real program, and of a scripted one."""
    if request.param == "scripted":
        yield request.getfixturevalue("crontab")
        return
    if REAL is None or sys.platform != "linux" or os.getuid():
        pytest.skip("needs a crontab program and root, who may use another user's table")
    with open("/tmp/khms-tests-crontab.lock", "w", encoding="utf-8") as lock:  # one table for every process of a run
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = Real(programs / "crontab")
        if found.read() is not None:
            pytest.skip(f"{USER} has a crontab, which is not this test's")
        yield found
        subprocess.run([str(REAL), "-u", USER, "-r"], capture_output=True, check=False)


@pytest.mark.parametrize("before", [FOREIGN, b"", None], ids=["foreign", "empty", "none"])
def test_foreign_bytes_stay_and_uninstall_leaves_what_was(
    table: Any, before: bytes | None, base: Base, run_khms: Run
) -> None:
    if before is not None:
        table.write(before)
    done = run_khms("schedule", "install", "cron")
    assert done.returncode == 0, done.stderr
    content = table.read()
    assert content.startswith(before or b"") and len(own(content)) == 2
    assert content == (before or b"") + b"".join(line + b"\n" for line in own(content))
    assert b" --root " + str(base.root).encode() in content
    done = run_khms("schedule", "install", "--nightly", "23:59", "--weekly", "saturday 0:00")
    changed = own(table.read())
    assert changed[0].startswith(b"59 23 * * * ") and changed[1].startswith(b"0 0 * * 6 "), done.stderr
    assert table.read().startswith(before or b"")
    assert run_khms("schedule", "uninstall", "cron").returncode == 0
    assert (table.read() or b"") == (before or b"")
    assert run_khms("schedule", "uninstall", "cron").returncode == 1


def test_twice_changes_nothing(crontab: Any, base: Base, run_khms: Run) -> None:
    assert run_khms("schedule", "install").returncode == 0
    before = crontab.read()
    calls = crontab.calls()
    done = run_khms("schedule", "install")
    assert done.returncode == 0 and "as it was" in done.stdout
    assert crontab.read() == before and "-" not in crontab.calls()[len(calls) :]


def test_a_refused_table_leaves_the_old_one_and_no_record(
    crontab: Any, base: Base, run_khms: Run, own_environment: Path
) -> None:
    crontab.write(b"this is no job\n")
    done = run_khms("schedule", "install", "cron")
    assert done.returncode == 4 and "bad minute" in done.stderr and "Traceback" not in done.stderr
    assert crontab.read() == b"this is no job\n"
    assert not list((own_environment / "data" / "schedule").glob("*.json"))


def test_a_refused_change_of_times_keeps_the_old_ones(crontab: Any, base: Base, run_khms: Run) -> None:
    run_khms("schedule", "install", "cron")
    before = crontab.read()
    crontab.fail("-")
    assert run_khms("schedule", "install", "--nightly", "01:00").returncode == 4
    assert crontab.read() == before
    assert "03:15" in run_khms("schedule", "status").stdout


def test_a_table_that_cannot_be_read_is_not_empty(crontab: Any, base: Base, run_khms: Run) -> None:
    crontab.write(FOREIGN)
    crontab.mark("denied")
    done = run_khms("schedule", "install", "cron")
    assert done.returncode == 4 and "not allowed" in done.stderr
    assert crontab.read() == FOREIGN and "-" not in crontab.calls()


def test_without_the_program_it_is_one_clear_error(programs: Path, base: Base, run_khms: Run) -> None:
    done = run_khms("schedule", "install", "cron")
    assert done.returncode == 4 and "crontab is not on PATH" in done.stderr
    done = run_khms("schedule", "install")
    assert done.returncode == 4 and all(name in done.stderr for name in ("cron:", "systemd:", "launchd:"))


def test_each_base_has_its_own_lines(crontab: Any, base: Base, run_khms: Run, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "base"
    run_khms("init", other)
    crontab.write(FOREIGN)
    assert run_khms("schedule", "install").returncode == 0
    first = crontab.read()
    assert run_khms("--root", other, "schedule", "install", "--weekly", "off").returncode == 0
    assert len(own(crontab.read())) == 3 and crontab.read().startswith(first)
    assert run_khms("schedule", "uninstall").returncode == 0
    (left,) = own(crontab.read())
    assert str(other).encode() in left
    assert run_khms("--root", other, "schedule", "uninstall").returncode == 0 and crontab.read() == FOREIGN


def test_the_lines_of_a_base_that_is_gone_can_be_removed(
    crontab: Any, base: Base, run_khms: Run, tmp_path: Path
) -> None:
    run_khms("schedule", "install")
    base.root.rename(tmp_path / "moved")
    done = run_khms("--root", base.root, "schedule", "uninstall", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert crontab.read() is None


def entry(name: str, minute: int = 15) -> bytes:
    argv = ("/usr/bin/python3", "-m", "khms", "schedule", "run", "nightly", "--record", f"/a %b/schedule/{name}.json")
    return cron.line(Entry("nightly", When(3, minute), name, "/base", argv))


lines = st.sampled_from([b"# x", b"A=1", b"1 2 * * * a", b"\r", b"", b"\xff\\%", entry("c-00000003").rstrip(b"\n")])
tables = st.builds(lambda held, end: b"\n".join(held) + end, st.lists(lines, max_size=5), st.sampled_from([b"", b"\n"]))


@given(tables, st.permutations(["a-00000001", "b-00000002"]))
def test_any_table_is_what_it_was_when_ours_are_gone(before: bytes, out: list[str]) -> None:
    """Two bases come, change their times and go in either order."""
    content = before
    for name in ("a-00000001", "b-00000002"):
        content = cron.with_entries(content, name, [entry(name), entry(name, 20)])
        assert content.startswith(before)
    content = cron.with_entries(content, "a-00000001", [entry("a-00000001", 59)])
    assert content.count(b"/a-00000001.json") == 1 and content.count(b"/b-00000002.json") == 2
    for name in out:
        content = cron.with_entries(content, name, [])
    if b" schedule run " in before and not before.endswith(b"\n"):
        return  # a line of ours that nobody but an editor can have left without its end
    assert content == before


def test_a_line_that_the_user_adds_after_ours_keeps_its_own_line() -> None:
    content = cron.with_entries(b"A=1", "a-00000001", [entry("a-00000001")]) + b"B=2\n"
    assert cron.with_entries(content, "a-00000001", []) == b"A=1\nB=2\n"
