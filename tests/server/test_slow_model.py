"""A model that only a server can afford: what answers before there is one, and after."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from khms.errors import Unavailable
from khms.index import models
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_words_answer_until_the_server_does(
    stocked: Base,
    run_khms: Run,
    running: Callable[[Base], dict[str, Any]],
    client: Callable[..., str],
    event: Callable[..., bytes],
    logged: Callable[[Base], list[dict[str, Any]]],
) -> None:
    try:
        models.chosen(stocked, {"recall.model": "minilm"})
    except Unavailable as error:
        pytest.skip(f"needs the packages of khms[quality]: {error.message}")
    root = ("--root", str(stocked.root))
    stocked.config.write_text('[recall]\nmodel = "minilm"\n', encoding="utf-8")
    off = {"KHMS_SERVER_OFF": "1"}
    assert "the vectors are another model's" in run_khms(*root, "status").stdout
    assert run_khms(*root, "index", env=off).returncode == 0

    def told(**more: Any) -> tuple[str, str | None]:
        found = json.loads(run_khms(*root, "recall", "--json", "checksum", **more).stdout)
        return found["channel"], found["note"]

    alone = ("lexical", "by words alone: minilm answers in the server only (khms server start)")
    assert told(env=off) == alone
    assert "minilm answers in the server only" in run_khms(*root, "recall", "checksum", env=off).stderr
    client(event(), {"KHMS_ROOT": str(stocked.root), **off})
    assert (logged(stocked)[-1]["channel"], logged(stocked)[-1]["server"]) == ("lexical", False)
    assert told() == alone, "which starts the server"
    running(stocked)
    assert told() == ("hybrid", None)
    client(event(session="s2"), {"KHMS_ROOT": str(stocked.root)})
    assert (logged(stocked)[-1]["channel"], logged(stocked)[-1]["server"]) == ("hybrid", True)
