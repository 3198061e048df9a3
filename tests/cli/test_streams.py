"""The command with a closed, a full or a left standard output: the work is done, and what is said of it is true."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]
FULL = "khms: the answer could not be written: No space left on device; what was asked is done\n"

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def shell(base: Base) -> Shell:
    """Runs a line of bash in the base; `khms` stands for the command."""
    program = Path(sys.executable).parent / "khms"
    command = shlex.quote(str(program)) if program.exists() else f"{shlex.quote(sys.executable)} -m khms"

    def run(line: str) -> "subprocess.CompletedProcess[str]":
        text = f'set -o pipefail; khms() {{ {command} "$@"; }}; {line}'
        return subprocess.run(
            ["bash", "-c", text], cwd=base.root, capture_output=True, encoding="utf-8", check=False, env=os.environ
        )

    return run


def journal(base: Base) -> str:
    path = base.journal / f"{time.strftime('%Y-%m-%d')}.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_a_closed_stream_is_nothing_to_speak_of(base: Base, shell: Shell, closed: str) -> None:
    done = shell(f"khms mark solved one {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    done = shell(f"khms mark solved two words {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    lines = journal(base).splitlines()[2:]
    assert lines == ["MARK[solved] one", "MARK[solved] two words"], "and nothing else got into a file"


def test_a_full_standard_output_is_said_once_and_the_work_is_done(
    base: Base, shell: Shell, git: Callable[..., str]
) -> None:
    for line in ("khms mark solved one", "khms nightly", "khms --help", "khms config list", "khms inbox list --json"):
        done = shell(f"{line} >/dev/full")
        assert (done.returncode, done.stderr) == (4, FULL), line
    assert "MARK[solved] one" in journal(base)
    (unit,) = base.inbox.iterdir()
    done = shell(f"khms approve {unit.name} --all --unjudged >/dev/full")
    assert done.returncode == 4 and done.stderr.endswith(FULL)
    assert (base.know / "K-00001.md").exists() and git(base, "status", "--porcelain") == ""


def test_a_refusal_stays_one(shell: Shell) -> None:
    for streams in (">/dev/full", ">&-", "2>/dev/full", "2>&-"):
        assert shell(f"khms mark 'so lved' x {streams}").returncode == 3
        assert shell(f"khms mark {streams}").returncode == 2


@pytest.mark.parametrize("words", ["config list", "card list", "inbox list --all", "--help", "status", "doctor"])
def test_a_reader_who_has_seen_enough(shell: Shell, words: str) -> None:
    for reader in ("true", "head -n 1"):
        done = shell(f"khms {words} | {reader}")
        assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_that_does_not_wait(base: Base, shell: Shell) -> None:
    """A program that shares the terminal may leave it so that a write is refused instead of waiting."""
    (base.journal / "2026-03-05.md").write_text("MARK[note] x\n" * 20_000, encoding="utf-8")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    program = [sys.executable, "-m", "khms", "journal", "show", "2026-03-05"]
    with subprocess.Popen(program, cwd=base.root, stdout=writing, stderr=subprocess.DEVNULL) as process:
        os.close(writing)
        with open(reading, "rb") as pipe:
            assert len(pipe.read().splitlines()) == 20_000
    assert process.returncode == 0
