"""The client that a host runs: whatever happens behind it, the host sees exit code 0 and at most an answer."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms import server
from khms.resources import folder

CLIENT = folder("hooks") / "client.py"
PATIENCE = 60  # seconds after which a client counts as hanging

Run = Callable[..., tuple[str, list[str]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the client, in which no server can be started, against a khms.hooks.run of the given text; returns its
    standard output and its log's lines."""
    log = tmp_path / "log"
    site = tmp_path / "site"
    (site / "khms" / "hooks").mkdir(parents=True)
    for package in ("khms", "khms/hooks"):
        (site / package / "__init__.py").write_text("", encoding="utf-8")
    shutil.copytree(Path(server.__file__).parent, site / "khms" / "server")
    (site / "khms" / "server" / "launch.py").write_text("def start(base):\n    raise OSError\n", encoding="utf-8")

    def call(text: str, given: bytes | None = b"{}", env: dict[str, str] | None = None) -> tuple[str, list[str]]:
        log.write_text("", encoding="utf-8")
        module = (
            f"LOG = {str(log)!r}\ndef log(line):\n    with open(LOG, 'a') as file:\n        file.write(line + '\\n')\n"
        )
        module += "def late(host, why):\n    log(f'late {host} {why}')\n"
        (site / "khms" / "hooks" / "run.py").write_text(module + text, encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-IS", str(CLIENT), "claude-code", os.pathsep.join(["/nowhere", str(site)])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=tmp_path,
        )
        assert process.stdin and process.stdout and process.stderr
        with process, process.stdin, process.stdout, process.stderr:
            if given is not None:
                process.stdin.write(given)
                process.stdin.close()
            assert process.wait(PATIENCE) == 0
            assert process.stderr.read() == b""
            return process.stdout.read().decode("utf-8"), log.read_text(encoding="utf-8").splitlines()

    return call


def test_the_event_arrives_and_the_answer_leaves(run: Run) -> None:
    text = "def main(host, raw, why, at):\n    print(host, raw)\n    return '/a/base'\n"
    assert run(text, b'{"prompt": "\xc3\xbc"}') == ('claude-code b\'{"prompt": "\\xc3\\xbc"}\'\n', [])
    assert run(text, b"") == ("claude-code b''\n", [])


def test_a_large_event_is_read_to_its_end_and_kept_in_part(run: Run) -> None:
    out, _ = run("def main(host, raw, why, at):\n    print(len(raw))\n", b"x" * 3_000_000)
    assert 1024 * 1024 < int(out) < 1_200_000


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError('x')",
        "raise SystemExit(7)",
        "raise KeyboardInterrupt",
        "import sys; print('half an answer'); sys.stderr.write('noise'); raise RuntimeError",
        "import os; os.write(2, b'noise of a library'); assert False",
        "import warnings; warnings.warn('noise'); 1 / 0",
        "main(host, raw, why, at)",
        "import sys; sys.exit('a message')",
        "import nothing_of_that_name",
    ],
)
def test_a_fault_behind_it_is_silence(run: Run, body: str) -> None:
    assert run(f"def main(host, raw, why, at):\n    {body}\n") == ("", [])


@pytest.mark.parametrize("text", ["raise ValueError('x')", "this is no python", "main = 5", ""])
def test_a_broken_module_behind_it_is_silence(run: Run, text: str) -> None:
    assert run(text) == ("", [])


def test_an_input_without_end_is_ended_and_logged(run: Run) -> None:
    out, log = run("def main(host, raw, why, at):\n    print('said')\n", None)
    assert out == "" and len(log) == 1
    assert log[0].startswith("late claude-code ") and "standard input" in log[0]


@pytest.mark.parametrize(
    "body", ["while True: pass", "import time; time.sleep(600)", "input()", "import os; os.read(9, 1)"]
)
def test_work_without_end_is_ended_and_logged(run: Run, body: str) -> None:
    pipe = "import os; left, right = os.pipe(); os.dup2(left, 9); os.dup2(left, 0)"
    out, log = run(f"def main(host, raw, why, at):\n    {pipe}\n    {body}\n")
    assert (out, log) == ("", ["late claude-code deadline"])


def test_nothing_hinders_the_end_itself(run: Run) -> None:
    hang = "import time\ntime.sleep(600)\n"
    assert run(hang) == ("", [])
    assert run(f"def late(host, why):\n    log('late')\n    {hang.replace(chr(10), '; ')}\n{hang}", None) == ("", [])
    assert run(
        "def late(host, why):\n    raise SystemExit(5)\ndef main(host, raw, why, at):\n    " + hang.replace("\n", "; ")
    ) == ("", [])


def test_the_bases_own_deadline_counts_once_it_is_known(run: Run) -> None:
    slow = "    import time\n    time.sleep(1)\n    print('said')\n"
    assert run(f"deadline_ms = 30000\ndef main(host, raw, why, at):\n{slow}") == ("said\n", [])
    shorter = "    global deadline_ms\n    deadline_ms = 120\n    while True: pass\n"
    assert run(f"deadline_ms = 600000\ndef main(host, raw, why, at):\n{shorter}") == ("", ["late claude-code deadline"])


@pytest.mark.parametrize("words", [[], ["claude-code"], ["claude-code", ""], ["claude-code", "/nowhere", "more"]])
def test_a_wrong_call_is_silence(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-IS", str(CLIENT), *words], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "</dev/zero"])
def test_closed_and_full_and_endless_streams_are_silence(run: Run, tmp_path: Path, closed: str) -> None:
    run("def main(host, raw, why, at):\n    print('said' * 5)\n")
    words = [sys.executable, "-IS", str(CLIENT), "claude-code", str(tmp_path / "site")]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *words], input=b"", capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout in (b"", b"said" * 5 + b"\n")
