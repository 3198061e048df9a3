"""`khms server`: start, status and stop as a person types them."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.server import launch
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_start_status_stop(stocked: Base, run_khms: Run) -> None:
    named = ("--root", str(stocked.root), "server")
    none = run_khms(*named, "status")
    assert none.returncode == 1 and "khms server start" in none.stderr
    assert json.loads(run_khms(*named, "status", "--json").stdout) == {
        "schema": "khms.server/1",
        "running": False,
        "base": str(stocked.root),
    }
    first = json.loads(run_khms(*named, "start", "--json").stdout)
    assert (first["schema"], first["running"], first["started"]) == ("khms.server/1", True, True)
    again = run_khms(*named, "start")
    assert again.returncode == 0 and f"already running: process {first['pid']}" in again.stdout
    found = json.loads(run_khms(*named, "status", "--json").stdout)
    assert (found["running"], found["pid"], found["base"]) == (True, first["pid"], str(stocked.root))
    assert str(first["pid"]) in run_khms(*named, "status").stdout
    second = run_khms(*named, "run")
    assert second.returncode == 1 and "another process" in second.stderr
    assert json.loads(run_khms(*named, "stop", "--json").stdout)["stopped"] is True
    assert not launch.claimed(launch.lock_path(launch.made()[0], str(stocked.root)))
    gone = run_khms(*named, "stop")
    assert gone.returncode == 0 and "there was no server" in gone.stdout


def test_a_base_that_was_only_found_needs_trust(stocked: Base, run_khms: Run) -> None:
    done = run_khms("server", "start")
    assert done.returncode == 3 and "khms trust" in done.stderr
    assert not launch.claimed(launch.lock_path(launch.made()[0], str(stocked.root)))


@pytest.mark.parametrize("word", ["start", "stop", "status"])
def test_switched_off(stocked: Base, run_khms: Run, word: str) -> None:
    done = run_khms("--root", str(stocked.root), "server", word, env={"KHMS_SERVER_OFF": "1"})
    assert done.returncode == 3 and "KHMS_SERVER_OFF" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_that_another_user_put_in_the_way(stocked: Base, run_khms: Run, sockets: Path) -> None:
    (sockets / "khms").mkdir(mode=0o700)
    os.chown(sockets / "khms", 54321, 54321)
    done = run_khms("--root", str(stocked.root), "server", "run")
    assert done.returncode == 4 and "belongs to another user" in done.stderr and str(sockets) in done.stderr
