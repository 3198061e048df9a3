"""Pipes, loops, links out of the base and broken records: each command ends soon, says what is wrong, leaks nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store.layout import Base

Run = Callable[..., object]
COMMANDS = (
    ("status",),
    ("lint",),
    ("show", "K-00001"),
    ("card", "list"),
    ("views",),
    ("inbox", "list"),
    ("inbox", "show"),
    ("nightly",),
    ("index",),
    ("recall", "body"),
    ("approve", "2026-03-05-nightly", "C1"),
)
PLACES = (
    "memory/know/K-00007.md",
    "journal/2026-05-08.md",
    "memory/inbox/2026-03-05-nightly/C9.md",
    "memory/approvals/x.json",
    "memory/receipts/x.jsonl",
    "memory/tags.yaml",
)


def odd(path: Path, kind: str, outside: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "out":
        path.symlink_to(outside)
    else:
        path.write_text("[" * 100_000, encoding="utf-8")


@pytest.mark.parametrize("kind", ["pipe", "loop", "out", "deep"])
def test_an_odd_file_stops_and_leaks_nothing(
    kind: str, base: Base, add_card: Callable[..., Path], commit: Callable[..., str], run_khms: Run, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("title: a word that is nobody's business\n", encoding="utf-8")
    add_card(base)
    commit(base)
    for place in PLACES:
        odd(base.path(place), kind, outside)
        for command in COMMANDS:
            done = run_khms(*command, cwd=base.root, timeout=20)
            said = done.stdout + done.stderr  # type: ignore[attr-defined]
            assert done.returncode in (0, 1, 2, 3, 4), (place, command, said)  # type: ignore[attr-defined]
            assert "Traceback" not in said and "nobody's business" not in said, (place, command, said)
        base.path(place).unlink()
    for page in ("MEMORY.md", "memory/views/recent.md"):
        path = base.root / page
        assert not path.exists() or "nobody's business" not in path.read_text(encoding="utf-8")
