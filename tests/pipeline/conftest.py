"""`hosted(base)`: the base is shared through GitHub as git sees it, which is a bare repository beside it; returns that.
`gh`: a program of that name on PATH; `gh()` is what it was asked so far and the requests it holds.

`add_candidate(base, "C1", unit="2026-03-05-nightly", body="…", **keys) -> Path`: a candidate that approval would
take, unless told otherwise; its quote stands in the `base` fixture's journal."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.model.digest import sha256_hex
from khms.store.layout import Base

UNIT = "2026-03-05-nightly"
MARK = "M-0123456789ab"
LINE = "frames failed because a ground was loose"


@pytest.fixture
def add_candidate(write: Callable[..., Path], put_candidate: Callable[..., Path]) -> Callable[..., Path]:
    def add(base: Base, label: str = "C1", *, unit: str = UNIT, body: str = "", **keys: Any) -> Path:
        own = {
            "title": f"Loose ground, as {label} says",
            "tags": ["sensors"],
            "source": f'journal/2026-03-04.md line 3: "{LINE}"',
            "links": {"derived_from": [], "supports": [], "contradicts": [], "supersedes": None, "refuted_by": []},
            "mark": MARK if label == "C1" and unit == UNIT else f"M-{sha256_hex(f'{unit} {label}'.encode())[:12]}",
            "confidence": "0.5",
            "nearest": [],
            "quotes": [{"source": "journal", "sha256": "", "text": LINE, "grade": "EXACT", "context": LINE}],
        }
        write(base.inbox / unit, "unit.json", json.dumps({"schema": "khms.unit/1", "run": "0" * 26}))
        return put_candidate(base, label, unit=unit, body=body or f"FIX: the ground, says {label}\n", **{**own, **keys})

    return add


GH = """#!{python}
import json, os, sys
place = {state!r}
state = json.load(open(place)) if os.path.exists(place) else {{"asked": [], "requests": []}}
args = sys.argv[1:]
body = sys.stdin.read()
quiet = [os.environ.get("GH_PROMPT_DISABLED"), os.environ.get("KHMS_BACKGROUND")]
state["asked"].append({{"args": args, "body": body, "quiet": quiet}})
code = 0
if state.get("broken"):
    print("HTTP 401: Bad credentials", file=sys.stderr)
    code = 4
elif args[:2] == ["pr", "list"]:
    head = args[args.index("--head") + 1]
    print(json.dumps([one for one in state["requests"] if one["head"] == head]))
elif args[:2] == ["pr", "create"]:
    head = args[args.index("--head") + 1]
    url = "https://github.com/ada/garden/pull/%d" % (len(state["requests"]) + 1)
    remote = os.popen("git --git-dir=" + {remote!r} + " rev-parse refs/heads/" + head).read().strip()
    state["requests"].append({{"head": head, "url": url, "state": "OPEN", "headRefOid": remote}})
    print("Creating pull request")
    print(url)
json.dump(state, open(place, "w"))
sys.exit(code)
"""


@pytest.fixture
def hosted(tmp_path: Path, git: Callable[..., str], own_environment: Path) -> Callable[[Base], Path]:
    """Shares a base through `https://github.com/ada/garden.git`, which git takes to a bare repository here."""

    def share(base: Base) -> Path:
        remote = tmp_path / "remote.git"
        git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
        git(tmp_path, "config", "--global", f"url.{remote}.insteadOf", "https://github.com/ada/garden.git")
        git(base, "remote", "add", "origin", "https://github.com/ada/garden.git")
        git(base, "push", "--quiet", "-u", "origin", "main")
        return remote

    return share


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    state = tmp_path / "gh.json"
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir(exist_ok=True)
    remote = str(tmp_path / "remote.git")
    program.write_text(GH.format(python=sys.executable, state=str(state), remote=remote), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def look(**change: Any) -> dict[str, Any]:
        held: dict[str, Any] = {"asked": [], "requests": []}
        if state.exists():
            held = json.loads(state.read_text(encoding="utf-8"))
        if change:
            held |= change
            state.write_text(json.dumps(held), encoding="utf-8")
        return held

    return look
