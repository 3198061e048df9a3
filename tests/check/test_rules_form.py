"""The form of a page: its frontmatter (KH001), its name (KH002), where its links stand (KH006), its tags (KH011)."""

from pathlib import Path

import pytest


def line_of(path: Path, start: str) -> int:
    rows = path.read_text(encoding="utf-8").split("\n")
    return next(i for i, row in enumerate(rows, 1) if row.startswith(start))


def test_a_sound_card_has_nothing_wrong_but_that_nobody_approved_it(base, add_card, report) -> None:
    add_card(base)
    (finding,) = report().findings
    assert (finding.code, finding.severity) == ("KH010", "warning")


def test_an_approved_card_has_nothing_wrong(base, add_card, approve, report) -> None:
    approve(add_card(base))
    assert report().findings == ()


# KH001


def test_the_schema_is_asked_and_each_problem_has_its_line(base, add_card, found) -> None:
    path = add_card(base, level="obs", date="2026-02-30", links={"supersedes": "that one"})
    assert found("KH001") == [
        ("KH001", path.name, line_of(path, "level"), "error"),
        ("KH001", path.name, line_of(path, "date"), "error"),
        ("KH001", path.name, line_of(path, "  supersedes"), "error"),
    ]


def test_a_missing_key_is_named_with_what_it_means(base, add_card, only) -> None:
    add_card(base, level=None, evidence=None, source=None)
    finding = only("KH001")
    assert "`level` is missing" in finding.message and "assumption" in finding.mend


def test_a_title_may_be_missing_and_unknown_keys_stay(base, add_card, found) -> None:
    add_card(base, title=None, x_custom="kept", nested={"deep": ["list"]})
    assert found() == []


def test_the_set_of_types_is_open_by_configuration_only(base, add_card, write, only, found) -> None:
    add_card(base, type="measurment")
    assert "no type" in only("KH001").message
    write(base, "khms.toml", '[cards.types.measurment]\nlevel = "observation"\nlabels = ["HOW"]\n')
    assert found("KH001") == []


@pytest.mark.parametrize("kind", ["problem→solution", "action->outcome", "decision→rationale"])
def test_arrow_names_of_older_bases_are_types(base, add_card, found, kind) -> None:
    add_card(base, type=kind)
    assert found("KH001") == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, "empty"),
        ("  \n\n", 0, "empty"),
        ("Only a body.\n", 1, "frontmatter is missing"),
        ("---\n---\nbody\n", 1, "frontmatter is missing"),
        ("---\nid: K-00001\ntitle: Cache: why\n---\nbody\n", 3, "another key"),
        ("---\nid: K-00001\ntags: [a]\ntags: [b]\n---\nbody\n", 4, "duplicate key"),
        ("---\na: &x [1]\nb: *x\n---\nbody\n", 2, "anchor"),
        ("---\nid: K-00001\n---\n\n---\ntitle: second\n---\nbody\n", 5, "two frontmatter blocks"),
        ("---\nid: K-00001\n\ttitle: x\n---\nbody\n", 3, "tab"),
        ("---\nid: K-00001\ntitle: a\0b\n---\nbody\n", 3, "NUL"),
    ],
)
def test_one_broken_file_is_one_finding_and_hides_no_other(base, add_card, write, report, text, line, words) -> None:
    add_card(base, "K-00002", date="never")
    write(base, "memory/know/K-00001.md", text)
    broken, other, *rest = [f for f in report().findings if f.code != "KH010"]
    assert (broken.code, broken.path, broken.line) == ("KH001", "memory/know/K-00001.md", line)
    assert words in broken.message and broken.mend
    assert (other.code, other.path) == ("KH001", "memory/know/K-00002.md")
    assert rest == []


def test_a_card_that_cannot_be_read_still_counts_as_there(base, add_card, write, found) -> None:
    write(base, "memory/know/K-00001.md", "---\nid: K-00001\ntitle: a: b\n---\n")
    add_card(base, "K-00002", links={"supports": ["K-00001"]})
    assert found("KH005") == []


# KH002


def test_the_name_is_the_id(base, add_card, found) -> None:
    add_card(base, "K-00001", path="memory/know/K-00002.md")
    assert found("KH002") == [("KH002", "K-00002.md", 2, "error")]


def test_an_id_stands_once_over_both_folders(base, add_card, found) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00001", status="superseded")
    add_card(base, "K-00002")
    assert found("KH002") == [("KH002", "K-00001.md", 2, "error")] * 2


def test_an_id_is_given_once(base, add_card, approve, found) -> None:
    path = add_card(base)
    first = approve(path)
    assert found("KH002") == []
    second = approve(path)
    assert first.name < second.name
    assert found("KH002") == [("KH002", second.name, 0, "error")]


# KH006


def test_edges_stand_under_links(base, add_card, found) -> None:
    add_card(base, "K-00001")
    path = add_card(base, "K-00002", supports=["K-00001"])
    assert found() == [("KH006", "K-00002.md", line_of(path, "supports"), "error")]


def test_a_relation_that_means_nothing_gets_a_notice(base, add_card, only) -> None:
    add_card(base, links={"superseeds": "K-00002"})
    finding = only("KH006")
    assert finding.severity == "warning" and "supersedes" in finding.mend


# KH011


def test_tags_are_registered_by_their_own_name(base, add_card, write, report, found) -> None:
    path = add_card(base, tags=["sensors", "sensor", "weather"])
    assert found() == []  # a base without a registry has nothing to say
    write(base, "memory/tags.yaml", "sensors:\n  group: parts\n  aliases: [sensor]\n")
    assert found() == [("KH011", path.name, line_of(path, "tags"), "warning")] * 2
    alias, unknown = [finding.message for finding in report().findings if finding.code == "KH011"]
    assert "alias of `sensors`" in alias and "`weather` is not registered" in unknown


def test_an_alias_means_one_tag(base, write, found) -> None:
    write(base, "memory/tags.yaml", "a:\n  aliases: [x, b]\nb:\n  aliases: [x]\n")
    assert found("KH011") == [("KH011", "tags.yaml", line, "warning") for line in (1, 1, 3)]
