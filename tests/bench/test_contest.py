"""One tool over one folder, by the driver that all tools go through: khms itself, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import contest
from bench.contest import TOOLS, Ground, Tool
from bench.sets import Document, Question, Task

TASK = Task(
    "cards",
    "two",
    (
        Document("t/a:1", "# Hive\n\nThe bees swarm in May.\n"),
        Document("t/b:2", "# Pool\n\nThe connection pool ran dry under load.\n"),
    ),
    (
        Question("q1", "", "when do bees swarm", frozenset(["t/a:1"])),
        Question("q2", "", "connection pool ran dry", frozenset(["t/b:2"])),
    ),
)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "cache", tmp_path / "results", lambda line: None)


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_what_was_found_is_told_by_id(ground: Ground, mode: str) -> None:
    tool = next(tool for tool in TOOLS if tool.module == "itself" and tool.mode == mode)
    assert contest.installed(ground, tool) == ""
    result = contest.run(ground, tool, TASK, 120)
    assert "problem" not in result, result
    assert {name: found[0] for name, found in result["found"].items()} == {"q1": "t/a:1", "q2": "t/b:2"}


def test_what_was_found_once_is_kept(ground: Ground) -> None:
    path = ground.results / "found" / "itself-hybrid" / "cards.two.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"found": {"q1": ["kept"]}}), encoding="utf-8")
    assert contest.run(ground, TOOLS[0], TASK, 120) == {"found": {"q1": ["kept"]}}


def test_a_tool_that_fails_is_a_result_with_its_own_words(ground: Ground) -> None:
    tool = Tool("itself", "khms", "backwards")
    contest.installed(ground, tool)
    assert "backwards" in contest.run(ground, tool, TASK, 120)["problem"]


def test_no_path_of_this_machine_gets_into_the_results() -> None:
    said = contest._last("Traceback\nError: '/home/ada/tools/venv/bin/tool' failed on /tmp/x/docs\n")
    assert said == "Error: 'tool' failed on docs"


def test_a_tool_that_takes_too_long_is_given_up(ground: Ground) -> None:
    contest.installed(ground, TOOLS[0])
    assert "not done within" in contest.run(ground, TOOLS[0], TASK, 0.01)["problem"]


def test_every_tool_says_what_it_is() -> None:
    for tool in TOOLS:
        peer = tool.peer()
        assert peer.NAME and peer.LICENCE and peer.HOW
        calls = ("install", "python", "environment", "opened", "command", "closing")
        assert all(callable(getattr(peer, name)) for name in calls)


def test_peers_and_driver_need_nothing_but_the_standard_library() -> None:
    """They run where neither khms nor bench can be imported."""
    folder = Path(contest.__file__).parent
    paths = [folder / "driver.py", *(p for p in (folder / "peers").glob("[a-z]*.py") if p.name != "itself.py")]
    code = "import importlib.util, sys\nfor path in sys.argv[1:]:\n" + (
        "    spec = importlib.util.spec_from_file_location('one', path)\n"
        "    spec.loader.exec_module(importlib.util.module_from_spec(spec))\n"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", code, *map(str, paths)], check=True, cwd="/")
