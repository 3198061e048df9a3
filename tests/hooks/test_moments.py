"""The other moments of a session: a sub-agent's start, a risky command, a failure, the end; rules; a second base."""

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from khms import config
from khms.hooks import handlers, sessions
from khms.hooks.budget import SessionState
from khms.hooks.handlers import Decision
from khms.hooks.places import Place
from khms.hosts.base import Event
from khms.index import sync
from khms.store.layout import Base

AddCard = Callable[..., Path]
Write = Callable[..., Path]
Hook = Callable[..., str | None]
FORCE = "git push --force origin main"


def decide(base: Base, moment: str, session: str = "s1", **event: Any) -> Decision:
    place = Place(base, config.load(base.root))
    made = Event(moment, session=session, host="claude-code", **event)  # type: ignore[arg-type]
    return handlers.decide(place, made, sessions.Session(base, session))


@pytest.fixture
def careful(indexed: Base, add_card: AddCard) -> Base:
    """The base with a policy on forced pushes."""
    add_card(
        indexed,
        "K-00030",
        type="policy",
        title="Nobody rewrites a published branch",
        tags=["git"],
        body="RULE: no forced push.\n",
    )
    sync.refresh(indexed)
    return indexed


def test_a_sub_agent_gets_the_first_line_alone(indexed: Base, write: Write) -> None:
    assert decide(indexed, "subagent-start") == Decision(None, "nothing-waits")
    write(indexed, "memory/inbox/2026-11-30-nightly/C1.md", "x")
    write(indexed, ".khms/state/nightly.json", '{"success": "2026-01-01T00:00:00+00:00"}')
    whole, first = decide(indexed, "session-start").text, decide(indexed, "subagent-start").text
    assert whole and first
    assert len(whole.splitlines()) == 4 and first.splitlines() == [*whole.splitlines()[:2], "[/khms]"]


def test_a_session_that_was_cut_down_is_reminded(indexed: Base) -> None:
    assert "khms mark" in str(decide(indexed, "session-start", source="compact").text)
    assert decide(indexed, "session-start", source="startup").text is None


def test_a_risky_command_is_warned_about_whatever_was_said_before(careful: Base) -> None:
    memory = sessions.Session(careful, "s1")
    said = decide(careful, "pre-shell", command=FORCE)
    assert said.cards == ("K-00030",) and said.classes == ("git",) and said.channel == "precheck"
    assert said.text and "[policy] Nobody rewrites a published branch" in said.text
    assert memory.load().injections == (), "a warning takes nothing of the limit"
    assert decide(careful, "pre-shell", command=FORCE).reason == "same-query"
    again = decide(careful, "pre-shell", command=f"{FORCE} --tags")
    assert again.cards == ("K-00030",), "another command is warned about, though the card was named"
    a_minute_ago = time.time() - 61
    memory.remember(
        lambda state: SessionState((time.time(),) * 9, state.cards, tuple((q, a_minute_ago) for q, _ in state.queries))
    )
    assert decide(careful, "pre-shell", command=FORCE).cards == ("K-00030",), "held back only as a retry at once"
    assert decide(careful, "pre-shell", command=FORCE).reason == "same-query"
    assert decide(careful, "pre-shell", session="s2", command=FORCE).cards == ("K-00030",)


def test_a_command_of_no_risk_is_asked_about_as_ever(careful: Base) -> None:
    said = decide(careful, "pre-shell", command="check checksum deploy archive")
    assert said.cards == ("K-00001",) and said.classes == ()


def test_a_failure_is_asked_about_only_where_that_is_switched_on(indexed: Base, write: Write) -> None:
    error = "Exit code 1\nrunning\nerror: the checksum fails on deploy\n"
    assert decide(indexed, "after-failure", error=error) == Decision(None, "switched-off")
    write(indexed, "khms.toml", "[hooks]\nafter_failure = true\n")
    assert decide(indexed, "after-failure", error=error).cards == ("K-00001",)
    assert decide(indexed, "after-failure", error="Exit code 1").reason == "empty"


@pytest.mark.parametrize("moment", ["pre-compact", "session-end"])
def test_where_a_transcript_lies_is_kept(indexed: Base, write: Write, moment: str) -> None:
    transcript = write(indexed, ".khms/t.jsonl", "{}\n")
    hostile = "../../x"
    said = decide(indexed, moment, session=hostile, transcript=str(transcript), cwd="/srv")
    assert said == Decision(None, "captured")
    kept = list((indexed.local / "run").iterdir())
    assert [path.name for path in kept] == [f"digest-{sessions.key(hostile)}.json"]
    value = json.loads(kept[0].read_bytes())
    assert value.pop("at") and value == {
        "schema": "khms.digest-pointer/1",
        "host": "claude-code",
        "session": hostile,
        "transcript": str(transcript),
        "cwd": "/srv",
        "moment": moment,
    }
    os.utime(kept[0], (0, 0))
    sessions.sweep(indexed)
    assert not list((indexed.local / "run").iterdir())


@pytest.mark.parametrize("transcript", ["", "/no/such.jsonl", "relative.jsonl", "/", "a\0b", "/a\0b"])
def test_a_transcript_that_is_not_there_is_no_error(indexed: Base, transcript: str) -> None:
    assert decide(indexed, "session-end", transcript=transcript).reason == "no-transcript"
    assert decide(indexed, "session-end", session="", transcript=transcript).reason == "no-session"
    assert not (indexed.local / "run").exists()


@pytest.mark.parametrize("off", [False, True])
def test_an_incognito_session_leaves_a_mark_and_nothing_else(
    hook: Hook, indexed: Base, write: Write, logged: Callable[[Base | None], list[dict[str, Any]]], off: bool
) -> None:
    transcript = write(indexed, ".khms/t.jsonl", "{}\n")
    if off:
        sessions.switch(False)  # the mark must stand even where all is off
    event = {"session_id": "s1", "cwd": "/", "transcript_path": str(transcript)}
    for name in ("UserPromptSubmit", "PreCompact", "SessionEnd"):
        made = {**event, "hook_event_name": name, "prompt": "why does the checksum fail on deploy"}
        assert hook(made, indexed, env={"KHMS_INCOGNITO": "1"}) is None
    assert sessions.is_off("s1") and not (indexed.local / "run").exists()
    assert [line["reason"] for line in logged(indexed)] == ["incognito"] * 3
    sessions.switch(True)
    assert hook({**event, "hook_event_name": "SessionEnd"}, indexed) is None
    assert logged(indexed)[-1]["reason"] == "session-off" and not (indexed.local / "run").exists()


RULES: list[tuple[str, str, tuple[str, ...]]] = [
    ('"blue moon" = "K-00001"', "is there a Blue Moon in May", ("K-00001",)),
    ('"blue moon" = "K-00001"', "is the moon blue", ()),
    ('moon = "K-00002"', "is there a moon", ("K-00003",)),
    ('moon = "K-99999"', "is there a moon", ()),
    ('moon = "../../etc/passwd"', "is there a moon", ()),
    ('"" = "K-00001"', "is there a moon", ()),
    ("moon = 7", "is there a moon", ()),
]


@pytest.mark.parametrize(("rule", "prompt", "cards"), RULES)
def test_rules_name_what_belongs_to_words(
    indexed: Base, write: Write, rule: str, prompt: str, cards: tuple[str, ...]
) -> None:
    write(indexed, "khms.toml", f"[hooks.rules]\n{rule}\n")
    assert tuple(card for card in decide(indexed, "prompt", prompt=prompt).cards if card != "K-00002") == cards


def test_a_rule_keeps_to_the_budget(indexed: Base, write: Write) -> None:
    write(indexed, "khms.toml", '[hooks.rules]\nmoon = "K-00001"\n')
    assert decide(indexed, "prompt", prompt="is there a moon").cards == ("K-00001",)
    assert decide(indexed, "prompt", prompt="is there another moon").reason == "card-told"


@pytest.fixture
def own(tmp_path: Path, indexed: Base, add_card: AddCard, own_environment: Path, write: Write) -> Base:
    """The user's own base, whose first card has the same id as one of the other base."""
    root = tmp_path / "own"
    for folder in ("memory/know", "journal"):
        (root / folder).mkdir(parents=True)
    write(root, "khms.toml", "")
    base = Base(root.resolve(), named=True)
    add_card(base, "K-00001", title="The espresso machine wants filtered water", body="FIX: descale monthly.\n")
    add_card(base, "K-00002", type="policy", title="Ask before a branch is rewritten", tags=["git"], body="RULE: ask\n")
    sync.refresh(base)
    write(own_environment, "config/config.toml", f'[base]\ndefault = "{root}"\n')
    return base


def test_the_users_own_base_answers_too(indexed: Base, own: Base) -> None:
    said = decide(indexed, "prompt", prompt="which water does the espresso machine want")
    assert said.cards == ("K-00001",) and said.text and f"({own.root}/memory/know/K-00001.md)" in said.text
    assert f"Reference data from {indexed.root};" in said.text
    other = decide(indexed, "prompt", prompt="why does the checksum fail on every deploy?")
    assert other.cards == ("K-00001",), "the same id in another base is another card"
    warned = decide(indexed, "pre-shell", command=FORCE)
    assert warned.text and f"({own.root}/memory/know/K-00002.md)" in warned.text


def break_index(base: Base) -> None:
    (base.index / "manifest.json").write_bytes(b"{")


def break_config(base: Base) -> None:
    base.config.write_text("[hooks\n", encoding="utf-8")


def remove(base: Base) -> None:
    base.root.rename(base.root.with_name("gone"))


@pytest.mark.parametrize("damage", [break_index, break_config, remove])
def test_a_broken_own_base_disturbs_nobody(indexed: Base, own: Base, damage: Callable[[Base], None]) -> None:
    damage(own)
    assert decide(indexed, "prompt", prompt="why does the checksum fail on every deploy?").cards == ("K-00001",)
    assert decide(indexed, "pre-shell", command=FORCE).classes == ()


def test_each_event_has_a_handler_or_none_at_all() -> None:
    from khms.hosts import claude_code

    samples: Mapping[str, dict[str, object]] = {
        "PreToolUse": {"tool_name": "Bash"},
        "PostToolUseFailure": {"tool_name": "Bash"},
    }
    for watch in claude_code.WATCHES:
        event = claude_code.event({"hook_event_name": watch.event, **samples.get(watch.event, {})})
        assert event and event.moment in handlers.HANDLERS, watch.event
