"""Whatever a journal holds, each MARK comes to a valid verdict, and each candidate to a file that reads back."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from khms.config import Config
from khms.model.card import TYPES, Card
from khms.model.tags import Registry
from khms.model.verdict import NEW, Proposal
from khms.pipeline import draft, packet, propose, report, sources
from khms.pipeline.carry import Decision, decision_from
from khms.pipeline.draft import Material
from khms.pipeline.known import Known, Vocabulary
from khms.pipeline.quotes import Reader
from khms.store import markdown, schema
from khms.store.layout import Base

_PIECES = (
    "MARK[note] |MARK[solved] |FIX:|VERIFIED: |WHY:|---|```|\r\n|\n|\n\n|\x00|\x1b[31m|\ud7ff|<<<<<<< |K-00001|[[C1]]"
    "|…|“|'|\"|: | #|- |`|\\|🐘|e\u0301|重启|\u202e|5 ms |a_name |src/a.py |(sess 1)|**|{|&x |*x |!t |null|2026-02-30"
    "|\t|\u2028"
)
PIECES = st.sampled_from([*_PIECES.split("|"), "| "])
JOURNALS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=60).map("".join)
PATH = "journal/2026-03-04.md"
CARD = Card("K-00001", "fact", title="A card", body="some words of a card\n", tags=("words",))


@settings(max_examples=300, deadline=None)
@given(JOURNALS)
@example("MARK[note] ---\n")
@example("MARK[note] ---\nid: x\n---\n")
@example("MARK[solved] FIX: FIX: VERIFIED:\n")
@example("MARK[note] \ufeffhidden words of a kind\n")
def test_any_journal(journal: str) -> None:
    page = sources.read(PATH, journal.encode("utf-8", "surrogatepass"))
    known = Known({CARD.id: CARD}, Vocabulary(Registry(), [CARD]), TYPES, 0.9)
    reader = Reader(Base(Path("/nowhere")), {PATH: page.data})
    proposer = propose.proposer(Config([]))
    for number, mark in enumerate(page.marks, 1):
        label = f"C{number}"
        shown = packet.build(page, mark, known, target=12_000, nearest=5)
        assert shown.text.isascii() or shown.text.encode("utf-8")
        verdict = proposer.propose(shown)
        assert propose.faults(verdict, shown) == []
        decision = Decision(mark.id, verdict, label if verdict.kind == NEW else "", "rules", shown.nearest)
        assert decision_from(decision.as_json()) == decision
        if verdict.kind != NEW or verdict.proposal is None:
            continue
        known.add(label, verdict.proposal.title, verdict.proposal.body)
        made = draft.draft(decision, mark, (), Material(known, reader, "2026-03-05", frozenset({label})))
        assert made.fate == "published", made.why
        held = markdown.parse(made.candidate.text)
        assert held.meta == made.candidate.meta
        assert held.body == made.candidate.body
        assert schema.problems("candidate", schema.convert(held.meta, "candidate")) == []
        assert all(quote.grade in ("EXACT", "WRAPPED") for quote in made.candidate.quotes)
        assert made.checks()["specifics"].state == "pass", made.checks()["specifics"].message


@pytest.mark.parametrize(
    ("proposal", "expected", "wrong"),
    [
        (Proposal("T", "b", "Problem→Solution"), ("T", "problem-solution", ()), False),
        (Proposal("T", "b", "decision->rationale"), ("T", "decision-rationale", ()), False),
        (Proposal(" two\n lines ", "b", "fact", ("#A Tag", "a-tag", " ")), ("two lines", "fact", ("a-tag",)), False),
        (Proposal("T", "b", "hunch"), ("T", "hunch", ()), True),
        (Proposal("\x00", "b", "fact"), ("", "fact", ()), True),
        (Proposal("T", "\u200b\n", "fact"), ("T", "fact", ()), True),
    ],
)
def test_a_header_is_put_right_or_named(proposal: Proposal, expected: tuple[object, ...], wrong: bool) -> None:
    made, said = draft.header(proposal, Known({}, Vocabulary(Registry(), []), TYPES, 0.9))
    assert (made.title, made.type, made.tags) == expected
    assert bool(said) is wrong


def test_a_cell_of_the_report_is_inert() -> None:
    hostile = "a | b `c` <img src=x> @someone closes #1\n# heading \x1b[31m sk-abcdefghijklmnopqrstuvwxyz123456"
    shown = report.cell(hostile, 300)
    assert shown.startswith("`") and shown.endswith("`")
    assert "`" not in shown[1:-1]
    assert "\n" not in shown and "\x1b" not in shown and "sk-abc" not in shown
    assert " \\| " in shown
    assert report.cell("x" * 500) == f"`{'x' * 99}…`"
    assert report.cell(" \n") == ""
