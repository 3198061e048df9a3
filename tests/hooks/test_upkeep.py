"""At a session's start the index is looked after, by a process that nobody waits for."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.hooks import upkeep
from khms.store.layout import Base


def test_it_sees_a_missing_a_damaged_and_an_old_index(
    indexed: Base, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    from khms.index import sync

    def settle() -> None:
        """What was written within the last moments counts as unseen, so the first refresh may not be the last."""
        for _ in range(50):
            sync.refresh(indexed)
            if not upkeep.stale(indexed):
                return

    settle()
    assert not upkeep.stale(indexed)
    add_card(indexed, "K-00007")
    commit(indexed, "one more")
    assert upkeep.stale(indexed)
    settle()
    assert not upkeep.stale(indexed)
    for path in indexed.index.rglob("*.idx"):
        held = path.read_bytes()
        path.unlink()  # cut in place, a file that this process has mapped would end it
        path.write_bytes(held[:20])
    assert upkeep.stale(indexed)
    (indexed.index / "manifest.json").unlink()
    assert upkeep.stale(indexed)


def test_the_process_is_on_its_own_and_reads_no_code_of_the_base(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **more: called.append((words, more)))
    upkeep.at_start(base)
    ((words, more),) = called
    assert words[:4] == [sys.executable, "-I", "-m", "khms"] and words[-1] == "index"
    assert not more.get("shell") and more["start_new_session"] is True
    assert {more[name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}
    assert more["env"]["KHMS_HOOKS_OFF"] == "1"
