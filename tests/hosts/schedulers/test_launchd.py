"""launchd's agents: property lists that name what really runs."""

import plistlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def agents() -> dict[str, Any]:
    folder = Path.home() / "Library/LaunchAgents"
    return {path.name.split(".")[2]: plistlib.loads(path.read_bytes()) for path in folder.glob("dev.khms.*.plist")}


def test_agents_are_loaded_run_as_written_and_go(
    launchctl: Any, base: Base, run_khms: Run, bare: dict[str, str]
) -> None:
    done = run_khms("schedule", "install", "--weekly", "Mon 06:30")
    assert done.returncode == 0 and "scheduled with launchd" in done.stdout, done.stderr
    found = agents()
    assert found["nightly"]["StartCalendarInterval"] == {"Hour": 3, "Minute": 15}
    assert found["weekly"]["StartCalendarInterval"] == {"Hour": 6, "Minute": 30, "Weekday": 1}
    assert len(list(launchctl.here.glob("*.loaded"))) == 2
    ran = subprocess.run(found["nightly"]["ProgramArguments"], env=bare, cwd="/", check=False)
    assert ran.returncode == 0 and len(list(base.inbox.glob("*-nightly"))) == 1

    calls = launchctl.calls()
    assert "as it was" in run_khms("schedule", "install").stdout and launchctl.calls() == calls
    assert run_khms("schedule", "install", "--nightly", "01:00").returncode == 0
    assert not any("weekly" in call for call in launchctl.calls()[len(calls) :])
    (loaded,) = launchctl.here.glob("*nightly*.loaded")
    assert plistlib.loads(loaded.read_bytes())["StartCalendarInterval"] == {"Hour": 1, "Minute": 0}
    assert run_khms("schedule", "uninstall").returncode == 0
    assert agents() == {} and not list(launchctl.here.glob("*.loaded"))


def test_what_launchd_refuses_leaves_nothing(launchctl: Any, base: Base, run_khms: Run) -> None:
    launchctl.fail("bootstrap")
    done = run_khms("schedule", "install", "launchd")
    assert done.returncode == 4 and "launchctl refused the agent" in done.stderr
    assert agents() == {}
