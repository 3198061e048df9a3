"""What every test can ask for. Tests are imported by path, so take these as fixtures; nothing is imported from here.

    base            a temporary base with one commit: khms.toml, memory/know/, journal/ (a khms.store.layout.Base)
    add_card        add_card(base, "K-00002", title="…", links={"supports": ["K-00001"]}, body="…") -> Path; a valid
                    card unless told otherwise; `key=None` leaves a key out; archived where its status belongs there
    put_candidate   put_candidate(base, "C1", unit="…", body="…", relation={…}, key="absent") -> Path; a candidate that
                    passes every check unless told otherwise: a quote of the journal that `base` holds
    indexed         the base with three cards and an index: K-00001, and K-00003, which supersedes K-00002
    cloned          cloned(base, "ada", "bob") -> [Base, Base]: clones of a bare remote.git of the base, each with its
                    own identity
    write           write(base, "memory/tags.yaml", "text or bytes") -> Path, folders made on the way
    commit          commit(base, "message") -> the commit's id; adds everything first
    git             git(base, "log", "--oneline") -> standard output, stripped
    run_khms        run_khms("lint", "--json", cwd=…, env={…}, input="…") -> CompletedProcess with text streams; the
                    installed command as a process; cwd is the `base` fixture's folder where that was made
    shared          shared("cases/22-empty.md") -> Path below ../shared; skips with a reason where that is not there
    told            told("101 kill points"): a figure that the run's summary shows
    kill            the module tests/kill.py: kill.kill_points(prepare, command, check, between), kill.runner(home)

Every test runs with HOME, the user's configuration and khms's data in its own temporary folder, an identity for git,
and without any variable of an agent host, of git or of khms.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from khms.store.layout import Base

SHARED = Path(os.path.normpath(Path(__file__).parents[1] / ".." / "shared"))
SCRUBBED = (
    *("CLAUDE", "CODEX", "COPILOT", "CURSOR", "GEMINI", "HERMES", "KIRO", "OPENCLAW", "OPENCODE", "AI_AGENT", "AGENT"),
    *("GIT_", "KHMS_", "XDG_", "NO_COLOR", "FORCE_COLOR", "COLUMNS"),
)


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Moves every user folder below the test's own and returns the new HOME."""
    for name in list(os.environ):
        if name.startswith(SCRUBBED):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada Tester\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n", encoding="utf-8"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("KHMS_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("KHMS_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("KHMS_SERVER_OFF", "1")  # tests/server/conftest.py switches servers on, and ends them
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # no repository above counts
    return home


def _git(where: Base | Path, *args: str) -> str:
    folder = where.root if isinstance(where, Base) else where
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout.strip()


def _write(where: Base | Path, path: str, content: str | bytes) -> Path:
    file = (where.root if isinstance(where, Base) else where) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return file


def _commit(where: Base | Path, message: str = "a commit") -> str:
    _git(where, "add", "--all")
    _git(where, "commit", "--quiet", "--allow-empty", "-m", message)
    return _git(where, "rev-parse", "HEAD")


@pytest.fixture
def git() -> Callable[..., str]:
    return _git


@pytest.fixture
def write() -> Callable[..., Path]:
    return _write


@pytest.fixture
def commit() -> Callable[..., str]:
    return _commit


@pytest.fixture
def base(tmp_path: Path) -> Base:
    root = tmp_path / "base"
    for folder in ("memory/know", "memory/archive/know", "memory/approvals", "memory/inbox", "journal"):
        (root / folder).mkdir(parents=True)
    _git(root, "init", "--quiet")
    _write(root, "khms.toml", "")
    _write(root, ".gitignore", ".khms/\n")
    _write(root, "journal/2026-03-04.md", "# 2026-03-04\n\nMARK[solved] frames failed because a ground was loose\n")
    _commit(root, "make the base")
    return Base(root.resolve(), named=True)


def _inline(value: Any) -> str:
    """YAML's flow form of a value: JSON with every text quoted, which any reader takes as text."""
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def card_text(card_id: str, body: str, keys: Mapping[str, Any]) -> str:
    lines = ["---", f"id: {card_id}"]
    for key, value in keys.items():
        if isinstance(value, Mapping):
            lines.append(f"{key}:")
            lines += [f"  {name}: {_inline(item)}" for name, item in value.items()]
        else:
            lines.append(f"{key}: {_inline(value)}")
    return "\n".join([*lines, "---", body if body.endswith("\n") or not body else body + "\n"])


@pytest.fixture
def add_card() -> Callable[..., Path]:
    def add(base: Base, id: str = "K-00001", *, body: str | None = None, path: str = "", **keys: Any) -> Path:
        links: dict[str, Any] = {
            "derived_from": [],
            "supports": [],
            "contradicts": [],
            "supersedes": None,
            "refuted_by": [],
        }
        meta: dict[str, Any] = {
            "type": "fact",
            "level": "observation",
            "status": "active",
            "title": f"What {id} says",
            "tags": [],
            "scope": "universal",
            "evidence": "observed",
            "source": "journal/2026-03-04.md line 3",
            "date": "2026-03-04",
        }
        meta |= {key: value for key, value in keys.items() if key != "links"}
        if "links" in keys:
            given = keys["links"]
            links = {**links, **given} if isinstance(given, Mapping) else given
        meta["links"] = links
        meta = {key: value for key, value in meta.items() if value is not None}
        archived = meta.get("status") in ("superseded", "condensed")
        folder = "memory/archive/know" if archived else "memory/know"
        text = card_text(id, f"The body of {id}.\n" if body is None else body, meta)
        return _write(base, path or f"{folder}/{id}.md", text)

    return add


@pytest.fixture
def put_candidate() -> Callable[..., Path]:
    from khms.store import markdown

    def put(base: Base, label: str = "C1", *, unit: str = "2026-03-05-nightly", body: str = "", **keys: Any) -> Path:
        meta: dict[str, Any] = {
            "id": label,
            "type": "problem-solution",
            "level": "observation",
            "status": "active",
            "title": f"The claim of {label}",
            "tags": [],
            "scope": "universal",
            "evidence": "reported",
            "source": "journal/2026-03-04.md line 3",
            "date": "2026-03-04",
            "links": {"supersedes": None},
            "mark": None,
            "relation": {"kind": "new"},
            "quotes": [{"source": "journal", "text": "frames failed because a ground was loose", "grade": "EXACT"}],
            "flags": [],
        }
        meta = {key: value for key, value in {**meta, **keys}.items() if value != "absent"}
        text = markdown.render(meta, body or f"FIX: what {label} says, to tighten the ground\n")
        return _write(base.inbox, f"{unit}/{label}.md", text)

    return put


@pytest.fixture
def indexed(base: Base, add_card: Callable[..., Path]) -> Base:
    from khms.index import sync

    _write(base, "khms.toml", "[hooks]\ndeadline_ms = 30000\n")
    add_card(
        base,
        "K-00001",
        title="The checksum fails on deploy after a line-end conversion",
        body="SYMPTOM: the checksum keeps failing on every deploy.\nFIX: store the archive as binary.\n",
    )
    title = "Poll the pressure valve once a second"
    add_card(base, "K-00002", title=title, status="superseded", body="RULE: poll at 1 Hz.\n")
    add_card(
        base,
        "K-00003",
        title="Poll the pressure valve every ten seconds",
        links={"supersedes": "K-00002"},
        body="RULE: poll the pressure valve at 0.1 Hz.\nSUPERSEDES K-00002 BECAUSE: the link was saturated\n",
    )
    _commit(base, "three cards")
    sync.refresh(base)
    return base


@pytest.fixture
def cloned(tmp_path: Path) -> Callable[..., list[Base]]:
    remote = tmp_path / "remote.git"

    def clone(base: Base, *names: str) -> list[Base]:
        if not remote.exists():
            _git(tmp_path, "clone", "--quiet", "--bare", str(base.root), remote.name)
        for name in names:
            _git(tmp_path, "clone", "--quiet", remote.name, name)
            _git(tmp_path / name, "config", "user.name", name.title())
            _git(tmp_path / name, "config", "user.email", f"{name}@example.org")
        return [Base((tmp_path / name).resolve(), named=True) for name in names]

    return clone


@pytest.fixture
def run_khms(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    program = Path(sys.executable).parent / "khms"
    command = [str(program)] if program.exists() else [sys.executable, "-m", "khms"]

    def run(
        *args: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float = 120,
    ) -> "subprocess.CompletedProcess[str]":
        own = tmp_path / "base"
        return subprocess.run(
            [*command, *map(str, args)],
            cwd=cwd or (own if own.is_dir() else tmp_path),
            env={**os.environ, **(env or {})},
            input="" if input is None else input,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def shared() -> Callable[[str], Path]:
    def find(name: str) -> Path:
        if not SHARED.is_dir():
            pytest.skip(f"needs {SHARED}, which is not there")
        path = SHARED / name
        assert path.exists(), f"{path} is not there"
        return path

    return find


@pytest.fixture(scope="session")
def kill() -> ModuleType:
    spec = importlib.util.spec_from_file_location("khms_tests_kill", Path(__file__).parent / "kill.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def told(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    def tell(figure: str) -> None:
        record_property("told", figure)

    return tell


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Shows the figures that tests told, also from other processes."""
    passed = terminalreporter.stats.get("passed", [])
    figures = [value for report in passed for name, value in report.user_properties if name == "told"]
    if figures:
        terminalreporter.section("figures")
        for figure in figures:
            terminalreporter.line(str(figure))
