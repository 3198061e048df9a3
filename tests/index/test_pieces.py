"""What is remembered, and what is looked up whole, must be cut to the same pieces as what is cut letter by letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.index import pieces
from khms.index.pieces import LONGEST, WordPieces, _words

LETTERS = "abcé漢-[]#.9 \t\n\x00\x0b\x85\u00a0\u3000"
KNOWN = [
    "[UNK]",
    "[PAD]",
    "[CLS]",
    "a",
    "##a",
    "b",
    "##b",
    "ab",
    "##ab",
    "abc",
    "e",
    "##e",
    "9",
    "##9",
    "漢",
    "-",
    ".",
    "#",
]
VOCABULARY = {piece: number for number, piece in enumerate(KNOWN)}
warm = WordPieces(VOCABULARY, "[UNK]", ("[UNK]", "[PAD]", "[CLS]"))
texts = st.text(alphabet=LETTERS, max_size=40) | st.lists(
    st.sampled_from(
        [
            "ab",
            "abc",
            "abab",
            "abq",
            "AB-ab",
            "é9",
            "a漢b",
            "b" * LONGEST,
            "b" * (LONGEST + 1),
            "[PAD]",
            "[CLS]",
            "[UNK]",
        ]
    ),
    max_size=8,
).map(" ".join)


def long_way(text: str, limit: int | None = None) -> list[int]:
    """No memory, no word looked up whole, no pattern for ASCII."""
    assert warm._special is not None
    found: list[int] = []
    for number, part in enumerate(warm._special.split(text)):
        words = _words(part)
        found += [VOCABULARY[part]] if number % 2 else [piece for word in words for piece in warm._pieces(word)]
    return [piece for piece in found[:limit] if piece != warm.unknown]


@given(texts, st.none() | st.integers(0, 12))
def test_remembered_or_not_the_pieces_are_the_same(text: str, limit: int | None) -> None:
    cold = WordPieces(VOCABULARY, "[UNK]", ("[UNK]", "[PAD]", "[CLS]"))
    expected = long_way(text, limit)
    assert cold.cut(text, limit) == expected, "the first time"
    assert cold.cut(text, limit) == expected, "from memory"
    assert warm.cut(text, limit) == expected, "after other texts"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", ["abc"]),
        ("abab", ["ab", "##ab"]),
        ("AbC abq", ["abc"]),
        ("a-b", ["a", "-", "b"]),
        ("b" * (LONGEST + 1), []),
    ],
)
def test_words_in_the_vocabulary_and_not(text: str, expected: list[str]) -> None:
    assert [KNOWN[piece] for piece in warm.cut(text)] == expected


def test_a_word_that_is_too_long_is_unknown_though_the_vocabulary_has_it() -> None:
    word = "b" * (LONGEST + 1)
    assert WordPieces({"[UNK]": 0, word: 1}, "[UNK]").cut(word) == []


def test_a_full_memory_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_REMEMBERED", 3)
    cutter = WordPieces(VOCABULARY, "[UNK]")
    for text in ("a b ab", "abc 9", "a b ab", "e"):
        assert cutter.cut(text) == long_way(text)
        assert len(cutter) <= 5, "what one text has more than the memory takes is all that goes over it"


def test_a_long_token_is_not_remembered() -> None:
    cutter = WordPieces(VOCABULARY, "[UNK]")
    token = "a-" * LONGEST
    assert cutter.cut(token) == long_way(token) and token not in cutter
