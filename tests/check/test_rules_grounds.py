"""What a card rests on: evidence and source (KH003), its parents (KH004), the targets it names (KH005)."""

from pathlib import Path

import pytest

DERIVED = {"type": "principle", "level": "derived", "evidence": None, "source": None, "body": "HOLDS: it is so\n"}


def line_of(path: Path, start: str) -> int:
    rows = path.read_text(encoding="utf-8").split("\n")
    return next(i for i, row in enumerate(rows, 1) if row.startswith(start))


# KH003


@pytest.mark.parametrize(
    "source",
    [
        "journal/2026-03-04.md line 3",
        'journal/2026-03-04.md line 3: "a ground was loose"',
        "journal/2026-03-04.md lines 1-3 — with a remark",
        "journal/2026-03-04.md:2",
        "journal/2026-03-04.md",
        "see ./journal/2026-03-04.md, lines 1–2; and more words",
        "notes/a file with blanks.md line 1",
        "Makefile.local line 1",
        "https://example.org/page?x=1",
        "what they said (sess 8f21)",
        "session:claude-code/0b1c2d3e",
        "commit 0123abc",
        "K-00002",
    ],
)
def test_a_source_that_can_be_found(base, add_card, write, found, source) -> None:
    write(base, "notes/a file with blanks.md", "one line\n")
    write(base, "Makefile.local", "all:\n")
    add_card(base, "K-00002")
    add_card(base, source=source)
    assert found("KH003") == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("journal/2026-03-04.md line 4", "has 3 lines"),
        ("journal/2026-03-04.md lines 2-30", "no line 30"),
        ("journal/2026-03-04.md line 0", "no line 0"),
        ("journal/2026-03-09.md line 3", "is not in the base"),
        ("/etc/passwd line 1", "outside the base"),
        ("../outside.md line 1", "outside the base"),
        ("K-00777", "nothing that can be found"),
        ("a phone call", "nothing that can be found"),
    ],
)
def test_a_source_that_cannot_be_found(base, add_card, approve, write, only, source, words) -> None:
    write(base.root.parent, "outside.md", "x\n")
    approve(add_card(base, source=source))
    finding = only("KH003")
    assert words in finding.message and finding.severity == "error"


def test_a_source_below_the_repository_of_a_base_in_a_folder(base, add_card, approve, write, git, found) -> None:
    write(base.root.parent, "src/main.py", "x = 1\n")
    git(base.root.parent, "init", "--quiet")
    (base.root / ".git").rename(base.root.parent / "moved")
    approve(add_card(base, source="src/main.py line 1"))
    assert found("KH003") == []


def test_a_source_through_a_link_that_leaves_the_base(base, add_card, write, found) -> None:
    outside = write(base.root.parent, "outside.md", "x\n")
    (base.root / "inside.md").symlink_to(outside)
    add_card(base, source="inside.md line 1")
    assert [code for code, *_ in found("KH003")] == ["KH003"]


def test_an_observation_has_evidence_and_source(base, add_card, approve, found) -> None:
    path = add_card(base, evidence=None, source=None)
    assert found("KH003") == [("KH003", path.name, line_of(path, "level"), "warning")] * 2
    approve(path)
    assert found("KH003") == [("KH003", path.name, line_of(path, "level"), "error")] * 2


def test_an_assumption_and_a_derived_card_need_no_source(base, add_card, found) -> None:
    add_card(base)
    add_card(base, "K-00002", level="assumption", evidence=None, source=None)
    add_card(base, "K-00003", **DERIVED, links={"derived_from": ["K-00001"]})
    assert found() == []


# KH004


def test_a_derived_card_names_what_it_follows_from(base, add_card, found) -> None:
    add_card(base)
    path = add_card(base, "K-00002", **DERIVED)
    add_card(base, "K-00003", **DERIVED, links={"derived_from": ["K-00001"]})
    add_card(base, "K-00004", **{**DERIVED, "level": "assumption"})
    assert found() == [("KH004", "K-00002.md", line_of(path, "  derived_from"), "error")]


def test_a_derived_type_is_no_observation(base, add_card, found) -> None:
    add_card(base, type="policy")
    assert [code for code, *_ in found("KH004")] == ["KH004"]


# KH005


def test_what_links_name_exists(base, add_card, found) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00003", status="superseded")
    links = {"supports": ["K-00001", "K-00003"], "contradicts": ["K-09999"]}
    path = add_card(base, "K-00004", links=links)
    assert found("KH005") == [("KH005", "K-00004.md", line_of(path, "  contradicts"), "error")]


def test_what_a_body_names_exists(base, add_card, found) -> None:
    body = "See [[K-00001]] and [[K-00007|that]].\n\n`[[K-00008]]`\n\n```\n[[K-00009]]\n```\n[[other note]]\n"
    path = add_card(base, body=body)
    assert found("KH005") == [("KH005", path.name, line_of(path, "See"), "error")]


def test_empty_wikilinks_get_one_notice(base, add_card, found) -> None:
    path = add_card(base, body="First.\n\nTwo: [[]] and [[|x]].\n")
    assert found() == [("KH005", path.name, line_of(path, "Two"), "warning")]


def test_a_label_means_nothing_in_a_card(base, add_card, found) -> None:
    add_card(base, body="As in [[C1]].\n")
    assert [code for code, *_ in found()] == ["KH005"]


def test_an_id_that_a_replay_changed_still_answers(base, add_card, approve, found) -> None:
    record = approve(add_card(base, "K-00002"))
    text = record.read_text(encoding="utf-8").replace('"was": []', '"was": ["K-00009"]')
    record.write_text(text, encoding="utf-8")
    add_card(base, "K-00003", links={"supports": ["K-00009"]})
    assert found("KH005") == []
