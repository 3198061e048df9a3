"""`khms mcp install`, `uninstall` and `khms doctor --mcp` as they are typed."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

pytest.importorskip("mcp", reason="needs the extra khms[mcp]")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_install_ask_uninstall(run_khms: Run, base: Base, own_environment: Path) -> None:
    none = run_khms("doctor", "--mcp")
    assert none.returncode == 0 and "no host has khms's tools" in none.stdout and "proposer" not in none.stdout
    done = run_khms("--root", base.root, "mcp", "install", "cursor")
    assert done.returncode == 0 and done.stderr == "" and "undo: khms mcp uninstall cursor" in done.stdout
    settings = own_environment / ".cursor" / "mcp.json"
    assert json.loads(settings.read_text(encoding="utf-8"))["mcpServers"]["khms"]["args"][-3:] == [
        "--root", str(base.root), "mcp",
    ]  # fmt: skip
    found = json.loads(run_khms("doctor", "--mcp", "--json").stdout)
    assert [(check["check"], check["state"]) for check in found["checks"]] == [("cursor", "ok")]
    assert "answers with 6 tools" in found["checks"][0]["message"]
    assert "already installed" in run_khms("--root", base.root, "mcp", "install", "cursor").stdout
    assert run_khms("mcp", "uninstall", "cursor").returncode == 0 and not settings.exists()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "/no/such/python", "args": ["-m", "khms", "mcp"]}, "does not answer"),
        ({"command": "false", "args": ["khms", "mcp"]}, "does not answer"),
        ({"command": "true", "args": ["khms", "mcp"], "disabled": True}, "switched off"),
        ({"command": "touch", "args": ["ran"]}, "is not this one"),
        ({"url": "https://example.org"}, "is not this one"),
    ],
)
def test_a_server_that_does_not_answer_is_named(
    run_khms: Run, base: Base, own_environment: Path, entry: dict[str, object], words: str
) -> None:
    settings = own_environment / ".cursor" / "mcp.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"mcpServers": {"khms": entry}}), encoding="utf-8")
    done = run_khms("doctor", "--mcp")
    assert done.returncode == 1 and words in done.stdout and str(settings) in done.stdout
    assert "khms mcp install cursor" in done.stdout and "Traceback" not in done.stdout + done.stderr
    assert not (base.root / "ran").exists()


def test_a_projects_settings_start_no_program_of_theirs(run_khms: Run, base: Base, tmp_path: Path) -> None:
    program = tmp_path / "khms"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    program.chmod(0o755)
    entry = {"mcpServers": {"khms": {"command": str(program), "args": ["mcp"]}}}
    (base.root / ".mcp.json").write_text(json.dumps(entry), encoding="utf-8")
    done = run_khms("doctor", "--mcp")
    assert done.returncode == 1 and "not run from here" in done.stdout and not (tmp_path / "ran").exists()


def test_wrong_calls(run_khms: Run, base: Base) -> None:
    for args in (("mcp", "install"), ("mcp", "install", "emacs"), ("doctor", "--mcp", "--repair"), ("mcp", "nothing")):
        assert run_khms(*args).returncode == 2
