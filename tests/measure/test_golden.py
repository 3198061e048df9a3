"""Golden queries: what is refused, with file and line, and what is drafted."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Refused
from khms.measure import golden
from khms.store.layout import Base

Add = Callable[..., Path]


def load(tmp_path: Path, *lines: str) -> tuple[golden.Golden, ...]:
    path = tmp_path / "g.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return golden.load(path)


def test_a_line_with_everything_and_one_with_the_least(tmp_path: Path) -> None:
    whole = '{"id": "G1", "k": 3, "gate": true, "query": "q ü", "gold": ["K-00001", "n/x"], "kind": "a", "draft": true}'
    first, second = load(tmp_path, "\ufeff" + whole, "", '{"query": "r", "gold": []}')
    assert first == golden.Golden("G1", 1, "q ü", ("K-00001", "n/x"), 3, True, "a", True)
    assert second == golden.Golden("line 3", 3, "r", ())


def test_the_golden_set_of_an_older_base(shared: Callable[[str], Path]) -> None:
    found = golden.load(shared("real/khms-base/golden.jsonl"))
    assert found[0].id == "G1" and found[0].gate and found[0].k == 3 and all(one.gold for one in found)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "no JSON"),
        ("[" * 20000, "no JSON"),
        ("[]", "no JSON object"),
        ('{"gold": ["a"]}', "query is no text"),
        ('{"query": " ", "gold": ["a"]}', "query is no text, or empty"),
        ('{"query": "' + "x" * 5000 + '", "gold": ["a"]}', "5000 characters"),
        ('{"query": "q"}', "gold is no list"),
        ('{"query": "q", "gold": "K-00001"}', "gold is no list"),
        ('{"query": "q", "gold": [1]}', "gold is no list"),
        ('{"query": "q", "gold": [""]}', "gold is no list"),
        ('{"query": "q", "gold": ["a", "a"]}', "twice"),
        ('{"query": "q", "gold": ["a"], "k": 0}', "its k is 0"),
        ('{"query": "q", "gold": ["a"], "k": true}', "its k is True"),
        ('{"query": "q", "gold": ["a"], "gate": 1}', "its gate is 1"),
        ('{"query": "q", "gold": ["a"], "id": 7}', "its id is no text"),
        ('{"query": "q", "gold": ["a"], "golden": 7}', "'golden'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(Refused) as caught:
        load(tmp_path, '{"query": "fine", "gold": ["a"]}', line)
    assert "g.jsonl:2: " in caught.value.where and why in caught.value.where
    assert caught.value.exit_code == 3 and '"gold"' in caught.value.hint


def test_every_bad_line_is_named_up_to_a_number(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        load(tmp_path, *["x"] * 25)
    assert "25 lines" in caught.value.message and caught.value.where.endswith("and 5 more")
    assert "g.jsonl:20:" in caught.value.where


def test_an_id_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        load(tmp_path, '{"query": "q", "gold": ["a"], "id": "G"}', '{"query": "r", "gold": ["a"], "id": "G"}')
    assert ":2: its id 'G' is that of line 1 too" in caught.value.where


def test_a_file_that_is_none_is_not_there_or_is_empty(tmp_path: Path) -> None:
    for make in (
        lambda p: None,
        lambda p: p.mkdir(),
        lambda p: p.write_bytes(b"\n\n"),
        lambda p: p.write_bytes(b"\xff"),
    ):
        path = tmp_path / "h.jsonl"
        make(path)
        with pytest.raises(Refused) as caught:
            golden.load(path)
        assert "h.jsonl" in caught.value.where
        if path.is_dir():
            path.rmdir()


@pytest.fixture
def stocked(base: Base, add_card: Add, commit: Callable[..., str]) -> Base:
    body = "SYMPTOM: the pump stalls\n\nFIX: bleed it\n"
    for number in range(1, 13):
        add_card(
            base, f"K-{number:05d}", title=f"Claim number {number}", tags=["pump", f"n{number % 6}"],
            body=body.replace("pump", f"pump {number}"),
        )  # fmt: skip
    add_card(base, "K-00020", title="Nobody asks for the refuted", status="refuted")
    add_card(base, "K-00021", title="Nor for the superseded", status="superseded")
    commit(base)
    return base


def test_drafts_are_the_same_again_and_others_by_another_seed(stocked: Base, tmp_path: Path) -> None:
    first, again = list(golden.draft(stocked, 9)), list(golden.draft(stocked, 9))
    assert first == again and len(first) == 9
    assert [line["query"] for line in golden.draft(stocked, 9, seed=1)] != [line["query"] for line in first]
    assert [line["id"] for line in first] == [f"Q{n:03}" for n in range(1, 10)]
    assert {line["kind"] for line in first} == {"title", "body", "tags"}
    assert all(line["draft"] is True for line in first)
    for line in first:
        assert not {"K-00020", "K-00021"} & set(line["gold"])
        if line["kind"] == "body":
            assert line["query"].startswith("the pump ") and line["query"].endswith(" stalls")
        if line["kind"] == "tags":
            assert line["query"].startswith("pump n") and len(line["gold"]) == 2
    assert load(tmp_path, *(golden.as_line(line).strip() for line in first))[0].draft


def test_no_more_drafts_than_cards(stocked: Base) -> None:
    queries = [line["query"] for line in golden.draft(stocked, 500)]
    assert 6 < len(queries) <= 12 and len(set(queries)) == len(queries)


def test_a_draft_is_one_line_of_bounded_length(base: Base, add_card: Add, commit: Callable[..., str]) -> None:
    add_card(base, title="word " * 100 + "\u202e\x1b[2J")
    commit(base)
    (line,) = golden.draft(base, 5)
    assert len(line["query"]) <= golden.QUERY_CHARS and line["query"].endswith("word")
    shown = golden.as_line({"query": "\u202e\x1b ü"})
    assert json.loads(shown) == {"query": "\u202e\x1b ü"} and shown.strip().isprintable() and "ü" in shown


def test_there_is_nothing_to_draft_from(base: Base) -> None:
    with pytest.raises(Refused, match="no active card"):
        list(golden.draft(base, 5))
