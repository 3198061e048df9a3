"""The line that says most of what was asked."""

from pathlib import Path

import pytest

from khms.model.document import Document
from khms.recall.snippet import LONGEST, best_line

HEAD = "---\nid: K-1\ntitle: checksum checksum\n---\n"
CARD = HEAD + "SYMPTOM: frames fail\n\nCAUSE: the checksum was polled too often\nFIX: wait\n"
WEIGHTS = {"checksum": 5.0, "poll": 4.0, "frame": 1.0}


def line(folder: Path, text: str, weights: dict[str, float], start: int = 1) -> tuple[int, str]:
    (folder / "a.md").write_bytes(text.encode())
    return best_line(folder, Document("a", "note", "a.md", start, "t"), weights, "english")


@pytest.mark.parametrize("text", [CARD, CARD.replace("\n", "\r\n"), "\ufeff" + CARD])
def test_the_heaviest_line_of_the_body(tmp_path: Path, text: str) -> None:
    assert line(tmp_path, text, WEIGHTS) == (7, "CAUSE: the checksum was polled too often")


def test_the_first_of_equals_and_without_any_the_first_that_says_something(tmp_path: Path) -> None:
    assert line(tmp_path, CARD, {"frame": 1.0}) == (5, "SYMPTOM: frames fail")
    assert line(tmp_path, CARD, {}) == (5, "SYMPTOM: frames fail")


def test_a_section_begins_at_its_line(tmp_path: Path) -> None:
    assert line(tmp_path, "# A\n\nchecksum\n\n# B\n\na frame\n", WEIGHTS, start=5) == (7, "a frame")


def test_a_long_line_is_cut_around_what_counts(tmp_path: Path) -> None:
    number, text = line(tmp_path, "filler " * 200 + "the checksum fails " + "filler " * 200, WEIGHTS)
    assert number == 1 and "checksum" in text and len(text) <= LONGEST + 4
    assert text.startswith("… ") and text.endswith(" …")
    _, text = line(tmp_path, "filler " * 200 + "the checksum", WEIGHTS)
    assert text.endswith("the checksum") and len(text) > LONGEST / 2
    _, text = line(tmp_path, "checksum " + "filler " * 200, WEIGHTS)
    assert text.startswith("checksum ")
    _, text = line(tmp_path, "x" * 5000, WEIGHTS)
    assert len(text) <= LONGEST + 4


def test_a_long_line_without_blanks_is_cut_there_too(tmp_path: Path) -> None:
    """Scripts without blanks between words."""
    long = "昨日は天気がよかった。" * 60 + "失效策略が大事だった。" + "明日も晴れるだろう。" * 60
    _, text = line(tmp_path, long, {"失效": 3.0, "策略": 3.0, "策": 0.5})
    assert "失效策略" in text and len(text) <= LONGEST + 4 and text.startswith("… ") and text.endswith(" …")
    _, text = line(tmp_path, "x" * 500 + "/checksum/" + "y" * 500, {"checksum": 2.0})
    assert "checksum" in text


def test_a_line_of_a_whole_book_is_read_in_part(tmp_path: Path) -> None:
    number, text = line(tmp_path, "word " * 60_000 + "checksum\nchecksum\n", WEIGHTS)
    assert number == 1 and text.startswith("word")


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_line_in_a_fence_is_shown_and_never_the_fence(tmp_path: Path, fence: str) -> None:
    text = f"# t\n\n{fence}checksum\nrun()\ncalc checksum frame\n{fence}\n"
    assert line(tmp_path, text, {"checksum": 5.0}) == (5, "calc checksum frame")
    assert line(tmp_path, text, {}) == (4, "run()")


def test_the_title_once_more_and_rules_say_nothing(tmp_path: Path) -> None:
    assert line(tmp_path, "## t\n\n---\n| --- | :-: |\n***\nsaid\n", {"t": 9.0}) == (6, "said")
    assert line(tmp_path, "# t\n", {}) == (1, "# t"), "where there is nothing else"


def test_control_characters_are_left_out(tmp_path: Path) -> None:
    assert line(tmp_path, "a \x1b[31mchecksum\x07\n", WEIGHTS)[1] == "a [31mchecksum"


@pytest.mark.parametrize("text", ["", "\n\n", "---\nid: a\n---\n"])
def test_nothing_to_show(tmp_path: Path, text: str) -> None:
    assert line(tmp_path, text, WEIGHTS) == (1, "")


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    assert best_line(tmp_path, Document("a", "note", "gone.md", 3, "t"), WEIGHTS, "english") == (3, "")
