"""200 prompts in ten sessions at once, each a process as a host starts it: with a server, and without one."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.hooks import budget, sessions
from khms.index import sync
from khms.store.layout import Base

SESSIONS, EACH = 10, 20
THINGS = ("boiler", "conveyor", "gantry", "turbine", "kiln", "loom", "press", "crane", "lathe", "furnace")
FAULTS = ("overheats", "squeals", "jams", "drifts", "leaks", "trips")
PLACES = ("after a cold night", "when the hall is full", "on the second shift")
REASONS = {"", "empty", "short", "same-query", "window", "threshold", "nothing-found", "card-told", "error"}


@pytest.fixture
def factory(base: Base, add_card: Callable[..., Path], write: Callable[..., Path], commit: Callable[..., str]) -> Base:
    write(base, "khms.toml", "[hooks]\ndeadline_ms = 30000\n")
    for number, (thing, fault) in enumerate(((t, f) for t in THINGS for f in FAULTS), 1):
        place = PLACES[number % len(PLACES)]
        add_card(
            base,
            f"K-{number:05}",
            title=f"The {thing} {fault} {place}",
            body=f"SYMPTOM: the {thing} {fault} {place}.\nFIX: valve {number} was turned.\n",
            status="challenged" if number % 7 == 0 else "active",
            links={"refuted_by": [f"K-{number - 1:05}"]} if number % 7 == 0 else {},
        )
    commit(base)
    sync.refresh(base)
    return base


@pytest.fixture(params=["no server", "a server"])
def served(
    request: pytest.FixtureRequest, factory: Base, run_khms: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[bool]:
    if request.param == "no server":
        yield False
        return
    folder = tempfile.mkdtemp(prefix="khms-t-", dir="/tmp")
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    monkeypatch.delenv("KHMS_SERVER_OFF")
    done = run_khms("--root", factory.root, "server", "start")
    assert done.returncode == 0, done.stderr
    try:
        yield True
    finally:
        run_khms("--root", factory.root, "server", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def said(number: int, turn: int) -> str:
    """What the person of a session types: mostly about a card, now and then little or something else."""
    at, which = (number + turn // 2) % len(THINGS), (turn * 5 + number) % len(FAULTS)
    place = PLACES[(at * len(FAULTS) + which + 1) % len(PLACES)]
    others = {3: "ok", 7: "", 11: "please write a poem about the sea", 15: "why does the kiln leak"}
    return others.get(turn, f"why is it that the {THINGS[at]} {FAULTS[which]} {place}?")


def test_every_decision_is_logged_and_no_budget_exceeded(
    factory: Base, served: bool, patient: list[str], tmp_path: Path, told: Callable[[str], None]
) -> None:
    env = {**os.environ, "KHMS_ROOT": str(factory.root)}

    def session(number: int) -> list[str]:
        answers = []
        for turn in range(EACH):
            event = {"hook_event_name": "UserPromptSubmit", "session_id": f"s{number}", "prompt": said(number, turn)}
            raw = json.dumps({**event, "cwd": "/"}).encode()
            done = subprocess.run(patient, input=raw, capture_output=True, env=env, cwd=tmp_path, timeout=120)
            assert (done.returncode, done.stderr) == (0, b"")
            found = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""
            answers.append(found)
        return answers

    with ThreadPoolExecutor(SESSIONS) as pool:
        answers = list(pool.map(session, range(SESSIONS)))

    settings = config.load(factory.root)
    lines = [json.loads(line) for line in (factory.log / "inject.jsonl").read_bytes().splitlines()]
    assert len(lines) == SESSIONS * EACH, "one line for each, none torn"
    assert {"", "window", "short", "empty"} <= {line["reason"] for line in lines} <= REASONS
    assert all("lock" in line["error"] for line in lines if line["reason"] == "error"), (
        "waiting is given up, not budgets"
    )
    assert all((line["decision"] == "inject") is not bool(line["reason"]) for line in lines)
    if served:
        assert sum(line["server"] for line in lines) >= SESSIONS * EACH * 0.9
    for number in range(SESSIONS):
        own = [line for line in lines if line["session"] == sessions.key(f"s{number}")]
        heard = [text for text in answers[number] if text]
        injected = [line for line in own if line["decision"] == "inject"]
        assert len(own) == EACH and len(heard) == len(injected)
        assert 1 <= len(injected) <= settings["hooks.per_window"] + 1
        cards = [card for line in injected for card in line["cards"]]
        assert len(cards) == len(set(cards)), "a card once a session"
        assert all(len(line["cards"]) <= settings["hooks.cards"] for line in injected)
        queries = [line["query"] for line in injected]
        assert len(queries) == len(set(queries))
        for text in heard:
            rows = text.splitlines()
            correctors = [row for row in rows if row.startswith("  ")]
            assert sum(len(row) + 1 for row in rows if row not in correctors) <= settings["hooks.chars"] + 1
            assert all(len(row) <= settings["hooks.corrector_chars"] for row in correctors)
        kept = sessions.Session(factory, f"s{number}").load()
        assert isinstance(kept, budget.SessionState) and {card for card, _ in kept.cards} == set(cards)
    injections = sum(line["decision"] == "inject" for line in lines)
    told(
        f"hook under load, {'with' if served else 'without'} a server: {len(lines)} decisions, {injections} injections"
    )
