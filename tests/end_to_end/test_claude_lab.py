"""The real Claude Code, whole sessions against a model on loopback: what khms says is what the model gets to see."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.host_lab import ANSWER, PROMPT, Lab, laboratory

pytestmark = pytest.mark.host

PROGRAM = "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude"
SETTINGS = (
    '{\n\t"theme": "dark",\n\t"hooks": {\n\t\t"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]\n\t}\n}'
)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Run) -> Lab:
    return laboratory(PROGRAM, "Claude Code", tmp_path, own_environment, shared, run_khms)


def session(lab: Lab, prompt: str) -> list[str]:
    """One session with this prompt; each request that reached the model."""
    done = lab.session("claude", "-p", prompt, "--output-format", "json")
    assert json.loads(done.printed.splitlines()[-1])["result"] == ANSWER
    assert len(done.requests) > 1, "the session did not get as far as a tool"
    return done.requests


def test_a_pointer_reaches_the_model_once_and_nothing_else_does(lab: Lab) -> None:
    card = lab.card()
    settings = lab.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(SETTINGS, encoding="utf-8")
    lab.khms("hook", "install", "claude-code")

    for request in session(lab, PROMPT):
        assert lab.pointed(request, card).endswith("UserPromptSubmit hook additional context: ")

    for request in session(lab, "please translate this poem about the sea into Portuguese"):
        lab.quiet(request)
        assert card["id"] not in request

    lab.khms("hook", "uninstall", "claude-code")
    assert settings.read_text(encoding="utf-8") == SETTINGS
    for request in session(lab, PROMPT):
        lab.quiet(request)
        assert card["id"] not in request


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are wanted, with the settings and in the folder that the laboratory's bare environment leads to."""
    for name in ("KHMS_SERVER_OFF", "KHMS_CONFIG_HOME", "KHMS_DATA_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


def test_the_warm_server_answers_a_session_by_meaning(lab: Lab, servers: None) -> None:
    card = lab.card(warm=True)
    lab.khms("hook", "install", "claude-code")
    lab.khms("server", "start")
    try:
        for request in session(lab, PROMPT):
            assert request.count(card["id"] + " ") == 1, lab.of_khms(request)
        (told,) = [line for line in lab.log() if line["event"] == "UserPromptSubmit"]
        assert (told["decision"], told["server"], told["channel"]) == ("inject", True, "hybrid")
    finally:
        lab.khms("server", "stop")
