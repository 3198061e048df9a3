"""`khms demo` as a newcomer runs it: the installed command, an environment of nothing but a PATH."""

import os
import re
import subprocess
import sys
from pathlib import Path


def test_the_demo_does_each_step_that_it_prints(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "nobody"), "TMPDIR": str(tmp_path)}
    command = [str(Path(sys.executable).parent / "khms"), "demo"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"^\d+\. ", done.stdout, re.MULTILINE)
    assert len(steps) >= 9 and f"All {len(steps)} steps" in done.stdout
    assert done.stdout.count("(this must fail)") == 2
    assert "nothing was approved" in done.stdout and "KH010" in done.stdout
    (folder,) = tmp_path.glob("khms-demo-*")
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=folder / "base", capture_output=True, encoding="utf-8", check=True
    )
    assert sum(line.startswith("Approve") for line in log.stdout.splitlines()) == 2
    assert not (tmp_path / "nobody").exists(), "nothing is written outside the demo's folder"
