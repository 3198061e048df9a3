"""What the hosts' own programs write of a whole session: every line is told or counted, and what a hook added in it is
nobody's words."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hosts import transcripts
from khms.model.frame import framed
from tests.end_to_end.host_lab import HOSTS

pytestmark = pytest.mark.host

PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-agent-sdk-linux-*/claude",
    "codex": "@openai/codex-linux-*/vendor/*/bin/codex",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
    "copilot": "@github/copilot-linux-*/copilot",
    "opencode": "opencode-linux-*/bin/opencode",
}
PROMPT = "why do the checksums fail?"
COMMANDS: dict[str, list[str]] = {
    "claude-code": ["-p", PROMPT],
    "codex": ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", PROMPT],
    "gemini": ["--skip-trust", "-y", "-p", PROMPT],
    "copilot": ["-p", PROMPT, "--allow-all-tools"],
    "opencode": ["run", PROMPT],
}
FRAME = framed("/home/dev/base", ["K-00007 Poll the valve slowly (memory/know/K-00007.md)"])


def hook(host: str, home: Path, frame: str = FRAME) -> None:
    """A hook of the user's that adds `frame` to each prompt."""
    added = home / "added.json"
    nested = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": frame}}
    command: dict[str, Any] = {"type": "command", "command": f"cat {added}", "timeout": 5}
    files: dict[str, tuple[str, Any, Any]] = {
        "claude-code": (".claude/settings.json", nested, {"UserPromptSubmit": [{"hooks": [command]}]}),
        "codex": (".codex/hooks.json", nested, {"UserPromptSubmit": [{"hooks": [command]}]}),
        "gemini": (".gemini/settings.json", nested, {"BeforeAgent": [{"hooks": [{**command, "timeout": 5000}]}]}),
        "copilot": (
            ".copilot/hooks/x.json",
            {"additionalContext": frame},
            {"userPromptSubmitted": [{"type": "command", "bash": f"cat {added}", "timeoutSec": 5}]},
        ),
    }
    name, output, hooks = files[host]
    path, text = home / name, json.dumps({"version": 1, "hooks": hooks} if host == "copilot" else {"hooks": hooks})
    added.write_text(json.dumps(output), encoding="utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("host", COMMANDS)
def test_a_whole_session_of_the_real_host(
    host: str,
    tmp_path: Path,
    own_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared: Callable[[str], Path],
    read: Callable[..., Any],
) -> None:
    runner = shared("hosts-lab/run_host.sh")
    if not list(HOSTS.glob(f"node_modules/{PROGRAMS[host]}")):
        pytest.skip(f"needs the host's program: {HOSTS / 'node_modules' / PROGRAMS[host]}")
    lab = tmp_path / "lab"
    lab.mkdir()
    own_environment.rename(lab / "home")
    monkeypatch.setenv("HOME", str(lab / "home"))
    hooked = host != "opencode"  # whose plugins wait for a registry before they are loaded
    if hooked:
        hook(host, lab / "home")
    done = subprocess.run(
        [runner, host.removesuffix("-code"), lab, *COMMANDS[host]],
        env={**os.environ, "HOSTS": str(HOSTS), "MODE": "script"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not hooked or any("K-00007" in file.read_text(encoding="utf-8") for file in (lab / "req").glob("*.json")), (
        "it was added"
    )

    reader: Any = transcripts.reader(host)
    (session,) = reader.sessions()
    assert reader.cwd(session) == str(lab / "proj") and session.modified > 0
    found = read(host, session.path)
    assert not found.tally.keys() & {"garbage", "long", "torn", "skipped:unknown shape"}
    roles = [role for role, *_ in found.said]
    assert [text for role, text, _, _ in found.said if role == "user"] in ([PROMPT], [f'"{PROMPT}"'])
    assert found.said[-1] == ("agent", "MOCK FINAL ANSWER", "", "")
    assert roles.count("call") == roles.count("outcome") >= 4
    states = [state for role, *_, state in found.said if role == "outcome"]
    assert "ok" in states and {"failed", "exit 2"} & set(states)
    assert all(tool for role, _, tool, _ in found.said if role in ("call", "outcome"))
    assert {role for role, text, _, _ in found.said if "K-00007" in text} == ({"injected"} if hooked else set())
    assert not read(host, session.path, found.position).said
