"""The real Claude Code, whole sessions against a model on loopback: what khms says is what the model gets to see."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

# The tests' own environment is scrubbed of such names before a test begins.
HOSTS = Path(os.environ.get("KHMS_TEST_HOSTS") or os.path.normpath(Path(__file__).parents[2] / ".." / "hosts"))
PROGRAMS = "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude"
# The commands that the scripted model asks for carry the name; they are none of khms's doing.
NOT_OURS = ("hello-khms", "nonexistent-khms")
SETTINGS = (
    '{\n\t"theme": "dark",\n\t"hooks": {\n\t\t"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]\n\t}\n}'
)


@dataclass(frozen=True)
class Lab:
    """A user's home, a project, a base elsewhere, and what the model was asked."""

    root: Path
    runner: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def base(self) -> Path:
        return self.root / "base"

    @property
    def settings(self) -> Path:
        return self.home / ".claude" / "settings.json"

    def session(self, prompt: str) -> list[str]:
        """One session with this prompt; each request that reached the model, as the text of all its parts."""
        for old in (self.root / "req").glob("*"):
            old.unlink()
        done = subprocess.run(
            [self.runner, "claude", self.root, "-p", prompt, "--output-format", "json"],
            env={**os.environ, "HOSTS": str(HOSTS), "KHMS_ROOT": str(self.base), "MODE": "script"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["result"] == "MOCK FINAL ANSWER"
        requests = sorted((self.root / "req").glob("[0-9]*.json"))
        assert len(requests) > 1, "the session did not get as far as a tool"
        return [texts(json.loads(file.read_text(encoding="utf-8"))["body"]) for file in requests]

    def of_khms(self, request: str) -> str:
        """The lines of a request that name khms, other than by where this laboratory stands."""
        for name in (*NOT_OURS, str(self.root)):
            request = request.replace(name, "")
        return "\n".join(line for line in request.splitlines() if "khms" in line.casefold())


def texts(value: Any) -> str:
    """Every text in a request's body, one after the other."""
    if isinstance(value, str):
        return value + "\n"
    if isinstance(value, dict):
        return "".join(texts(part) for part in value.values())
    return "".join(texts(part) for part in value) if isinstance(value, list) else ""


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path]) -> Lab:
    runner = shared("hosts-lab/run_host.sh")
    if not list(HOSTS.glob(PROGRAMS)):
        pytest.skip(f"needs Claude Code's program: {HOSTS / PROGRAMS}")
    root = tmp_path / "lab"
    root.mkdir()
    own_environment.rename(root / "home")
    return Lab(root, runner)


@pytest.fixture
def khms(lab: Lab, run_khms: Callable[..., "subprocess.CompletedProcess[str]"]) -> Callable[..., str]:
    """Runs khms as the user of the laboratory, in the base, and wants it to succeed."""

    def run(*args: str | Path) -> str:
        env = {"HOME": str(lab.home), "KHMS_CONFIG_HOME": "", "KHMS_DATA_HOME": ""}
        done = run_khms(*args, cwd=lab.base if lab.base.is_dir() else lab.root, env=env)
        assert done.returncode == 0, f"khms {args}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


def test_a_pointer_reaches_the_model_once_and_nothing_else_does(lab: Lab, khms: Callable[..., str]) -> None:
    khms("init", lab.base)
    khms("config", "set", "hooks.deadline_ms", "4500")  # a busy machine must not decide what is said
    khms("config", "set", "server.enabled", "off")  # nor be left with one: the laboratory passes on no variable
    khms("mark", "solved", "checksum mismatch on frame 7 of the weather station was a loose ground, not timing")
    unit = json.loads(khms("nightly", "--json"))["unit"]
    card = json.loads(khms("approve", unit, "--all", "--relation", "C1=new", "--json"))["cards"][0]
    lab.settings.parent.mkdir()
    lab.settings.write_text(SETTINGS, encoding="utf-8")
    khms("hook", "install", "claude-code")

    for request in lab.session("why is there a checksum mismatch on the frames of the weather station?"):
        assert request.count(card["id"] + " ") == 1 and request.count(card["path"]) == 1, lab.of_khms(request)
        before, _, rest = request.partition("[khms] ")
        assert before.endswith("UserPromptSubmit hook additional context: ")
        framed, _, after = rest.partition("\n[/khms]")
        first, *lines = framed.splitlines()
        assert first == f"Reference data from {lab.base}; open the file before relying on it"
        assert card["id"] in framed and len(lines) >= 1 and len(framed) <= 900
        assert lab.of_khms(before) == "" and lab.of_khms(after) == ""

    for request in lab.session("please translate this poem about the sea into Portuguese"):
        assert lab.of_khms(request) == "" and card["id"] not in request

    khms("hook", "uninstall", "claude-code")
    assert lab.settings.read_text(encoding="utf-8") == SETTINGS
    for request in lab.session("why is there a checksum mismatch on the frames of the weather station?"):
        assert lab.of_khms(request) == "" and card["id"] not in request


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are wanted, with the settings and in the folder that the laboratory's bare environment leads to."""
    for name in ("KHMS_SERVER_OFF", "KHMS_CONFIG_HOME", "KHMS_DATA_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


def test_the_warm_server_answers_a_session_by_meaning(lab: Lab, servers: None, khms: Callable[..., str]) -> None:
    khms("init", lab.base)
    khms("config", "set", "hooks.deadline_ms", "4500")
    khms("mark", "solved", "checksum mismatch on frame 7 of the weather station was a loose ground, not timing")
    unit = json.loads(khms("nightly", "--json"))["unit"]
    card = json.loads(khms("approve", unit, "--all", "--relation", "C1=new", "--json"))["cards"][0]
    khms("hook", "install", "claude-code")
    khms("server", "start")
    try:
        for request in lab.session("why is there a checksum mismatch on the frames of the weather station?"):
            assert request.count(card["id"] + " ") == 1, lab.of_khms(request)
        log = (lab.base / ".khms/log/inject.jsonl").read_text(encoding="utf-8").splitlines()
        (told,) = [line for line in map(json.loads, log) if line["event"] == "UserPromptSubmit"]
        assert (told["decision"], told["server"], told["channel"]) == ("inject", True, "hybrid")
    finally:
        khms("server", "stop")
