"""khms as a hook of the pre-commit program, run by the real one from a clone of this checkout.

The environment that pre-commit makes is built without the network: the packages of the one that runs the tests are on
its path.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from khms.store.layout import Base

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "pre-commit"
SHIPPED = ("khms", "schemas", "hooks", "templates", "site", "embedding")
FILES = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
NAMES = ("khms-lint", "khms-audit")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def manifest() -> dict[str, dict[str, object]]:
    return {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}


def test_the_manifest_names_both() -> None:
    hooks = manifest()
    assert tuple(hooks) == NAMES
    for name, hook in hooks.items():
        assert hook["entry"] == f"khms --quiet {name.removeprefix('khms-')} --staged"
        assert (hook["language"], hook["pass_filenames"], hook["stages"]) == ("python", False, ["pre-commit"])
    assert hooks["khms-audit"]["always_run"] is True, "or a commit that only removes a card would pass it by"


@pytest.fixture
def pre_commit(base: Base, tmp_path: Path, git: Callable[..., str], write: Callable[..., Path]) -> Run:
    """pre-commit, installed in the base with both hooks of a clone of this checkout."""
    if not PROGRAM.exists():
        pytest.skip("needs the pre-commit program, which is not there")
    source = tmp_path / "khms-source"
    for folder in SHIPPED:
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, source / file)
    git(source, "init", "--quiet")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "-m", "khms")
    config = {"repos": [{"repo": str(source), "rev": git(source, "rev-parse", "HEAD"), "hooks": []}]}
    config["repos"][0]["hooks"] = [{"id": name} for name in NAMES]
    write(base, ".pre-commit-config.yaml", yaml.safe_dump(config))
    env = {
        **os.environ,
        "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it the wrong way round: this switches the isolation off
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path.endswith("site-packages")),
        "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}",
    }

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, cwd=base.root, env=env, capture_output=True, encoding="utf-8", check=False)

    done = run(str(PROGRAM), "install", "--install-hooks")
    assert done.returncode == 0, done.stdout + done.stderr
    git(base, "add", "--all")
    return run


def test_a_real_commit_is_checked(pre_commit: Run, base: Base, add_card: Callable[..., Path]) -> None:
    done = pre_commit("git", "commit", "-m", "an ordinary commit")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "khms audit" in done.stderr and "Passed" in done.stderr
    add_card(base, "K-00001", level="obs")
    pre_commit("git", "add", "--all")
    done = pre_commit("git", "commit", "-m", "a card slipped in")
    assert done.returncode != 0 and "K-00001.md" in done.stderr and "KH001" in done.stderr and "KA001" in done.stderr
    assert pre_commit("git", "log", "--format=%s").stdout.splitlines()[0] == "an ordinary commit"
