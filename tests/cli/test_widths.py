"""What a terminal of 80 or 40 columns shows: it breaks no line but where one word is too long for it."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from khms.cli.group import COMMANDS, khms
from khms.cli.output import folded
from khms.store.layout import Base

KHMS = str(Path(sys.executable).parent / "khms")
COLOURED = re.compile(r"\x1b\[[0-9;]*m")


def shown(base: Base, columns: int, *command: str) -> str:
    pexpect = pytest.importorskip("pexpect")
    child = pexpect.spawn(
        KHMS,
        list(command),
        cwd=str(base.root),
        dimensions=(50, columns),
        encoding="utf-8",
        timeout=60,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    child.expect(pexpect.EOF)
    child.close()
    return COLOURED.sub("", str(child.before)).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 40])
def test_answers_fit(
    base: Base, add_card: Callable[..., Path], commit: Callable[..., str], git: Callable[..., str], columns: int
) -> None:
    add_card(base, body="It stood at Mill Lane 7, and whoever came by could see it from the road all day long.\n")
    commit(base)
    git(base, "remote", "add", "origin", str(base.root.parent / "nowhere.git"))
    for command in (
        ("redact", "K-00001", "--match", "Mill Lane 7", "--why", "an address that is nobody's business"),
        ("show", "K-00001"),
        ("hook", "status"),
        ("hook", "status", "git"),
        ("doctor",),
        ("signers", "list"),
        ("inbox", "show", "nothing-of-this-name-is-there"),
    ):
        text = shown(base, columns, *command)
        assert text.strip()
        wide = [line for line in text.split("\n") if len(line.rstrip()) > columns]
        assert not [line for line in wide if len(line.split()) > 1 and "/" not in line], (command, wide)


def test_a_folded_text_keeps_its_words_and_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "   - " + " ".join(f"word{n}" for n in range(30)) + "\nshort\n\n  " + "x" * 60
    rows = folded(text).split("\n")
    assert " ".join(" ".join(rows).split()) == " ".join(text.split())
    assert all(len(row) <= 40 for row in rows if "x" * 60 not in row)
    assert rows[1].startswith("     word") and "" in rows and "short" in rows
    assert folded(folded(text)) == folded(text)
    assert folded("\x1b[31m" + text) == "\x1b[31m" + text


def commands() -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    todo: list[tuple[str, Any]] = [(name, khms.get_command(click.Context(khms), name)) for name in COMMANDS]
    while todo:
        name, command = todo.pop()
        found.append((name, command))
        if isinstance(command, click.Group):
            inner = click.Context(command)
            todo += [(f"{name} {one}", command.get_command(inner, one)) for one in command.list_commands(inner)]
    return found


def test_every_help_fits_in_80_columns() -> None:
    held = [("", khms), *commands()]
    assert len(held) > 30
    for name, command in held:
        context = click.Context(command, info_name=name, terminal_width=80)
        assert [line for line in command.get_help(context).split("\n") if len(line) > 80] == [], name
