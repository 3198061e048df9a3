"""What the shared folders hold: nothing of this machine, hooks as the hosts take them, a skill whose every command
runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from khms import __version__
from khms.cli.group import COMMANDS
from khms.hosts import registry, settings
from khms.hosts.plugins import contents
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PLUGINS = {"claude-code": "khms/hooks/hooks.json", "codex": "khms/hooks/codex.json", "gemini": "hooks/hooks.json"}
BIN = Path(sys.executable).parent
# What the skill forbids must not be run here either; that these are commands is all that is looked at.
PEOPLES = ("approve", "reject", "review", "card status")


def test_nothing_of_this_machine_is_in_them(own_environment: Path) -> None:
    here = {str(Path(__file__).parents[3]), sys.prefix, str(BIN), str(own_environment), str(Path.home())}
    for path, data in contents.files(contents.KINDS).items():
        assert not [place for place in here if place.encode() in data], path
        if path.endswith(".json"):
            value = json.loads(data)
            assert value.get("version", __version__) == __version__


@pytest.mark.parametrize("host", PLUGINS)
def test_the_hooks_are_those_of_the_hosts_settings(host: str) -> None:
    module = registry.host(host)
    hooks: dict[str, Any] = json.loads(contents.KINDS[host]()[PLUGINS[host]])["hooks"]
    assert list(hooks) == [watch.event for watch in module.WATCHES]
    for watch in module.WATCHES:
        ((group,), command) = hooks[watch.event], contents.command(module)
        assert group.get("matcher", "") == watch.matcher
        (handler,) = group["hooks"]
        assert handler["command"] == command and handler["timeout"] in (watch.timeout, watch.timeout * 1000)


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "dash"])
@pytest.mark.parametrize("host", PLUGINS)
def test_a_hook_speaks_where_khms_is_and_is_silent_elsewhere(
    indexed: Base, tmp_path: Path, host: str, shell: str
) -> None:
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"needs {shell}")
    name = "BeforeAgent" if host == "gemini" else "UserPromptSubmit"
    event: dict[str, Any] = {"hook_event_name": name, "session_id": "s", "cwd": str(indexed.root)}
    event |= {"prompt": (indexed.root / "memory/know").glob("K-00001*").__next__().read_text(encoding="utf-8")}
    event |= {"timestamp": "2026-11-01T00:00:00Z"} if host == "gemini" else {}
    command = contents.command(registry.host(host))

    def said(path: str | Path) -> str:
        done = subprocess.run(
            [found, "-c", command],
            input=json.dumps(event),
            env={**os.environ, "PATH": str(path), "KHMS_ROOT": str(indexed.root)},
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert "K-00001" in said(f"{BIN}:{os.environ['PATH']}")
    event["session_id"] = "another"
    settings.install(registry.host(host), "user", tmp_path)
    assert said(f"{BIN}:{os.environ['PATH']}") == "", "the settings say it already"
    settings.uninstall(registry.host(host), "user", tmp_path)
    assert "K-00001" in said(f"{BIN}:{os.environ['PATH']}")
    (tmp_path / "empty").mkdir()
    assert said(tmp_path / "empty") == ""
    (tmp_path / "old").mkdir()
    old = tmp_path / "old" / "khms"
    for program in ("#!/nowhere/python\n", f"#!{shutil.which('sh')}\necho 'no such command' >&2\nexit 2\n"):
        old.write_text(program, encoding="utf-8")
        old.chmod(0o755)
        assert said(old.parent) == ""


def skill_faults(folder: Path) -> list[str]:
    """What the strict reading of the Agent Skills specification finds wrong."""
    text = (folder / "SKILL.md").read_text(encoding="utf-8")
    found = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    if not found:
        return ["no frontmatter"]
    meta = yaml.safe_load(found[1])
    faults = [f"key {key}" for key in meta if key not in KEYS]
    name, said = meta.get("name", ""), meta.get("description", "")
    plain = unicodedata.normalize("NFKC", name)
    shape = plain == plain.lower() and all(char.isalnum() or char == "-" for char in plain)
    if not 1 <= len(plain) <= 64 or not shape or plain.strip("-") != plain or "--" in plain or plain != folder.name:
        faults.append("name")
    if not isinstance(said, str) or not 1 <= len(said.strip()) <= 1024:
        faults.append("description")
    if not 1 <= len(meta.get("compatibility", "x")) <= 500:
        faults.append("compatibility")
    held = meta.get("metadata", {})
    if not isinstance(held, dict) or not all(isinstance(each, str) for pair in held.items() for each in pair):
        faults.append("metadata")
    if not isinstance(meta.get("allowed-tools", ""), str):
        faults.append("allowed-tools")
    if text.count("\n") >= 500 or len(text) > 5000 * 4:
        faults.append("length")
    return faults


KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


def test_the_skill_is_valid_and_says_when(tmp_path: Path) -> None:
    folder = tmp_path / "khms"
    folder.mkdir()
    text = contents.skill().decode()
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    assert skill_faults(folder) == []
    assert " Use it " in text.partition("\n---\n")[0] and f'version: "{__version__}"' in text and "@" not in text[:1500]
    spoilt = text.replace("license: MIT", "paths: src").replace("name: khms", "name: Khms-")
    (folder / "SKILL.md").write_text(spoilt.replace(f'"{__version__}"', "1"), encoding="utf-8")
    assert skill_faults(folder) == ["key paths", "name", "metadata"]


def commands(text: str) -> list[str]:
    """Every command line of khms in a page: in its blocks, and between backticks where more than a name stands."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```sh\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [*lines, *(words for words in re.findall(r"`([^`]+)`", rest) if "khms " in words)]


@pytest.mark.parametrize("page", [contents.skill, contents.section])
def test_every_command_that_is_taught_runs(
    page: Callable[[], bytes], base: Base, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    add_card(base, "K-00042", title="humidity gaps at the top of the hour", body="checksum mismatch, frame mismatch\n")
    (base.root / "memory/tags.yaml").write_text("tags: []\n", encoding="utf-8")
    commit(base)
    said = commands(page().decode())
    assert len(said) >= 5
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "KHMS_ROOT": str(base.root)}
    env |= {"CLAUDE_CODE_SESSION_ID": "skill-session"}
    for command in said:
        words = command.removeprefix("khms ")
        if words.startswith(PEOPLES):
            assert words.split()[0] in COMMANDS
            continue
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=base.root,
            env=env,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=60,
        )
        silent = ("khms recall", "khms precheck")  # may find nothing in this base
        assert done.returncode == 0 or (done.returncode == 1 and command.startswith(silent)), command + done.stderr
        assert "Usage" not in done.stderr
