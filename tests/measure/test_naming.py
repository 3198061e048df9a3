"""What counts as naming a document, and what only looks like it."""

import pytest

from khms.measure.naming import Names, flat, naming

CARD = Names("K-00012", "memory/know/K-00012.md", "The checksum fails on deploy", "card")
NOTE = Names("notes/retry-policy", "notes/retry-policy.md", "Retry", "note")
WORD = Names("readme", "readme.md", "Read me first please", "note")


@pytest.mark.parametrize(
    ("text", "names", "by"),
    [
        ("as K-00012 says", CARD, "id"),
        ("(k-00012)", CARD, "id"),
        ("[[K-00012]].", CARD, "id"),
        ("cat /home/me/base/memory/know/K-00012.md", CARD, "id"),
        ("K-000123 or XK-00012 or K-00012-old", CARD, ""),
        ("K-000121 and then K-00012", CARD, "id"),
        ("it is known that\n the CHECKSUM fails  on deploy, so", CARD, "title"),
        ("the checksum fails on deployment", CARD, ""),
        ("the checksum fails", CARD, ""),
        ("see notes/retry-policy.md", NOTE, "id"),
        ("see other-notes/retry-policy", NOTE, ""),
        ("I will retry", NOTE, ""),
        ("the readme says", WORD, ""),
        ("open /base/readme.md", WORD, "path"),
        ("read me first please!", WORD, "title"),
        ("", CARD, ""),
        ("anything", Names("", "", ""), ""),
    ],
)
def test_naming(text: str, names: Names, by: str) -> None:
    assert naming(flat(text), names) == by
