"""How answers look: safe for a terminal, whole in a pipe, readable in a narrow window."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.cli import output
from khms.store.layout import Base

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Straße, 知識 ✓", "plain, Straße, 知識 ✓"),
        ("a\tb\nc", "a\tb\nc"),
        ("red \x1b[31m \x9b31m \r \x00", "red �[31m �31m � �"),
        ("re\u202eversed\u202c \u2066x\u2069 \u200e\u200f\u061c", "reversed x "),
        ("K\u200b-\u200d0\u2060\ufeff0\u00ad1", "K-001"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("caf\udce9 \ud83d", "caf\\udce9 \\ud83d"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_not_shown(text: str, shown: str) -> None:
    assert output.clean(text) == shown


def test_one_line_is_one_line() -> None:
    assert output.one_line("a\n  b\tc\u2028d\r\n\x1be") == "a b c d �e"
    assert output.one_line("two  blanks stay.md") == "two  blanks stay.md"


def test_json_keeps_the_value_and_drives_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"é": ["\x1b[31m", "\x9b\x7f\u202e\u200b", "\U000e0041", "Straße\n"]}
    output.print_json(value)
    text = capsys.readouterr().out
    assert json.loads(text) == value and text.replace("\n", "").isprintable() and "Straße" in text


def test_fold_cuts_at_blanks_only() -> None:
    line = "    path: /a/very/long/path/that/no/window/holds.md and K-00001 of 2026-03-04"
    lines = output.fold(line, 6, width=24).split("\n")
    assert lines == [
        "    path:",
        "      /a/very/long/path/that/no/window/holds.md",
        "      and K-00001 of",
        "      2026-03-04",
    ]
    assert output.fold("知識 知識 知識", 0, width=9) == "知識 知識\n知識"
    assert output.fold(line, 6) == line, "in a pipe a line stays whole"


def window(columns: int, cwd: Path, *words: str) -> str:
    """What a terminal of that width shows of a khms command, colours taken out."""
    pexpect = pytest.importorskip("pexpect")
    env = dict(os.environ)  # handed on by name: a C library may have put COLUMNS beside what Python knows
    command = ["-m", "khms", *words]
    child = pexpect.spawn(
        sys.executable, command, dimensions=(40, columns), cwd=str(cwd), env=env, encoding="utf-8", timeout=60
    )
    child.expect(pexpect.EOF)
    child.close()
    return ESCAPES.sub("", str(child.before)).replace("\r", "")


@pytest.mark.parametrize("columns", [80, 40])
def test_a_table_breaks_no_id_and_no_date(base: Base, add_card: Callable[..., Path], columns: int) -> None:
    title = "The gateway stalls at midnight because the ledger is locked by the export for a whole minute"
    for number in (1, 2):
        add_card(base, f"K-0000{number}", title=title, type="decision-rationale")
    lines = window(columns, base.root, "card", "list").split("\n")
    text = "\n".join(lines)
    assert max(map(len, lines)) <= columns
    for whole in ("K-00001", "K-00002", "2026-03-04", "decision-rationale", "active"):
        assert re.search(rf"(?<!\S){whole}(?!\S)", text)
    cut = [set(line.split()) for line in lines]
    assert all(any(word in line for line in cut) for word in title.split()), "no word of the title is cut or lost"


def test_in_a_pipe_a_row_is_a_line(
    base: Base, add_card: Callable[..., Path], run_khms: Callable[..., "object"]
) -> None:
    add_card(base, "K-00001", title="A title\nof two lines " + "and more " * 20)
    done = run_khms("card", "list")
    (_, row) = done.stdout.splitlines()  # type: ignore[attr-defined]
    assert row.startswith("K-00001") and row.endswith("and more")
