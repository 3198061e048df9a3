"""What recall takes: the hook as a host runs it, `khms recall`, the index, the server's memory."""

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from khms.errors import Unavailable
from khms.measure import decisions, synthetic
from khms.measure.row import Figure, Measure, alone
from khms.measure.stand import KHMS, Stand, prepare, ratio, recall

MANY = 40  # runs that a p95 is taken from
VECTOR_BYTES = 300  # of the index on disk that each vector may take besides the text's share
CHATTER = "ok"  # a prompt that is not worth a question


def _hook(stand: Stand, server: bool, prompt: Callable[[int], str]) -> Callable[[int], float]:
    """The hook as installed; each run is another session, so that none is held back by the one before."""
    from khms.hosts import registry, settings

    command = ["sh", "-c", f"exec {settings.hook_command(registry.host('claude-code'))}"]

    def once(n: int) -> float:
        event = {
            "session_id": f"bench-{n}-{time.time_ns()}",
            "cwd": str(stand.base),
            "hook_event_name": "UserPromptSubmit",
            "prompt": prompt(n),
        }
        return stand.time(command, stdin=json.dumps(event), server=server)

    return once


def _hook_warm(stand: Stand) -> tuple[float, float]:
    """Median, and 95th percentile over the median of the bare interpreter."""
    count = max(MANY, 2 * stand.runs)
    with stand.server():
        pairs = stand.pairs(_hook(stand, True, synthetic.question), count)
    _demand(stand, count, server=True)
    bare = statistics.median(bare for _, bare in pairs)
    slow = statistics.quantiles((one for one, _ in pairs), n=20)[-1]
    return ratio(pairs), slow / bare


def _demand(stand: Stand, count: int, server: bool) -> None:
    """Raises Unavailable where of the last `count` hooks more than one in ten asked the base nothing, or asked it in
    another way than was to be measured."""
    lines = (stand.base / ".khms" / "log" / decisions.NAME).read_text(encoding="utf-8").splitlines()[-count:]
    wrong = [line for line in map(json.loads, lines) if "query" not in line or bool(line.get("server")) is not server]
    if len(wrong) > count / 10:
        said = ", ".join(f"{key} {wrong[0].get(key)}" for key in ("decision", "reason", "server"))
        raise Unavailable(f"{len(wrong)} of {count} hooks did something else: {said}")


def _hook_cold(stand: Stand) -> float:
    took = stand.ratio(_hook(stand, False, synthetic.question))
    _demand(stand, 2 * stand.runs, server=False)
    return took


def _hook_gated(stand: Stand) -> tuple[float, float]:
    with stand.server():
        warm = stand.ratio(_hook(stand, True, lambda _: CHATTER))
    return warm, stand.ratio(_hook(stand, False, lambda _: CHATTER))


def _recall_warm(stand: Stand) -> float:
    with stand.server():
        return stand.ratio(lambda n: stand.time(recall(n), ok=(0, 1), server=True))


def _recall_cold(stand: Stand) -> float:
    return stand.ratio(lambda n: stand.time(recall(n), ok=(0, 1)))


def _probe(stand: Stand, what: str, runs: int) -> dict[str, list[float]]:
    return stand.answer([sys.executable, "-P", "-m", "khms.measure.probe", what, str(stand.base), str(runs)])


def _query(stand: Stand) -> float:
    """In a process that keeps the index and the model at hand: from the text to the whole answer as a hook asks for it,
    the stats that tell whether the index is behind among it; not the hook's own gates and log, nor the way there."""
    took = _probe(stand, "query", 10 * stand.runs)["query"]
    if not took:
        raise Unavailable("the answers were not by both channels")
    return statistics.median(took)


def _refresh(stand: Stand) -> tuple[float, float, float]:
    """In one process that has loaded what it needs, each beside `git status`: milliseconds with nothing changed, as a
    ratio, milliseconds with ten cards changed."""
    told = _probe(stand, "refresh", 2 * stand.runs)
    against = statistics.median(one / git for one, git in zip(told["nothing"], told["status"], strict=True))
    return statistics.median(told["nothing"]), against, statistics.median(told["ten"])


def _index(stand: Stand) -> tuple[float, float]:
    """The whole command, and how many times that of a tenth of the cards."""
    tenth = Stand(stand.folder / "tenth", 0, max(stand.cards // 10, 1))
    tenth.folder.mkdir()
    prepare(tenth)

    def once(one: Stand) -> float:
        shutil.rmtree(one.base / ".khms" / "index")
        return one.time([*KHMS, "index"])

    once(stand)
    pairs = [(once(stand), once(tenth)) for _ in range(stand.runs)]
    return statistics.median(one for one, _ in pairs), statistics.median(one / small for one, small in pairs)


def _memory(stand: Stand) -> float:
    """The server's proportional set size after questions and prompts, in MiB."""
    with stand.server() as told:
        for n in range(20):
            stand.time(recall(n), ok=(0, 1), server=True)
        hook = _hook(stand, True, synthetic.question)
        for n in range(20, 30):
            hook(n)
        path = Path("/proc") / str(told["pid"]) / "smaps_rollup"
        if not path.exists():
            raise Unavailable("this system does not tell the memory of a process")
        lines = path.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def _disk(stand: Stand) -> float:
    """The index less what its vectors may take, against the text."""
    from khms.index import manifest
    from khms.store.layout import Base

    base = Base(stand.base)
    known = manifest.load(base.index)
    rows = known.vectors.rows if known and known.vectors else 0
    held = sum(path.stat().st_size for path in base.index.rglob("*") if path.is_file())
    text = sum(path.stat().st_size for path in stand.base.rglob("*.md"))
    return (held - VECTOR_BYTES * rows) / text


MEASURES: tuple[Measure, ...] = (
    Measure(
        (
            Figure("hook-warm", "hook as installed, warm server", "P", 2.2),
            Figure("hook-warm-p95", "hook as installed, warm server, p95", "P", 4.0),
        ),
        _hook_warm,
    ),
    alone(Figure("hook-cold", "hook as installed, no server", "P", 5.0), _hook_cold),
    Measure(
        (
            Figure("hook-gated", "hook that a gate ends, warm server", "P", 1.8),
            Figure("hook-gated-cold", "hook that a gate ends, no server", "P", 1.8),
        ),
        _hook_gated,
    ),
    alone(Figure("recall-warm", "khms recall, warm server", "P", 5.0), _recall_warm),
    alone(Figure("recall-cold", "khms recall, no server", "P", 28.0), _recall_cold),
    alone(Figure("query", "a question by both channels, in the server", "ms", (4.0, 14.0)), _query),
    alone(Figure("memory", "memory of the server (Pss)", "MiB", (110.0, 190.0)), _memory),
    Measure(
        (
            Figure("refresh", "refresh, nothing changed", "ms", (40.0, 260.0)),
            Figure("refresh-git", "the same, against git status", "×", 1.4),
            Figure("refresh-ten", "refresh, ten cards changed", "ms", (100.0, 350.0)),
        ),
        _refresh,
    ),
    Measure(
        (
            Figure("index", "index from nothing", "s", (5.0, 55.0)),
            Figure("index-growth", "the same, against a tenth of the cards", "×", 11.0),
        ),
        _index,
    ),
    alone(Figure("disk", "index on disk less 300 bytes a vector, against the text", "×", 1.2), _disk),
)
