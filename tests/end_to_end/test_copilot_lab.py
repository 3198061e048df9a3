"""The real Copilot CLI, whole sessions against a model on loopback: what khms says is what the model gets to see, in
Copilot's form and once, though Claude Code's hooks of the same project are run too."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.host_lab import PROMPT, Lab, laboratory, same

pytestmark = pytest.mark.host

PROGRAM = "node_modules/@github/copilot-linux-*/copilot"
CALL = ("-p", PROMPT, "--allow-all-tools", "--trust-folder")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Run) -> Lab:
    return laboratory(PROGRAM, "Copilot CLI", tmp_path, own_environment, shared, run_khms)


def test_a_pointer_arrives_once_and_nothing_else_does(lab: Lab) -> None:
    about, risky = lab.furnish()
    plain = lab.session("copilot", *CALL)
    lab.silent(plain)

    lab.khms("hook", "install", "copilot")
    lab.khms("hook", "install", "claude-code")
    (lab.root / "proj" / ".claude").mkdir()
    (lab.home / ".claude" / "settings.json").rename(lab.root / "proj" / ".claude" / "settings.json")
    session = lab.session("copilot", *CALL)
    lab.told_apart(session, about, risky)
    same(plain, session)
    assert lab.status("copilot")["problems"] == []

    lab.khms("hook", "uninstall", "copilot")
    assert not (lab.home / ".copilot" / "hooks").exists()
