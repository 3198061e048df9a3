"""A kill loop over real processes: SIGKILL after every writing primitive of a command, then the command again.

A warmed process imports khms once and forks for each run, so that a run costs no interpreter start; what is killed is
a whole process with its own descriptors and locks all the same.
"""

import contextlib
import importlib
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

LIMIT = 120  # seconds after which a run counts as hung
KILLED = -signal.SIGKILL
HOST_VARIABLES = ("CLAUDE", "COPILOT", "GEMINI", "CURSOR", "CODEX", "KHMS", "OPENCODE", "KIRO", "HERMES", "OPENCLAW")
GIT_CONFIG = "[user]\n\tname = Ada Example\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
LAZY = (
    *("click", "git.cmd", "jsonschema", "referencing", "yaml", "frontmatter", "rich.console", "platformdirs"),
    *("tomllib", "tempfile", "difflib", "jinja2", "tantivy", "detect_secrets", "encodings.idna"),
)


@dataclass(frozen=True, slots=True)
class Done:
    """How a run ended: `status` is the exit code, or minus the signal that ended it."""

    status: int
    out: str
    err: str


class Runner:
    """Runs khms command lines in forks of one warmed process. `home` is the user's folder that they see."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        (home / ".gitconfig").write_text(GIT_CONFIG, encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment(home),
        )

    def run(self, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Done:
        """Runs `khms <command>` with `folder` as the current folder and `env` laid over the environment."""
        assert self._process.stdin and self._process.stdout
        request = {"command": list(command), "folder": str(folder), "env": dict(env or {})}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Done(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(LIMIT)
        self._process.stdout.close()


@contextlib.contextmanager
def runner(home: Path) -> Iterator[Runner]:
    made = Runner(home)
    try:
        yield made
    finally:
        made.close()


def foreign_commit(folder: Path) -> None:
    """Somebody else commits a file of theirs between the kill and the next command, if git lets them."""
    (folder / "foreign.txt").write_text("theirs\n", encoding="utf-8")
    for command in (["add", "foreign.txt"], ["commit", "--quiet", "-m", "theirs"]):
        subprocess.run(
            ["git", "-c", "user.name=Eve Foreign", "-c", "user.email=eve@example.org", *command],
            cwd=folder,
            capture_output=True,
            check=False,
        )


def environment(home: Path) -> dict[str, str]:
    """The environment of a fresh user: no agent host, no git settings but a name, no khms settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith((*HOST_VARIABLES, "GIT_", "XDG_"))}
    return {
        **kept,
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "KHMS_CONFIG_HOME": str(home / "config"),
        "KHMS_DATA_HOME": str(home / "data"),
    }


def kill_points(
    prepare: Callable[[Path], None],
    command: list[str],
    check: Callable[[Path], None],
    between: Callable[[Path], None] | None = None,
    *,
    accept: Sequence[int] = (0,),
    step: int = 1,
    first: int = 1,
    twice: bool = False,
) -> int:
    """Kills `khms <command>` after its n-th writing primitive, for every n, and each time runs the command again.

    prepare  fills an empty folder, once; every round starts from a copy of it at the same path
    between  is called after each kill, before the second run: what must hold even then
    check    is called after the second run, and once after a run that was not killed
    accept   the exit codes that the second run may end with
    step     only every step-th point, beginning with `first`: for an ordinary test run
    twice    the second run is killed as well, at the same point, and a third one follows

    Returns the number of points where the process was killed; at least one, or the test proves nothing.
    """
    with tempfile.TemporaryDirectory(prefix="khms-kill-") as name, runner(Path(name) / "home") as khms:
        folder, kept = Path(name) / "base", Path(name) / "kept"
        folder.mkdir()
        prepare(folder)
        folder.rename(kept)
        n, killed = first, 0
        while True:
            shutil.copytree(kept, folder, symlinks=True)
            done = khms.run(command, folder, {"KHMS_KILL_AT": str(n)})
            ended = done.status != KILLED
            try:
                if ended:
                    assert done.status in accept, done
                else:
                    killed += 1
                    _go_on(khms, command, folder, n if twice else None, between, accept)
                check(folder)
            except BaseException as error:
                error.add_note(f"khms {' '.join(command)}: " + ("not killed" if ended else f"killed at point {n}"))
                raise
            shutil.rmtree(folder)
            if ended:
                assert killed, "the command did no writing primitive: nothing was proved"
                return killed
            n += step


def _go_on(
    khms: Runner,
    command: list[str],
    folder: Path,
    again_at: int | None,
    between: Callable[[Path], None] | None,
    accept: Sequence[int],
) -> None:
    if between:
        between(folder)
    if again_at is not None:
        khms.run(command, folder, {"KHMS_KILL_AT": str(again_at)})
        if between:
            between(folder)
    done = khms.run(command, folder)
    assert done.status in accept, done


def _serve() -> None:
    """The warmed process: one request a line, one fork a request."""
    _warm()
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _run(request, out.fileno(), err.fileno())
            _, status = os.waitpid(child, 0)
            answer = {"status": os.waitstatus_to_exitcode(status), "out": _text(out), "err": _text(err)}
        print(json.dumps(answer), flush=True)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _run(request: dict[str, Any], out: int, err: int) -> None:
    status = 70
    try:
        signal.alarm(LIMIT)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.chdir(request["folder"])
        os.environ.update(request["env"])
        from khms.__main__ import main

        sys.argv = ["khms", *request["command"]]
        status = main()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as done:
        status = done.code if isinstance(done.code, int) else 1
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _warm() -> None:
    """Imports what commands import late. A module that cannot be imported fails in the command that needs it."""
    import khms

    names = [*LAZY, *(module.name for module in pkgutil.walk_packages(khms.__path__, "khms."))]
    for name in names:
        if name != "khms.__main__":
            with contextlib.suppress(Exception):
                importlib.import_module(name)


if __name__ == "__main__":
    _serve()


def git(folder: Path, *args: str) -> str:
    """Standard output, or git's own words after `failed`."""
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr}"


def assert_whole(folder: Path) -> None:
    """What holds after every run: nothing dangling, nothing uncommitted but what the foreign commit could not take."""
    assert "failed" not in git(folder, "fsck", "--strict")
    left = git(folder, "status", "--porcelain").splitlines()
    assert left in ([], ["A  foreign.txt"], ["?? foreign.txt"]), left
    assert not (folder / ".git/index.lock").exists()
    assert not (folder / ".git/khms/intent.json").exists()
    assert not [path for path in folder.rglob(".khms-tmp-*") if ".khms" not in path.parts]


def copy_of(root: Path) -> Callable[[Path], None]:
    """Fills a folder with a copy of the base at `root`."""

    def prepare(folder: Path) -> None:
        subprocess.run(["cp", "-a", f"{root}/.", str(folder)], check=True)

    return prepare
