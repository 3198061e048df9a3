"""Edits in JSON text leave every byte alone that is not theirs."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from khms.hosts import jsonc
from khms.hosts.jsonc import Node, parse


def added(text: str, key: str = "k", value: object = None, at: str = "") -> str:
    document = parse(text)
    container = document.root.get(at) if at else document.root
    assert container is not None
    return jsonc.add(document, container, key, [1] if value is None else value)


def dropped(text: str, index: int) -> str:
    document = parse(text)
    return jsonc.drop(document, document.root, index)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{}", '{\n  "k": [\n    1\n  ]\n}'),
        ("{ }\n", '{\n  "k": [\n    1\n  ]\n}\n'),
        ('{"a": 1}', '{"a": 1, "k": [1]}'),
        ('{ "a": 1 }', '{ "a": 1, "k": [1] }'),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "k": [\n    1\n  ]\n}\n'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": [\n\t\t1\n\t]\n}'),
        ('{\r\n    "a": 1\r\n}\r\n', '{\r\n    "a": 1,\r\n    "k": [\r\n        1\r\n    ]\r\n}\r\n'),
        ('\ufeff{"a": 1}', '\ufeff{"a": 1, "k": [1]}'),
        ("\ufeff{}", '\ufeff{\n  "k": [\n    1\n  ]\n}'),
        ('{\n  "a": 1, // why\n}', '{\n  "a": 1, // why\n  "k": [\n    1\n  ],\n}'),
        ('{\n  "a": 1 // why, {x}\n}', '{\n  "a": 1, // why, {x}\n  "k": [\n    1\n  ]\n}'),
        ("{\n  // nothing yet\n}", '{\n  // nothing yet\n  "k": [\n    1\n  ]\n}'),
        ('{"a": 1,\n "b": 2}', '{"a": 1,\n "b": 2,\n "k": [\n  1\n ]\n}'),
        ('{"a": 1 /* one */}', '{"a": 1, /* one */ "k": [1]}'),
        ('{"a": 1,}', '{"a": 1, "k": [1],}'),
    ],
)
def test_a_member_is_added_in_the_style_around_it(text: str, result: str) -> None:
    assert added(text) == result
    parse(result)


def test_an_item_is_added_to_a_nested_array_and_text_beyond_ascii_stays_readable() -> None:
    assert added('{\n  "a": {},\n  "h": [\n    1\n  ]\n}', value="ü", at="h") == (
        '{\n  "a": {},\n  "h": [\n    1,\n    "ü"\n  ]\n}'
    )


@pytest.mark.parametrize(
    ("text", "index", "result"),
    [
        ('{"a": 1}', 0, "{}"),
        ('{\n  "a": 1\n}', 0, "{}"),
        ('{"a": 1, "b": 2}', 0, '{"b": 2}'),
        ('{"a": 1, "b": 2}', 1, '{"a": 1}'),
        ('{"a": 1, "b": 2, "c": 3}', 1, '{"a": 1, "c": 3}'),
        ('{\n  "a": 1,\n  "b": 2\n}', 0, '{\n  "b": 2\n}'),
        ('{\n  "a": 1,\n  "b": 2\n}', 1, '{\n  "a": 1\n}'),
        ('{\r\n  "a": 1,\r\n  "b": 2\r\n}', 1, '{\r\n  "a": 1\r\n}'),
        ('{\n  "a": 1, // one\n  "b": 2 // two\n}', 1, '{\n  "a": 1 // one\n  // two\n}'),
        ('{\n  "a": 1, // one\n  "b": 2, "c": 3\n}', 1, '{\n  "a": 1, // one\n  "c": 3\n}'),
        ('{\n  "a": 1, // one\n  "b": 2}', 1, '{\n  "a": 1 // one\n  }'),
        ('{\n  "a": 1,\n  "b": 2,\n}', 1, '{\n  "a": 1,\n}'),
        ('{\n  // kept\n  "a": 1\n}', 0, "{\n  // kept\n}"),
        ('{"a": 1 /* , */ , "b": 2}', 0, '{/* , */  "b": 2}'),
    ],
)
def test_a_member_is_dropped_with_its_comma_and_line(text: str, index: int, result: str) -> None:
    assert dropped(text, index) == result
    parse(result)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{", 1),
        ('{"a": 1\n"b": 2}', 2),
        ('{"a" 1}', 1),
        ("{a: 1}", 1),
        ("{'a': 1}", 1),
        ('{\n"a": "x\n"}', 2),
        ('{"a": "\\x"}', 1),
        ('{"a": 01}', 1),
        ('{"a": nul}', 1),
        ('{"a": truely}', 1),
        ('{"a": 1,, "b": 2}', 1),
        ("[1\n2]", 2),
        ('{"a": [1}', 1),
        ("{} {}", 1),
        ("{}\n// end\n/* open", 3),
        ("[" * 200, 1),
        ("[" * 100_000, 1),
        ('{"a": "' + "\\", 1),
    ],
)
def test_broken_text_is_named_by_its_line(text: str, line: int) -> None:
    with pytest.raises(jsonc.Broken) as broken:
        parse(text)
    assert broken.value.line == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{}", 0),
        ('{"a": "// no, /* no */"}', 0),
        ("{\n//\n}", 2),
        ("[1,\n2,\n]", 2),
        ("/* x */ {}", 1),
        ("{}\n\n// x", 3),
    ],
)
def test_what_strict_json_forbids_is_named_by_its_first_line(text: str, line: int) -> None:
    assert parse(text).loose == line


def test_of_a_repeated_key_the_last_counts() -> None:
    root = parse('{"a": "1", "a": "2"}').root
    assert root.repeated("a") and not root.repeated("b")
    found = root.get("a")
    assert found and found.value == "2"


def plain(node: Node) -> Any:
    if node.kind == "object":
        return {member.key: plain(member.node) for member in node.members}
    if node.kind == "array":
        return [plain(member.node) for member in node.members]
    return node.value if node.kind == "string" else json.loads(node.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=5).filter(lambda key: key != "k"), VALUES, max_size=4)
STYLES = st.sampled_from([{}, {"indent": 2}, {"indent": "\t"}, {"indent": 0}, {"separators": (",", ":")}])


@settings(deadline=None)
@given(value=OBJECTS, style=STYLES, ascii=st.booleans(), crlf=st.booleans(), more=VALUES)
def test_add_and_drop_are_each_others_inverse(
    value: dict[str, Any], style: dict[str, Any], ascii: bool, crlf: bool, more: Any
) -> None:
    text = json.dumps(value, ensure_ascii=ascii, **style).replace("\n", "\r\n" if crlf else "\n")
    assert plain(parse(text).root) == value
    longer = added(text, value=more)
    assert json.loads(longer) == {**value, "k": [1] if more is None else more}
    assert dropped(longer, len(value)) == (text if value else "{}")


@settings(deadline=None)
@given(value=OBJECTS, style=STYLES, data=st.data())
def test_any_member_can_be_dropped(value: dict[str, Any], style: dict[str, Any], data: st.DataObject) -> None:
    if value:
        index = data.draw(st.integers(0, len(value) - 1))
        gone = list(value)[index]
        assert json.loads(dropped(json.dumps(value, **style), index)) == {k: v for k, v in value.items() if k != gone}


@settings(deadline=None)
@given(text=st.text(alphabet='{}[]",:/* \n\\a1-', max_size=30))
def test_any_text_is_parsed_or_broken_and_nothing_else(text: str) -> None:
    try:
        document = parse(text)
    except jsonc.Broken:
        return
    if not document.loose:
        json.loads(text)
