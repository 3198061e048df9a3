import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.check import wikilinks as module
from khms.check.wikilinks import Wikilink, wikilinks

PIECES = (
    "[[K-00001]]", "[[K-00001|a]]", "[[K-00002#x]]", "[[K-00001#x|y]]", "[[]]", "[[|x]]", "[[K-00003|`Page`]]", "[[",
    "`", "``", "```", "~~~", "\n", "\n\n", " ", "    ", "\t", "- ", "> ", "1. ", "# ", "| a | b |\n|---|---|\n| ",
    "\\|", " |\n", "text", "<!-- ", " -->", "<b>", "\\", "]]", "[K-00001]: u\n", "&amp;", "é", "[x](y)", "===",
)  # fmt: skip


def shown(links: list[Wikilink]) -> list[tuple[str, int]]:
    """Those that name a card or nothing; how an unusable target is spelt does not matter."""
    return [(link.target, link.line) for link in links if not link.target or link.target[:2] == "K-"]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_the_quick_way_and_the_parser_see_the_same_links(body: str) -> None:
    assert shown(wikilinks(body)) == shown(list(module._parsed(body)))


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("no link at all", []),
        ("[[K-00001]], [[K-00002|with words]], [[K-00003#part]], [[K-00004#part|words]]", [1, 2, 3, 4]),
        ("an alias in code [[K-00001|`Page`]]", [1]),
        ("`[[K-00001]]` and ``[[K-00002]] ` `` and [[K-00003]]", [3]),
        ("split: `[[` K-00001 `]]`", []),
        ("over `a line's\nend [[K-00001]]` and [[K-00002]]", [2]),
        ("```\n[[K-00001]]\n```\n[[K-00002]]", [2]),
        ("~~~ markdown\n```\n[[K-00001]]\n~~~\n[[K-00002]]", [2]),
        ("```\n[[K-00001]] in a fence that nothing closes", []),
        ("para\n\n    [[K-00001]]\n\n[[K-00002]]", [2]),
        ("- item\n\n        [[K-00001]]\n\n  [[K-00002]]", [2]),
        ("<!-- [[K-00001]]\n\n[[K-00002]] -->\n\n[[K-00003]]", [3]),
        ("words <!-- [[K-00001]] --> [[K-00002]]", [2]),
        ("<details>\n<summary>[[K-00001]]</summary>\n</details>", [1]),
        (r"escaped \[[K-00001]] and \[\[K-00002]] and [[K-00003]]", [3]),
        (r"| a | b |" + "\n|---|---|\n" + r"| [[K-00001\|words]] | [[K-00002]] |", [1, 2]),
        (r"the same outside of a table [[K-00001\|words]]", [1]),
        ("[K-00001]: https://example.org\n\n[[K-00001]]", [1]),
        ("**bold [[K-00001]]** and *[[K-00002|x]]*", [1, 2]),
    ],
)
def test_what_counts(body: str, targets: list[int]) -> None:
    assert [link.target for link in wikilinks(body)] == [f"K-{number:05d}" for number in targets]


def test_an_empty_link_has_an_empty_target() -> None:
    assert wikilinks("[[]]\n[[|x]]\n[[ ]]") == [Wikilink("", 1), Wikilink("", 2), Wikilink("", 3)]


def test_lines_count_from_the_body() -> None:
    body = "a `code` line\n\nfirst [[K-00001]]\nsecond [[K-00002]]\n\n```\nx\n```\n<b>x</b> [[K-00003]]\n[[K-00003]]\n"
    assert [(link.target, link.line) for link in wikilinks(body)] == [
        ("K-00001", 3), ("K-00002", 4), ("K-00003", 9), ("K-00003", 10),
    ]  # fmt: skip


def test_a_body_made_to_be_slow_is_not() -> None:
    long = ("[[" * 20000, "[[a|" * 10000, "[[" + " " * 50000, "x " + "`" * 20000 + " [[K-00001]]", "    " * 9000 + "[[")
    assert [wikilinks(body) for body in long] == [[], [], [], [Wikilink("K-00001", 1)], []]
