"""Files of consecutive blocks: each block found once, rules and code left alone, and no broken one hides another."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.markdown import blocks

Shared = Callable[[str], Path]


def block(label: str, body: str = "Body.\n") -> str:
    return f"---\nid: {label}\ntype: fact\n---\n{body}"


def test_bodies_are_kept_but_for_the_blank_lines_before_the_next_block() -> None:
    text = "\ufeff" + (
        block("C1", "One.\n\n---\n\nTwo.\n") + "\n\n" + block("C2", "") + "\n" + block("C3", "Last.\n\n")
    )
    found = blocks(text.replace("\n", "\r\n").encode())
    assert [(b.meta["id"], b.label, b.line, b.body, b.error) for b in found] == [
        ("C1", "C1", 1, "One.\n\n---\n\nTwo.\n", None),
        ("C2", "C2", 12, "", None),
        ("C3", "C3", 17, "Last.\n\n", None),
    ]


def test_headings_directly_above_a_block_name_it() -> None:
    text = (
        "# Inbox\n\nIntroduction.\n\n### C1: a title\n" + block("C1") + "\n  ### C2\n" + block("C2") + "\n## Flagged\n"
    )
    found = blocks(text)
    assert [(b.label, b.heading, b.line, b.body) for b in found] == [
        ("C1", "C1: a title", 6, "Body.\n"),
        ("C2", "C2", 13, "Body.\n\n## Flagged\n"),
    ]


def test_an_id_need_not_come_first() -> None:
    found = blocks(block("C1") + "\n---\ntype: fact\nid: C2\n---\nBody.\n")
    assert [b.meta["id"] for b in found] == ["C1", "C2"]


@pytest.mark.parametrize(
    "body",
    [
        "````markdown\n\n---\nid: C9\n---\n```\nx\n```\n````\n",
        "~~~\n\n---\nid: C9\n---\n~~~\n",
        "   ```yaml\n\n---\nid: C9\n---\n   ```\n",
        "text\n---\nid: C9\n",
        "text\n\n---\n\nNote: no block\nid: C9\n",
        "    \n    ---\n    id: C9\n",
    ],
)
def test_what_starts_no_block(body: str) -> None:
    found = blocks(block("C1", body) + "\n" + block("C2"))
    assert [b.label for b in found] == ["C1", "C2"] and found[0].body == body and not any(b.error for b in found)


@pytest.mark.parametrize(
    ("broken", "line"),
    [
        ("---\nid: C1\ntitle: a: b\n---\nBody.\n", 3),
        ("---\nid: C1\ntitle: never closed\n\nBody.\n", 1),
        ("---\nid: C1\na: 'open\n---\nBody.\n", 3),
        ("---\nid: C1\n---\nBo\0dy.\n", 4),
        ("---\nid: C1\n---\nBo\udcffdy.\n", 4),
    ],
)
def test_a_broken_block_hides_no_other(broken: str, line: int) -> None:
    data = (broken + "\n" + block("C2")).encode("utf-8", "surrogateescape")
    first, second = blocks(data, "inbox.md")
    assert first.error is not None and (first.error.path, first.error.line, first.label) == ("inbox.md", line, "C1")
    assert first.meta == {} and second.meta["id"] == "C2" and second.error is None
    last = blocks(block("C2") + "\n" + broken)[-1]
    assert last.error is not None and last.error.line == line + 6


@pytest.mark.parametrize(
    "body",
    ["```\nnever closed\n", "```\nnever closed\n\n```bash\nx\n```\n", "```a\n````b\n~~~\n"],
)
def test_an_open_code_fence_hides_no_block(body: str) -> None:
    found = blocks(block("C1", body) + "\n" + block("C2", "```bash\nx\n```\n") + "\n" + block("C3"))
    assert [b.label for b in found] == ["C1", "C2", "C3"]


def test_many_open_code_fences_take_no_long() -> None:
    found = blocks(block("C1", "```a\n" * 30_000) + "\n" + block("C2", "```b\n" * 30_000))
    assert [b.label for b in found] == ["C1", "C2"]


def test_metadata_in_front_of_a_block_is_no_block_of_its_own() -> None:
    first, second = blocks("---\npermalink: x\n---\n\n" + block("C1"), "a.md")
    assert first.error is not None and "two frontmatter blocks" in first.error.message and first.error.line == 5
    assert second.meta["id"] == "C1"


@pytest.mark.parametrize("text", ["", "\n", "text\n", "---\n\nprose\n", "# Heading\n---\nprose\n"])
def test_files_without_blocks(text: str) -> None:
    assert blocks(text) == []


def test_cases(shared: Shared) -> None:
    def case(name: str) -> bytes:
        return shared(f"cases/{name}").read_bytes()

    *broken, healthy = blocks(case("02-markdown-in-yaml.md"), "02")
    assert [(b.label, b.error and b.error.line) for b in broken] == [
        ("C1", 5), ("C2", 12), ("C3", 21), ("C4", 29), ("C5", 37),
    ]  # fmt: skip
    assert len({b.error.message for b in broken if b.error}) == 5 and healthy.meta["title"] == "healthy neighbour"
    assert "[[other note]] and a tail" in broken[2].error.mend  # type: ignore[union-attr]

    rules = blocks(case("14-rule-in-body.md"))
    needles = ["plumwrench", "oakspindle", "fernbucket"]
    assert all(needle in b.body for needle, b in zip(needles, rules, strict=True))

    (fenced,) = blocks(case("15-code-fence-in-body.md"))
    assert case("15-code-fence-in-body.md").decode().endswith("---\n" + fenced.body)
    (headed,) = blocks(case("41-quote-not-in-source.md"))
    assert (headed.label, headed.heading, headed.line) == ("C1", "C1", 2)
    assert blocks(case("22-empty.md")) == []
