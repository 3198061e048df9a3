"""The real opencode, whole sessions against a model on loopback: what khms says is what the model gets to see."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.host

# The tests' own environment is scrubbed of such names before a test begins.
HOSTS = Path(os.environ.get("KHMS_TEST_HOSTS") or os.path.normpath(Path(__file__).parents[2] / ".." / "hosts"))
PROGRAMS = "node_modules/opencode-linux-*/bin/opencode"
# The commands that the scripted model asks for carry the name; they are none of khms's doing.
NOT_OURS = ("hello-khms", "nonexistent-khms")
ASKED = "why is there a checksum mismatch on the frames of the weather station?"


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

    def session(self, prompt: str, *more: str) -> list[str]:
        """One session with this prompt; each request that reached the model, as the texts of its messages."""
        for old in (self.root / "req").glob("*"):
            old.unlink()
        done = subprocess.run(
            [self.runner, "opencode", self.root, "run", "--title", "a session", *more, prompt],
            env={**os.environ, "HOSTS": str(HOSTS), "KHMS_ROOT": str(self.base), "MODE": "script"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.split("\n")[-2] == "MOCK FINAL ANSWER", done.stdout + done.stderr
        assert (self.root / "proj" / "new.txt").read_text(encoding="utf-8") == "alpha\ngamma\n"
        requests = sorted((self.root / "req").glob("[0-9]*.json"))
        assert len(requests) == 6, "one a tool call, and the last answer"
        return ["".join(texts(json.loads(file.read_text(encoding="utf-8"))["body"]["messages"])) for file in requests]

    def of_khms(self, request: str) -> str:
        """The lines of a request that name khms, other than by where this laboratory stands."""
        for name in (*NOT_OURS, str(self.root)):
            request = request.replace(name, "")
        return "\n".join(line for line in request.splitlines() if "khms" in line.casefold())

    def log(self) -> list[dict[str, Any]]:
        file = self.base / ".khms" / "log" / "inject.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def texts(value: Any) -> Iterator[str]:
    """Every text in a request's messages, in their order."""
    if isinstance(value, str):
        yield value + "\n"
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path]) -> Lab:
    runner = shared("hosts-lab/run_host.sh")
    if not list(HOSTS.glob(PROGRAMS)):
        pytest.skip(f"needs opencode's program: {HOSTS / PROGRAMS}")
    root = tmp_path / "lab"
    root.mkdir()
    own_environment.rename(root / "home")
    # With a plugin opencode waits for a package from a registry, which cannot be reached here.
    (root / "home" / ".npmrc").write_text("fetch-retries=0\n", encoding="utf-8")
    return Lab(root, runner)


@pytest.fixture
def khms(lab: Lab, run_khms: Callable[..., "subprocess.CompletedProcess[str]"]) -> Callable[..., str]:
    """Runs khms as the user of the laboratory, in the base, and wants it to succeed."""

    def run(*args: str | Path) -> str:
        env = {"HOME": str(lab.home), "KHMS_CONFIG_HOME": "", "KHMS_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
        done = run_khms(*args, cwd=lab.base if lab.base.is_dir() else lab.root, env=env)
        assert done.returncode == 0, f"khms {args}: {done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def card(lab: Lab, khms: Callable[..., str]) -> dict[str, str]:
    """A card in the base, approved."""
    khms("init", lab.base)
    khms("config", "set", "hooks.deadline_ms", "4500")  # a busy machine must not decide what is said
    khms("config", "set", "server.enabled", "off")  # nor be left with one: the laboratory passes on no variable
    khms("mark", "solved", "checksum mismatch on frame 7 of the weather station was a loose ground, not timing")
    unit = json.loads(khms("nightly", "--json"))["unit"]
    made: dict[str, str] = json.loads(khms("approve", unit, "--all", "--relation", "C1=new", "--json"))["cards"][0]
    return made


def test_a_pointer_reaches_the_model_once_and_nothing_else_does(
    lab: Lab, khms: Callable[..., str], card: dict[str, str]
) -> None:
    khms("hook", "install", "opencode")
    plugin = lab.home / ".config" / "opencode" / "plugin" / "khms.js"
    installed = plugin.read_bytes()
    (lab.root / "proj" / ".opencode" / "plugin").mkdir(parents=True)  # as with --scope project besides
    (lab.root / "proj" / ".opencode" / "plugin" / "khms.js").write_bytes(installed)

    for request in lab.session(ASKED):
        assert request.count(card["id"] + " ") == 1 and request.count(card["path"]) == 1, lab.of_khms(request)
        before, _, rest = request.partition("[khms] ")
        assert before.endswith(f'"{ASKED}"\ntext\n'), "right after the prompt, as a part of its own"
        framed, _, after = rest.partition("\n[/khms]")
        first, *lines = framed.splitlines()
        assert first == f"Reference data from {lab.base}; open the file before relying on it"
        assert card["id"] in framed and len(lines) >= 1 and len(framed) <= 900
        assert lab.of_khms(before) == "" and lab.of_khms(after) == ""
    seen = [(line["event"], line["moment"], line["decision"]) for line in lab.log() if line.get("event")]
    assert sorted(set(seen)) == sorted(
        [
            ("session.created", "session-start", "silent"),
            ("chat.message", "prompt", "inject"),
            ("tool.execute.after", "pre-shell", "silent"),
            ("tool.execute.after", "pre-edit", "silent"),
            ("tool.failed", "after-failure", "silent"),
        ]
    ), seen
    assert len(seen) == 7, "each moment once, though the plugin was loaded twice"

    (lab.root / "proj" / ".opencode" / "plugin" / "khms.js").unlink()
    khms("hook", "uninstall", "opencode")
    assert not plugin.exists()
    for request in lab.session(ASKED):
        assert lab.of_khms(request) == "" and card["id"] not in request


def test_what_waits_and_what_bears_on_an_edit_arrive_and_a_client_without_end_is_silence(
    lab: Lab, khms: Callable[..., str], card: dict[str, str]
) -> None:
    khms("mark", "solved", "new.txt lists the phases of a release, and alpha comes before beta in it")
    unit = json.loads(khms("nightly", "--json"))["unit"]
    edited = json.loads(khms("approve", unit, "--all", "--relation", "C1=new", "--json"))["cards"][0]
    khms("mark", "solved", "the barometer drifts when the enclosure heats up in the sun")
    khms("nightly")
    khms("hook", "install", "opencode")
    *_, request = lab.session("please translate this poem about the sea into Portuguese")
    assert request.count("1 candidate awaits review") == 1 and card["id"] not in request, lab.of_khms(request)
    assert request.count(edited["path"]) == 1, "with the result of the write, and not again with the edit's"
    assert "Wrote file successfully.\n\n[khms] Reference data from" in request, lab.of_khms(request)

    plugin = lab.home / ".config" / "opencode" / "plugin" / "khms.js"
    written = plugin.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(written) if line.startswith("const COMMAND = "))
    written[at : at + 2] = ['const COMMAND = ["sleep", "600"]', "const LIMIT_MS = 50"]
    plugin.write_text("\n".join(written), encoding="utf-8")
    *_, request = lab.session(ASKED)
    assert lab.of_khms(request) == "" and card["id"] not in request
