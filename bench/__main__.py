"""python -m bench [STEP…]: measures what is asked for, then writes BENCHMARKS.md from all that was ever measured here.

speed    khms bench, over 10,000 cards and, of the rows that grow, over 100,000
answers  khms on the development sets
peers    the other tools on the same sets, installed into the cache where they are not yet
times    how long one question takes, of each tool
"""

import argparse
import datetime
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import contest, figures, report, sets
from bench.contest import TOOLS, Ground, Tool
from bench.sets import CARDS, CHAT, NOTES, Task

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results")
CACHE = Path.home() / ".cache" / "khms-bench" / "tools"
UNRELATED = ROOT / "tests" / "recall" / "unrelated.txt"
STEPS = ("speed", "answers", "peers", "times")
LARGE = ("query", "memory", "refresh", "index", "disk")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help="of those above; all where none is named")
    parser.add_argument("--sets", type=Path, default=ROOT / ".." / "shared" / "bench", help="the development sets")
    parser.add_argument("--cards", type=int, default=10_000, help="cards of the made-up base")
    parser.add_argument("--chats", type=int, default=2, help="conversations that peers are asked about")
    parser.add_argument("--tools", default="", help="only these peers: names with commas between")
    parser.add_argument("--seconds", type=float, default=2400, help="after which one run of a tool is given up")
    asked = parser.parse_args()
    steps = asked.steps or STEPS
    if unknown := set(steps) - {*STEPS, "report"}:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    RESULTS.mkdir(exist_ok=True)
    tasks = list(sets.tasks(asked.sets))
    ground = Ground(CACHE, RESULTS, lambda line: print(line, file=sys.stderr, flush=True))
    wanted = [tool for tool in TOOLS if not asked.tools or tool.module in asked.tools.split(",")]
    if "speed" in steps:
        speed(asked.cards)
    if "answers" in steps:
        own(ground, tasks, asked.seconds)
    if "peers" in steps:
        peers(ground, wanted, few(tasks, asked.chats), asked.seconds)
    if "times" in steps:
        times(ground, wanted, tasks, asked.seconds)
    final = collect(ground, tasks)
    (RESULTS / "final.json").write_text(json.dumps(final, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (ROOT / "BENCHMARKS.md").write_text(report.render(final), encoding="utf-8")


def speed(cards: int) -> None:
    khms = str(Path(sys.executable).with_name("khms"))
    for name, words in (("1", ["--cards", str(cards)]), ("2", [*LARGE, "--cards", str(10 * cards)])):
        done = subprocess.run([khms, "bench", "--json", *words], stdout=subprocess.PIPE, encoding="utf-8", check=True)
        (RESULTS / f"speed-{name}.json").write_text(done.stdout, encoding="utf-8")


def own(ground: Ground, tasks: Sequence[Task], seconds: float) -> None:
    """Always anew: what it finds changes with every change of khms."""
    for tool in (tool for tool in TOOLS if tool.module == "itself"):
        shutil.rmtree(RESULTS / "found" / tool.name, ignore_errors=True)
        for task in tasks:
            contest.run(ground, tool, task, seconds)
    for task in strange(tasks):
        contest.run(ground, TOOLS[0], task, seconds)


def peers(ground: Ground, tools: Sequence[Tool], tasks: Sequence[Task], seconds: float) -> None:
    """Kept as long as their versions are: delete bench/results to ask again."""
    for tool in tools:
        why = contest.installed(ground, tool)
        note(tool, why)
        for task in () if why else tasks:
            contest.run(ground, tool, task, seconds)


def times(ground: Ground, tools: Sequence[Tool], tasks: Sequence[Task], seconds: float) -> None:
    for tool in tools:
        for task in tasks:
            if task.kind == CARDS and tool.timed and not contest.installed(ground, tool):
                shutil.rmtree(RESULTS / "time" / tool.name, ignore_errors=True)
                contest.run(ground, tool, task, seconds, timed=True)


def few(tasks: Sequence[Task], chats: int) -> list[Task]:
    """The first conversations only, in both forms."""
    names = list(dict.fromkeys(task.name for task in tasks if task.kind == CHAT))[:chats]
    return [task for task in tasks if task.kind in (CARDS, NOTES) or task.name in names]


def strange(tasks: Sequence[Task]) -> list[Task]:
    rows = UNRELATED.read_text(encoding="utf-8")
    return [sets.unrelated(task, rows) for task in tasks if task.kind in (CARDS, NOTES)]


def note(tool: Tool, why: str) -> None:
    path = RESULTS / "problems.json"
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**held, tool.name: why}), encoding="utf-8")


def collect(ground: Ground, tasks: Sequence[Task]) -> dict[str, Any]:
    """Everything that was measured, as the report takes it."""
    found = {
        (path.parent.name, path.stem): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((RESULTS / "found").glob("*/*.json"))
    }
    clocks = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("time/*/*.json")}
    problems = RESULTS / "problems.json"
    own = [tool for tool in TOOLS if tool.module == "itself"]
    ran = [tool for tool in TOOLS if any(name == tool.name for name, _ in found)]
    return {
        "date": datetime.date.today().isoformat(),
        "speed": [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("speed-*.json"))],
        "answers": list(figures.answers(own, tasks, found)),
        "silence": figures.silence(TOOLS[0], strange(tasks), found),
        "beside": figures.beside([tool for tool in ran if tool.timed], tasks, found),
        "times": [
            {"label": tool.label, **clocks[tool.name]} for tool in TOOLS if "whole_ms" in clocks.get(tool.name, {})
        ],
        "how": [told(tool) for tool in ran if tool.timed],
        "missing": list(
            figures.missing(TOOLS, found, json.loads(problems.read_text(encoding="utf-8")) if problems.exists() else {})
        ),
    }


def told(tool: Tool) -> dict[str, str]:
    peer = tool.peer()
    return {"name": peer.NAME, "version": peer.VERSION, "licence": peer.LICENCE, "how": peer.HOW}


if __name__ == "__main__":
    main()
