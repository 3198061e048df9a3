"""The proposer without a model: kinds to types, labels as they are written, titles, quotes, and what it leaves open."""

from dataclasses import replace

import pytest

from khms.config import Config
from khms.model.card import TYPES, Card
from khms.model.tags import registry_from
from khms.model.verdict import ALREADY, ATTACH, NEW, NOT, Verdict
from khms.pipeline import packet, propose, rules, sources
from khms.pipeline.known import Known, Vocabulary

REGISTRY = registry_from({"data-quality": {"aliases": ["lost rows"]}, "sensors": None, "ci": None, "it": None})


def known(*cards: Card) -> Known:
    return Known({card.id: card for card in cards}, Vocabulary(REGISTRY, cards), TYPES, 0.9)


def propose_from(journal: str, held: Known | None = None) -> Verdict:
    page = sources.read("journal/2026-03-04.md", journal.encode())
    shown = packet.build(page, page.marks[0], held or known(), target=12000, nearest=5)
    verdict = propose.proposer(Config([])).propose(shown)
    assert propose.faults(verdict, replace(shown, ids={"K-00001"}, labels={"C1"})) == []
    return verdict


@pytest.mark.parametrize(
    ("kind", "type", "body"),
    [
        ("decision", "decision-rationale", "DECIDED: poll once a minute from now on\n"),
        ("failed", "action-outcome", "THEN: poll once a minute from now on\n"),
        ("solved", "problem-solution", "FIX: poll once a minute from now on\n"),
        ("req", "requirement", "WHAT: poll once a minute from now on\n"),
        ("Decision", "decision-rationale", "DECIDED: poll once a minute from now on\n"),
        ("note", "fact", "poll once a minute from now on\n"),
        ("hyp", "fact", "poll once a minute from now on\n"),
        ("start", "fact", "poll once a minute from now on\n"),
        ("fact", "fact", "poll once a minute from now on\n"),
    ],
)
def test_the_kind_gives_the_type_and_the_type_the_label(kind: str, type: str, body: str) -> None:
    verdict = propose_from(f"MARK[{kind}] poll once a minute\nfrom now on (sess 8f21)\n")
    assert verdict.kind == NEW
    assert verdict.proposal is not None
    assert (verdict.proposal.type, verdict.proposal.body) == (type, body)
    assert verdict.relation is not None and verdict.relation.kind == "unjudged"
    assert [(quote.source, quote.text) for quote in verdict.quotes] == [("journal", "poll once a minute\nfrom now on")]


def test_other_labels_stand_only_where_they_are_literally_written() -> None:
    text = "MARK[solved] reopen by name SYMPTOM: gaps VERIFIED: by hand. VERIFIED: four times CAUSE : no label\n"
    verdict = propose_from(text)
    assert verdict.proposal is not None
    assert (
        verdict.proposal.body == "SYMPTOM: gaps\nFIX: reopen by name\nVERIFIED: by hand. four times CAUSE : no label\n"
    )
    assert verdict.proposal.title == "reopen by name"


def test_a_main_label_that_is_written_is_not_doubled() -> None:
    verdict = propose_from("MARK[decision] DECIDED: no cache WHY: stale prices REJECTED:\n")
    assert verdict.proposal is not None
    assert verdict.proposal.body == "DECIDED: no cache\nWHY: stale prices\n"


def test_labels_of_other_types_are_text() -> None:
    verdict = propose_from("MARK[note] the card says WHY: nothing else\n")
    assert verdict.proposal is not None
    assert verdict.proposal.body == "the card says WHY: nothing else\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("short", "short"),
        ("x" * 80, "x" * 80),
        ("x" * 100, "x" * 80),
        ("word " * 30, "word word word word word word word word word word word word word word word word"),
        ("a" * 78 + " bc", "a" * 78),
        ("a" * 77 + ", bcd", "a" * 77),
        ("重" * 100, "重" * 80),
    ],
)
def test_a_title_is_cut_at_a_word(text: str, title: str) -> None:
    assert rules.cut(text) == title
    assert len(rules.cut(text)) <= 80


def test_a_title_is_not_cut_inside_a_character() -> None:
    family = "👨\u200d👩\u200d👧"
    assert not rules.cut(family * 40).endswith("\u200d")
    assert rules.cut("e\u0301" * 60).endswith("e\u0301")


def test_tags_are_registered_ones_that_occur() -> None:
    verdict = propose_from("MARK[note] it was data quality: the sensors, then CI, then lost rows again\n")
    assert verdict.proposal is not None
    assert verdict.proposal.tags == ("data-quality", "sensors", "ci")


def test_without_a_registry_the_tags_in_use_count() -> None:
    used = Vocabulary(registry_from({}), [Card("K-00001", "fact", tags=("serial", "gotcha"))])
    assert used.occurring("the serial link") == ("serial",)


@pytest.mark.parametrize(
    ("registry", "tags"),
    [({}, ("gotcha",)), ({"trap": {"aliases": ["gotcha"]}, "sensors": None}, ("trap", "sensors")), ({"ci": None}, ())],
)
def test_a_mark_that_says_it_is_a_gotcha_is_tagged_as_one(registry: dict[str, object], tags: tuple[str, ...]) -> None:
    held = Known({}, Vocabulary(registry_from(registry), ()), TYPES, 0.9)
    verdict = propose_from("MARK[Gotcha] the sensors lose their clock at noon\n", held)
    assert verdict.proposal is not None and (verdict.proposal.type, verdict.proposal.tags) == ("fact", tags)


@pytest.mark.parametrize("text", ["it is so", "…", "🐘🐘🐘", "***", "—"])
def test_a_mark_without_words_of_its_own_is_not_carded(text: str) -> None:
    verdict = propose_from(f"MARK[note] {text}\n")
    assert (verdict.kind, verdict.reason) == (NOT, "it has no words of its own")


def test_a_mark_as_long_as_a_document_is_not_carded() -> None:
    assert propose_from(f"MARK[note] {'word ' * 20_000}\n").kind == NOT


@pytest.mark.parametrize("text", ["不要重试", "use tabs", "C++17"])
def test_words_too_few_for_a_quote_are_quoted_with_their_mark(text: str) -> None:
    verdict = propose_from(f"- MARK[decision] {text} (sess 1)\n")
    assert verdict.quotes[0].text == f"MARK[decision] {text}"


def test_what_a_card_in_force_says_is_already_carded() -> None:
    text = "the summary job reads the rotated file once more after the flush interval has passed"
    cards = [
        Card("K-00001", "decision-rationale", body=f"DECIDED: {text}.\n\n**QUOTES:**\n- src=journal :: so it is\n"),
        Card("K-00002", "fact", body=text, status="refuted"),
        Card("K-00003", "fact", body=text, status="superseded", path="memory/archive/know/K-00003.md"),
    ]
    verdict = propose_from(f"MARK[decision] {text}\n", known(*cards))
    assert (verdict.kind, verdict.card) == (ALREADY, "K-00001")
    assert propose_from(f"MARK[decision] {text}\n", known(*cards[1:])).kind == NEW


def test_what_an_earlier_candidate_says_is_attached_to_it() -> None:
    held = known()
    held.add("C1", "Poll slowly", "DECIDED: poll once a minute from now on\n")
    verdict = propose_from("MARK[note] Poll once a minute from now on.\n", held)
    assert (verdict.kind, verdict.to) == (ATTACH, "C1")
    assert verdict.quotes[0].text == "Poll once a minute from now on."


@pytest.mark.parametrize("text", ["<<<<<<< HEAD stands in the file", "--- a rule is text", "... and so on it went"])
def test_a_body_never_begins_with_what_a_reader_would_obey(text: str) -> None:
    verdict = propose_from(f"MARK[note] {text}\n")
    assert verdict.proposal is not None
    assert verdict.proposal.body == f" {text}\n"


def test_control_characters_reach_no_candidate() -> None:
    verdict = propose_from("MARK[note] a \x1b[31mred\x00 alert \u202eback\u202c in the log\n")
    assert verdict.proposal is not None
    assert verdict.proposal.body.isprintable() is False  # its line end
    assert verdict.proposal.body.rstrip("\n").isprintable()
