"""Twenty clones of one remote work at once and then sync until it is quiet: no card is lost, no id given twice, every
link leads where its writer meant it to, one MARK becomes one card, and all clones are the same.

KHMS_SOAK=n makes it n clones, KHMS_SEED=s repeats a run.
"""

import json
import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from types import ModuleType
from typing import Any

import pytest

from khms.store import cards, markdown
from khms.store.layout import Base
from khms.store.receipts import ledger

pytestmark = pytest.mark.slow
Git = Callable[..., str]
SOAK = int(os.environ.get("KHMS_SOAK") or 0)
SEED = int(os.environ.get("KHMS_SEED") or random.SystemRandom().randrange(10**6))
CLONES = SOAK or 20
WORKERS = 4
SHARED = 3  # MARKs of plain day journals that every clone has from the start
WORDS = [
    "amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "juniper", "kelp",
    "lagoon", "meadow", "nectar", "onyx", "pepper", "quartz", "raven", "saffron", "timber", "umber", "velvet",
    "walnut", "xenon", "yarrow", "zephyr", "anchor", "beacon", "canvas", "dynamo", "engine", "filter", "gasket",
]  # fmt: skip


@dataclass
class Clone:
    """One clone: its own needles, and what it linked: needle -> the needle that its card names."""

    folder: Path
    number: int
    links: dict[str, str] = field(default_factory=dict)
    approved: set[str] = field(default_factory=set)
    tries: int = 0


@dataclass
class Crew:
    """Real khms processes, a few at a time, in any order."""

    runners: "Queue[Any]"
    number: int
    seed: random.Random

    def each(self, clones: Sequence[Clone], work: Callable[[Clone], Any]) -> list[Any]:
        order = self.seed.sample(list(clones), len(clones))
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(work, order))

    def run(self, clone: Clone, *command: str, ok: Sequence[int] = (0,), **env: str) -> Any:
        runner = self.runners.get()
        try:
            done = runner.run(list(command), clone.folder, env)
        finally:
            self.runners.put(runner)
        assert done.status in ok, (clone.number, command, done)
        return done


@pytest.fixture
def crew(kill: ModuleType, tmp_path: Path) -> Iterator[Crew]:
    with ExitStack() as stack:
        runners: Queue[Any] = Queue()
        for _ in range(WORKERS):
            runners.put(stack.enter_context(kill.runner(tmp_path / "people")))
        yield Crew(runners, SEED, random.Random(SEED))


def sentence(seed: random.Random, needle: str) -> str:
    return f"{needle} needs {' '.join(seed.sample(WORDS, 6))}"


@pytest.fixture
def clones(base: Base, add_card: Callable[..., Path], commit: Git, git: Git, tmp_path: Path, crew: Crew) -> list[Clone]:
    for number in range(1, CLONES + 2):
        add_card(base, f"K-{number:05d}")
    lines = [f"MARK[decision] {sentence(crew.seed, f'shared-{word}')}\n" for word in WORDS[:SHARED]]
    (base.journal / "2026-03-05.md").write_text("# 2026-03-05\n\n" + "".join(lines), encoding="utf-8")
    commit(base)
    crew.run(Clone(base.root, -1), "audit", "--adopt")
    git(tmp_path, "clone", "--quiet", "--bare", str(base.root), "remote.git")
    found = []
    for number in range(CLONES):
        folder = tmp_path / f"clone{number:02d}"
        git(tmp_path, "clone", "--quiet", "remote.git", str(folder))
        git(folder, "config", "user.name", f"Person {number}")
        git(folder, "config", "user.email", f"person{number}@example.org")
        found.append(Clone(folder, number))
    return found


def needle_of(path: Path) -> str:
    found = re.search(r"(?:own|shared)-[a-z]+(?:-[a-z]+)?", path.read_text(encoding="utf-8"))
    return found[0] if found else ""


def own_needle(clone: Clone, at: int) -> str:
    return f"own-{WORDS[clone.number % len(WORDS)]}{'abcdefgh'[clone.number // len(WORDS)]}-{WORDS[at]}"


def work(crew: Crew, clone: Clone) -> None:
    """Two MARKs of its own, a nightly run, and a reviewer's edits: links among its own candidates, a correction."""
    for at in (0, 1):
        crew.run(clone, "mark", "solved", sentence(crew.seed, own_needle(clone, at)))
    crew.run(clone, "nightly")
    unit = unit_of(clone)
    held = {needle_of(path): path for path in unit.glob("C*.md")}
    first, second = held[own_needle(clone, 0)], held[own_needle(clone, 1)]
    text = second.read_text(encoding="utf-8").rstrip("\n") + f"\nSee [[{first.stem}]].\n"
    text = markdown.set_key(text, "links.supports", [first.stem])
    second.write_text(text, encoding="utf-8")
    clone.links[own_needle(clone, 1)] = own_needle(clone, 0)
    relation = {"kind": "contradicts", "target": "K-00001", "because": "measured otherwise"}
    if clone.number % 2:
        relation = {"kind": "supersedes", "target": f"K-{clone.number + 2:05d}", "because": "measured again"}
    text = markdown.set_key(first.read_text(encoding="utf-8"), "relation", relation)
    first.write_text(text, encoding="utf-8")


def unit_of(clone: Clone) -> Path:
    (unit,) = [path for path in (clone.folder / "memory/inbox").iterdir() if clone_id(clone) in path.name]
    return unit


def clone_id(clone: Clone) -> str:
    return (clone.folder / ".git/khms/clone").read_text(encoding="utf-8").strip()


def approve(crew: Crew, clone: Clone) -> None:
    """Half of them offline, half with the remote; one in three only their own, which leaves the shared MARKs open."""
    unit = unit_of(clone)
    own = [path.stem for path in unit.glob("C*.md") if needle_of(path).startswith("own-")]
    labels = own if clone.number % 3 == 0 else ["--all"]
    environment = {"KHMS_CONFIG_HOME": str(quiet_settings(clone))} if clone.number % 2 else {}
    done = crew.run(clone, "approve", unit.name, *labels, "--unjudged", "--json", **environment)
    made = {card["label"] for card in json.loads(done.out)["cards"]}
    assert made >= set(own)
    clone.approved = {own_needle(clone, 0), own_needle(clone, 1)}


def quiet_settings(clone: Clone) -> Path:
    folder = clone.folder.parent / "quiet"
    folder.mkdir(exist_ok=True)
    if not (folder / "config.toml").exists():
        (folder / "config.toml").write_text('[git]\nsync = "off"\n', encoding="utf-8")
    return folder


def sync(crew: Crew, clone: Clone) -> bool:
    """Whether this sync had something to do; now and then it is killed first."""
    if crew.seed.random() < 0.2:
        crew.run(clone, "sync", ok=(0, 75, -9), KHMS_KILL_AT=str(crew.seed.randint(1, 60)))
    done = crew.run(clone, "sync", "--json", ok=(0, 75))
    if done.status == 75:
        return True
    value = json.loads(done.out)
    clone.tries += value["tries"]
    assert not [left for left in value["withheld"] if left["verdict"] not in ("same-mark", "already-approved")]
    return bool(value["pulled"] or value["pushed"])


def test_twenty_clones(clones: list[Clone], crew: Crew, git: Git, told: Callable[[str], None]) -> None:
    try:
        crew.each(clones, lambda clone: work(crew, clone))
        crew.each(clones, lambda clone: approve(crew, clone))
        rounds = 1
        while any(crew.each(clones, lambda clone: sync(crew, clone))):
            rounds += 1
            assert rounds < 12, "it does not become quiet"
        everywhere_the_same(clones, git)
        judge(clones, git)
        crew.each(clones if SOAK else clones[:3], lambda clone: crew.run(clone, "audit"))
        crew.run(clones[0], "lint")
    except BaseException as error:
        error.add_note(f"again: KHMS_SEED={crew.number} KHMS_SOAK={CLONES}")
        raise
    base = Base(clones[0].folder)
    count = sum(len(record.cards) for record in cards.approvals(base))
    tries = sum(clone.tries for clone in clones)
    told(f"{CLONES} clones (seed {crew.number}): {count} cards, {rounds} rounds, {tries} pushes tried, all the same")


def everywhere_the_same(clones: list[Clone], git: Git) -> None:
    heads = {git(clone.folder, "rev-parse", "HEAD") for clone in clones}
    assert len(heads) == 1 and heads == {git(clones[0].folder, "ls-remote", "origin", "main").split()[0]}
    for clone in clones:
        assert git(clone.folder, "status", "--porcelain") == "", clone.number
        assert not (clone.folder / ".git/khms/intent.json").exists()
    for clone in clones[:3]:
        done = subprocess.run(["git", "fsck", "--strict"], cwd=clone.folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def judge(clones: list[Clone], git: Git) -> None:
    base = Base(clones[0].folder)
    shelf = cards.shelf(base)
    assert shelf.unreadable == ()
    approved = [card for record in cards.approvals(base) if record.unit for card in record.cards]
    assert not [name for name, times in Counter(card.id for card in approved).items() if times > 1]
    assert {card.id for card in approved} | {f"K-{n:05d}" for n in range(1, CLONES + 2)} == set(shelf.cards)
    by_needle: dict[str, list[str]] = {}
    for card in shelf.cards.values():
        found = re.search(r"(?:own|shared)-[a-z]+(?:-[a-z]+)?", card.body)
        by_needle.setdefault(found[0] if found else "", []).append(card.id)
    by_needle.pop("")
    assert all(len(ids) == 1 for ids in by_needle.values()), "one MARK, two cards"
    for clone in clones:
        assert clone.approved <= by_needle.keys(), f"clone {clone.number} lost a card"
        for needle, target in clone.links.items():
            card, meant = shelf.cards[by_needle[needle][0]], by_needle[target][0]
            assert card.links.supports == (meant,), (needle, card.id)
            assert f"See [[{meant}]]." in card.body
        if clone.number % 2:
            old = shelf.cards[f"K-{clone.number + 2:05d}"]
            assert old.archived and shelf.cards[by_needle[own_needle(clone, 0)][0]].links.supersedes == (old.id,)
    hot = {by_needle[own_needle(clone, 0)][0] for clone in clones if clone.number % 2 == 0}
    assert set(shelf.cards["K-00001"].links.contradicts) == hot and shelf.cards["K-00001"].status == "challenged"
    assert {f"shared-{word}" for word in WORDS[:SHARED]} <= by_needle.keys()
    made = Counter(r.mark for r in ledger(base).receipts if r.stage == "review" and r.verdict == "approved")
    assert max(made.values()) == 1
    waiting = [path for path in base.inbox.glob("*/C*.md") if needle_of(path).startswith("shared-")]
    done = {(record.unit, card.label) for record in cards.approvals(base) for card in record.cards}
    assert {(base.relative(path.parent), path.stem) for path in waiting} <= done, "a second candidate of a carded MARK"
