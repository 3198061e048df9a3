"""The text of a pull request: bounded, and nothing in it that a git host would act on, whatever a candidate says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.model.candidate import Candidate
from khms.pipeline import letter
from khms.store.inbox import Unit


def unit(*texts: str, **meta: object) -> Unit:
    made = tuple(Candidate(f"C{at}", {"title": text, **meta}, text + "\n") for at, text in enumerate(texts, 1))
    return Unit("2026-03-05-nightly", "memory/inbox/2026-03-05-nightly", False, made)


@pytest.mark.parametrize(
    "acting",
    [
        "@ada", "ada/garden#12", "fixes #1", "GH-12", "gh-12", "closes https://github.com/ada/garden/issues/1", "!4",
        "~bug", "%milestone", "<!-- hidden -->", "![x](https://evil.example/x.png)", "[x](y)", "[skip ci]", "[ci skip]",
        "<img src=x>", "\n/approve", "```\n@ada\n```", "````", "~~~", "# heading #7",
    ],
)  # fmt: skip
def test_what_a_host_would_act_on_is_broken(acting: str) -> None:
    body = letter.body(unit(f"before {acting} after\n{acting}"))
    assert acting not in body.replace("| ", "\n") or set(acting) <= {"`", "~"}
    inside = [line for line in body.split("\n") if line.startswith("| ")]
    assert any("before" in line for line in inside)


@given(st.lists(st.text(max_size=200), min_size=1, max_size=5))
def test_any_text_stays_behind_its_bar_in_its_block(texts: list[str]) -> None:
    body = letter.body(unit(*texts, flags=texts))
    assert len(body) < letter.LIMIT
    lines = body[body.index("**`C1`**") :].split("\n")
    inside = False
    for line in lines:
        if line in ("```text", "```"):
            inside = not inside
        elif inside:
            assert line.startswith("|")
        else:
            assert line == "" or line.startswith("**`C")
    assert not inside
    assert not {"@", "#"} & {body[at] for at in range(len(body) - 1) if body[at] in "@#" and body[at + 1].isalnum()}


def test_many_and_long_candidates_stay_within_the_hosts_limit() -> None:
    body = letter.body(unit(*["words and more words " * 500] * 100))
    assert len(body) < 65_536
    assert "more: see the files." in body
    assert body.count("| …") > 20


def test_the_reviewer_is_told_what_to_judge() -> None:
    assert "in C1, C2 change `kind: unjudged`" in letter.body(unit("one", "two"))
    judged = letter.body(unit("one", relation={"kind": "new"}))
    assert "unjudged" not in judged
    assert "khms reject 2026-03-05-nightly" in judged


def test_no_key_stands_in_it() -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz123456"
    assert key not in letter.body(unit(f"the call with {key} was refused"))
