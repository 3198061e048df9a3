"""The shared inputs that broke other tools, as cards of a base: what lint says of each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.model.finding import Finding
from khms.store.layout import Base
from khms.store.repo import Repo

Say = Callable[..., list[Finding]]
MAPPED = "level: observation\nstatus: active\nevidence: observed\nscope: universal\n"


@pytest.fixture
def say(base: Base, shared, write, report) -> Say:  # type: ignore[no-untyped-def]
    """Puts a case into memory/know/ as a card, or whole into the inbox, and returns what lint says of that file. The
    generic frontmatter becomes a card's: an id, a type of ours, and the keys that a card needs and the case lacks."""

    def run(case: str, *, name: str = "K-00002.md", mapped: bool = True) -> list[Finding]:
        data = shared(f"cases/{case}").read_bytes()
        folder = "memory/know" if name.startswith("K-") else "memory/inbox"
        write(base, f"{folder}/{name}", as_card(data, name.removesuffix(".md")) if mapped else data)
        return [finding for finding in report().findings if finding.path.endswith(name) and finding.code != "KH010"]

    return run


def as_card(data: bytes, card_id: str) -> bytes:
    """The case's bytes under the id of a card. What a card needs and the case lacks stands after the first key, so that
    the lines of the case's own keys move by a known number."""
    end = b"\r\n" if b"\r\n" in data else b"\n"
    data = data.replace(b"id: C1", b"id: " + card_id.encode(), 1).replace(b"type: decision" + end, b"type: fact" + end)
    missing = [line.encode() for line in MAPPED.splitlines()]
    if b"source:" not in data:
        missing.append(b'source: "journal/2026-03-04.md"')
    if b"\ndate:" not in data:
        missing.append(b"date: 2026-03-04")
    head, sep, rest = data.partition(b"type: fact" + end)
    return head + sep + end.join(missing) + end + rest if sep else data


def moved(data: bytes) -> int:
    """How many lines `as_card` put before what follows the case's type."""
    return as_card(data, "K-00002").count(b"\n") - data.count(b"\n")


def test_a_colon_in_a_title(say, shared) -> None:
    (finding,) = say("01-colon-title.md", mapped=False)
    assert (finding.code, finding.severity, finding.line) == ("KH001", "error", 4)
    assert 'quote the value: title: "Cache: why we dropped it"' in finding.mend
    (finding,) = say("01-colon-title.md")
    assert finding.line == 4 + moved(shared("cases/01-colon-title.md").read_bytes())


def test_markdown_in_yaml(say) -> None:
    findings = [f for f in say("02-markdown-in-yaml.md", name="2026-03-05.md", mapped=False) if f.severity == "error"]
    unreadable = {f.line: f.message for f in findings if "is missing" not in f.message}
    assert list(unreadable) == [5, 12, 21, 29, 37]
    assert len(set(unreadable.values())) == 5
    assert all(f.mend for f in findings)


def test_two_frontmatter_blocks(say, base) -> None:
    (finding,) = say("03-two-frontmatter-blocks.md", mapped=False)
    assert (finding.code, finding.line, finding.message) == ("KH001", 5, "two frontmatter blocks")
    assert b"x_custom: keep me" in base.path("memory/know/K-00002.md").read_bytes()


@pytest.mark.parametrize("case", ["05-bare-dates", "08-bom-crlf", "15-code-fence-in-body", "16a-same-labels"])
def test_what_is_fine_once_it_is_a_card(say, case) -> None:
    assert say(f"{case}.md") == []


@pytest.mark.parametrize("case", ["30-cjk-and-scripts.md", "31-identifiers.md", "44-html-in-card.md"])
def test_odd_words_are_fine(say, case) -> None:
    assert [f for f in say(case) if f.code not in ("KH013", "KH014")] == []


def test_duplicate_keys(say) -> None:
    findings = say("10-duplicate-keys.md", mapped=False)
    assert {f.code for f in findings} == {"KH001"} and {f.line for f in findings} <= {6, 7}
    assert "`title`" in findings[0].message and "`tags`" in " ".join(f.message for f in findings)


def test_values_that_are_no_yaml_error(say, add_card, base, report) -> None:
    add_card(base, "K-00001")
    (finding,) = say("11-not-a-yamlerror.md")
    assert (finding.code, finding.severity) == ("KH001", "error") and finding.line and finding.mend
    assert {f.code for f in report().findings if f.path.endswith("K-00001.md")} == {"KH010"}


def test_an_alias_bomb(say) -> None:
    (finding,) = say("12-alias-bomb.md", mapped=False)
    assert (finding.code, finding.line) == ("KH001", 5) and "anchor" in finding.message


def test_three_cards_in_one_inbox_file(say) -> None:
    findings = say("14-rule-in-body.md", name="2026-03-05.md", mapped=False)
    assert {f.message for f in findings if f.severity == "error"} == {"`level` is missing", "`status` is missing"}
    assert len([f for f in findings if f.message == "`level` is missing"]) == 3


def test_an_edge_outside_of_links(say) -> None:
    assert [(f.code, f.severity) for f in say("16b-same-labels.md")] == [("KH006", "error")]


def test_wikilinks(say, add_card, base, shared) -> None:
    add_card(base, "K-00001")
    findings = say("17-wikilinks.md")
    assert [(f.code, f.severity) for f in findings] == [("KH005", "warning"), ("KH005", "error")]
    notice, broken = findings
    assert "K-99999" in broken.message and "2 wikilinks name nothing" in notice.message
    data = as_card(shared("cases/17-wikilinks.md").read_bytes(), "K-00002")
    assert base.path("memory/know/K-00002.md").read_bytes() == data
    lines = data.decode().split("\n")
    assert "K-99999" in lines[broken.line - 1] and "[[]]" in lines[notice.line - 1]


def test_conflict_markers(say, shared) -> None:
    findings = say("19-conflict-markers.md")
    lines = as_card(shared("cases/19-conflict-markers.md").read_bytes(), "K-00002").decode().split("\n")
    assert [(f.code, f.severity, f.line) for f in findings] == [("KH015", "error", lines.index("<<<<<<< HEAD") + 1)]
    assert say("19b-about-conflict-markers.md") == []


@pytest.mark.parametrize("name", ["K-00002.md", "K-🐘.md"])
def test_an_empty_file(say, name) -> None:
    (finding,) = say("22-empty.md", name=name, mapped=False)
    assert (finding.code, finding.severity) == ("KH001", "error") and "empty" in finding.message


def test_a_card_in_a_folder_below(say, base, write, git, commit, found, shared) -> None:
    data = as_card(shared("cases/23-move-unchanged.md").read_bytes(), "K-00001")
    write(base, "memory/know/K-00001.md", data)
    commit(base)
    (base.root / "memory/know/sub").mkdir()
    git(base, "mv", "memory/know/K-00001.md", "memory/know/sub/K-00001.md")
    assert found() == []
    write(base, "memory/know/K-00001.md", data)
    assert [(code, name) for code, name, _, _ in found()] == [("KH002", "K-00001.md")] * 2


def test_the_older_inbox_block_with_a_bad_quote(say) -> None:
    findings = say("41-quote-not-in-source.md", name="2026-03-05.md", mapped=False)
    assert {f.code for f in findings} <= {"KH001", "KH003"}


def test_injection(say) -> None:
    findings = say("43-injection.md")
    assert findings and {(f.code, f.severity) for f in findings} == {("KH014", "error")}


def test_no_case_raises_whatever_it_is_put_as(base, shared, write) -> None:
    from khms.check.lint import lint
    from khms.config import load

    for case in sorted(Path(shared("cases")).iterdir()):
        for place in ("memory/know/K-00001.md", "memory/inbox/u/C1.md", "memory/inbox/x.md", "memory/tags.yaml"):
            write(base, place, case.read_bytes())
        for place in ("memory/approvals/01JDXKQZ8V7M3N5P9R2T4W6Y8A.json", "memory/inbox/u/unit.json", "journal/x.md"):
            write(base, place, case.read_bytes())
        assert lint(base, load(base.root), Repo(base.root)).findings
