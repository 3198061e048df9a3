"""Inputs that broke other tools, as single-file inbox units before an approval: each has its defined outcome.

Their frontmatter is generic, so what a card needs beside it is added to each block; the point of the case stays.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store import markdown
from khms.store.layout import Base

NEEDED = {
    "level": "observation",
    "status": "active",
    "tags": "[demo]",
    "scope": "universal",
    "evidence": "observed",
    "source": '"journal/2026-03-04.md line 3"',
    "date": "2026-03-04",
}
LINKS = "links:\n  derived_from: []\n  supports: []\n  contradicts: []\n  supersedes: null\n  refuted_by: []\n"
BLOCK = re.compile(r"^---\nid: C\d+\n.*?^---\n", re.MULTILINE | re.DOTALL)

Put = Callable[..., Path]


def as_candidate(block: str) -> str:
    """The block with the keys that a card needs and the case does not speak of."""
    keys = {line.partition(":")[0] for line in block.splitlines()}
    block = block.replace("type: decision\n", "type: decision-rationale\n")
    missing = "".join(f"{key}: {value}\n" for key, value in NEEDED.items() if key not in keys)
    links = LINKS
    stray = re.search(r"^derived_from: (.*)\n", block, re.MULTILINE)
    if stray:
        block = block.replace(stray[0], "")
        links = LINKS.replace("derived_from: []", f"derived_from: {stray[1]}")
    return block[: -len("---\n")] + missing + links + "---\n"


@pytest.fixture
def put(base: Base, shared: Callable[[str], Path], commit: Callable[..., str]) -> Put:
    """Puts a case into the inbox as `<stem>.md`, completed, and commits it."""

    def place(name: str, *, raw: bool = False) -> Path:
        text = shared(f"cases/{name}").read_text(encoding="utf-8")
        first_only = "15" in name  # its second block is an example inside a fence
        text = text if raw else BLOCK.sub(lambda match: as_candidate(match[0]), text, count=int(first_only))
        path = base.inbox / name
        path.write_text(text, encoding="utf-8")
        commit(base)
        return path

    return place


@pytest.fixture
def approve(base: Base, run_khms: Callable[..., object]) -> Callable[..., object]:
    def run(name: str, *args: str) -> object:
        return run_khms("approve", name, *(args or ("--all",)), cwd=base.root)

    return run


def cards(base: Base) -> dict[str, markdown.Page]:
    return {path.stem: markdown.read(path, path.name) for path in sorted(base.know.glob("*.md"))}


def refused(done: object, *words: str) -> None:
    assert done.returncode == 3, done  # type: ignore[attr-defined]
    said = done.stderr  # type: ignore[attr-defined]
    assert "Traceback" not in said
    for word in words:
        assert word in said, f"{word!r} is not in: {said}"


def test_01_a_title_with_a_colon(put: Put, approve: Callable[..., object], base: Base) -> None:
    put("01-colon-title.md")
    refused(approve("01-colon-title"), "01-colon-title.md:4", "quote")
    assert not cards(base)


def test_02_five_precise_messages_and_no_silent_loss(put: Put, approve: Callable[..., object], base: Base) -> None:
    put("02-markdown-in-yaml.md")
    done = approve("02-markdown-in-yaml")
    refused(done)
    named = re.findall(r"02-markdown-in-yaml\.md:(\d+): \S* ?(.*)", done.stderr)  # type: ignore[attr-defined]
    assert len(named) == 5 and len({line for line, _ in named}) == 5 and len({said for _, said in named}) >= 4
    assert not cards(base)
    assert approve("02-markdown-in-yaml", "C6").returncode == 0  # type: ignore[attr-defined]
    assert [page.meta["title"] for page in cards(base).values()] == ["healthy neighbour"]


def test_03_two_frontmatter_blocks(put: Put, approve: Callable[..., object], base: Base) -> None:
    path = put("03-two-frontmatter-blocks.md", raw=True)
    before = path.read_bytes()
    refused(approve("03-two-frontmatter-blocks"), "two frontmatter blocks")
    assert path.read_bytes() == before and b"x_custom: keep me" in before


def test_14_rules_in_bodies(put: Put, approve: Callable[..., object], base: Base) -> None:
    put("14-rule-in-body.md")
    assert approve("14-rule-in-body").returncode == 0  # type: ignore[attr-defined]
    bodies = [page.body for page in cards(base).values()]
    assert len(bodies) == 3
    for needle, body in zip(("plumwrench", "oakspindle", "fernbucket"), bodies, strict=True):
        assert needle in body
    assert "First half.\n\n---\n\nSecond half" in bodies[0]


def test_15_fences_stay_and_the_example_is_no_card(
    put: Put, approve: Callable[..., object], base: Base, shared: Callable[[str], Path]
) -> None:
    put("15-code-fence-in-body.md")
    assert approve("15-code-fence-in-body").returncode == 0  # type: ignore[attr-defined]
    held = cards(base)
    assert list(held) == ["K-00001"]
    original = shared("cases/15-code-fence-in-body.md").read_text(encoding="utf-8")
    assert held["K-00001"].body == original.split("---\n", 2)[2]


def test_16_the_same_label_in_two_units(put: Put, approve: Callable[..., object], base: Base) -> None:
    put("16a-same-labels.md")
    put("16b-same-labels.md")
    assert approve("16a-same-labels").returncode == 0  # type: ignore[attr-defined]
    done = approve("16b-same-labels")
    held = cards(base)
    if done.returncode == 0:  # type: ignore[attr-defined]
        assert held["K-00002"].meta["links"]["derived_from"] == ["K-00002"]
    else:
        refused(done, "C1")
        assert list(held) == ["K-00001"]
    assert "alphawharf" in held["K-00001"].body


def test_19_conflict_markers(put: Put, approve: Callable[..., object], base: Base) -> None:
    put("19-conflict-markers.md")
    refused(approve("19-conflict-markers"), "merge conflict", "19-conflict-markers.md:20")
    assert not cards(base)


def test_19b_a_text_about_markers(put: Put, approve: Callable[..., object], base: Base) -> None:
    put("19b-about-conflict-markers.md")
    assert approve("19b-about-conflict-markers").returncode == 0  # type: ignore[attr-defined]
    assert "stop." in cards(base)["K-00001"].body


def test_30_other_scripts(
    put: Put,
    approve: Callable[..., object],
    base: Base,
    run_khms: Callable[..., object],
    shared: Callable[[str], Path],
) -> None:
    put("30-cjk-and-scripts.md")
    assert approve("30-cjk-and-scripts").returncode == 0  # type: ignore[attr-defined]
    queries = shared("cases/30-cjk-and-scripts.md").read_text(encoding="utf-8").partition("queries: ")[2]
    for word in queries.removesuffix(" -->\n").split(" | "):
        done = run_khms("recall", word, "--json", cwd=base.root)
        assert [hit["id"] for hit in json.loads(done.stdout)["hits"]] == ["K-00001"], word  # type: ignore[attr-defined]


def test_41_a_quote_that_stands_in_no_source(put: Put, approve: Callable[..., object], base: Base) -> None:
    path = put("41-quote-not-in-source.md")
    (base.journal / "2026-03-04.md").write_text("# 2026-03-04\n\nthe pump ran overnight\n", encoding="utf-8")
    refused(approve("41-quote-not-in-source"), "quotes", "the pump ran for nine hours")
    assert not cards(base)
    waived = ("C1", "--waive", "quotes:C1", "--why", "read off the meter")
    assert approve("41-quote-not-in-source", *waived).returncode == 0, path  # type: ignore[attr-defined]
    (record,) = base.approvals.glob("*.json")
    assert json.loads(record.read_text(encoding="utf-8"))["waivers"] == [
        {"check": "quotes", "label": "C1", "why": "read off the meter"}
    ]


def test_43_an_injection_is_refused_until_a_reviewer_waives_it(
    put: Put, approve: Callable[..., object], base: Base
) -> None:
    put("43-injection.md")
    refused(approve("43-injection"), "screening")
    assert not cards(base)
    waived = ("C1", "--waive", "screening:C1", "--why", "kept as an example")
    assert approve("43-injection", *waived).returncode == 0  # type: ignore[attr-defined]


def test_17_wikilinks_with_a_missing_target(
    put: Put, approve: Callable[..., object], base: Base, add_card: Put, commit: Put
) -> None:
    add_card(base, "K-00001")
    path = put("17-wikilinks.md")
    before = path.read_bytes()
    refused(approve("17-wikilinks"), "K-99999")
    assert path.read_bytes() == before
