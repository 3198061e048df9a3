"""`khms schedule`, whatever the scheduler: who may be scheduled, when, in which environment, and how it is told."""

import datetime
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Usage
from khms.hosts.schedulers import record
from khms.hosts.schedulers.base import daily, weekly
from khms.store import trust
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def status(run_khms: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_khms("status", "--json").stdout)
    return found


def test_an_untrusted_base_is_not_scheduled(crontab: Any, base: Base, run_khms: Run) -> None:
    trust.forget(base)
    done = run_khms("schedule", "install")
    assert done.returncode == 3 and "not trusted" in done.stderr and crontab.read() is None
    assert run_khms("--root", base.root, "schedule", "install").returncode == 0  # named: the user's own word


def test_times() -> None:
    assert str(daily(" 3:05 ")) == "03:05" and str(weekly("thursday 23:59")) == "Thu 23:59"
    for wrong in ("24:00", "3:60", "3", "", "3:5", "Sun 03:00", "٣:١٥", "03:15\n04:15"):
        with pytest.raises(Usage):
            daily(wrong)
    for wrong in ("03:00", "Son 03:00", "Sun", "Sunda 03:00", "Sun 24:00"):
        with pytest.raises(Usage):
            weekly(wrong)


def test_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime.datetime(2026, 12, 1, 3, 15, tzinfo=datetime.UTC).astimezone()  # a Tuesday
    clock = f"{moment.hour:02}:{moment.minute:02}"
    assert daily(clock).after(moment) == moment + datetime.timedelta(days=1)
    assert daily(clock).after(moment - datetime.timedelta(minutes=1)) == moment
    day = moment.strftime("%a")
    assert weekly(f"{day} {clock}").after(moment) == moment + datetime.timedelta(days=7)
    for held in (daily(clock), weekly(f"{day} {clock}")):
        assert held.after(moment).utcoffset() is not None


@pytest.mark.parametrize(
    "words", [("--nightly", "25:00"), ("--weekly", "04:00"), ("--nightly", "off", "--weekly", "off"), ("at",)]
)
def test_a_wrong_call_changes_nothing(words: tuple[str, ...], crontab: Any, base: Base, run_khms: Run) -> None:
    done = run_khms("schedule", "install", *words)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert crontab.read() is None and status(run_khms)["schedule"] is None


def test_status_tells_what_is_there_and_when_it_is_next(crontab: Any, base: Base, run_khms: Run) -> None:
    done = run_khms("schedule", "status", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["scheduler"] is None
    assert "khms schedule install" in run_khms("status").stdout
    assert run_khms("schedule", "install", "--weekly", "off").returncode == 0
    done = run_khms("schedule", "status", "--json")
    (job,) = json.loads(done.stdout)["jobs"]
    assert done.returncode == 0 and (job["job"], job["when"], job["there"], job["last"]) == (
        "nightly",
        "03:15",
        True,
        None,
    )
    ahead = datetime.datetime.fromisoformat(job["next"]) - datetime.datetime.now().astimezone()
    assert datetime.timedelta() < ahead <= datetime.timedelta(days=1, hours=1)
    crontab.write(b"A=1\n")  # someone took the line out
    assert run_khms("schedule", "status").returncode == 1
    shown = run_khms("status", "--check")
    assert shown.returncode == 1 and "no longer scheduled with cron" in shown.stdout
    assert run_khms("schedule", "install").returncode == 0 and crontab.read().startswith(b"A=1\n15 3 ")
    crontab.program.unlink()
    shown = run_khms("status", "--check")
    assert shown.returncode == 1 and "cannot be told: crontab is not on PATH" in shown.stdout
    assert "no longer scheduled" not in shown.stdout


def test_a_job_that_never_ran_is_overdue_once_it_is_scheduled(crontab: Any, base: Base, run_khms: Run) -> None:
    run_khms("schedule", "install")
    assert status(run_khms)["problems"] == []
    path = record.place(record.name(base.root))
    held = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(held | {"since": "2020-01-01T00:00:00+00:00"}), encoding="utf-8")
    shown = run_khms("status", "--check")
    assert shown.returncode == 1 and "nightly has never succeeded; it was scheduled" in shown.stdout


def test_what_is_kept_of_the_environment_holds_no_secret(
    crontab: Any, base: Base, run_khms: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "OPENAI_API_KEY": "sk-secret",
        "GH_TOKEN": "ghp-secret",
        "HTTPS_PROXY": "http://ada:secret@proxy:3128",
        "http_proxy": "http://proxy:3128",
        "LC_ALL": "C.UTF-8",
        "CLAUDECODE": "1",
        "PATH": f"bin:{os.environ['PATH']}::./x",
    }
    done = run_khms("schedule", "install", env=given)
    assert done.returncode == 0, done.stderr
    assert "GH_TOKEN, OPENAI_API_KEY" in done.stderr and "secret" not in done.stderr.replace("being secret", "")
    path = record.place(record.name(base.root))
    assert "secret" not in path.read_text(encoding="utf-8") and path.stat().st_mode & 0o077 == 0
    kept = json.loads(path.read_text(encoding="utf-8"))["environment"]
    assert kept["PATH"] == os.environ["PATH"] and kept["HOME"] == os.environ["HOME"] and kept["LC_ALL"] == "C.UTF-8"
    assert kept["http_proxy"] == given["http_proxy"] and "CLAUDECODE" not in kept
    assert b"secret" not in crontab.read()


def test_a_data_folder_that_cannot_be_written_is_one_clear_error(
    crontab: Any, base: Base, run_khms: Run, own_environment: Path
) -> None:
    (own_environment / "data" / "schedule").write_bytes(b"a file where the folder should be")
    done = run_khms("schedule", "install")
    assert done.returncode == 4 and "Traceback" not in done.stderr and "schedule" in done.stderr
    assert crontab.read() is None


def test_a_khms_that_needs_this_shell_is_not_scheduled(crontab: Any, base: Base, tmp_path: Path, run_khms: Run) -> None:
    """Found by PYTHONPATH only, it would fail every night."""
    import sys

    import khms

    folder = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = [path for path in sys.path if path.endswith("site-packages")]
    path = os.pathsep.join([str(Path(khms.__file__).parents[1]), *site])
    done = subprocess.run(
        [folder / "bin" / "python", "-m", "khms", "schedule", "install", "cron"],
        cwd=base.root, env={**os.environ, "PYTHONPATH": path}, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 4 and "does not start without the environment" in done.stderr, done.stderr
    assert crontab.read() is None


def test_names_are_readable_and_tell_bases_apart(tmp_path: Path) -> None:
    names = {record.name(tmp_path / one) for one in ("notes", "x/notes", "notes/.memory", "日本", "A  B!")}
    assert len(names) == 5 and sum(name.startswith("notes-") for name in names) == 3
    assert any(name.startswith("base-") for name in names) and any(name.startswith("a-b-") for name in names)
