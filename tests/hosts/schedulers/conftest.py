"""What the tests of schedulers share beside tests/conftest.py.

base        the temporary base, trusted
programs    a folder that is all of PATH: git and the few programs it needs, and what a test puts there
crontab     a user's table: crontab.read() -> bytes, None where there is none; crontab.write(bytes), past all checks;
            crontab.calls() -> the words of each call. The program behaves like Debian's.
systemctl   a manager of the user: systemctl.calls(), systemctl.fail("enable") from now on
launchctl   the same for launchd
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store import trust
from khms.store.layout import Base
from khms.store.repo import Repo

NEEDED = ("git", "sh", "env", "ssh-keygen", "cat", "sleep")
HEAD = """#!{python} -IS
import os, re, sys
from pathlib import Path
here = Path({here!r})
with open(here / "calls", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
def refuse(text, code=1):
    sys.exit(print(text, file=sys.stderr) or code)
failing = here / "failing"
if failing.exists() and failing.read_text() in sys.argv:
    refuse("it is told to fail", 3)
"""
CRONTAB = """
table = here / "table"
denied = here / "denied"
if denied.exists():
    refuse("You (ada) are not allowed to use this program (crontab)")
if sys.argv[1:] == ["-l"]:
    if not table.exists():
        refuse("no crontab for ada")
    sys.stdout.buffer.write(table.read_bytes().replace(b"\\r", b"\\\\r"))  # so does Debian's
elif sys.argv[1:] == ["-e"]:
    sys.exit(os.system(f"{os.environ['VISUAL']} {table}"))
elif sys.argv[1:] == ["-r"]:
    table.unlink()
elif sys.argv[1:] == ["-"]:
    content = sys.stdin.buffer.read()
    if content and not content.endswith(b"\\n"):
        refuse("new crontab file is missing newline before EOF, can't install.")
    for number, line in enumerate(content.split(b"\\n"), 1):
        job = rb"(@\\w+|[1-5]?\\d [12]?\\d \\* \\* [\\d*]|[\\d*/,-]+([ \\t]+[\\w*/,-]+){4})[ \\t]+\\S.*"
        if not re.fullmatch(rb"\\s*(#.*)?|\\s*\\w+\\s*=.*|\\s*" + job, line, re.DOTALL):
            refuse(f'"-":{number}: bad minute\\nerrors in crontab file, can\\'t install.')
    table.write_bytes(content)
else:
    refuse("crontab: usage error")
"""
SYSTEMCTL = """
units = Path(os.environ["HOME"], ".config/systemd/user")
assert sys.argv[1] == "--user"
if (here / "no-bus").exists():
    refuse("Failed to connect to bus: No medium found")
words = [word for word in sys.argv[3:] if not word.startswith("-")]
for word in words:
    link = units / "timers.target.wants" / word
    if sys.argv[2] == "enable":
        if not (units / word).is_file():
            refuse(f"Failed to enable unit: Unit file {word} does not exist.")
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(units / word)
    elif sys.argv[2] == "disable":
        link.unlink(missing_ok=True)
"""
LAUNCHCTL = """
label = sys.argv[-1].rpartition("/")[2].removesuffix(".plist")
loaded = here / f"{label}.loaded"
if sys.argv[1] == "bootout":
    if not loaded.exists():
        refuse("Boot-out failed: 3: No such process", 3)
    loaded.unlink()
elif sys.argv[1] == "bootstrap":
    if loaded.exists():
        refuse("Bootstrap failed: 5: Input/output error", 5)
    loaded.write_bytes(Path(sys.argv[3]).read_bytes())
"""


class Program:
    """A scripted program: what it keeps stands in `here`."""

    def __init__(self, folder: Path, here: Path, name: str, code: str) -> None:
        self.here = here / name
        self.here.mkdir()
        self.program = folder / name
        self.program.write_text(HEAD.format(python=sys.executable, here=str(self.here)) + code, encoding="utf-8")
        self.program.chmod(0o755)

    def calls(self) -> list[str]:
        file = self.here / "calls"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def fail(self, word: str) -> None:
        (self.here / "failing").write_text(word, encoding="utf-8")

    def mark(self, name: str) -> None:
        (self.here / name).touch()

    def read(self) -> bytes | None:
        table = self.here / "table"
        return table.read_bytes() if table.exists() else None

    def write(self, content: bytes) -> None:
        (self.here / "table").write_bytes(content)


@pytest.fixture
def base(base: Base) -> Base:
    trust.record(base, Repo(base.root))
    return base


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("USER", "ada")
    return folder


def _program(name: str, code: str) -> "Callable[[Path, Path], Program]":
    def make(programs: Path, tmp_path: Path) -> Program:
        return Program(programs, tmp_path, name, code)

    return pytest.fixture(name=name)(make)


crontab = _program("crontab", CRONTAB)
systemctl = _program("systemctl", SYSTEMCTL)
launchctl = _program("launchctl", LAUNCHCTL)


@pytest.fixture
def bare() -> dict[str, str]:
    """What cron hands to a command."""
    return {"HOME": os.environ["HOME"], "LOGNAME": "ada", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
