"""Running the tools: each installed once into the cache, over the same files, asked the same questions.

What a run found is kept as ids, a file for each tool and task, so that it is scored by one scorer, again if need be,
and a contest that was broken off goes on where it was.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import models
from bench.sets import Task

DRIVER = Path(__file__).with_name("driver.py")
RUNS = 5  # of one whole command, after one that warms up


@dataclass(frozen=True, slots=True)
class Tool:
    """A row of the tables: a module of bench/peers, and the mode it is run in."""

    module: str
    label: str
    mode: str = ""
    timed: bool = True  # another mode of the same tool need not be

    @property
    def name(self) -> str:
        return f"{self.module}-{self.mode}" if self.mode else self.module

    def peer(self) -> Any:
        return import_module(f"bench.peers.{self.module}")


TOOLS = (
    Tool("itself", "khms, both channels", "hybrid"),
    Tool("itself", "khms[quality], both channels", "minilm", timed=False),
    Tool("itself", "khms, by words", "lexical", timed=False),
    Tool("itself", "khms, by vectors", "dense", timed=False),
    Tool("memsearch", "memsearch, MiniLM + BM25"),
    Tool("mempalace", "mempalace, MiniLM + BM25"),
    Tool("basic_memory", "basic-memory, hybrid"),
    Tool("qmd", "qmd, MiniLM + BM25", "hybrid"),
    Tool("qmd", "qmd, BM25", "search"),
    Tool("ripgrep", "ripgrep, any word"),
)


@dataclass(frozen=True, slots=True)
class Ground:
    """Where tools are installed, where results are kept, and who is told of the progress."""

    cache: Path
    results: Path
    say: Callable[[str], None]

    def place(self, tool: Tool) -> Path:
        return self.cache / tool.module


def installed(ground: Ground, tool: Tool) -> str:
    """Installs the tool unless it is; why it could not be, or an empty text."""
    place, peer = ground.place(tool), tool.peer()
    mark = place / f"installed-{peer.VERSION or 'once'}"
    if mark.exists():
        return ""
    place.mkdir(parents=True, exist_ok=True)
    ground.say(f"installing {peer.NAME}")
    try:
        if getattr(peer, "MINILM", False):
            models.prepare(ground.cache)
        peer.install(place)
    except (subprocess.CalledProcessError, OSError) as error:
        return _last(f"{type(error).__name__}: {error}")
    mark.touch()
    return ""


def run(ground: Ground, tool: Tool, task: Task, seconds: float, *, timed: bool = False) -> dict[str, Any]:
    """What the tool found for each question of the task; kept, and read again where it was. With `problem` where it
    failed or did not end in `seconds`. `timed` asks for how long it takes, which is kept apart: what is found does not
    depend on what else the machine does."""
    path = ground.results / ("time" if timed else "found") / tool.name / f"{task.kind}.{task.name}.json"
    if path.exists():
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return held
    ground.say(f"{tool.name}: {task.kind} {task.name}, {len(task.questions)} questions")
    with tempfile.TemporaryDirectory(prefix="khms-contest-") as name:
        result = _run(ground, tool, task, Path(name), seconds, timed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result), encoding="utf-8")
    return result


def _run(ground: Ground, tool: Tool, task: Task, folder: Path, seconds: float, timed: bool) -> dict[str, Any]:
    documents, state, peer = folder / "docs", folder / "state", tool.peer()
    for made in (documents, state, folder / "home"):
        made.mkdir()
    ids = {document.file: document.id for document in task.documents}
    for document in task.documents:
        (documents / document.file).write_text(document.text, encoding="utf-8")
    place = ground.place(tool)
    env = surroundings(folder / "home") | dict(peer.environment(place, state))
    driver = [str(peer.python(place)), "-P", str(DRIVER), tool.module, tool.mode, *map(str, (documents, state, place))]
    asked = "".join(json.dumps(question.text) + "\n" for question in task.questions)
    try:
        done = subprocess.run(
            driver, input=asked, capture_output=True, encoding="utf-8", env=env, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"not done within {seconds:.0f} s"}
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(lines) != len(task.questions) + 1:
        return {"problem": _last(done.stderr)}
    found = {
        question.id: [ids[name] for name in line["found"] if name in ids]
        for question, line in zip(task.questions, lines[1:], strict=True)
    }
    if not timed:
        return {"found": found}
    asked_first = [question.text for question in task.questions[: RUNS + 1]]
    commands = [peer.command(place, state, documents, text, tool.mode) for text in asked_first]
    whole = _whole(commands, env)
    if end := peer.closing(documents):
        subprocess.run(end, env=env, capture_output=True, check=False)
    return {
        "documents": len(task.documents),
        "index_s": lines[0]["index_s"],
        "warm_ms": statistics.median(line["ms"] for line in lines[1:]),
        "size": size(place),
        **whole,
    }


def _whole(commands: Sequence[Sequence[str]], env: dict[str, str]) -> dict[str, float]:
    """Whole processes, each beside a bare interpreter: medians of milliseconds and of the ratios."""
    bare = [sys.executable, "-I", "-S", "-c", "pass"]
    pairs = [(_timed(command, env), _timed(bare, env)) for command in commands][1:]
    return {
        "whole_ms": statistics.median(one for one, _ in pairs) * 1000,
        "whole_p": statistics.median(one / other for one, other in pairs),
    }


def _timed(command: Sequence[str], env: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return time.perf_counter() - began


def surroundings(home: Path) -> dict[str, str]:
    """A user of its own: no settings, caches or keys of whoever runs the contest; no network for models."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    (home / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.org\n", encoding="utf-8")
    return {**kept, "HOME": str(home)}


def size(place: Path) -> int | None:
    """Bytes on disk of a tool's own folder; None where it has none."""
    if not (place / "venv").exists():
        return None
    done = subprocess.run(["du", "-sk", str(place)], capture_output=True, encoding="utf-8", check=True)
    return int(done.stdout.split()[0]) * 1024


def _last(text: str) -> str:
    """The last line that tools print when they fail, which says most; of paths, which are this machine's, the names."""
    lines = [line for line in text.splitlines() if line.strip()]
    return re.sub(r"/\S*/", "", lines[-1].strip())[:200] if lines else "it ended without a word"
