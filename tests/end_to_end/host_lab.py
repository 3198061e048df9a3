"""A laboratory for agent hosts' own programs: a home, a project, a base with something to say at three moments of a
session, and what a model on loopback was asked."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# The tests' own environment is scrubbed of such names before a test begins.
HOSTS = Path(os.environ.get("KHMS_TEST_HOSTS") or os.path.normpath(Path(__file__).parents[2] / ".." / "hosts"))
PROMPT = "why is there a checksum mismatch on the frames of the weather station?"
ANSWER = "MOCK FINAL ANSWER"
# The commands that the scripted model asks for carry the name; they are none of khms's doing.
NOT_OURS = ("hello-khms", "nonexistent-khms")
HEAD, TAIL = "[khms] Reference data from ", "[/khms]"


@dataclass(frozen=True)
class Session:
    """What came of a session that ended well: the project's files, each request that reached the model as the texts in
    it, and what was printed."""

    files: dict[str, str]
    requests: list[str]
    printed: str


@dataclass(frozen=True)
class Lab:
    root: Path
    runner: Path
    run_khms: Callable[..., "subprocess.CompletedProcess[str]"]

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def base(self) -> Path:
        return self.root / "base"

    def khms(self, *args: str | Path, input: str = "") -> str:
        """Runs khms as the user of the laboratory, in the base, and wants it to succeed."""
        env = {"HOME": str(self.home), "KHMS_CONFIG_HOME": "", "KHMS_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
        where = self.base if self.base.is_dir() else self.root
        done = self.run_khms(*args, cwd=where, env=env, input=input)
        assert done.returncode == 0, f"khms {args}: {done.stdout}{done.stderr}"
        return done.stdout

    def card(self, *, warm: bool = False) -> dict[str, str]:
        """A base with a card about the prompt, which is returned."""
        self.khms("init", self.base)
        self.khms("config", "set", "hooks.deadline_ms", "4500")  # a busy machine must not decide what is said
        if not warm:  # nor be left with a server: no variable is passed on
            self.khms("config", "set", "server.enabled", "off")
        return self.learn("checksum mismatch on frame 7 of the weather station was a loose ground, not timing")

    def learn(self, solved: str) -> dict[str, str]:
        """The card that was made of a mark."""
        self.khms("mark", "solved", solved)
        return self._approved(json.loads(self.khms("nightly", "--json"))["unit"], "--all")

    def furnish(self) -> tuple[str, str]:
        """A base with a card about the prompt, a card about a command, and a unit that awaits review: the ids of the
        first two, in that order."""
        about = self.card()
        with (self.base / "khms.toml").open("a", encoding="utf-8") as file:
            file.write('\n[precheck.classes.listing]\npatterns = ["ls"]\ntags = ["listing"]\n')
        kind = ("card", "new", "fact", "--tag", "listing", "--tag", "gotcha", "--evidence", "observed", "--body", "-")
        named = ("--title", "Do not list the archive folder by day", "--source", "https://example.org/archive")
        wakes = "It wakes the tape robot, which then blocks the morning run for an hour."
        unit = json.loads(self.khms(*kind, *named, "--json", input=wakes))["unit"]
        risky = self._approved(unit, "C1", "--accept-unchecked", "quotes")
        self.khms("mark", "solved", "the barometer drifts when its enclosure heats up in the sun")
        self.khms("nightly")
        return about["id"], risky["id"]

    def _approved(self, unit: str, *how: str) -> dict[str, str]:
        done = json.loads(self.khms("approve", unit, *how, "--relation", "C1=new", "--json"))
        card: dict[str, str] = done["cards"][0]
        return card

    def status(self, host: str) -> dict[str, Any]:
        """How the user's own settings of the host stand."""
        rows = json.loads(self.khms("hook", "status", host, "--json"))["hosts"]
        return next(row for row in rows if row["scope"] == "user")

    def log(self) -> list[dict[str, Any]]:
        """What hooks did in the base."""
        file = self.base / ".khms" / "log" / "inject.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def session(self, host: str, *args: str, reply: str = "") -> Session:
        """A session in which the model asks for one tool after another, or, with a reply, says that at once."""
        mode = {"MODE": "script"}
        if reply:
            (self.root / "reply.txt").write_text(reply, encoding="utf-8")
            mode = {"MODE": "text", "REPLY": str(self.root / "reply.txt")}
        for old in (*(self.root / "req").glob("*"), *(self.root / "proj").glob("*.txt")):
            old.unlink()
        done = subprocess.run(
            [self.runner, host, self.root, *args],
            env={**os.environ, "HOSTS": str(HOSTS), "KHMS_ROOT": str(self.base), **mode},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert (reply or ANSWER) in done.stdout, done.stdout + done.stderr
        asked = sorted((self.root / "req").glob("[0-9]*.json"))
        bodies = [json.loads(file.read_text(encoding="utf-8"))["body"] for file in asked]
        files = {file.name: file.read_text(encoding="utf-8") for file in (self.root / "proj").glob("*.txt")}
        return Session(files, ["".join(texts(body)) for body in bodies], done.stdout)

    def of_khms(self, request: str) -> str:
        """The lines of a request, outside of what khms framed, that name khms other than by where this stands."""
        for name in (*NOT_OURS, str(self.root)):
            request = request.replace(name, "")
        while HEAD in request:
            before, _, rest = request.partition(HEAD)
            inside, tail, after = rest.partition(TAIL)
            assert tail and len(inside) <= 900, "a frame without end, or more than a hook may say"
            request = before + after
        return "\n".join(line for line in request.splitlines() if "khms" in line.casefold())

    def told_apart(self, session: Session, about: str, risky: str) -> None:
        """Every request of the session holds what waits and the card about the prompt once, the card about the command
        from that command on, once, and nothing else of khms."""
        heard = 0
        for request in session.requests:
            assert request.count(HEAD + str(self.base)) == 2 + (risky in request), self.of_khms(request)
            assert request.count("1 candidate awaits review") == 1
            assert request.count(f"{about} ") == 1 and request.count(f"{about}.md") == 1
            assert request.count(f"{risky} ") == ("No such file or directory" in request)
            assert self.of_khms(request) == ""
            heard += risky in request
        assert 0 < heard < len(session.requests), "it was not said, or before there was a command"

    def silent(self, session: Session) -> None:
        """Nothing of khms is in any request."""
        for request in session.requests:
            self.quiet(request)

    def quiet(self, request: str) -> None:
        """Nothing of khms is in this."""
        assert HEAD not in request and self.of_khms(request) == "", self.of_khms(request)

    def pointed(self, request: str, card: dict[str, str]) -> str:
        """A request that holds the card once, in the one frame of khms: what stands before that."""
        assert request.count(card["id"] + " ") == 1 and request.count(card["path"]) == 1, self.of_khms(request)
        before, _, rest = request.partition("[khms] ")
        framed, _, after = rest.partition("\n[/khms]")
        first, *lines = framed.splitlines()
        assert first == f"Reference data from {self.base}; open the file before relying on it"
        assert card["id"] in framed and len(lines) >= 1 and len(framed) <= 900
        self.quiet(before)
        self.quiet(after)
        return before


def same(left: Session, right: Session) -> None:
    """The two came to the same."""
    assert left.files == right.files and len(left.requests) == len(right.requests)


def texts(value: Any) -> Iterator[str]:
    """Every text in a request's body, in its order."""
    if isinstance(value, str):
        yield value + "\n"
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


def laboratory(
    programs: str,
    title: str,
    tmp_path: Path,
    home: Path,
    shared: Callable[[str], Path],
    run_khms: Callable[..., "subprocess.CompletedProcess[str]"],
) -> Lab:
    """Skips where the host's program is missing; moves the user's home into the laboratory."""
    runner = shared("hosts-lab/run_host.sh")
    if not list(HOSTS.glob(programs)):
        pytest.skip(f"needs the program of {title}: {HOSTS / programs}")
    root = tmp_path / "lab"
    root.mkdir()
    home.rename(root / "home")
    return Lab(root, runner, run_khms)
