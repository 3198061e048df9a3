"""systemd's units: right by systemd's own word, run as written, there and gone with one command."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts.schedulers import systemd
from khms.hosts.schedulers.base import Entry, daily, weekly
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ANALYZE = shutil.which("systemd-analyze")


def units() -> list[Path]:
    return sorted(path for path in (Path.home() / ".config/systemd/user").rglob("khms-*"))


def words(service: str) -> list[str]:
    """The command of a service, read as strictly as systemd does: quoted words, no specifier, no variable."""
    (line,) = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)
    assert re.fullmatch(r'"(?:[^"\\]|\\["\\])*"(?: "(?:[^"\\]|\\["\\])*")*', line), line
    found = []
    for text in re.findall(r'"((?:[^"\\]|\\["\\])*)"', line):
        plain = re.sub(r"\\(.)", r"\1", text)
        assert not re.search(r"(?<!%)%(%%)*(?!%)", plain) and not re.search(r"(?<!\$)\$(\$\$)*(?!\$)", plain)
        found.append(plain.replace("%%", "%").replace("$$", "$"))
    return found


def verified(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(ANALYZE), "verify", *map(str, sorted(folder.iterdir()))],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("when", [daily("3:15"), weekly("Sunday 04:00")], ids=str)
def test_systemd_finds_nothing_wrong_with_the_units(when: Any, tmp_path: Path) -> None:
    root = "/srv/a b%h\"$HOME'${X}\\é;\\"
    argv = ("/usr/bin/env", "-i", "--root", root)
    for name, text in systemd.contents(Entry("nightly", when, "b-12345678", root, argv)).items():
        (tmp_path / "units" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "units" / name).write_bytes(text)
    done = verified(tmp_path / "units")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    service = tmp_path / "units/khms-nightly-b-12345678.service"
    assert tuple(words(service.read_text(encoding="utf-8"))) == argv
    timer = service.with_suffix(".timer")
    timer.write_text(timer.read_text(encoding="utf-8").replace(":00\n", ":77\n"), encoding="utf-8")
    assert verified(tmp_path / "units").stderr  # and would say so


def test_installed_units_are_enabled_run_as_written_and_go(
    systemctl: Any, base: Base, run_khms: Run, bare: dict[str, str]
) -> None:
    done = run_khms("schedule", "install")
    assert done.returncode == 0 and "scheduled with systemd" in done.stdout, done.stderr
    assert "loginctl enable-linger" in done.stderr
    names = [path.name for path in units()]
    assert len(names) == 6  # two services, two timers, two links that enable them
    calls = systemctl.calls()
    assert any(call.startswith("--user restart khms-nightly-") for call in calls)
    timer = next(path for path in units() if path.name.startswith("khms-nightly") and path.suffix == ".timer")
    assert "OnCalendar=*-*-* 03:15:00" in timer.read_text() and "Persistent=true" in timer.read_text()
    service = timer.with_suffix(".service") if not timer.is_symlink() else timer.resolve().with_suffix(".service")
    ran = subprocess.run(words(service.read_text(encoding="utf-8")), env=bare, cwd="/", check=False)
    assert ran.returncode == 0 and len(list(base.inbox.glob("*-nightly"))) == 1
    shown = run_khms("status")
    assert "with systemd: nightly 03:15: ended well" in shown.stdout

    assert "as it was" in run_khms("schedule", "install", "systemd").stdout
    assert [call for call in systemctl.calls()[len(calls) :] if "show-environment" not in call] == []
    assert run_khms("schedule", "install", "--nightly", "05:00", "--weekly", "off").returncode == 0
    assert "05:00:00" in timer.resolve().read_text() and len(units()) == 3
    assert run_khms("schedule", "uninstall").returncode == 0 and units() == []


@pytest.mark.parametrize("word", ["daemon-reload", "enable", "restart"])
def test_what_systemd_refuses_leaves_nothing(word: str, systemctl: Any, base: Base, run_khms: Run) -> None:
    systemctl.fail(word)
    done = run_khms("schedule", "install", "systemd")
    assert done.returncode == 4 and f"systemctl --user {word} failed" in done.stderr
    assert units() == [] and not list(Path(os.environ["KHMS_DATA_HOME"], "schedule").glob("*.json"))


def test_a_refused_change_leaves_the_old_units(systemctl: Any, base: Base, run_khms: Run) -> None:
    run_khms("schedule", "install")
    before = {path: path.read_bytes() for path in units()}
    systemctl.fail("restart")
    assert run_khms("schedule", "install", "--nightly", "06:00").returncode == 4
    assert {path: path.read_bytes() for path in units()} == before


def test_without_a_bus_it_is_one_clear_error_and_cron_is_taken(
    systemctl: Any, crontab: Any, base: Base, run_khms: Run
) -> None:
    systemctl.mark("no-bus")
    done = run_khms("schedule", "install", "systemd")
    assert done.returncode == 4 and "Failed to connect to bus" in done.stderr and units() == []
    done = run_khms("schedule", "install")
    assert done.returncode == 0 and "scheduled with cron" in done.stdout


def test_another_scheduler_takes_over(systemctl: Any, crontab: Any, base: Base, run_khms: Run) -> None:
    """Never both: a job would run twice."""
    assert run_khms("schedule", "install", "cron", "--nightly", "02:02").returncode == 0
    assert run_khms("schedule", "install").stdout.startswith("as it was: scheduled with cron")
    done = run_khms("schedule", "install", "systemd")
    assert "no longer scheduled with cron" in done.stdout and crontab.read() is None
    assert any("02:02:00" in path.read_text() for path in units())
