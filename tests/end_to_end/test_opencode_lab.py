"""The real opencode, whole sessions against a model on loopback: what khms says is what the model gets to see."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.host_lab import ANSWER, PROMPT, Lab, laboratory

pytestmark = pytest.mark.host

PROGRAM = "node_modules/opencode-linux-*/bin/opencode"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Run) -> Lab:
    made = laboratory(PROGRAM, "opencode", tmp_path, own_environment, shared, run_khms)
    # With a plugin opencode waits for a package from a registry, which cannot be reached here.
    (made.home / ".npmrc").write_text("fetch-retries=0\n", encoding="utf-8")
    return made


def session(lab: Lab, prompt: str) -> list[str]:
    """One session with this prompt; each request that reached the model."""
    done = lab.session("opencode", "run", "--title", "a session", prompt)
    assert done.printed.split("\n")[-2] == ANSWER, done.printed
    assert done.files["new.txt"] == "alpha\ngamma\n"
    assert len(done.requests) == 6, "one a tool call, and the last answer"
    return done.requests


def test_a_pointer_reaches_the_model_once_and_nothing_else_does(lab: Lab) -> None:
    card = lab.card()
    lab.khms("hook", "install", "opencode")
    plugin = lab.home / ".config" / "opencode" / "plugin" / "khms.js"
    installed = plugin.read_bytes()
    (lab.root / "proj" / ".opencode" / "plugin").mkdir(parents=True)  # as with --scope project besides
    (lab.root / "proj" / ".opencode" / "plugin" / "khms.js").write_bytes(installed)

    for request in session(lab, PROMPT):
        before = lab.pointed(request, card)
        assert before.endswith(f'"{PROMPT}"\ntext\n'), "right after the prompt, as a part of its own"
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
    lab.khms("hook", "uninstall", "opencode")
    assert not plugin.exists()
    for request in session(lab, PROMPT):
        lab.quiet(request)
        assert card["id"] not in request


def test_what_waits_and_what_bears_on_an_edit_arrive_and_a_client_without_end_is_silence(lab: Lab) -> None:
    card = lab.card()
    edited = lab.learn("new.txt lists the phases of a release, and alpha comes before beta in it")
    lab.khms("mark", "solved", "the barometer drifts when the enclosure heats up in the sun")
    lab.khms("nightly")
    lab.khms("hook", "install", "opencode")
    *_, request = session(lab, "please translate this poem about the sea into Portuguese")
    assert request.count("1 candidate awaits review") == 1 and card["id"] not in request, lab.of_khms(request)
    assert request.count(edited["path"]) == 1, "with the result of the write, and not again with the edit's"
    assert "Wrote file successfully.\n\n[khms] Reference data from" in request, lab.of_khms(request)

    plugin = lab.home / ".config" / "opencode" / "plugin" / "khms.js"
    written = plugin.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(written) if line.startswith("const COMMAND = "))
    written[at : at + 2] = ['const COMMAND = ["sleep", "600"]', "const LIMIT_MS = 50"]
    plugin.write_text("\n".join(written), encoding="utf-8")
    *_, request = session(lab, PROMPT)
    lab.quiet(request)
    assert card["id"] not in request
