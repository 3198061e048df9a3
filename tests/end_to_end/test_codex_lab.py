"""The real Codex, whole sessions against a model on loopback: silent until its hooks are trusted, then what khms says
is what the model gets to see."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.host_lab import HOSTS, PROMPT, Lab, laboratory, same

pytestmark = pytest.mark.host

PROGRAM = "node_modules/@openai/codex-linux-*/vendor/*/bin/codex"
OTHERS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true", "timeout": 5}]}]}}\n'
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Run) -> Lab:
    return laboratory(PROGRAM, "Codex", tmp_path, own_environment, shared, run_khms)


def hooks(lab: Lab) -> list[dict[str, Any]]:
    """What Codex itself says of its hooks."""
    program = next(HOSTS.glob(PROGRAM))
    env = {"PATH": os.environ["PATH"], "HOME": str(lab.home)}
    with subprocess.Popen(
        [program, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=env, cwd=lab.root / "proj", encoding="utf-8",
    ) as server:  # fmt: skip
        assert server.stdin and server.stdout

        def ask(number: int, method: str, params: dict[str, Any]) -> Any:
            assert server.stdin and server.stdout
            server.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            for line in server.stdout:
                answer = json.loads(line)
                if answer.get("id") == number:
                    return answer["result"]
            raise AssertionError("the server ended")

        ask(1, "initialize", {"clientInfo": {"name": "test", "version": "1"}})
        server.stdin.write('{"method": "initialized"}\n')
        found: list[dict[str, Any]] = ask(2, "hooks/list", {"cwds": [str(lab.root / "proj")]})["data"][0]["hooks"]
        server.kill()
    return found


def test_a_pointer_arrives_once_trusted_and_nothing_else_does(lab: Lab) -> None:
    about, risky = lab.furnish()
    file = lab.home / ".codex" / "hooks.json"
    file.parent.mkdir()
    file.write_text(OTHERS, encoding="utf-8")
    call = ("exec", "--skip-git-repo-check", PROMPT)
    plain = lab.session("codex", *call)
    lab.silent(plain)

    lab.khms("hook", "install", "codex")
    untrusted = lab.session("codex", *call)
    lab.silent(untrusted)
    same(plain, untrusted)
    assert any("trust the entries of khms" in problem for problem in lab.status("codex")["problems"])

    ours = [hook for hook in hooks(lab) if "client.py" in hook["command"]]
    assert len(ours) == 6 and {hook["trustStatus"] for hook in ours} == {"untrusted"}
    with (lab.home / ".codex" / "config.toml").open("a", encoding="utf-8") as config:
        for hook in ours:  # what /hooks writes
            config.write(f'\n[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n')
    assert lab.status("codex")["problems"] == []

    session = lab.session("codex", *call)
    lab.told_apart(session, about, risky)
    same(plain, session)

    lab.khms("hook", "uninstall", "codex")
    assert file.read_text(encoding="utf-8") == OTHERS
