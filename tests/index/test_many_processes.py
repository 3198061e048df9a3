"""Ten processes ask while one approves and one indexes: nobody fails, and an approved card is found by every question
that begins after the approval has returned.

KHMS_SOAK=n makes it five minutes (`make soak`).
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.index import sync
from khms.measure import synthetic
from khms.store import markdown
from khms.store.layout import Base

SOAK = bool(os.environ.get("KHMS_SOAK"))
SECONDS = 300 if SOAK else 15
ASKING = 10
CARDS = 300
WAITING = 2 * SECONDS  # candidates, more than can be let in meanwhile
UNIT = "2026-03-04-nightly"
LINE = "frames failed because a ground was loose"

# Each line of the ledger is a card that was let in, written after the approval has returned.
ASK = """
import json, random, subprocess, sys, time
from pathlib import Path
from khms.recall.search import recall
from khms.store.layout import Base

base, (ledger, stop), number, program = Base(Path(sys.argv[1])), map(Path, sys.argv[2:4]), int(sys.argv[4]), sys.argv[5]
rng = random.Random(number)
took, late, by_command = [], 0, 0
while not stop.exists():
    known = [line.split() for line in ledger.read_text().splitlines()]
    word, card = rng.choice((known[-1], rng.choice(known)))
    began = time.perf_counter()
    if number == 0 and rng.random() < 0.2:
        done = subprocess.run([program, "--root", str(base.root), "recall", word, "--json"], capture_output=True)
        assert done.returncode == 0 and b"Traceback" not in done.stderr, (word, done)
        found = [hit["id"] for hit in json.loads(done.stdout)["hits"]]
        by_command += 1
    else:
        answer = recall(base, word, refresh=True)
        found = [hit.id for hit in answer]
        late += bool(answer.failed)
        took.append(time.perf_counter() - began)
    assert found[:1] == [card], (word, card, found)
print(json.dumps([took, late, by_command]))
"""
INDEX = """
import json, sys, time
from pathlib import Path
from khms.errors import Busy
from khms.index import sync
from khms.store.layout import Base

base, stop = Base(Path(sys.argv[1])), Path(sys.argv[3])
done, busy = 0, 0
while not stop.exists():
    try:
        sync.refresh(base)
        done += 1
    except Busy:
        busy += 1
print(json.dumps([done, busy]))
"""


def word_of(number: int) -> str:
    """A word of letters alone, one for each card; a candidate's numbers would have to stand in its quote."""
    return "lamp" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:04d}") + "drift"


def fill_unit(base: Base, count: int) -> None:
    synthetic.fill_unit(base.root, UNIT, count, LINE)
    for number in range(1, count + 1):
        path = base.inbox / UNIT / f"C{number}.md"
        page = markdown.parse(path.read_bytes())
        path.write_text(
            markdown.render({**page.meta, "title": f"The {word_of(number)} needs a ground"}, page.body),
            encoding="utf-8",
        )


@pytest.mark.slow
def test_ten_ask_while_one_approves_and_one_indexes(
    base: Base, commit: Callable[..., str], tmp_path: Path, run_khms: Callable[..., Any], told: Callable[[str], None]
) -> None:
    synthetic.fill(base.root, CARDS)
    fill_unit(base, WAITING)
    commit(base)
    sync.refresh(base)
    ledger, stop = tmp_path / "ledger", tmp_path / "stop"
    program = str(Path(sys.executable).parent / "khms")
    letting_in = iter(range(1, WAITING + 1))

    def approve() -> None:
        number = next(letting_in)
        done = run_khms("approve", UNIT, f"C{number}", "--unjudged", "--json", cwd=base.root)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
        card = json.loads(done.stdout)["cards"][0]["id"]
        with ledger.open("a", encoding="utf-8") as file:
            file.write(f"{word_of(number)} {card}\n")

    approve()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(base.root), str(ledger), str(stop), str(number), program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        for number, code in enumerate([ASK] * ASKING + [INDEX])
    ]
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until and all(process.poll() is None for process in running):
            approve()
    finally:
        stop.write_text("", encoding="utf-8")
        said = [(process.communicate(timeout=300), process.returncode) for process in running]
    assert [err for (_, err), status in said if status or err] == []
    answers = [json.loads(out) for (out, _), _ in said]
    took = sorted(seconds for times, _, _ in answers[:ASKING] for seconds in times)
    late = sum(count for _, count, _ in answers[:ASKING])
    approved = len(ledger.read_text(encoding="utf-8").splitlines())
    assert len(took) > ASKING and approved > 1 and answers[0][2]
    assert sync.verify(base) == ""
    assert sync.refresh(base).docs == CARDS + approved + WAITING + 1
    told(
        f"{len(took)} questions of {ASKING} processes in {SECONDS} s, {approved} cards approved and"
        f" {answers[ASKING][0]} refreshes meanwhile: each found it; p50 {took[len(took) // 2] * 1000:.0f} ms,"
        f" p95 {took[len(took) * 95 // 100] * 1000:.0f} ms; {late} answers by an index that another process was writing"
    )
