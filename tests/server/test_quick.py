"""`khms recall` with a server and without one: the same bytes, streams and exit codes, and nothing older."""

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.cli import far
from khms.server.service import Asked
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Answered = Callable[[], int]


@pytest.fixture
def answered(stocked: Base, run_khms: Run) -> Answered:
    """Starts the base's server; says how many questions it has answered so far."""
    assert run_khms("trust").returncode == run_khms("server", "start").returncode == 0

    def count() -> int:
        return int(json.loads(run_khms("server", "status", "--json").stdout)["answered"])

    return count


def both(run_khms: Run, *words: str, **more: Any) -> list[tuple[int, str, str]]:
    found = []
    for off in ("0", "1"):
        env = {**more.get("env", {}), "KHMS_SERVER_OFF": off}
        done = run_khms(*words, **{**more, "env": env})
        found.append((done.returncode, done.stdout, done.stderr))
    return found


@pytest.mark.parametrize(
    "words",
    [
        ["recall", "checksum deploy"],
        ["recall", "valve", "poll", "-n", "1"],
        ["-q", "recall", "nothing of the kind whatsoever"],
        ["recall", "K-00002"],
        ["recall", "type:fact", "poll"],
        ["recall", "--unreviewed", "frames", "ground"],
        ["recall", "--kind", "journal", "--all", "ground"],
        ["recall", "üñí 🐘 字 poll"],
    ],
)
def test_the_same_answer(answered: Answered, run_khms: Run, words: list[str]) -> None:
    before = answered()
    with_it, without = both(run_khms, *words)
    assert with_it == without
    assert answered() == before + 1


def test_the_same_document(answered: Answered, run_khms: Run) -> None:
    (status, out, err), (status_too, out_too, err_too) = both(run_khms, "recall", "--json", "poll the valve")
    first, second = json.loads(out), json.loads(out_too)
    assert (status, err) == (status_too, err_too) == (0, "")
    assert first.pop("elapsed_ms") > 0 and second.pop("elapsed_ms") > 0
    assert first == second and first["channel"] == "hybrid"


def at_a_terminal(columns: int, env: dict[str, str], cwd: Path, words: list[str]) -> tuple[int, bytes]:
    """The exit code of khms at a terminal so many columns wide, and what that was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "khms", *words]
    process = subprocess.Popen(
        command, cwd=cwd, env={**os.environ, "TERM": "xterm", **env}, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the last one at the terminal has left
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    return process.wait(60), shown


@pytest.mark.parametrize("columns", [40, 200])
@pytest.mark.parametrize("words", [["recall", "-n", "2", "valve"], ["-v", "recall", "nothing whatsoever of the kind"]])
def test_the_same_at_a_terminal(answered: Answered, stocked: Base, columns: int, words: list[str]) -> None:
    before = answered()
    for plain in ({}, {"NO_COLOR": "1"}):
        env = {"KHMS_SERVER_OFF": "0", **plain}
        status, shown = at_a_terminal(columns, env, stocked.root, words)
        status_too, shown_too = at_a_terminal(columns, {**env, "KHMS_SERVER_OFF": "1"}, stocked.root, words)
        timed = re.compile(rb"[0-9]+ ms")
        assert (status, timed.sub(b"", shown)) == (status_too, timed.sub(b"", shown_too))
        assert (b"\x1b[" in shown) is (status == 0 and not plain)
    assert answered() == before + 2


@pytest.mark.parametrize(
    "words",
    [
        ["recall"],
        ["recall", "--no-such-option", "x"],
        ["recall", "--help"],
        ["recall", "-n", "0", "x"],
        ["recall", "kind:nonsense", "poll"],
        ["recall", "--at", "HEAD", "poll"],
    ],
)
def test_what_is_out_of_the_ordinary_goes_the_ordinary_way(answered: Answered, run_khms: Run, words: list[str]) -> None:
    with_it, without = both(run_khms, *words)
    assert with_it == without


def test_in_another_folder_and_for_another_base(
    answered: Answered, run_khms: Run, stocked: Base, tmp_path: Path
) -> None:
    below = stocked.know
    assert both(run_khms, "recall", "checksum deploy", cwd=below)[0][1].startswith(" 1  K-00001")
    for more in ({"cwd": tmp_path}, {"cwd": tmp_path, "env": {"KHMS_ROOT": "base"}}, {"cwd": tmp_path, "env": {}}):
        with_it, without = both(
            run_khms, *(["--root", "base"] if "env" not in more else []), "recall", "deploy", **more
        )
        assert with_it == without


def test_what_another_process_wrote_is_in_the_next_answer(
    answered: Answered, run_khms: Run, stocked: Base, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    def asked(words: str) -> list[str]:
        done = run_khms("recall", "--json", words, env={"KHMS_SERVER_OFF": "0"})
        return [hit["id"] for hit in json.loads(done.stdout)["hits"]]

    before = answered()
    card = add_card(stocked, "K-00004", title="Quibblewick leaks", body="FIX: a gasket on the quibblewick\n")
    assert asked("quibblewick") == ["K-00004"]
    commit(stocked, "a fourth")
    assert asked("quibblewick") == ["K-00004"]
    seen = card.stat()
    with card.open("r+b") as file:  # an edit in place that keeps size and times
        file.write(card.read_bytes().replace(b"uibblewick", b"uobblewick"))
    os.utime(card, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert run_khms("recall", "quobblewick", env={"KHMS_SERVER_OFF": "0"}).stdout.startswith(" 1  K-00004  Quobblewick")
    card.unlink()
    assert asked("quobblewick") == []
    assert answered() == before + 4


def test_the_first_question_starts_the_server_for_the_next(stocked: Base, run_khms: Run) -> None:
    off, on = {"KHMS_SERVER_OFF": "1"}, {"KHMS_SERVER_OFF": "0"}
    for trusted, env, status in ((False, on, 1), (True, off, 1), (True, on, 0)):
        assert not trusted or run_khms("trust").returncode == 0
        assert run_khms("recall", "checksum deploy", env=env).returncode == 0
        until = time.monotonic() + 60
        while status == 0 and run_khms("server", "status").returncode and time.monotonic() < until:
            pass
        assert run_khms("server", "status").returncode == status


def test_a_server_that_was_killed_is_no_loss(answered: Answered, run_khms: Run) -> None:
    found = json.loads(run_khms("server", "status", "--json").stdout)
    os.kill(found["pid"], 9)
    with_it, without = both(run_khms, "recall", "checksum deploy")
    assert with_it == without and with_it[0] == 0


def test_an_index_that_has_to_be_built_is_left_to_the_client(stocked: Base) -> None:
    words = ("", "", "", "checksum", "deploy")
    asked = Asked(os.fsencode(stocked.root), {}, words, (b"utf-8", b"utf-8", b"0", b"0", b"1"))
    with far.installed():
        done = far.runner(stocked)(asked)
        assert done is not None and b"K-00001" in done[0]
        shutil.rmtree(stocked.index)
        assert far.runner(stocked)(asked) is None
    assert not stocked.index.exists()
