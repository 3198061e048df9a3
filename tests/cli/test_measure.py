"""`khms usage`, `debt`, `eval` and `calibrate` as a person and a program see them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hooks import sessions
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]

AT = "2026-03-04T12:00:00.000Z"


def logged(base: Base, write: Write, *lines: dict[str, Any]) -> None:
    head = {"at": AT, "host": "claude-code", "moment": "prompt"}
    write(base, ".khms/log/inject.jsonl", "".join(json.dumps({**head, **line}) + "\n" for line in lines))


@pytest.fixture
def stocked(base: Base, add_card: Write, commit: Callable[..., str]) -> Base:
    words = ("pump", "valve", "gauge", "relay", "boiler", "sensor")
    for number, word in enumerate(words, 1):
        title = f"The {word} of line {number} stalls at night"
        add_card(base, f"K-{number:05d}", title=title, tags=["line", word], body=f"FIX: warm the {word}\n")
    add_card(base, "K-00009", title="Retired", status="superseded", tags=["line"])
    commit(base)
    return base


def test_usage_before_anything_was_decided(base: Base, run_khms: Run) -> None:
    done = run_khms("usage")
    assert done.returncode == 0 and "no hook has decided anything" in done.stdout
    value = json.loads(run_khms("usage", "--json").stdout)
    assert (value["schema"], value["injections"], value["share"], value["log_from"]) == ("khms.usage/1", 0, None, None)
    done = run_khms("usage", "--since", "yesterday")
    assert done.returncode == 2 and "'yesterday' is no day" in done.stderr


def test_usage_with_a_transcript(stocked: Base, run_khms: Run, write: Write, own_environment: Path) -> None:
    run_khms("index")
    told = {"decision": "inject", "reason": "", "session": sessions.key("s"), "cards": ["K-00001", "K-00002"]}
    other = {"decision": "inject", "reason": "", "session": sessions.key("gone"), "cards": ["K-00003"]}
    off = {**told, "session": sessions.key("off"), "cards": ["K-00004"]}
    logged(stocked, write, told, other, off, {"decision": "silent", "reason": "threshold"})
    said = {"id": "m1", "content": [{"type": "text", "text": "K-00002 says so"}]}
    record = {"type": "assistant", "timestamp": "2026-03-04T12:00:01.000Z", "message": said}
    for session in ("s", "off"):
        write(own_environment, f".claude/projects/-x/{session}.jsonl", json.dumps(record) + "\n")
    sessions.switch(False, "off")
    done = run_khms("usage", "--by", "kind")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "4 decisions since 2026-03-04: 3 injections, 4 pointers"
    assert lines[1:4] == ["named by the agent: 1 of 2 that can be told (50 %)", "  by its id 1", "cannot be told: 2"]
    assert "  1  the session has no transcript here" in lines and "  1  the session is switched off for khms" in lines
    assert "card  4         2            1      50 %" in lines and "threshold       1" in lines
    value = json.loads(run_khms("usage", "--json").stdout)
    assert (value["pointers"], value["attributed"], value["named"], value["share"]) == (4, 2, 1, 0.5)
    assert value["unattributed"]["pointers"] == 2 and value["silent"] == {"threshold": 1}
    assert value["by"]["day"] == [{"name": "2026-03-04", "pointers": 4, "attributed": 2, "named": 1, "share": 0.5}]
    assert json.loads(run_khms("usage", "--since", "2026-03-05", "--json").stdout)["injections"] == 0
    assert "no experiment has left a line" in run_khms("usage", "--by-arm").stdout


def test_usage_by_arm(stocked: Base, run_khms: Run, write: Write) -> None:
    arms = ({"arm": "injection", "decision": "inject", "cards": ["K-00001"]}, {"arm": "control", "decision": "silent"})
    logged(stocked, write, *({"experiment": "e1", "session": "x", **arm} for arm in arms))
    done = run_khms("usage", "--by-arm")
    assert done.returncode == 0 and "e1          control    1         1 " in done.stdout, done.stdout


def test_debt_names_cards_that_nobody_met(stocked: Base, run_khms: Run, write: Write, add_card: Write) -> None:
    done = run_khms("debt", "-n", "2")
    assert done.returncode == 0 and "6 cards; hooks have decided nothing here yet" in done.stdout
    assert "and 4 more: --limit 6" in done.stdout
    add_card(stocked, "K-00007", tags=["line"], links={"supports": ["K-00001"]}, title="A link")
    logged(
        stocked,
        write,
        {"decision": "inject", "cards": ["K-00001"], "hits": [["K-00001", 0.9], ["K-00004", 0.8]]},
        {"decision": "silent", "reason": "threshold", "hits": [["K-00003", 0.2], ["K-00002", 0.4]]},
        {"decision": "silent", "reason": "threshold", "hits": [["K-00009", 0.4]]},
    )
    value = json.loads(run_khms("debt", "--json").stdout)
    assert (value["schema"], value["since"], value["decisions"], value["cards"]) == ("khms.debt/1", "2026-03-04", 3, 7)
    assert (value["injected"], value["top_hits"], value["met"]) == (1, 2, 2)
    assert [card["id"] for card in value["unmet"]] == ["K-00003", "K-00004", "K-00005", "K-00006", "K-00007"]
    # the one link touches both its ends, and both have the tag: it counts once
    assert value["loose_tags"] == [{"tag": "line", "cards": 7, "links": 1, "links_per_card": 0.143}]
    assert "3 decisions of hooks since 2026-03-04" in run_khms("debt").stdout


def test_eval_shows_channels_gates_and_floors(stocked: Base, run_khms: Run, write: Write) -> None:
    write(
        stocked,
        "g.jsonl",
        '{"query": "warm the relay", "gold": ["K-00004"], "gate": true, "id": "G1"}\n'
        '{"query": "cold gauge", "gold": ["K-00001"], "gate": true, "k": 1, "kind": "odd"}\n'
        '{"query": "boiler", "gold": ["K-00088"], "draft": true}\n',
    )
    done = run_khms("eval", "run", "g.jsonl", "--floor", "recall@5=0.99", "--floor", "lexical:mrr@10=0.1")
    assert done.returncode == 1
    assert (
        done.stdout.splitlines()[0] == "3 queries" and "hybrid   all" in done.stdout and "dense    odd" in done.stdout
    )
    assert "gate line 2 FAILED: " in done.stdout and "wanted within 1: cold gauge" in done.stdout
    assert "floor FAILED: hybrid recall@5 is " in done.stdout and "1 of 2 gates and 1 of 2 floors hold" in done.stdout
    assert (
        "g.jsonl:3: K-00088: there is no such document" in done.stderr and "1 of the queries are drafts" in done.stderr
    )
    value = json.loads(run_khms("eval", "run", "g.jsonl", "--channel", "lexical", "--json").stdout)
    assert list(value["channels"]) == ["lexical"] and value["n"] == 3 and value["drafts"] == 1
    assert value["gates"][0] == {"id": "G1", "passed": True, "rank": 1, "k": 5, "query": "warm the relay"}
    assert value["unknown"][0]["gold"] == "K-00088"


def test_eval_refuses_what_it_cannot_read(stocked: Base, run_khms: Run, write: Write) -> None:
    write(stocked, "g.jsonl", '{"query": "x", "gold": ["K-00001"]}\n{"query": "x"}\n')
    done = run_khms("eval", "run", "g.jsonl")
    assert done.returncode == 3 and "g.jsonl:2: its gold is no list" in done.stderr and done.stdout == ""
    assert run_khms("eval", "run", "none.jsonl").returncode == 3
    done = run_khms("eval", "run", "g.jsonl", "--channel", "dense", "--floor", "hybrid:mrr@10=1")
    assert done.returncode == 2 and "'hybrid' is not asked" in done.stderr


@pytest.mark.parametrize("channel", ["dense", "hybrid"])
def test_eval_of_a_channel_that_is_not_there(stocked: Base, run_khms: Run, write: Write, channel: str) -> None:
    """By name it is demanded; among all, the others answer and it is said."""
    write(stocked, "g.jsonl", '{"query": "warm the relay", "gold": ["K-00004"]}\n')
    write(stocked, "khms.toml", '[recall]\nmodel = "none"\n')
    for channels in ([channel], ["lexical", channel]):
        done = run_khms("eval", "run", "g.jsonl", *(word for name in channels for word in ("--channel", name)))
        assert (done.returncode, done.stdout) == (4, "") and f"the channel {channel} cannot be asked" in done.stderr
        assert "khms config get recall.model" in done.stderr
    done = run_khms("eval", "run", "g.jsonl")
    assert done.returncode == 0 and "lexical" in done.stdout and f"{channel}: by words alone" in done.stderr


def test_eval_make_writes_a_new_file_or_standard_output(stocked: Base, run_khms: Run) -> None:
    out = run_khms("eval", "make", "--n", "4").stdout
    assert len(out.splitlines()) == 4 and all(json.loads(line)["draft"] for line in out.splitlines())
    done = run_khms("eval", "make", "new.jsonl", "-n", "4")
    assert done.returncode == 0 and "4 drafts in " in done.stdout
    assert (stocked.root / "new.jsonl").read_text(encoding="utf-8") == out
    done = run_khms("eval", "make", "new.jsonl")
    assert done.returncode == 3 and "is there already" in done.stderr
    done = run_khms("eval", "run", "new.jsonl", "--channel", "lexical", "--floor", "recall@10=1")
    assert done.returncode == 0, done.stdout


def golden_lines() -> str:
    words = ("pump", "valve", "gauge", "relay", "boiler", "sensor")
    asked = (
        "{} of the line stalls again",
        "warm the {} slowly",
        "why does the {} stall nightly",
        "trouble with the {}",
    )
    related = [
        {"query": text.format(word), "gold": [f"K-{number:05d}"]}
        for number, word in enumerate(words, 1)
        for text in asked
    ]
    other = ("tax", "bread", "opera", "visa", "garden", "violin", "marathon", "kitten", "novel", "tide")
    unrelated = [
        {"query": text.format(word), "gold": []} for word in other for text in ("advice on my {}", "who likes a {}")
    ]
    return "".join(json.dumps(line) + "\n" for line in related + unrelated)


def test_calibrate_shows_a_curve_and_applies_what_is_better(stocked: Base, run_khms: Run, write: Write) -> None:
    done = run_khms("calibrate")
    assert done.returncode == 3 and "nothing to go by" in done.stderr
    write(stocked, "golden.jsonl", golden_lines())
    mine = "# mine\n[hooks]\nprompt_threshold = 1.0  # too shy\n"
    write(stocked, "khms.toml", mine)
    value = json.loads(run_khms("calibrate", "--json").stdout)
    assert (value["schema"], value["golden"], value["applied"]) == ("khms.calibrate/1", 44, {})
    prompt, floor = value["settings"]
    assert (prompt["name"], prompt["current"], prompt["better"]) == ("hooks.prompt_threshold", 1.0, True)
    assert prompt["evidence"] == {"related": 24, "unrelated": 20, "silences": 0} and len(prompt["curve"]) == 21
    assert floor["name"] == "recall.floor" and prompt["proposed"] < 1
    assert stocked.config.read_text(encoding="utf-8") == mine, "nothing is changed without --apply"
    done = run_khms("calibrate", "--golden", "golden.jsonl", "--channel", "lexical")
    assert done.returncode == 0 and "threshold  precision  recall  unrelated" in done.stdout
    assert "F0.5 over 24 related and 20 unrelated" in done.stdout and "next: the same with --apply" in done.stdout
    done = run_khms("calibrate", "--apply")
    assert done.returncode == 0 and f"hooks.prompt_threshold = {prompt['proposed']:g}" in done.stdout
    now = stocked.config.read_text(encoding="utf-8")
    assert f"prompt_threshold = {prompt['proposed']}  # too shy" in now and now.startswith("# mine\n")
    done = run_khms("calibrate", "--apply")
    assert "nothing is better than what is set" in done.stdout
    assert stocked.config.read_text(encoding="utf-8") == now


def test_calibrate_without_enough_says_so_and_keeps_the_file(stocked: Base, run_khms: Run, write: Write) -> None:
    write(stocked, "few.jsonl", '{"query": "warm the relay", "gold": ["K-00004"]}\n')
    done = run_khms("calibrate", "--golden", "few.jsonl", "--apply")
    assert done.returncode == 0 and "too little to go by: 1 lines with gold, 0 " in done.stdout
    assert "nothing was changed: there is too little to go by" in done.stdout and "better than" not in done.stdout
    assert stocked.config.read_text(encoding="utf-8") == ""


def test_each_help_shows_how(run_khms: Run) -> None:
    for words in (["usage"], ["debt"], ["eval", "run"], ["eval", "make"], ["calibrate"]):
        assert f"\n  khms {' '.join(words)}" in run_khms(*words, "--help").stdout
