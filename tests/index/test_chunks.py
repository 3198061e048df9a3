"""What of a document gets a vector."""

import pytest

from khms.index.chunks import LENGTH, chunks
from khms.model.document import Document


def document(name: str, title: str, body: str) -> Document:
    return Document(name, "note", f"{name}.md", 1, title, body)


@pytest.mark.parametrize("name", ["D1-3", "included/deep/D1-3"])
def test_a_file_name_that_stands_in_for_a_title_is_no_text(name: str) -> None:
    assert chunks(document(name, "D1-3", "Caroline: hello\n")) == ["Caroline: hello"]
    assert chunks(document(name, "Greetings", "Caroline: hello\n")) == ["Greetings\nCaroline: hello"]
    assert chunks(document(name, "D1-3", "  \n")) == []


def test_a_long_text_is_cut_at_the_ends_of_lines_and_nothing_is_lost() -> None:
    lines = [f"line {number} " + "word " * 30 for number in range(40)]
    found = chunks(document("a", "A title", "\n".join(lines)))
    assert len(found) > 5 and all(len(chunk) <= LENGTH for chunk in found)
    assert "\n".join(found) == "\n".join(["A title", *lines]).strip()
