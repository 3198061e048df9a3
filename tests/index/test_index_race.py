"""Many processes write, index and ask at once: nothing is lost, nobody sees a traceback or an empty answer."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from khms.index import current, sync
from khms.store.layout import Base

PROCESSES, ROUNDS = 6, 5
CODE = """
import json, sys
from pathlib import Path
from khms.errors import Busy
from khms.index import sync
from khms.recall.search import recall
from khms.store.files import write_atomic
from khms.store.layout import Base

base, name, rounds = Base(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
busy = 0
for number in range(rounds):
    write_atomic(base.know / f"{name}-{number}.md", f"lampdrift of {name}\\n".encode())
    try:
        sync.refresh(base, wait=0.05, rebuild=number == 3 and name == "p0")
    except Busy:
        busy += 1
    assert any(hit.id == "K-00001" for hit in recall(base, "anchor lampdrift", limit=50)), number
print(json.dumps(busy))
"""


def test_many_at_once(base: Base, add_card: Callable[..., Path]) -> None:
    add_card(base, "K-00001", body="anchor lampdrift anchor\n")
    sync.refresh(base)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, str(base.root), f"p{number}", str(ROUNDS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        for number in range(PROCESSES)
    ]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        json.loads(out)
    sync.refresh(base)
    reader, _ = current.opened(base)
    held = {document.path for document in reader.everything()}
    expected = {f"memory/know/p{p}-{n}.md" for p in range(PROCESSES) for n in range(ROUNDS)}
    assert expected | {"memory/know/K-00001.md", "journal/2026-03-04.md"} == held
    assert sync.verify(base) == ""
