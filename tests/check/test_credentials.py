"""Secrets by shape, by vendor and by chance. All are put together here, so that no scanner takes them for real."""

import hashlib

import pytest

from khms.check.credentials import secrets

CHANCE = "q7" + "Rk2Xw9" + "LmB4vT" + "8zNc3Y" + "pH6sJd" + "5gQa1F" + "eU0"
SHAPE = "gh" + "p_" + "A1b2C3d4E5f6" * 3


def names(text: str, **config: float) -> list[str]:
    settings = {f"screening.{key}": value for key, value in config.items()}
    return [name for _, _, name, _ in secrets(text, 64, settings)]


def test_a_known_shape_comes_first_and_once() -> None:
    ((start, end, _, known),) = secrets(f"use {SHAPE} here", 64)
    assert f"use {SHAPE} here"[start:end] == SHAPE
    assert known


def test_short_words_are_not_looked_at_twice() -> None:
    assert secrets(f"use {CHANCE}", 15) == []


@pytest.mark.parametrize("frame", ["{}", "the value is {}", "KEY2: {}", "(`{}`)", "x={}\nand more"])
def test_a_string_of_chance_is_a_secret(frame: str) -> None:
    assert names(frame.format(CHANCE)) == ["high-entropy"]


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha256(b"x").hexdigest(),
        hashlib.sha1(b"x", usedforsecurity=False).hexdigest(),
        "123e4567-e89b-12d3-a456-426614174000",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        f"sha512-{CHANCE}",
        f"integrity: {CHANCE}",
        f"ssh-ed25519 {CHANCE}",
        f"data:image/png;base64,{CHANCE}",
        f"https://example.com/watch/{CHANCE}",
        f"[page](/files/{CHANCE})",
        f"{CHANCE}.png",
        "VeryLongGeneratedHandlerNameForPaymentsReconciliationJob2",
        "src/components/Payments/ReconciliationHandlerV2/IndexPage",
        "a-slug-of-many-words-that-goes-on-and-on-in-2026",
        "test_since_reads_days_from_that_one_on_and_no_undated_file_2",
    ],
)
def test_what_is_public_by_nature_is_none(text: str) -> None:
    assert names(text) == []


def test_the_limits_can_be_set() -> None:
    assert names(CHANCE, entropy_chars=100) == []
    assert names(CHANCE[:24]) == []
    assert names(CHANCE[:24], entropy_chars=20, entropy_bits=4.0) == ["high-entropy"]


def test_a_text_of_nothing_else_shows_a_few() -> None:
    assert 0 < len(names(f"{CHANCE}\n" * 500)) <= 40
