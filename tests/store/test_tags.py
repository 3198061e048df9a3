import pytest

from khms.model.tags import Registry, Tag
from khms.store.tags import registry
from khms.store.yamltext import Unreadable

TEXT = """# what we agreed on
sensors:
  group: parts
  description: "things that measure: all of them"
  aliases: [sensor, Fühler]
gotcha:
2026-03-04:
  aliases: []
"""


def test_tags_with_group_meaning_and_aliases(base, write) -> None:
    write(base, "memory/tags.yaml", TEXT)
    held = registry(base)
    assert held.tags["sensors"] == Tag("sensors", "parts", "things that measure: all of them", ("sensor", "Fühler"))
    assert list(held.tags) == ["sensors", "gotcha", "2026-03-04"]
    assert [held.canonical(tag) for tag in ("sensor", "sensors", "other")] == ["sensors", "sensors", "other"]


@pytest.mark.parametrize("text", ["", "# nothing yet\n\n", "\ufeff"])
def test_no_registry_registers_nothing(base, write, text) -> None:
    assert registry(base) == Registry()
    write(base, "memory/tags.yaml", text)
    assert registry(base).tags == {}


@pytest.mark.parametrize(
    ("text", "line"), [("a:\nb: [\n", 2), ("a:\na:\n", 2), ("- a\n", 1), ("a: &x b\nc: *x\n", 1), ("a\0: b\n", 1)]
)
def test_a_registry_that_cannot_be_read_says_where(base, write, text, line) -> None:
    write(base, "memory/tags.yaml", text)
    with pytest.raises(Unreadable) as raised:
        registry(base)
    assert raised.value.path == "memory/tags.yaml" and raised.value.line == line


def test_line_ends_and_a_mark_do_not_matter(base, write) -> None:
    write(base, "memory/tags.yaml", TEXT)
    plain = registry(base)
    write(base, "memory/tags.yaml", b"\xef\xbb\xbf" + TEXT.encode().replace(b"\n", b"\r\n"))
    assert registry(base) == plain


def test_bytes_that_are_no_text(base, write) -> None:
    write(base, "memory/tags.yaml", b"a: \xff\n")
    with pytest.raises(Unreadable):
        registry(base)
