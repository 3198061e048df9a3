"""The real Gemini CLI, whole sessions against a model on loopback: what khms says is what the model gets to see."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.host_lab import PROMPT, Lab, laboratory, same

pytestmark = pytest.mark.host

PROGRAM = "node_modules/@google/gemini-cli/bundle/gemini.js"
CALL = ("--skip-trust", "--yolo", "-p", PROMPT)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Run) -> Lab:
    return laboratory(PROGRAM, "Gemini CLI", tmp_path, own_environment, shared, run_khms)


def test_a_pointer_arrives_once_and_nothing_else_does(lab: Lab) -> None:
    about, risky = lab.furnish()
    plain = lab.session("gemini", *CALL)
    lab.silent(plain)
    file = lab.home / ".gemini" / "settings.json"
    before = file.read_bytes()

    lab.khms("hook", "install", "gemini")
    session = lab.session("gemini", *CALL)
    lab.told_apart(session, about, risky)
    same(plain, session)
    assert lab.status("gemini")["problems"] == []

    lab.khms("hook", "uninstall", "gemini")
    assert json.loads(file.read_bytes()) == json.loads(before)
