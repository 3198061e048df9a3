"""Plugins in the real hosts: their own checks accept them, they install without a network, and whole sessions with them
hear khms once; where khms is not on the PATH the sessions end as without it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.host_lab import HEAD, HOSTS, PROMPT, Lab, Session, laboratory
from tests.end_to_end.test_codex_lab import PROGRAM as CODEX
from tests.end_to_end.test_codex_lab import hooks as hooks_of_codex
from tests.end_to_end.test_gemini_lab import PROGRAM as GEMINI

pytestmark = pytest.mark.host

CLAUDE = "node_modules/@anthropic-ai/claude-agent-sdk-linux-*/claude"
TITLES = {CLAUDE: "Claude Code", CODEX: "Codex", GEMINI: "Gemini CLI"}
ON_GEMINI = ("--skip-trust", "--yolo", "-p", PROMPT)
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Furnish = Callable[[str], Lab]


@pytest.fixture
def furnished(
    tmp_path: Path,
    own_environment: Path,
    shared: Callable[[str], Path],
    run_khms: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> Furnish:
    """The laboratory for a host's program, with khms on the PATH, and the plugin of every host in its folder `plugin`
    below the root."""

    def make(program: str) -> Lab:
        lab = laboratory(program, TITLES[program], tmp_path, own_environment, shared, run_khms)
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        for host in ("claude-code", "codex", "gemini"):
            lab.khms("hook", "plugin", host, lab.root / "plugin")
        return lab

    return make


def ask(lab: Lab, program: str, *args: str | Path) -> str:
    """What the host's program says to these words, without a network where that can be had."""
    found = str(next(HOSTS.glob(program)))
    words = ["node", found] if found.endswith(".js") else [found]
    env = {"PATH": os.environ["PATH"], "HOME": str(lab.home), "LANG": "C.UTF-8", "GEMINI_CLI_NO_RELAUNCH": "1"}
    done = subprocess.run(
        [*_alone(), *words, *map(str, args)],
        env=env,
        cwd=lab.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def _alone() -> list[str]:
    words = ["unshare", "-n"]
    return words if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0 else []


def told_once(lab: Lab, session: Session, about: str, risky: str) -> None:
    """Each request holds what waits and the card about the prompt, once, and the other from its command on, once."""
    heard = 0
    for request in session.requests:
        assert request.count(HEAD + str(lab.base)) == 2 + (f"{risky} " in request)
        assert request.count(f"{about} ") == 1 and request.count("1 candidate awaits review") == 1
        assert request.count(f"{risky} ") <= 1
        heard += f"{risky} " in request
    assert 0 < heard < len(session.requests)


def unheard(session: Session, about: str) -> None:
    for request in session.requests:
        assert HEAD not in request and f"{about} " not in request


def test_claude_code_takes_the_plugin_and_hears_it_once(furnished: Furnish, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = furnished(CLAUDE)
    about, risky = lab.furnish()
    folder = lab.root / "plugin"
    for checked in (folder, folder / "khms"):
        assert "Validation passed" in ask(lab, CLAUDE, "plugin", "validate", checked)
    assert "skills: khms:khms" in ask(lab, CLAUDE, "plugin", "validate", "--strict", folder / "khms")
    call = ("-p", PROMPT, "--output-format", "json")
    plain = lab.session("claude", *call)
    lab.silent(plain)

    once = lab.session("claude", *call, "--plugin-dir", str(folder / "khms"))
    told_once(lab, once, about, risky)
    assert any("khms:khms" in request for request in once.requests), "the skill is not offered"
    assert once.files == plain.files and len(once.requests) == len(plain.requests)

    lab.khms("hook", "install", "claude-code")
    told_once(lab, lab.session("claude", *call, "--plugin-dir", str(folder / "khms")), about, risky)
    lab.khms("hook", "uninstall", "claude-code")

    ask(lab, CLAUDE, "plugin", "marketplace", "add", folder)
    ask(lab, CLAUDE, "plugin", "install", "khms@khms-market")
    assert "khms@khms-market" in ask(lab, CLAUDE, "plugin", "list")
    installed = lab.session("claude", *call)
    told_once(lab, installed, about, risky)
    assert installed.files == plain.files and len(installed.requests) == len(plain.requests)

    monkeypatch.setenv("PATH", os.environ["PATH"].partition(":")[2])
    without = lab.session("claude", *call)
    unheard(without, about)
    assert without.files == plain.files and len(without.requests) == len(plain.requests)


def test_codex_takes_the_plugin_and_hears_it_once_trusted(furnished: Furnish) -> None:
    lab = furnished(CODEX)
    about, risky = lab.furnish()
    call = ("exec", "--skip-git-repo-check", PROMPT)
    plain = lab.session("codex", *call)
    ask(lab, CODEX, "plugin", "marketplace", "add", lab.root / "plugin")
    ask(lab, CODEX, "plugin", "add", "khms@khms-market")
    assert "installed, enabled" in ask(lab, CODEX, "plugin", "list")

    found = hooks_of_codex(lab)
    assert {hook["command"] for hook in found} == {"khms hook run --host codex --plugin 2>/dev/null || true"}
    assert {hook["trustStatus"] for hook in found} == {"untrusted"} and len(found) == 6
    unheard(lab.session("codex", *call), about)
    with (lab.home / ".codex" / "config.toml").open("a", encoding="utf-8") as config:
        for hook in found:  # the hash of the plugin's contents comes behind the hook's own
            own = hook["currentHash"].partition("/")[0]
            config.write(f'\n[hooks.state."{hook["key"]}"]\ntrusted_hash = "{own}"\n')
    assert {hook["trustStatus"] for hook in hooks_of_codex(lab)} == {"trusted"}
    trusted = lab.session("codex", *call)
    told_once(lab, trusted, about, risky)
    assert trusted.files == plain.files and len(trusted.requests) == len(plain.requests)


def test_gemini_takes_the_extension_and_hears_it_once(furnished: Furnish, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = furnished(GEMINI)
    about, risky = lab.furnish()
    plain = lab.session("gemini", *ON_GEMINI)
    assert "successfully validated" in ask(lab, GEMINI, "extensions", "validate", lab.root / "plugin")
    ask(lab, GEMINI, "extensions", "link", "--consent", lab.root / "plugin")
    listed = ask(lab, GEMINI, "extensions", "list")
    assert "khms (0." in listed and str(lab.root / "plugin" / "KHMS.md") in listed

    session = lab.session("gemini", *ON_GEMINI)
    told_once(lab, session, about, risky)
    assert session.files == plain.files and len(session.requests) == len(plain.requests)

    monkeypatch.setenv("PATH", os.environ["PATH"].partition(":")[2])
    without = lab.session("gemini", *ON_GEMINI)
    unheard(without, about)
    assert without.files == plain.files and len(without.requests) == len(plain.requests)
