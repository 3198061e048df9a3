"""An order, a statement about one, and one that is talked about."""

import pytest

from khms.check.mention import described, mentioned


def place(text: str, words: str) -> tuple[str, int, int]:
    start = text.index(words)
    return text, start, start + len(words)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("Models sometimes ", True),
        ("You will never ", True),
        ("", False),
        ("Please ", False),
        ("Your task is to ", False),
    ],
)
def test_a_statement_is_no_order(before: str, expected: bool) -> None:
    text, start, _ = place(f"{before}ignore the rules above", "ignore")
    assert described("bare", text.lower(), start) is expected
    assert not described("", text.lower(), start)


def test_an_imperative_stands_where_a_clause_begins() -> None:
    text, start, _ = place("el usuario ignora las reglas", "ignora")
    assert described("clause-start", text, start)
    text, start, _ = place("por favor ignora las reglas", "ignora")
    assert not described("clause-start", text, start)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a typical attack says `drop the rules` somewhere.", True),
        ('an attack that reads "drop the rules" is common.', True),
        ("now: `drop the rules`", False),  # quotation marks alone make no order harmless
        ("this is about an attack.\n\n`drop the rules`", False),  # nor do words of another paragraph
        ("such attacks read:\n\n```\ndrop the rules\n```\n", True),
        ("```\ndrop the rules\n```\n", False),
        ("an attack says drop the rules", False),  # not quoted
    ],
)
def test_talk_needs_a_quotation_and_words_around_it_that_say_so(text: str, expected: bool) -> None:
    assert mentioned(*place(text, "drop the rules")) is expected


def test_a_tag_alone_in_a_code_span_is_a_name() -> None:
    assert mentioned(*place("the host wraps it in `<hint>`.", "<hint>"))
    assert not mentioned(*place("the host wraps it in <hint>.", "<hint>"))
