"""Nightly and the real programs of agent hosts, whole sessions without a network: what they keep is read and nothing of
khms's own comes back, what they answer becomes a unit, and what goes wrong with them loses nothing."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from khms.model.frame import FRAME_START, framed, run_marker
from khms.store import inbox
from khms.store.layout import Base
from tests.end_to_end.headless_lab import HOSTS, MODELS, endpoint
from tests.hosts.transcripts.test_lab import PROGRAMS, hook

pytestmark = pytest.mark.host

Khms = Callable[..., "subprocess.CompletedProcess[str]"]
AGENT = Path(__file__).parents[1] / "pipeline" / "scripted_agent.py"
NAMES = {"claude-code": "Claude Code's program"}
OTHERS = ("codex", "gemini", "copilot", "opencode")
CARDED = "LEARNT a checksum mismatch on frame 7 of the weather station was a loose ground, not timing"
ANSWERS = {
    "claude-code": "LEARNT the ground strap of the station wants a second screw",
    "codex": "LEARNT the barometer drifts by two hectopascal in direct sun",
    "gemini": "LEARNT frames longer than ninety bytes arrive torn over radio",
    "copilot": "LEARNT the logger forgets its clock when the battery is changed",
    "opencode": "LEARNT an anemometer with ice on it reports a calm night",
}
UNHEARD = "LEARNT this was said in a call of khms's own"

LINE = "frames failed because a ground was loose"  # the MARK of the `base` fixture's journal
SECOND = "the log is reopened by its name after each rotation"
VERDICT = {
    "verdict": "new",
    "candidate": {"title": "A loose ground makes frames fail", "type": "fact", "body": LINE, "tags": []},
    "quotes": [{"source": "journal", "text": LINE}],
    "relation": {"kind": "new"},
}


@dataclass(frozen=True)
class Lab:
    """A user's home, and a project that is a base, in which all sessions run."""

    root: Path
    runner: Path
    run: Khms

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def base(self) -> Path:
        return self.root / "proj"

    def khms(self, *args: str | Path, code: int = 0) -> str:
        done = self.run(
            *args, cwd=self.base, env={"HOME": str(self.home), "KHMS_CONFIG_HOME": "", "KHMS_DATA_HOME": ""}
        )
        assert done.returncode == code, f"khms {args}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout

    def scripted(self) -> str:
        """The command line of a proposer that finds a MARK in each line with the word LEARNT."""
        plan = self.root / "plan.json"
        rules = [{"when": "# The digest of", "answer": "marks"}, {"answer": "card"}]
        plan.write_text(json.dumps(rules), encoding="utf-8")
        return f"{sys.executable} -I -S {AGENT} {plan} {self.root / 'calls'}"

    def unit(self, name: str) -> list[tuple[str, str]]:
        """The source and the words of each candidate's quote."""
        base = Base(self.base)
        quotes = [candidate.quotes for unit in inbox.units(base) if unit.name == name for candidate in unit.candidates]
        assert all(len(held) == 1 and held[0].grade == "EXACT" for held in quotes)
        return [(held[0].source, held[0].text.partition(": ")[2]) for held in quotes]

    def session(self, host: str, prompt: str, answer: str, mode: str = "script") -> str:
        """One session with this prompt, in which tools run before the model answers; what reached the model."""
        flags = {
            "claude-code": ["-p", prompt],
            "codex": ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt],
            "gemini": ["--skip-trust", "-y", "-p", prompt],
            "copilot": ["-p", prompt, "--allow-all-tools"],
            "opencode": ["run", prompt],
        }
        requests = self.root / "req"
        requests.mkdir(exist_ok=True)
        for old in requests.glob("*.json"):
            old.unlink()
        reply = self.root / "reply"
        reply.write_text(answer, encoding="utf-8")
        done = subprocess.run(
            [self.runner, host.removesuffix("-code"), self.root, *flags[host]],
            env={**os.environ, "HOSTS": str(HOSTS), "MODE": mode, "REPLY": str(reply)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return "\n".join(file.read_text(encoding="utf-8") for file in sorted(requests.glob("*.json")))

    @property
    def questions(self) -> list[dict[str, Any]]:
        lines = (self.root / "calls").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def lab(tmp_path: Path, own_environment: Path, shared: Callable[[str], Path], run_khms: Khms) -> Lab:
    runner = shared("hosts-lab/run_host.sh")
    made = Lab(tmp_path / "lab", runner, run_khms)
    made.base.mkdir(parents=True)
    own_environment.rename(made.home)
    return made


def words(host: str) -> str:
    return f"why do the frames of the weather station have a checksum mismatch, {host}?"


@pytest.mark.parametrize("hosts", [("claude-code",), OTHERS], ids=["claude-code", "others"])
def test_the_sessions_of_real_hosts_are_read_and_nothing_of_khms_comes_back(hosts: tuple[str, ...], lab: Lab) -> None:
    for host in hosts:
        if not list(HOSTS.glob(f"node_modules/{PROGRAMS[host]}")):
            name = NAMES.get(host, f"the program of {host}")
            pytest.skip(f"needs {name}: {HOSTS / 'node_modules' / PROGRAMS[host]}")
    lab.khms("init", ".")
    lab.khms("config", "set", "hooks.deadline_ms", "4500")  # a busy machine must not decide what is said
    lab.khms("config", "set", "server.enabled", "off")
    lab.khms("mark", "solved", CARDED)
    unit = json.loads(lab.khms("nightly", "--json"))["unit"]
    (card,) = json.loads(lab.khms("approve", unit, "--all", "--relation", "C1=new", "--json"))["cards"]
    pointer = framed(str(lab.base), [f"{card['id']} {CARDED} ({card['path']})"])
    for host in hosts:
        if host == "claude-code":
            lab.khms("hook", "install", host)
        elif host != "opencode":  # whose plugins wait for a registry before they are loaded
            hook(host, lab.home, pointer)
        seen = lab.session(host, words(host), ANSWERS[host])
        assert host == "opencode" or (FRAME_START in seen and card["id"] in seen), f"{host} was not shown the card"
    own = [host for host in hosts if host in ("codex", "gemini")]
    for host in own:  # as if these had kept a call of khms's own
        lab.session(host, f"{run_marker('0' * 26)}\n\n{UNHEARD}", UNHEARD, mode="text")
    lab.khms("config", "set", "nightly.command", lab.scripted())
    lab.khms("config", "set", "nightly.proposer", "command")

    found = json.loads(lab.khms("nightly", "--json"))
    assert (found["problems"], found["marks"]["new"], found["marks"]["open"]) == ([], len(hosts), 0)
    counts = f"{len(hosts)} read" + (f", {len(own)} khms's own" if own else "")
    assert found["notes"] == [f"sessions and logs: {counts}; {len(hosts)} chunks to look through"]
    asked = lab.questions
    digests = {one["about"].removeprefix("session:").partition("/")[0]: one["asked"] for one in asked
               if one["about"].startswith("session:")}  # fmt: skip
    assert sorted(digests) == sorted(hosts)
    for host, digest in digests.items():
        lines = digest.splitlines()
        (person,) = [line for line in lines if line.startswith("| person")]
        assert words(host) in person
        assert [line for line in lines if line.startswith("| agent") and line.endswith(ANSWERS[host])]
        assert card["id"] not in digest and CARDED[:40] not in digest
    for one in asked:
        assert FRAME_START not in one["asked"] and UNHEARD not in one["asked"]
    assert found["candidates"] == {"published": len(hosts), "deferred": 0, "dropped": 0}
    made = lab.unit(found["unit"])
    assert sorted(text for _, text in made) == sorted(ANSWERS[host] for host in hosts)
    for source, text in made:
        assert text == ANSWERS[source.removeprefix("session:").partition("/")[0]]

    again = json.loads(lab.khms("nightly", "--json"))
    assert (again["marks"]["decided"], lab.questions) == (0, asked)


@pytest.mark.parametrize("host", ["claude", "codex", "gemini", "openai"])
def test_a_real_agent_decides_once_its_limit_is_over(
    host: str,
    tmp_path: Path,
    own_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared: Callable[[str], Path],
    base: Base,
    run_khms: Khms,
) -> None:
    model, reached = shared("hosts-lab/model_server.py"), endpoint(host, tmp_path, monkeypatch)
    (own_environment / ".gemini").mkdir()
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (own_environment / ".gemini/settings.json").write_text(json.dumps(auth), encoding="utf-8")
    settings = {"proposer": host, "model": MODELS[host], "transcripts": "all"}
    more = {"codex": {"allow_tools": "true"}, "openai": {"openai_url": reached.url}}
    for name, value in {**settings, **more.get(host, {})}.items():
        assert run_khms("config", "set", f"nightly.{name}", value).returncode == 0
    assert run_khms("trust").returncode == 0

    with reached.model(model, "429", json.dumps(VERDICT)):
        limited = run_khms("nightly", "--json")
        told = run_khms("nightly")
    assert (limited.returncode, told.returncode) == (0, 0), limited.stderr + told.stderr
    first = json.loads(limited.stdout)
    assert (first["stopped_by"], first["marks"]["open"], first["marks"]["decided"]) == ("usage limit", 1, 0)
    (line,) = [line for line in (told.stdout + told.stderr).splitlines() if "limit" in line]
    assert line.startswith(f"stopped by usage limit: {host}: ") and "next run" in line

    with reached.model(model, "script", json.dumps(VERDICT)):
        done = run_khms("nightly", "--json")
        asked = reached.requests()
        rest = run_khms("nightly", "--json")
        assert reached.requests() == asked
    assert (done.returncode, rest.returncode) == (0, 0), done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["stopped_by"], found["marks"]["new"], found["marks"]["open"]) == (None, 1, 0)
    (unit,) = inbox.units(base)
    (candidate,) = unit.candidates
    assert (unit.name, candidate.title) == (found["unit"], VERDICT["candidate"]["title"])
    assert (unit.meta["proposer"], unit.meta["calls"], found["calls"]) == (host, 1, 1)
    assert unit.meta["cost_usd"] == found["cost_usd"]
    assert (found["cost_usd"] > 0) == (host == "claude"), "the others tell no cost"
    assert json.loads(rest.stdout)["notes"] == ["sessions and logs: none found; 0 chunks to look through"]


@dataclass(frozen=True)
class Held:
    """Nightly over two MARKs, by a program that answers about the first and holds at the other."""

    base: Base
    folder: Path
    command: list[str]
    told: int

    def plan(self, *rules: dict[str, str]) -> None:
        (self.folder / "plan.json").write_text(json.dumps(rules), encoding="utf-8")

    @contextlib.contextmanager
    def start(self) -> Iterator["subprocess.Popen[str]"]:
        env = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        with subprocess.Popen(
            self.command, cwd=self.base.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            try:
                yield run
            finally:
                run.kill()

    def holding(self, run: "subprocess.Popen[str]", calls: int = 1) -> list[int]:
        """Waits until so many calls hold; handles of their keepers, programs and programs' children."""
        told, end = "", os.pidfd_open(run.pid)
        while told.count("\n") < calls:
            ready, _, _ = select.select([self.told, end], [], [], 60)
            assert self.told in ready, f"the agent was not asked: {run.communicate()}"
            told += os.read(self.told, 4096).decode()
        return [os.pidfd_open(int(pid)) for pid in told.split()]

    def asked(self) -> list[str]:
        lines = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["about"] for line in lines]

    def left(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "tmp").iterdir())


def ended(handles: list[int]) -> bool:
    """Whether each of these processes has ended, or does within seconds."""
    return all(select.select([handle], [], [], 15)[0] for handle in handles)


@pytest.fixture
def held(tmp_path: Path, base: Base, write: Callable[..., Path], run_khms: Khms) -> Iterator[Held]:
    write(base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[fact] {LINE}\n\nMARK[fact] {SECOND}\n")
    folder = tmp_path / "agent"
    (folder / "tmp").mkdir(parents=True)
    for name in ("told", "gate"):
        os.mkfifo(folder / name)
    command = f"{sys.executable} -I -S {AGENT} {folder / 'plan.json'} {folder / 'calls'}"
    settings = {"proposer": "command", "command": command, "transcripts": "none", "call_seconds": "60"}
    for name, value in settings.items():
        assert run_khms("config", "set", f"nightly.{name}", value).returncode == 0
    assert run_khms("trust").returncode == 0
    told = os.open(folder / "told", os.O_RDWR)
    made = Held(base, folder, [sys.executable, "-m", "khms", "nightly", "--json"], told)
    made.plan({"when": f"MARK[fact] {SECOND}\n\n#", "fate": f"hold {folder}", "answer": "card"}, {"answer": "card"})
    yield made
    os.close(told)


def test_of_two_runs_at_once_one_works_and_the_other_is_turned_away(held: Held, run_khms: Khms) -> None:
    with held.start() as first:
        handles = held.holding(first)
        second = run_khms("nightly")
        assert second.returncode == 75 and "nightly" in second.stderr
        (held.folder / "gate").write_text("go on", encoding="utf-8")
        out, _ = first.communicate(timeout=60)
    assert first.returncode == 0
    assert json.loads(out)["marks"]["new"] == 2 and len(held.asked()) == 2
    assert ended(handles) and held.left() == []


def test_an_agent_that_hangs_is_ended_with_its_children(held: Held, run_khms: Khms) -> None:
    assert run_khms("config", "set", "nightly.call_seconds", "3").returncode == 0
    with held.start() as run:
        handles = held.holding(run)
        out, _ = run.communicate(timeout=120)
        assert run.returncode == 1
        assert ended(handles), "it lives on after its time"
        pids = os.read(held.told, 4096).decode().split()  # those of the second and of the third try
        assert len(pids) == 6 and not [pid for pid in pids if Path("/proc", pid).exists()]
    found = json.loads(out)
    assert (found["marks"]["new"], found["marks"]["open"]) == (1, 1)
    assert held.left() == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_in_the_middle_of_a_call_leaves_nothing_and_asks_nothing_twice(
    how: signal.Signals, held: Held, run_khms: Khms
) -> None:
    end(held, how)
    first, second = held.asked()
    held.plan({"answer": "card"})
    done = run_khms("nightly", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["resumed"], found["marks"]["new"], found["calls"]) == (True, 2, 2)
    assert held.asked() == [first, second, second]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_of_calls_side_by_side_none_outlives_a_run_that_is_ended(
    how: signal.Signals, held: Held, run_khms: Khms
) -> None:
    assert run_khms("config", "set", "nightly.parallel", "2").returncode == 0
    held.plan({"fate": f"hold {held.folder}", "answer": "card"})
    end(held, how, calls=2)
    held.plan({"answer": "card"})
    assert json.loads(run_khms("nightly", "--json").stdout)["marks"]["new"] == 2


def end(held: Held, how: signal.Signals, calls: int = 1) -> None:
    """Ends a run while so many calls hold, and looks for what is left of them."""
    with held.start() as run:
        handles = held.holding(run, calls)
        run.send_signal(how)
        _, told = run.communicate(timeout=20)
    assert run.returncode == (130 if how == signal.SIGINT else -how), told
    assert ended(handles), "the agent lives on"
    assert held.left() == []


@pytest.mark.parametrize("path", ["AGENTS.md", ".git/hooks/pre-commit", "memory/know/K-00001.md"])
def test_an_agent_that_writes_into_the_base_is_named_with_the_file_and_nothing_is_lost(
    path: str, held: Held, run_khms: Khms, add_card: Callable[..., Path]
) -> None:
    add_card(held.base, title="Poll the valve slowly")
    target = held.base.path(path)
    before = target.read_bytes() if target.exists() else None
    held.plan({"when": f"MARK[fact] {SECOND}\n\n#", "fate": f"write {target}", "answer": "card"}, {"answer": "card"})
    done = run_khms("nightly")
    assert done.returncode == 3 and path.removeprefix(".git/") in done.stderr, done.stderr
    assert list(inbox.units(held.base)) == []
    first, second = held.asked()
    target.unlink() if before is None else target.write_bytes(before)
    held.plan({"answer": "card"})
    found = json.loads(run_khms("nightly", "--json").stdout)
    assert (found["resumed"], found["marks"]["new"]) == (True, 2)
    assert held.asked() == [first, second, second]
