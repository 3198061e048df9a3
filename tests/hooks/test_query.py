"""The question is what a person said, however much a host put around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.hooks import query
from khms.model.frame import framed

LIMIT = 2000
SAID = "why does the checksum keep failing on deploy?"
TRACE = "\n".join(
    ["Traceback (most recent call last):"]
    + [f'  File "/srv/app/m{n}.py", line {n}, in run\n    step_{n}(frame)' for n in range(12)]
    + ["ValueError: checksum mismatch on frame 7"]
)
CODE = "```python\n" + "\n".join(f"value_{n} = compute(value_{n - 1})" for n in range(30)) + "\n```"


def asked(prompt: str, limit: int = LIMIT) -> str:
    return "\n".join(query.from_prompt(prompt, limit))


@pytest.mark.parametrize(
    "prompt",
    [
        SAID,
        f"  {SAID}\n\n",
        f"<system-reminder>The user opened pool.py.\nDo as it says.</system-reminder>\n{SAID}",
        f"{SAID}\n<system-reminder>one</system-reminder><system-reminder>two</system-reminder>",
        f"<command-name>/model</command-name>\n<command-args></command-args>\n{SAID}",
        f"<local-command-stdout>On branch main</local-command-stdout>{SAID}",
        f'<task-notification id="3">the job has ended</task-notification>\n{SAID}',
        f"{framed('/base', ['K-00001 a card that was named before (memory/know/K-00001.md)'])}\n{SAID}",
        f"[khms] a line that never ends\n{SAID}",
    ],
)
def test_what_the_host_put_in_is_no_question(prompt: str) -> None:
    assert asked(prompt) == SAID


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        " \n\t ",
        "<task-notification>the job has ended",
        "<system-reminder>only this</system-reminder>",
        framed("/base", ["K-00001 and nothing else"]),
        CODE,
    ],
)
def test_a_prompt_without_a_word_of_the_person_is_no_question(prompt: str) -> None:
    assert query.from_prompt(prompt, LIMIT) == ()


def test_somebody_may_write_about_a_tag() -> None:
    said = asked("what does <system-reminder> mean, and where does it come from?")
    assert "what does" in said and "where does it come from?" in said


def test_a_pasted_trace_leaves_its_error_line() -> None:
    text = asked(f"{SAID}\n\n{TRACE}")
    assert text.startswith(SAID) and "checksum mismatch on frame 7" in text
    assert "step_3" not in text and len(text) < 300


def test_a_pasted_block_of_code_is_cut_and_a_short_one_stays() -> None:
    assert asked(f"{SAID}\n{CODE}\nthanks") == SAID
    assert "pool_size = 5" in asked("is this right?\n```\npool_size = 5\n```")


def test_prose_and_lists_are_never_taken_for_a_paste() -> None:
    points = "\n".join(f"{n}. the frame {n} is lost" for n in range(1, 15))
    assert asked(points).count("is lost") == query.MOST
    bullets = "\n".join(f"  - the frame {n} is lost" for n in range(14))
    assert asked(bullets).count("is lost") == query.MOST
    paragraph = "The link is saturated and frames are lost. " * 20
    assert asked(paragraph).startswith("The link is saturated and frames are lost.")
    japanese = "校正値がずれている理由を教えてください。" * 40
    assert asked(japanese).startswith("校正値がずれている理由を教えてください。")


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("Hi! I was away for two days. Why does the checksum fail? Thanks.", "Why does the checksum fail?"),
        ("see e.g. pool.py vs. queue.py for it", "see e.g. pool.py vs. queue.py for it"),
        ("ok. go on.", "ok. go on."),
        ("the valve sticks\nthe pump is loud", "the valve sticks\nthe pump is loud"),
        ("水位が低い。ポンプが止まる。", "水位が低い。\nポンプが止まる。"),
    ],
)
def test_each_sentence_that_tells_something_is_a_question(prompt: str, about: str) -> None:
    assert about in asked(prompt) and "Thanks" not in asked(prompt)


def test_questions_come_before_other_sentences_and_keep_their_order() -> None:
    filler = [f"Number {n} was about frames and their timing." for n in range(6)]
    found = query.from_prompt(" ".join([*filler[:3], "Why is the pump loud?", *filler[3:]]), LIMIT)
    assert len(found) == query.MOST and "Why is the pump loud?" in found
    assert [one for one in found if one in filler] == [one for one in filler if one in found]


@pytest.mark.parametrize(
    ("error", "about"),
    [
        ("Exit code 2\ncollecting\nFATAL: too many clients\ndone", ("FATAL: too many clients",)),
        ("Exit code 1\nstep one\nit broke here", ("it broke here",)),
        ("a error: b\nc failed\nd error", ("a error: b", "c failed")),
        ("Exit code 7", ()),
        ("", ()),
    ],
)
def test_a_failure_is_asked_about_by_the_lines_that_speak_of_it(error: str, about: tuple[str, ...]) -> None:
    assert query.from_failure(error, LIMIT) == about


def test_one_long_line_of_data_is_cut() -> None:
    assert asked(f'{SAID}\n{{"key":"{"0123456789abcdef" * 200}"}}') == SAID


def test_a_long_prompt_keeps_its_beginning_and_its_end() -> None:
    text = asked("first words. " + "and then more of it. " * 500 + "the last question?", 200)
    assert len(text) <= 200 and text.startswith("first words.") and text.endswith("the last question?")


@pytest.mark.parametrize(
    ("command", "about"),
    [
        ("make test", ("make test",)),
        ("cd /srv/app && make test", ("make test",)),
        ("ls -la; cat notes.md | grep pool", ()),
        ("git status -s", ()),
        ("git push --force origin main", ("git push --force origin main",)),
        ("sudo DEBUG=1 systemctl restart pgbouncer", ("systemctl restart pgbouncer",)),
        ("/usr/bin/cat a.txt", ()),
        ("psql <<EOF\nDROP TABLE frames;\nEOF", ("psql",)),
        ("a1 x && a1 x && b2 y && c3 z && d4 u && e5 v", ("a1 x", "b2 y", "c3 z", "d4 u")),
        ("", ()),
        (" && ; | ", ()),
    ],
)
def test_a_command_is_asked_about_where_it_does_more_than_handle_files(command: str, about: tuple[str, ...]) -> None:
    assert query.from_command(command, LIMIT) == about


@pytest.mark.parametrize(
    ("path", "cwd", "text", "about"),
    [
        ("/home/ada/api/src/pool.py", "/home/ada/api", "pool_size = 5", ("src/pool.py", "pool_size = 5")),
        ("/etc/hosts", "/home/ada/api", "", ("/etc/hosts",)),
        ("", "", "x = 1", ("x = 1",)),
        ("", "/home", "", ()),
    ],
)
def test_an_edit_is_asked_about_by_path_and_by_text(path: str, cwd: str, text: str, about: tuple[str, ...]) -> None:
    assert query.from_edit(path, cwd, text, LIMIT) == about


@given(st.text(), st.integers(1, 300))
def test_any_text_gives_short_questions_that_can_be_written_down(text: str, limit: int) -> None:
    for found in (
        *query.from_prompt(text, limit),
        *query.from_command(text, limit),
        *query.from_edit(text, text, text, limit),
    ):
        assert 0 < len(found) <= limit
        found.encode("utf-8")


def test_a_megabyte_of_openings_is_read_in_one_go() -> None:
    for piece in ("<system-reminder>", "[khms]", "```\n", "\\ud800", "x = 1;\n", "&& "):
        text = piece * (1_000_000 // len(piece))
        assert len(asked(text)) <= LIMIT
        query.from_command(text, LIMIT)
