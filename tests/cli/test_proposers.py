"""`khms doctor` on proposers: what each is kept to, and whether the one that is set can be asked."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.hosts import headless
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_doctor_shows_what_each_proposer_is_kept_to(base: Base, run_khms: Run) -> None:
    held = json.loads(run_khms("doctor", "--json").stdout)["proposers"]
    assert list(held) == list(headless.AGENTS)
    assert {tuple(words) for words in held.values()} == {("tools", "session", "hooks", "system", "schema", "memory")}
    assert held["claude"]["tools"] == "yes" and held["codex"]["tools"].startswith("no")
    shown = run_khms("doctor").stdout.splitlines()
    heading = next(number for number, line in enumerate(shown) if line.startswith("proposer "))
    assert [line.split()[0] for line in shown[heading + 1 :]] == list(headless.AGENTS)
    assert not [line for line in run_khms("--quiet", "doctor").stdout.splitlines() if line.startswith("proposer ")]


def test_doctor_says_what_the_proposer_that_is_set_lacks(
    base: Base, run_khms: Run, write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(base, "khms.toml", '[nightly]\nproposer = "codex"\n')
    done = run_khms("doctor", "--json", env={"PATH": "/usr/bin:/bin"})
    (found,) = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "proposer"]
    assert done.returncode == 1 and (found["state"], found["message"]) == ("bad", "codex is not on PATH")
    write(tmp_path, "bin/codex", "#!/bin/sh\n").chmod(0o755)
    done = run_khms("doctor", "--json", env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    (found,) = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "proposer"]
    assert found["state"] == "bad" and "nightly.allow_tools" in found["mend"]
    write(base, "khms.toml", '[nightly]\nproposer = "codex"\nallow_tools = true\nmodel = "m"\n')
    done = run_khms("doctor", "--json", env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    (found,) = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "proposer"]
    assert (found["state"], found["message"]) == ("ok", "codex, m")
