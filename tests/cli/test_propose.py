"""`khms nightly` as a person types it: what it prints, what it answers programs, and its exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from khms.cli.propose import _lines
from khms.store.layout import Base
from khms.store.lock import hold

Run = Callable[..., "CompletedProcess[str]"]


def test_a_person_gets_the_counts_the_unit_and_the_next_command(base: Base, run_khms: Run) -> None:
    done = run_khms("nightly")
    unit = next(base.inbox.iterdir()).name
    assert done.returncode == 0
    assert done.stderr == ""
    assert f"memory/inbox/{unit}: 1 published\nnext: khms inbox show {unit}\n" in done.stdout
    assert done.stdout.split("\n")[1].split() == ["new", "1"]
    again = run_khms("nightly")
    assert (again.returncode, again.stdout) == (0, "no open MARKs\n")


def test_a_program_gets_one_document(base: Base, run_khms: Run) -> None:
    done = run_khms("nightly", "--json")
    value = json.loads(done.stdout)
    assert value["schema"] == "khms.nightly/1"
    assert value["unit"].endswith("-nightly")
    assert value["marks"] == {
        "open": 0,
        "decided": 1,
        "new": 1,
        "attach": 0,
        "correct": 0,
        "already_carded": 0,
        "not_carded": 0,
    }
    assert value["candidates"] == {"published": 1, "deferred": 0, "dropped": 0}
    assert (value["calls"], value["cost_usd"], value["stopped_by"]) == (0, 0.0, None)
    nothing = json.loads(run_khms("nightly", "--json").stdout)
    assert (nothing["unit"], nothing["marks"]["decided"]) == (None, 0)


def test_a_dry_run_prints_the_packet_and_leaves_no_trace(base: Base, run_khms: Run) -> None:
    done = run_khms("nightly", "--dry-run")
    assert done.returncode == 0
    assert "==== evaluate M-" in done.stdout
    assert "frames failed because a ground was loose" in done.stdout
    assert not base.local.exists()
    assert list(base.inbox.iterdir()) == []
    value = json.loads(run_khms("nightly", "--dry-run", "--json").stdout)
    assert value["commit"] is None
    assert value["stages"][0]["stage"] == "collect"


def test_exit_codes(base: Base, run_khms: Run, tmp_path: Path) -> None:
    with hold(base.locks / "nightly.lock", "nightly"):
        busy = run_khms("nightly")
    assert busy.returncode == 75
    assert "holds the lock" in busy.stderr
    assert run_khms("nightly", "--since", "yesterday").returncode == 2
    assert run_khms("nightly", "--only-mark", "M-000000000000").returncode == 3
    assert run_khms("nightly", env={"KHMS_BACKGROUND": "1"}).returncode == 3
    assert run_khms("nightly", cwd=tmp_path).returncode == 4


def test_a_file_that_cannot_be_read_is_named_and_is_no_success(base: Base, run_khms: Run) -> None:
    (base.journal / "2026-03-05.md").mkdir()
    done = run_khms("nightly")
    assert done.returncode == 1
    assert "journal/2026-03-05.md" in done.stderr
    assert "1 published" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_base_in_a_folder_of_a_repository(base: Base, run_khms: Run, git: Callable[..., str], tmp_path: Path) -> None:
    top = tmp_path / "project"
    (top / ".memory" / "journal").mkdir(parents=True)
    (top / ".memory" / "khms.toml").write_text("", encoding="utf-8")
    (top / ".memory" / "journal" / "2026-03-04.md").write_text("MARK[note] in a folder of its own\n", encoding="utf-8")
    (top / "code.py").write_text("print()\n", encoding="utf-8")
    git(top, "init", "--quiet")
    done = run_khms("nightly", cwd=top)
    assert done.returncode == 0, done.stderr
    files = git(top, "show", "--name-only", "--format=").split("\n")
    assert ".memory/journal/2026-03-04.md" in files
    assert all(name.startswith(".memory/") for name in files)
    assert git(top, "status", "--porcelain") == "?? .memory/khms.toml\n?? code.py"


def test_a_secret_in_the_journal_is_named_with_its_line(base: Base, run_khms: Run) -> None:
    key = "ghp_" + "aB3dE5" * 6
    (base.journal / "2026-03-05.md").write_text(f"# day\n\nMARK[note] the token is {key}\n", encoding="utf-8")
    done = run_khms("nightly", "--dry-run", "--json")
    (secret,) = json.loads(done.stdout)["secrets"]
    assert (secret["path"], secret["line"]) == ("journal/2026-03-05.md", 3)
    done = run_khms("nightly")
    assert f"journal/2026-03-05.md:3  {secret['mark']}" in done.stderr and "rotate it" in done.stderr
    assert key not in done.stdout + done.stderr


def test_a_base_that_is_only_found_runs_no_program_of_its_own(
    base: Base, run_khms: Run, write: Callable[..., Path], tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    write(base, "khms.toml", f'[nightly]\nproposer = "command"\ncommand = "touch {ran}"\n')
    for command in (["nightly"], ["nightly", "--dry-run"], ["weekly"]):
        refused = run_khms(*command)
        assert refused.returncode == 3, refused.stderr
        assert "nightly.command" in refused.stderr and "khms trust" in refused.stderr
    assert not ran.exists()
    run_khms("trust")
    assert run_khms("nightly", "--dry-run").returncode == 0  # it asks nobody, and so decides nothing
    assert not ran.exists()
    done = run_khms("nightly")
    assert ran.exists()
    assert done.returncode == 1
    assert "no answer counts: it failed" in done.stderr
    assert "receipts" not in done.stdout


def test_a_bound_is_a_number(base: Base, run_khms: Run) -> None:
    for sum_of_money in ("nan", "inf", "-1", "0"):
        assert run_khms("nightly", "--budget-usd", sum_of_money).returncode == 2


def test_without_a_terminal_a_line_tells_the_progress_now_and_then() -> None:
    said: list[str] = []
    times = iter([0.0, 1.0, 9.9, 10.0, 10.0, 15.0, 21.0, 21.0])
    told = _lines(said.append, lambda: next(times))
    for done in (1, 2, 3, 4, 5):
        told(done, 9)
    assert said == ["khms: 3 of 9 MARKs", "khms: 5 of 9 MARKs"]
