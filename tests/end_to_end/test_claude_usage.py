"""The real Claude Code: what its transcripts hold is what `khms usage` counts."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

# The tests' own environment is scrubbed of such names before a test begins.
HOSTS = Path(os.environ.get("KHMS_TEST_HOSTS") or os.path.normpath(Path(__file__).parents[2] / ".." / "hosts"))
PROGRAMS = "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude"
PROMPT = "why is there a checksum mismatch on the frames of the weather station?"
Session = Callable[[str, str], None]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path) -> Path:
    if not list(HOSTS.glob(PROGRAMS)):
        pytest.skip(f"needs Claude Code's program: {HOSTS / PROGRAMS}")
    (tmp_path / "lab").mkdir()
    own_environment.rename(tmp_path / "lab" / "home")
    return tmp_path / "lab"


@pytest.fixture
def khms(lab: Path, run_khms: Callable[..., "subprocess.CompletedProcess[str]"]) -> Callable[..., Any]:
    def run(*args: str | Path) -> Any:
        env = {"HOME": str(lab / "home"), "KHMS_CONFIG_HOME": "", "KHMS_DATA_HOME": ""}
        base = lab / "base"
        done = run_khms(*args, cwd=base if base.is_dir() else lab, env=env)
        assert done.returncode == 0, f"khms {args}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout) if args[-1] == "--json" else done.stdout

    return run


@pytest.fixture
def session(lab: Path, shared: Callable[[str], Path]) -> Session:
    """Runs a whole session with this prompt, in which the model ends with these words."""
    runner = shared("hosts-lab/run_host.sh")

    def run(prompt: str, reply: str) -> None:
        (lab / "reply.txt").write_text(reply, encoding="utf-8")
        env = {"HOSTS": str(HOSTS), "KHMS_ROOT": str(lab / "base"), "MODE": "text", "REPLY": str(lab / "reply.txt")}
        done = subprocess.run(
            [runner, "claude", lab, "-p", prompt, "--output-format", "json"],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert reply in done.stdout

    return run


def test_a_pointer_that_the_agent_names_is_counted(lab: Path, khms: Callable[..., Any], session: Session) -> None:
    khms("init", lab / "base")
    khms("config", "set", "hooks.deadline_ms", "4500")  # a busy machine must not decide what is said
    khms("config", "set", "server.enabled", "off")  # it would outlive the test
    khms("mark", "solved", "checksum mismatch on frame 7 of the weather station was a loose ground, not timing")
    unit = khms("nightly", "--json")["unit"]
    card = khms("approve", unit, "--all", "--relation", "C1=new", "--json")["cards"][0]["id"]
    (lab / "home" / ".claude").mkdir()
    khms("hook", "install", "claude-code")

    session(PROMPT, f"{card} says that it was a loose ground")
    session(PROMPT, "I cannot tell")
    found = khms("usage", "--json")
    assert (found["injections"], found["pointers"], found["attributed"], found["named"]) == (2, 2, 2, 1), found
    assert found["named_by"] == {"id": 1} and found["unattributed"]["pointers"] == 0
    assert found["by"]["host"][0]["name"] == "claude-code" and found["transcripts"].get("garbage", 0) == 0

    khms("config", "set", "experiment.name", "silence")
    khms("config", "set", "experiment.control", "1.0")
    session(PROMPT, f"I know {card} anyhow")
    found = khms("usage", "--json")
    (arm,) = found["arms"]
    assert (arm["arm"], arm["sessions"], arm["pointers"], arm["named"]) == ("control", 1, 1, 1)
    assert found["injections"] == 2 and found["silent"]["control"] == 1
