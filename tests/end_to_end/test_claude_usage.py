"""The real Claude Code: what its transcripts hold is what `khms usage` counts."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.host_lab import PROMPT, Lab, laboratory

pytestmark = pytest.mark.host

PROGRAM = "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Run) -> Lab:
    return laboratory(PROGRAM, "Claude Code", tmp_path, own_environment, shared, run_khms)


def session(lab: Lab, reply: str) -> None:
    """A whole session, in which the model ends with these words."""
    lab.session("claude", "-p", PROMPT, "--output-format", "json", reply=reply)


def usage(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.khms("usage", "--json"))
    return found


def test_a_pointer_that_the_agent_names_is_counted(lab: Lab) -> None:
    card = lab.card()["id"]
    (lab.home / ".claude").mkdir()
    lab.khms("hook", "install", "claude-code")

    session(lab, f"{card} says that it was a loose ground")
    session(lab, "I cannot tell")
    found = usage(lab)
    assert (found["injections"], found["pointers"], found["attributed"], found["named"]) == (2, 2, 2, 1), found
    assert found["named_by"] == {"id": 1} and found["unattributed"]["pointers"] == 0
    assert found["by"]["host"][0]["name"] == "claude-code" and found["transcripts"].get("garbage", 0) == 0

    lab.khms("config", "set", "experiment.name", "silence")
    lab.khms("config", "set", "experiment.control", "1.0")
    session(lab, f"I know {card} anyhow")
    found = usage(lab)
    (arm,) = found["arms"]
    assert (arm["arm"], arm["sessions"], arm["pointers"], arm["named"]) == ("control", 1, 1, 1)
    assert found["injections"] == 2 and found["silent"]["control"] == 1
