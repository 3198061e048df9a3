"""`khms demo`: the whole loop on a small example, by the installed command, each step checked in files and git.

Nothing of the user's is touched: HOME and every folder of khms lie in the demo's own folder, which stays for a look.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click

from khms.cli.output import clean
from khms.cli.session import Session
from khms.errors import No

MARKS = (
    ("failed", "polled the rain gauge every second: 41 of 200 frames came back with a checksum mismatch (sess d3m0)"),
    ("decision", "the rain gauge is polled every ten seconds, because its link drops frames when asked more often"),
    ("solved", "the nightly plot was empty because RAIN_TZ was unset; exporting RAIN_TZ=UTC in the unit file fixed it"),
)
CORRECTION = (
    "decision",
    "the rain gauge is polled every thirty seconds: at ten the checksum mismatch came back in the cold",
)


@dataclass
class Demo:
    """The demo's folder, and what it runs in it. `said` collects what a failed step shows."""

    folder: Path
    session: Session
    number: int = 0
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def environment(self) -> dict[str, str]:
        """A fresh user's: no agent host, no settings of git or khms from outside."""
        from khms.hosts.environment import VARIABLES

        dropped = ("KHMS_", "GIT_", "XDG_")
        kept = {k: v for k, v in os.environ.items() if k not in VARIABLES and not k.startswith(dropped)}
        return {
            **kept,
            "HOME": str(self.folder / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "KHMS_CONFIG_HOME": str(self.folder / "home" / "config"),
            "KHMS_DATA_HOME": str(self.folder / "home" / "data"),
            "KHMS_SERVER_OFF": "1",  # nothing of the demo outlives it
            "NO_COLOR": "1",
        }

    def khms(self, *args: str, status: int = 0, stdin: str = "") -> str:
        """Runs one khms command as a person would type it, shows it and what came, and returns its output."""
        typed = "khms " + " ".join(shlex.quote(arg) for arg in args)
        shown = f"  $ {typed}" + (f"  <<< {shlex.quote(stdin.strip())}" if stdin else "")
        done = subprocess.run(
            [sys.executable, "-m", "khms", *args],
            cwd=self.base if self.base.is_dir() else self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
        self.session.say(shown)
        output = (done.stdout + done.stderr).strip()
        for line in clean(output).splitlines()[:12]:
            self.session.say(f"    {line}")
        if done.returncode != status:
            raise No(f"`{typed}` ended with {done.returncode}, not {status}", where=output, hint=f"look: {self.folder}")
        return done.stdout

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.base, env=self.environment, capture_output=True, encoding="utf-8", check=False
        )
        return done.stdout.strip()

    def step(self, title: str) -> None:
        self.number += 1
        self.session.say(f"\n{self.number}. {title}")

    def expect(self, holds: bool, what: str) -> None:
        """Shows a checked fact, or ends the demo."""
        if not holds:
            raise No(f"the demo expected that {what}, and it is not so", where=str(self.folder))
        self.session.say(f"    ok: {what}")


@click.command()
@click.pass_obj
def demo(session: Session) -> None:
    """See the whole loop on an example: a temporary folder, no network, no model.

    Two steps must fail as they should: an altered quote is refused, and a changed card is found.
    """
    session.need_git()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="khms-demo-")).resolve()
    (folder / "home").mkdir()
    (folder / "home" / ".gitconfig").write_text(
        "[user]\n\tname = Ada Example\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n", encoding="utf-8"
    )
    run = Demo(folder, session)
    session.say(f"khms demo in {folder}")
    for step in STEPS:
        step(run)
    session.say(f"\nAll {run.number} steps did what they say, in {time.monotonic() - began:.1f} s.")
    session.say(f"Look around: cd {run.base} && git log --stat")


def make_a_base(demo: Demo) -> None:
    demo.step("Make a base: a git repository of Markdown and JSON")
    demo.khms("init", "base")
    demo.expect(demo.git("rev-list", "--count", "HEAD") == "1", "the base has its first commit")


def jot(demo: Demo) -> None:
    demo.step("While working, the agent (or you) jots one line at a time")
    for kind, text in MARKS:
        demo.khms("mark", kind, text)
    key = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"
    demo.khms("mark", "note", f"the vendor's sandbox key is {key}")
    journal = "".join(path.read_text(encoding="utf-8") for path in (demo.base / "journal").glob("*.md"))
    demo.expect(journal.count("MARK[") == len(MARKS) + 1, "the journal holds every line")
    demo.expect(key not in journal, "the key was redacted before anything was written")


def propose(demo: Demo) -> None:
    demo.step("At night khms proposes: every MARK becomes a candidate or gets a reason")
    demo.khms("nightly")
    (unit,) = (demo.base / "memory" / "inbox").iterdir()
    demo.facts["unit"] = unit.name
    (receipts,) = (demo.base / "memory" / "receipts").glob("*.jsonl")
    lines = receipts.read_text(encoding="utf-8").splitlines()
    demo.expect(len(lines) == len(MARKS) + 1, "each line of the journal has its receipt")
    demo.expect(
        (unit / "C1.md").is_file() and (unit / "REPORT.md").is_file(), "the unit lies in the inbox, in one commit"
    )
    demo.expect(not list((demo.base / "memory" / "know").glob("*.md")), "nothing is knowledge yet")
    demo.khms("inbox", "show", demo.facts["unit"], "C1")


def refuse_an_altered_quote(demo: Demo) -> None:
    demo.step("A quote that stands in no source is refused (this must fail)")
    path = demo.base / "memory" / "inbox" / demo.facts["unit"] / "C1.md"
    before, head = path.read_bytes(), demo.git("rev-parse", "HEAD")
    altered = before.replace(b"41 of 200", b"140 of 200")
    demo.expect(altered != before, "someone writes 140 where the journal says 41")
    path.write_bytes(altered)
    demo.khms("approve", demo.facts["unit"], "C1", "--relation", "C1=new", status=3)
    demo.expect(demo.git("rev-parse", "HEAD") == head, "nothing was changed")
    path.write_bytes(before)


def approve(demo: Demo) -> None:
    demo.step("A reviewer lets candidates in: all that are named, or nothing")
    settle = [part for label in ("C1", "C2", "C3") for part in ("--relation", f"{label}=new")]
    demo.khms("approve", demo.facts["unit"], "C1", "C2", "C3", *settle)
    ids = sorted(path.stem for path in (demo.base / "memory" / "know").glob("*.md"))
    demo.expect(ids == ["K-00001", "K-00002", "K-00003"], "they are K-00001 to K-00003")
    records = list((demo.base / "memory" / "approvals").glob("*.json"))
    demo.expect(len(records) == 1, "the record with the hash of every card is in the same commit")
    demo.expect(demo.git("status", "--porcelain") == "", "the work tree is clean")
    demo.expect("Khms-Reviewer: Ada Example" in demo.git("log", "-1", "--format=%B"), "the commit names the reviewer")


def recall(demo: Demo) -> None:
    demo.step("Ask")
    answer = demo.khms("recall", "how often may I poll the rain gauge")
    first = re.search(r"K-\d+", answer)
    demo.expect(first is not None and first[0] in ("K-00001", "K-00002"), "a card about the rain gauge comes first")
    answer = demo.khms("recall", "RAIN_TZ")
    first = re.search(r"K-\d+", answer)
    demo.expect(first is not None and first[0] == "K-00003", "an exact name finds its card")
    demo.khms("recall", "recipe for sourdough bread", status=1)


def inject(demo: Demo) -> None:
    demo.step("In a session the agent host calls the hook: a pointer, or nothing")
    prompt = {"session_id": "demo", "cwd": str(demo.base), "hook_event_name": "UserPromptSubmit"}
    about = {**prompt, "prompt": "why does the rain gauge give a checksum mismatch when polled every second?"}
    answer = demo.khms("hook", "run", "--host", "claude-code", stdin=json.dumps(about))
    text = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    demo.expect(bool(re.search(r"K-0000[12]", text)), "the pointer names the card and its file, not its text")
    other = {**prompt, "prompt": "please write a haiku about autumn leaves"}
    answer = demo.khms("hook", "run", "--host", "claude-code", stdin=json.dumps(other))
    demo.expect(answer == "", "an unrelated prompt gets nothing")


def correct(demo: Demo) -> None:
    demo.step("Later knowledge corrects earlier knowledge; nothing is overwritten")
    demo.khms("mark", *CORRECTION)
    demo.khms("nightly")
    inbox = demo.base / "memory" / "inbox"
    (unit,) = {path.name for path in inbox.iterdir()} - {demo.facts["unit"]}
    candidate = inbox / unit / "C1.md"
    text = candidate.read_text(encoding="utf-8")
    relation = (
        "relation:\n  kind: supersedes\n  target: K-00002\n  because: ten seconds still lost frames in the cold\n"
    )
    changed = re.sub(r"^relation:.*\n(?:[ \t]+.*\n)*", relation, text, flags=re.MULTILINE)
    demo.expect(changed != text, "the reviewer says in the file what it supersedes, and why")
    candidate.write_text(changed, encoding="utf-8")
    demo.khms("approve", unit, "C1")
    demo.expect((demo.base / "memory/archive/know/K-00002.md").is_file(), "K-00002 is in the archive, superseded")
    found = re.findall(r"K-\d+", demo.khms("recall", "how often is the rain gauge polled"))
    demo.expect(found[:1] == ["K-00004"], "its successor answers in its place")


def measure(demo: Demo) -> None:
    demo.step("Measure it: golden queries with floors that a CI can hold, and what became of what was injected")
    from khms.resources import folder

    golden = (folder("templates") / "golden" / "demo.jsonl").read_bytes()
    (demo.folder / "golden.jsonl").write_bytes(golden)
    floors = [part for floor in ("recall@5=0.9", "mrr@10=0.85", "silent=0.75") for part in ("--floor", floor)]
    demo.khms("eval", "run", "../golden.jsonl", "--channel", "hybrid", *floors)
    found = json.loads(demo.khms("usage", "--json"))
    demo.expect((found["injections"], found["pointers"] > 0) == (1, True), "the one injection is in the log")
    demo.expect(sum(found["silent"].values()) == 1, "and so is the silence, with its reason")


def check(demo: Demo) -> None:
    demo.step("Check the base, then change one byte of a card (this must fail)")
    demo.khms("lint")
    path = demo.base / "memory" / "know" / "K-00001.md"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"41 of 200", b"14 of 200"))
    demo.expect(path.read_bytes() != before, "someone rewrites history in K-00001")
    out = demo.khms("lint", status=1)
    demo.expect("KH010" in out, "lint names the card whose bytes are not the approved ones")
    path.write_bytes(before)
    demo.khms("lint")
    demo.khms("status")


def audit(demo: Demo) -> None:
    demo.step("Prove from the repository alone that every card came in by a reviewer, and is what was let in")
    out = demo.khms("audit")
    demo.expect("4 cards" in out, "all four cards have their record; the sentence says what that proves")


STEPS: tuple[Callable[[Demo], None], ...] = (
    make_a_base,
    jot,
    propose,
    refuse_an_altered_quote,
    approve,
    recall,
    inject,
    correct,
    measure,
    check,
    audit,
)
