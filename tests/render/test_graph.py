"""The graph of the cards, and that no title can become more than a label."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.model.card import Card, Links
from khms.render import graph as drawn
from khms.store.layout import Base

HOSTILE = [
    'a "quoted" title',
    'x"]; evil [label="y',
    'x"]\n  n9 --> n1',
    "back\\slash \\",
    "\\N \\G \\l",
    "<b>bold</b><img src=x onerror=alert(1)>",
    "%%{init: {'securityLevel': 'loose'}}%%",
    '"`**markdown**`"',
    "end",
    "#quot; &quot; #35;",
    "click n1 href javascript:alert(1)",
    "line\nbreak\r\n\x1b[31m\u202e",
    "a | b --> c",
    "",
    "ゲージは壊れている",
    "//*comment*/",
]


def card(number: int, title: str = "", **links: Any) -> Card:
    derived = links.pop("derived", False)
    status = links.pop("status", "active")
    return Card(
        f"K-{number:05d}", "principle" if derived else "fact", status=status, title=title or f"Claim {number}",
        evidence="measured", path=f"memory/know/K-{number:05d}.md", links=Links(**links),
    )  # fmt: skip


SMALL = [
    card(1),
    card(2, supports=("K-00003",)),
    card(3, derived=True, derived_from=("K-00001",)),
    card(4, contradicts=("K-00005",), status="challenged"),
    card(5, contradicts=("K-00004",)),
    card(6, supersedes=("K-09999",)),
    card(7),
]


def test_every_edge_once() -> None:
    found = drawn.graph(SMALL)
    assert [(e.source, e.rel, e.target) for e in found.edges] == [
        ("K-00002", "supports", "K-00003"),
        ("K-00003", "derived_from", "K-00001"),
        ("K-00004", "contradicts", "K-00005"),
        ("K-00006", "supersedes", "K-09999"),
    ]
    assert [node.id for node in found.nodes.values() if node not in found.linked] == ["K-00007"]
    missing = found.nodes["K-09999"]
    assert not missing.known and missing.title == "(not in this base)"
    held = found.nodes["K-00003"].belief
    assert held and held.supporters == ("K-00001", "K-00002") and found.nodes["K-00001"].belief is None
    assert drawn.counts(found).endswith("(1 contradicts, 1 derived_from, 1 supersedes, 1 supports); 1 without any")


def test_the_order_of_the_cards_does_not_matter() -> None:
    mixed = SMALL[:]
    random.Random(4).shuffle(mixed)
    for form in (drawn.dot, drawn.mermaid, drawn.text):
        assert list(form(drawn.graph(mixed))) == list(form(drawn.graph(SMALL)))
    assert drawn.as_json(drawn.graph(mixed)) == drawn.as_json(drawn.graph(SMALL))


def test_for_people() -> None:
    lines = list(drawn.text(drawn.graph(SMALL)))
    assert "K-00003  Claim 3  [belief +0.91 (2 for, 0 against)]" in lines
    assert "    contradicts K-00005: Claim 5" in lines and "K-00004  Claim 4  [CHALLENGED]" in lines


# What one statement of each language may look like; whatever a title brings with it would not fit.
_TEXT = r'"(?:[^"\\\n]|\\.)*"'
DOT = re.compile(rf"  {_TEXT}(?: -> {_TEXT})? \[\w+={_TEXT}(?:, \w+=(?:{_TEXT}|\w+))*\];")
MERMAID = re.compile(
    r"  (?:n\d+(?:\(\[|\[)\"(?:[^\W]|[ \-.,:/()+']|#\d+;|<br/>)*\"(?:\]\)|\])"
    r"|n\d+ (?:<-->|-\.->|-->)\|\w+\| n\d+|classDef \w+ fill:#\w+|class [n\d,]+ \w+)"
)


def check(titles: list[str]) -> None:
    made = [card(number, title, supports=("K-00001",)) for number, title in enumerate(titles, 2)]
    found = drawn.graph([card(1), *made])
    for line in list(drawn.dot(found))[5:-1]:
        assert DOT.fullmatch(line), line
    for line in list(drawn.mermaid(found))[2:]:
        assert MERMAID.fullmatch(line), line
    assert len(list(drawn.dot(found))) == 6 + 2 * len(titles) + 1
    assert len(list(drawn.mermaid(found))) == 2 + 2 * len(titles) + 1
    assert all("\n" not in line for line in drawn.text(found))


def test_a_hostile_title_is_a_label() -> None:
    check(HOSTILE)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=3))
def test_no_title_breaks_out(titles: list[str]) -> None:
    check(titles)


@pytest.mark.parametrize("identity", ['x"; y', "a\nb", "end"])
def test_a_hostile_id_too(identity: str) -> None:
    found = drawn.graph([Card(identity, "fact", links=Links(supports=("K-1",))), Card("K-1", "fact")])
    assert all(DOT.fullmatch(line) for line in list(drawn.dot(found))[5:-1])
    assert all(MERMAID.fullmatch(line) for line in list(drawn.mermaid(found))[2:])


def test_ten_thousand_cards() -> None:
    rng = random.Random(7)
    many = [card(n, supports=(f"K-{rng.randrange(1, 10_001):05d}",)) for n in range(1, 10_001)]
    found = drawn.graph(many)
    assert len(found.edges) == 10_000 and sum(1 for _ in drawn.mermaid(found)) > 15_000


def test_the_command(base: Base, add_card: Callable[..., Path], run_khms: Callable[..., Any]) -> None:
    add_card(base, "K-00001", title='a "b" <c>')
    add_card(base, "K-00002", links={"supports": ["K-00001"]})
    assert "supports K-00001" in run_khms("graph").stdout
    assert run_khms("graph", "--dot").stdout.startswith("digraph khms {\n")
    assert "#34;b#34;" in run_khms("graph", "--mermaid").stdout
    found = json.loads(run_khms("graph", "--json").stdout)
    assert found["schema"] == "khms.graph/1" and found["unreadable"] == []
    assert found["edges"] == [{"source": "K-00002", "rel": "supports", "target": "K-00001"}]
    assert [node["title"] for node in found["nodes"]] == ['a "b" <c>', "What K-00002 says"]
    (base.know / "K-00003.md").write_text("no frontmatter\n", encoding="utf-8")
    done = run_khms("graph", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["unreadable"][0]["path"] == "memory/know/K-00003.md"
