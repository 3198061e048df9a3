"""Corrections without a target (KH008), labels and orders that do not fit the type (KH012), what counts as prose."""

import json

import pytest

from khms.check.prose import prose
from khms.check.rules.claims import _PROBES, _correction
from khms.model.approval import Transition


def says(text: str) -> bool:
    return any(probe in text for probe in _PROBES) and _correction(prose(text)) is not None


# KH008


@pytest.mark.parametrize(
    "text",
    [
        "This card corrects K-00004: the gap was in the reader.",
        "CORRECTION: the interval is ten seconds.",
        "Correction to the March entry: it is 4.7 kOhm.",
        "K-00012 turned out to be wrong.",
        "[[K-00012|that card]] is no longer true since firmware 3, which is what the earlier note said.",
        "Our earlier conclusion was mistaken.",
        "The old rule is wrong: retries are capped now.",
        "It refutes the earlier finding that polling was the cause.",
        "Contrary to what we thought, the cache is never cleared.",
        "Contrary to K-00007, plain files are not enough.",
        "We were wrong about the baud rate.",
        "The loss was in the path, not in the source as we first assumed.",
        "What we recorded in March was wrong.",
        "The claim that locks are re-entrant was wrong.",
        "The card said the valve opens at 3 bar; that was wrong.",
        "SUPERSEDES K-00008 BECAUSE: measured again",
        "Words first.\n\nThis replaces K-00003.",
    ],
)
def test_a_body_that_says_it_corrects_something(text: str) -> None:
    assert says(text + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "This does not contradict K-00004.",
        "Nothing here corrects K-00004.",
        "K-00012 was not wrong, the measurement confirms it.",
        "A card that supersedes K-00002 must say why.",
        "If it contradicts K-00001, the status is challenged.",
        "This would contradict K-00001.",
        "See K-00005 for what happened and K-00009 for what replaced it.",
        "The checksum was wrong in 214 of 600 frames.",
        "The fix replaces the worn seal; the earlier version of the driver sends tenths.",
        "Corrects the clock by one second a day.",
        "Error correction: one bit per frame.",
        "The first reading is wrong after a cold start.",
        "> This corrects K-00004.",
        "It begins with “This corrects K-00004”, and `SUPERSEDES K-00001 BECAUSE:` follows.",
        "```\nThis corrects K-00004.\n```",
        "Words.\n\n**QUOTES:**\n- src=journal :: This corrects K-00004",
    ],
)
def test_a_body_that_only_speaks_of_such_things(text: str) -> None:
    assert not says(text + "\n")


def test_it_has_its_line_and_says_how_to_go_on(base, add_card, only) -> None:
    path = add_card(base, body="Words.\n\nAnd this corrects K-00004, which is old.\n")
    add_card(base, "K-00004")
    finding = only("KH008")
    rows = path.read_text(encoding="utf-8").split("\n")
    assert rows[finding.line - 1].startswith("And this") and finding.severity == "error"
    assert "NO-CORRECTION-TARGET" in finding.mend and "`corrects K-00004`" in finding.message


@pytest.mark.parametrize("edge", ["supersedes", "contradicts", "refuted_by"])
def test_any_correcting_edge_will_do(base, add_card, found, edge) -> None:
    add_card(base, "K-00004", status="superseded" if edge == "supersedes" else "challenged")
    links = {edge: "K-00004" if edge == "supersedes" else ["K-00004"]}
    add_card(base, body="SUPERSEDES K-00004 BECAUSE: this corrects K-00004.\n", links=links)
    assert found("KH008") == []
    add_card(base, body="This corrects K-00004.\n", links={"supports": ["K-00004"]})
    assert [name for _, name, _, _ in found("KH008")] == ["K-00001.md"]


def test_a_line_says_why_there_is_no_target(base, add_card, found) -> None:
    add_card(base, body="We were wrong about the port.\nNO-CORRECTION-TARGET: nobody had written it down\n")
    assert found("KH008") == []
    for empty in ("NO-CORRECTION-TARGET:", "`NO-CORRECTION-TARGET: x`", "```\nNO-CORRECTION-TARGET: x\n```"):
        add_card(base, body=f"We were wrong about the port.\n{empty}\n")
        assert len(found("KH008")) == 1


def test_a_card_that_came_in_before_the_rule_is_left_alone(base, add_card, approve, found) -> None:
    approve(add_card(base, body="We were wrong about the port.\nRULE: ask first\n"))
    assert found("KH008", "KH012") == []


def test_a_candidate_says_it_by_its_relation(base, write, found) -> None:
    head = {
        "id": "C1",
        "type": "fact",
        "level": "assumption",
        "status": "active",
        "title": "t",
        "tags": [],
        "scope": "x",
    }

    def put(relation: dict[str, str]) -> None:
        keys = "".join(f"{key}: {json.dumps(value)}\n" for key, value in head.items())
        text = (
            f"---\n{keys}date: 2026-03-04\nlinks: {{}}\nrelation: {json.dumps(relation)}\n---\nThis corrects K-00001.\n"
        )
        write(base, "memory/inbox/u/C1.md", text)

    put({"kind": "new"})
    assert [(code, severity) for code, _, _, severity in found("KH008")] == [("KH008", "warning")]
    put({"kind": "contradicts", "target": "K-00001", "because": "measured"})
    assert found("KH008") == []


def test_a_record_of_another_card_does_not_count(base, add_card, approve, found) -> None:
    approve(transitions=(Transition("K-00001", "status", "active", "challenged", "x"),))
    add_card(base, status="challenged", body="We were wrong about the port.\n")
    assert len(found("KH008")) == 1


# KH012


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("problem-solution", "It broke and was mended.\n", "under SYMPTOM, CAUSE, FIX, VERIFIED"),
        ("decision-rationale", "DECIDED: x\nSYMPTOM: y\n", "makes it a problem-solution too"),
        ("problem-solution", "SYMPTOM: x\nFIX: y\nRULE: always z\n", "makes it a policy too"),
        ("fact", "The valve opens at 4 bar.\nRULE: never less than 4\n", "makes it a policy too"),
        ("fact", "It opens at 4 bar.\nHOLDS: valves stick\n", "makes it a principle too"),
        ("fact", "It opens at 4 bar. Never open it by hand.\n", "`Never open …`"),
        ("fact", "The key is cached.\nYou must restart it after a change.\n", "`You must restart …`"),
        ("action-outcome", "WHEN: polled\nTHEN: it failed. Do not poll again.\n", "`Do not poll …`"),
    ],
)
def test_what_does_not_fit_the_type(base, add_card, only, kind, body, words) -> None:
    add_card(base, type=kind, body=body)
    finding = only("KH012")
    assert words in finding.message and finding.severity == "warning" and finding.mend


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("problem-solution", "FIX: always reopen by name. Never keep the handle.\n"),  # thin, and an order under FIX
        ("decision-rationale", "DECIDED: x\nWHY: y\nNOTE: z\nVERIFIED: seen\n"),
        ("fact", "NOTE: frames must hold 12 bytes. Never seen again. Always on.\nWHY: it is so\n"),
        ("fact", "He said “Never open it by hand.”\n\n> RULE: no\n\n```\nRULE: no\n```\n"),
        ("overview", "RULE: all of it\nHOLDS: x\nNever open it by hand.\n"),
        ("policy", "RULE: never open it\nLIMITS: none\nYou must not.\n"),
        ("action→outcome", "WHEN: x\nTHEN: y\n"),
    ],
)
def test_what_fits(base, add_card, found, kind, body) -> None:
    add_card(base, type=kind, body=body)
    assert found("KH012") == []


def test_types_of_the_configuration_have_labels_too(base, add_card, write, found) -> None:
    write(base, "khms.toml", '[cards.types.measurement]\nlevel = "observation"\nlabels = ["READ", "FIX"]\n')
    add_card(base, "K-00001", type="measurement", body="READ: 4 bar\nFIX: none\n")
    add_card(base, "K-00002", type="measurement", body="4 bar\n")
    add_card(base, "K-00003", type="unheard-of", body="4 bar\n")
    assert [name for _, name, _, _ in found("KH012")] == ["K-00002.md"]


# prose


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a `b` c", "a  c"),
        ("a\n```\nb\n```\nc", "a\n\n\n\nc"),
        ("a\n~~~~\n```\nb\n~~~~\nc", "a\n\n\n\n\nc"),
        ("> b\na", "\na"),
        ('"b\nb" a', "\n a"),
        ("don't b, it's a", "don't b, it's a"),
        ('a "stray\n\nb" c', 'a "stray\n\nb" c'),
        ("a <!-- b --> c", "a  c"),
        ("a\n\n**LINKS:**\n- b", "a\n\n\n"),
        ("```\nnever closed", "\n"),
    ],
)
def test_prose_keeps_every_line_in_its_place(body: str, said: str) -> None:
    assert prose(body) == said
    assert prose(body).count("\n") == body.count("\n")
