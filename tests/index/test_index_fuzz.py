"""Bytes of the index that are not as they were written: an answer is right or there is none, and nothing crashes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from khms.index import sync
from khms.store.layout import Base

# A process of its own: damaged bytes can end a library, and with it the process, by a signal.
CODE = """
import json, os, shutil, sys
from pathlib import Path
from khms.errors import Unavailable
from khms.index import sync
from khms.recall.search import recall
from khms.store.layout import Base

base, clean = Base(Path(sys.argv[1])), Path(sys.argv[2])
shutil.copytree(base.index, clean, copy_function=shutil.copy2)
QUERIES = ("needle lampdrift", "tag:gotcha", '"a loose ground"')

def answers(**options):
    found = [recall(base, query, **options) for query in QUERIES]
    return [[hit.id for hit in answer] for answer in found], [answer.rebuilt for answer in found if answer.rebuilt]

def harms(data):
    middle, end = len(data) // 2, len(data)
    yield "middle flipped", data[:middle] + bytes([data[middle] ^ 16]) + data[middle + 1:]
    yield "last flipped", data[:-1] + bytes([data[-1] ^ 128])
    yield "0xff", data[: middle // 2] + b"\\xff" * (middle + 1) + data[middle // 2 + middle + 1:]
    yield "cut", data[:middle]
    yield "deleted", None

def is_of_vectors(name):
    return name.name.partition("-")[0] in ("vectors", "pieces", "records", "models.json")

right, rebuilt = answers(refresh=True)
assert right[0] and not rebuilt
trials, silent = 0, 0
names = sorted(path.relative_to(clean) for path in clean.rglob("*") if path.is_file() and path.suffix != ".lock")
for name in names:
    data = (clean / name).read_bytes()
    for what, harmed in harms(data) if data else ():
        for kept in (False, True):
            if kept and (harmed is None or len(harmed) != len(data)):
                continue
            base.index.rename(clean.parent / f"old-{trials}")  # a thread of the engine may still be at work in there
            shutil.copytree(clean, base.index, copy_function=shutil.copy2)
            path, at = base.index / name, (clean / name).stat().st_mtime_ns
            path.unlink()
            if harmed is not None:
                path.write_bytes(harmed)
                if kept:
                    os.utime(path, ns=(at, at))
            place = f"{name} {what} {kept}"
            try:
                found, _ = answers(snippets=False)
                assert kept or found == right or is_of_vectors(name), place
            except Unavailable:
                silent += 1
            found, rebuilt = answers(refresh=True)
            assert kept or found == right, place
            assert len(rebuilt) <= 1 and "\\n" not in "".join(rebuilt), place
            assert kept or rebuilt or sync.verify(base) == "", place
            assert kept or recall(base, QUERIES[0]).channel == "hybrid", place
            trials += 1
print(json.dumps([trials, silent]))
"""


def test_any_damage(
    base: Base, add_card: Callable[..., Path], tmp_path: Path, commit: Callable[..., str], told: Callable[[str], None]
) -> None:
    for number in range(1, 9):
        body = f"needle{number} lampdrift needle\nFIX: tighten a loose ground, number {number}\n"
        add_card(base, f"K-{number:05d}", title=f"Ground {number}", tags=["gotcha"], body=body)
    commit(base)
    sync.refresh(base)
    add_card(base, "K-00003", title="Ground three", body="needle lampdrift\n")  # a second segment, and a deletion
    sync.refresh(base)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(base.root), str(tmp_path / "clean")],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    trials, silent = json.loads(done.stdout)
    assert silent > trials / 2
    told(f"{trials} damaged indexes: every answer right or none, each mended by the next recall")
