"""What a hook and a recall load before a server answers: hardly more than a bare interpreter holds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Each costs a tenth of a bare interpreter's start, or several times that.
DEAR = {"os", "io", "json", "re", "pathlib", "socket", "signal", "subprocess", "typing", "dataclasses", "threading"}
FREE = {"io"}  # loaded with the interpreter itself


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (("khms.server.client", "khms.server.address", "khms.server.asking"), set()),
        (("khms.cli.quick", "khms.server.address", "khms.server.asking"), {"os"}),  # the console script has it
    ],
)
def test_nothing_dear_is_loaded(names: tuple[str, ...], more: set[str]) -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        f"sys.path.append({str(Path(__file__).parents[2])!r})\n"
        f"for name in {names!r}: __import__(name)\n"
        "came = sorted(set(sys.modules) - before)\n"
        "import json\n"
        "print(json.dumps(came))\n"
    )
    done = subprocess.run([sys.executable, "-IS", "-c", code], capture_output=True, check=True, timeout=60)
    came = set(json.loads(done.stdout))
    assert set(names) <= came
    assert came & DEAR <= FREE | more
