"""`khms mark` as it is typed: one line in today's journal, where it stands on standard output."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.model.mark import parse_marks
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]


def journal(base: Base) -> str:
    return (base.journal / f"{time.strftime('%Y-%m-%d')}.md").read_text(encoding="utf-8")


def test_it_writes_one_line_and_says_where(run_khms: Run, base: Base) -> None:
    done = run_khms("mark", "decision", "cache the  price list\nfor one hour — «vendor»")
    assert (done.returncode, done.stderr) == (0, "")
    day = time.strftime("%Y-%m-%d")
    text = journal(base)
    assert text == f"# {day}\n\nMARK[decision] cache the price list for one hour — «vendor»\n"
    (mark,) = parse_marks(text, f"journal/{day}.md")
    assert done.stdout == f"{mark.id}  {base.journal}/{day}.md:3\n"


def test_the_second_equal_mark_has_its_own_id(run_khms: Run, base: Base) -> None:
    said = [run_khms("mark", "failed", "again").stdout for _ in range(2)]
    assert said[0].split()[0] != said[1].split()[0]
    assert [line.rstrip().rpartition(":")[2] for line in said] == ["3", "4"]


@pytest.mark.parametrize(
    ("env", "tail"),
    [
        ({"CLAUDE_CODE_SESSION_ID": "7c1d2e3f-0a1b-4c2d"}, " (sess 7c1d2e3f)"),
        ({"GEMINI_SESSION_ID": "ab"}, " (sess ab)"),
        ({"CODEX_THREAD_ID": "../)x\n(sess y)z"}, " (sess xsessyz)"),
        ({"CLAUDE_CODE_SESSION_ID": "(((" }, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_session_is_added(run_khms: Run, base: Base, env: dict[str, str], tail: str) -> None:
    assert run_khms("mark", "req", "a requirement", env=env).returncode == 0
    assert journal(base).endswith(f"MARK[req] a requirement{tail}\n")


def test_a_secret_is_never_written(run_khms: Run, base: Base) -> None:
    key = "ghp_" + "aB3dE5" * 6
    done = run_khms("mark", "solved", f"the token is {key}")
    assert done.returncode == 0 and "secret" in done.stderr
    assert key not in journal(base) and "[redacted:" in journal(base)
    assert not any(key.encode() in path.read_bytes() for path in base.root.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("kind", "text", "code", "words"),
    [
        ("decision", "", 3, "needs a text"),
        ("decision", " \n\t ", 3, "needs a text"),
        ("two words", "x", 3, "no kind of MARK"),
        ("a]b", "x", 3, "no kind of MARK"),
        ("", "x", 3, "no kind of MARK"),
        ("decision", "x" * 20_001, 3, "20,001"),
    ],
)
def test_what_is_no_mark_is_refused(run_khms: Run, base: Base, kind: str, text: str, code: int, words: str) -> None:
    done = run_khms("mark", kind, text)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("khms: ") and words in done.stderr
    assert list(base.journal.glob(f"{time.strftime('%Y-%m-%d')}*")) == []


def test_the_base_is_named_found_or_the_users_own(
    run_khms: Run, base: Base, tmp_path: Path, write: Write, own_environment: Path
) -> None:
    assert run_khms("mark", "a", "named", cwd=tmp_path, env={"KHMS_ROOT": str(base.root)}).returncode == 0
    assert run_khms("mark", "a", "found", cwd=base.root / "memory").returncode == 0
    done = run_khms("mark", "a", "none", cwd=tmp_path)
    assert done.returncode == 4 and "khms init" in done.stderr
    write(own_environment / "config", "config.toml", f'[base]\ndefault = "{base.root}"\n')
    assert run_khms("mark", "a", "own", cwd=tmp_path).returncode == 0
    assert [line.split()[-1] for line in journal(base).splitlines()[2:]] == ["named", "found", "own"]


def test_bytes_that_are_no_text_and_control_characters(base: Base) -> None:
    program = str(Path(sys.executable).parent / "khms")
    words = [program.encode(), b"mark", b"failed", b"caf\xe9 \x1b[31mred\x07 \xe2\x80\x8dend"]
    done = subprocess.run(words, cwd=base.root, capture_output=True, check=False)
    assert done.returncode == 0
    assert journal(base).endswith("MARK[failed] caf� [31mred \u200dend\n")


def test_what_stands_there_is_never_rewritten(run_khms: Run, base: Base, write: Write) -> None:
    path = f"journal/{time.strftime('%Y-%m-%d')}.md"
    held = b"\xef\xbb\xbf# a day\r\n\r\nprose without an end"
    write(base, path, held)
    done = run_khms("mark", "a", "b")
    assert done.returncode == 0 and done.stdout.endswith(":4\n")
    assert (base.root / path).read_bytes() == held + b"\nMARK[a] b\n"


def test_a_base_that_cannot_be_written_is_one_clear_error(run_khms: Run, base: Base, write: Write) -> None:
    (base.journal / "2026-03-04.md").unlink()
    base.journal.rmdir()
    write(base, "journal", "a file")
    done = run_khms("mark", "a", "b")
    assert done.returncode == 4 and done.stderr.startswith("khms: ") and "Traceback" not in done.stderr


def test_a_reader_that_is_gone_is_no_error(base: Base) -> None:
    program = str(Path(sys.executable).parent / "khms")
    done = subprocess.run(["sh", "-c", f"'{program}' mark a b | true"], cwd=base.root, capture_output=True, check=False)
    assert done.stderr == b"" and journal(base).endswith("MARK[a] b\n")


def test_ten_at_once_lose_nothing(base: Base) -> None:
    program = str(Path(sys.executable).parent / "khms")
    running = [
        subprocess.Popen(
            [program, "mark", "req", f"requirement {n} " + "and so on " * 40],
            cwd=base.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ,
        )
        for n in range(10)
    ]
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * 10, said
    day = time.strftime("%Y-%m-%d")
    text = journal(base)
    marks = parse_marks(text, f"journal/{day}.md")
    assert sorted(mark.text.split()[1] for mark in marks) == sorted(map(str, range(10)))
    assert {out.decode().split()[0] for out, _ in said} == {mark.id for mark in marks}
    assert text.count(f"# {day}") == 1 and all(err == b"" for _, err in said)


def test_the_plain_form_loads_no_command_line_library(base: Base) -> None:
    program = (
        "import sys; sys.argv = ['khms', 'mark', 'a', 'b']; from khms.__main__ import main; main(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=base.root, capture_output=True, encoding="utf-8", check=True
    )
    assert not {"click", "git", "json", "typing", "dataclasses", "tomllib"} & set(done.stdout.split())
