"""`recall` asked of the base's warm server, which has the index and the model in memory; nothing where none answers."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from khms.store import trust
from khms.store.layout import Base

ALIVE = 0.5  # seconds in which a server that does not hang has given a sign of life
PATIENCE = 10.0


def recall(base: Base, here: Path, words: Sequence[str]) -> tuple[dict[str, Any], list[str]] | None:
    """The JSON of `khms recall` with these words, and its remarks; None where the process has to find it itself."""
    try:
        from khms.server import address, asking, wire

        env = os.environb
        if address.switched_off(env):
            return None
        root = os.fsencode(base.root)
        block = [root, b"", b"", *(word.encode("utf-8", "surrogateescape") for word in ("--json", *words))]
        streams = (b"utf-8", b"utf-8", b"0", b"0", b"0")
        blocks = (os.fsencode(here), asking.told(env), wire.packed(block), wire.packed(streams))
        now = monotonic()
        answer, _ = asking.ask(env, root, b"run", blocks, now + PATIENCE, default=False, alive=now + ALIVE)
    except (ImportError, OSError, ValueError, AttributeError):  # a system without Unix sockets
        return None
    if answer is None or len(answer) != 3 or answer[2] not in (b"0", b"1"):
        return None
    try:
        found = json.loads(answer[0])
    except ValueError:
        return None
    remarks = [line for line in answer[1].decode("utf-8", "replace").splitlines() if line.strip()]
    return (found, remarks) if isinstance(found, dict) else None


def start(base: Base, enabled: str) -> None:
    """Has a server there for the next question, where the base is trusted."""
    if enabled == "off" or trust.why_not(base):
        return
    with suppress(ImportError, OSError):
        from khms.server import launch

        launch.start(str(base.root))
