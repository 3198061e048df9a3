"""What a scheduler starts, started as cron would start it: by `sh -c`, almost without an environment."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts.schedulers import joblog, record
from khms.hosts.schedulers.base import Entry, When
from khms.hosts.schedulers.cron import line
from khms.hosts.schedulers.installing import argv
from khms.store import lock, trust
from khms.store.layout import Base
from khms.store.repo import Repo

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def scheduled(crontab: Any, base: Base, run_khms: Run) -> str:
    """The command of the base's line for nightly, as cron hands it to the shell."""
    done = run_khms("schedule", "install", "cron")
    assert done.returncode == 0, done.stderr
    return crontab.read().decode().split(maxsplit=5)[5].split("\n")[0].replace("\\%", "%")


def put(base: Base, path: str, text: str) -> None:
    base.path(path).parent.mkdir(exist_ok=True)
    base.path(path).write_text(text, encoding="utf-8")


def start(command: str, bare: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", "-c", command], env=bare, cwd=bare["HOME"], capture_output=True, encoding="utf-8", check=False
    )


def test_it_makes_a_unit_and_leaves_the_work_of_others_alone(
    scheduled: str, base: Base, bare: dict[str, str], git: Callable[..., str], run_khms: Run
) -> None:
    put(base, "notes/new.md", "not yet added\n")
    put(base, "notes/staged.md", "staged\n")
    git(base, "add", "notes/staged.md")
    put(base, ".gitignore", ".khms/\nchanged\n")
    before = git(base, "status", "--porcelain")
    done = start(scheduled, bare)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), joblog.path(base, "nightly").read_text()
    assert len(list(base.inbox.glob("*-nightly/C1.md"))) == 1
    assert git(base, "status", "--porcelain") == before and git(base, "log", "--oneline").count("\n") == 1
    text = joblog.path(base, "nightly").read_text(encoding="utf-8")
    assert "] nightly started\n" in text and text.endswith("] nightly ended: 0\n") and "1 published" in text
    found = json.loads(run_khms("status", "--json").stdout)
    assert found["problems"] == [] and found["schedule"]["jobs"][0]["last"]["code"] == 0


def test_a_base_that_is_gone_is_one_line_in_a_log(
    scheduled: str, base: Base, bare: dict[str, str], tmp_path: Path
) -> None:
    base.root.rename(tmp_path / "moved")
    done = start(scheduled, bare)
    assert done.returncode == 4 and "schedule uninstall" in done.stderr and "Traceback" not in done.stderr
    (told,) = record.place(record.name(base.root)).with_suffix(".log").read_text(encoding="utf-8").splitlines()
    assert "nightly ended: 4: the scheduled base is not there any more" in told
    assert not base.root.exists()


def test_a_record_that_is_gone_is_said(scheduled: str, base: Base, bare: dict[str, str]) -> None:
    record.place(record.name(base.root)).unlink()
    done = start(scheduled, bare)
    assert done.returncode == 4 and "record of this schedule is gone" in done.stderr


def test_settings_that_need_trust_are_asked_about_again(
    scheduled: str, base: Base, bare: dict[str, str], run_khms: Run
) -> None:
    """They may have come with a pull, and nobody looks on at night."""
    put(base, "khms.toml", '[nightly]\ndeliver = "branch"\n')
    done = start(scheduled, bare)
    assert done.returncode == 3 and "settings that need trust have changed" in done.stderr
    assert not list(base.inbox.glob("*-nightly"))
    problems = json.loads(run_khms("status", "--json").stdout)["problems"]
    assert any("ended with 3" in problem["message"] for problem in problems)
    trust.record(base, Repo(base.root))
    assert start(scheduled, bare).returncode == 0


def test_one_run_at_a_time(scheduled: str, base: Base, bare: dict[str, str], run_khms: Run) -> None:
    with lock.hold(base.locks / "nightly.lock", "nightly"):
        done = start(scheduled, bare)
    assert done.returncode == 75 and "holds the lock" in joblog.path(base, "nightly").read_text(encoding="utf-8")
    assert run_khms("status", "--check").returncode == 0  # another run was at work: nothing is wrong


def test_a_failure_is_in_the_log_on_standard_error_and_in_the_status(
    scheduled: str, base: Base, bare: dict[str, str], run_khms: Run, git: Callable[..., str]
) -> None:
    put(base, ".git/MERGE_HEAD", git(base, "rev-parse", "HEAD") + "\n")
    done = start(scheduled, bare)
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1 and "nightly.log" in done.stderr, done.stderr
    (base.root / ".git/MERGE_HEAD").unlink()
    shown = run_khms("status", "--check")
    assert shown.returncode == 1 and "the scheduled nightly of" in shown.stdout and "in progress" in shown.stdout
    assert run_khms("schedule", "status").returncode == 1
    assert run_khms("nightly").returncode == 0  # by hand, after it
    assert run_khms("status", "--check").returncode == 0


def test_the_log_is_bounded(scheduled: str, base: Base, bare: dict[str, str]) -> None:
    log = joblog.path(base, "nightly")
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * (joblog.LIMIT + 1))
    log.with_name("nightly.log.1").write_bytes(b"older")
    assert start(scheduled, bare).returncode == 0
    assert log.stat().st_size < 2000 and log.with_name("nightly.log.1").stat().st_size == joblog.LIMIT + 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_job_that_is_ended_is_told(
    number: signal.Signals, scheduled: str, base: Base, bare: dict[str, str], tmp_path: Path, programs: Path
) -> None:
    """The job waits in a git that never answers; the recorded PATH is what finds that one."""
    ready = tmp_path / "ready"
    (programs / "git").unlink()
    (programs / "git").write_text(f'#!/bin/sh\necho "$PPID $$" >{ready}.new\nmv {ready}.new {ready}\nexec sleep 600\n')
    (programs / "git").chmod(0o755)
    (programs / "mv").symlink_to("/bin/mv")
    process = subprocess.Popen(shlex.split(scheduled), env=bare, stderr=subprocess.PIPE, encoding="utf-8")
    try:
        while not ready.exists() and process.poll() is None:
            time.sleep(0.01)
        job, git = map(int, ready.read_text().split())
        if number == signal.SIGTERM:
            process.send_signal(number)  # to what the scheduler started; it hands it on
        else:
            os.kill(job, number)
        _, said = process.communicate(timeout=60)
        os.kill(git, signal.SIGKILL)
    finally:
        process.kill()
    assert process.returncode == 128 + number and "nightly of" in said
    last = joblog.last(base, "nightly")
    assert last and (last.code, last.said) == (128 + number, f"ended by {number.name}")


def test_any_path_comes_through_the_shell(base: Base, tmp_path: Path, bare: dict[str, str]) -> None:
    """The words of the line, read by cron (`\\%`) and the shell, are those of the entry."""
    odd = Base(tmp_path / "a b%20$HOME'\"\\%`x` é;#", named=True)
    words = argv(odd, "nightly", Path("/r.json"))
    made = line(Entry("nightly", When(3, 15), "r", str(odd.root), words)).decode().rstrip("\n")
    command = made.split(maxsplit=5)[5]
    read, at = "", 0
    while at < len(command):  # what cron makes of a command before the shell sees it
        assert command[at] != "%"
        at += command.startswith("\\%", at)
        read += command[at]
        at += 1
    shown = start(f"printf '%s\\n' {read}", bare)
    assert tuple(shown.stdout.splitlines()) == words
