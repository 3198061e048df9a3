"""One tool over one folder of Markdown files, run by the Python that the tool is installed in.

    python -P bench/driver.py MODULE MODE DOCUMENTS STATE PLACE < QUESTIONS > ANSWERS

A line of input is a question as a JSON string. The first line of output tells how long indexing took, every further one
the names of the files found, best first, and how long the tool took. It imports nothing but the standard library and
the tool's module of bench/peers, so that it runs in any environment.
"""

import contextlib
import importlib.util
import io
import json
import sys
import time
from pathlib import Path


def main(module: str, mode: str, documents: str, state: str, place: str) -> None:
    said = sys.stdout
    spec = importlib.util.spec_from_file_location("peer", Path(__file__).with_name("peers") / f"{module}.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"there is no peer {module}")
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    with contextlib.redirect_stdout(io.StringIO()):  # what a tool prints on the way is no answer
        began = time.perf_counter()
        ask = peer.opened(Path(documents), Path(state), Path(place), mode)
        print(json.dumps({"index_s": round(time.perf_counter() - began, 2)}), file=said, flush=True)
        for line in sys.stdin:
            began = time.perf_counter()
            found = list(dict.fromkeys(Path(name).name for name in ask(json.loads(line))))
            took = (time.perf_counter() - began) * 1000
            print(json.dumps({"found": found[:10], "ms": round(took, 2)}), file=said, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:6])
