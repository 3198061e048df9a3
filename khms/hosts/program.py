"""Running a git host's own program (`gh`, `glab`): found on PATH, without prompts, within a time limit."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from khms.hosts.forge import Failed
from khms.store import files

SECONDS = 60.0
QUIET = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "NO_PROMPT": "1",
    "NO_COLOR": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "KHMS_HOOKS_OFF": "1",
    "KHMS_BACKGROUND": "1",
}


def there(name: str) -> bool:
    return shutil.which(name) is not None


def run(name: str, *args: str, stdin: str = "", folder: Path | None = None) -> tuple[int, str, str]:
    """(exit code, standard output, the last line of standard error); raises Failed where it is not there or takes too
    long. What it started ends with it."""
    program = shutil.which(name)
    if program is None:
        raise Failed(f"{name} is not on PATH")
    try:
        process = subprocess.Popen(
            [program, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, **QUIET},
            start_new_session=True,
        )
    except OSError as error:
        raise Failed(f"{name} cannot be run: {error.strerror}") from error
    try:
        out, err = process.communicate(stdin.encode("utf-8", "replace"), timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name} did not end within {SECONDS:.0f} seconds") from error
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    files.tick()
    said = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    return process.returncode, out.decode("utf-8", "replace"), said[-1][:300] if said else ""
