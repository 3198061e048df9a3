"""Two texts word by word."""

import pytest

from khms.render.worddiff import NEW, OLD, SAME, Piece, diff


def sides(old: str, new: str) -> tuple[str, str]:
    pieces = diff(old, new)
    return "".join(p.text for p in pieces if p.kind != NEW), "".join(p.text for p in pieces if p.kind != OLD)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The valve needs 4 bar.\nWHY: a spring\n", "The valve needs 3 bar when cold.\nWHY: a spring\n"),
        ("", "all new"),
        ("all gone", ""),
        ("same", "same"),
        ("水温は三十度まで", "水温は三十一度まで"),
        ("a\tb\r\n c", "a b\n\n c\x00"),
        ("emoji 🐘 here", "emoji 🐘🐘 here"),
    ],
)
def test_both_texts_can_be_read_from_the_pieces(old: str, new: str) -> None:
    assert sides(old, new) == (old, new)


def test_only_what_changed_is_marked() -> None:
    assert diff("it needs 4 bar", "it needs 3 bar") == (
        Piece(SAME, "it needs "),
        Piece(OLD, "4"),
        Piece(NEW, "3"),
        Piece(SAME, " bar"),
    )
    old, new = "water at ten in the evening, dry", "water before eight in the morning, dry"
    assert diff(old, new)[1:3] == (Piece(OLD, "at ten"), Piece(NEW, "before eight"))
    assert Piece(NEW, "一") in diff("水温は三十度まで", "水温は三十一度まで")


def test_texts_with_little_in_common_come_one_after_the_other() -> None:
    old, new = "sow in March on the sill\n", "the pump was out of oil again\n"
    assert diff(old, new) == (Piece(OLD, old), Piece(NEW, new))


def test_very_long_texts_are_not_compared_for_ever() -> None:
    old = "word " * 3000
    assert [piece.kind for piece in diff(old, old + "more")] == [OLD, NEW]
