"""The tools of an agent host and the base's warm server: asked where it is there, started where it is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from khms import config
from khms.mcp_server import warm
from khms.mcp_server.places import Place
from khms.mcp_server.tools import TOOLS
from khms.store.layout import Base

WORDS = {"query": "checksum fails on deploy", "limit": 3}


def test_recall_asks_the_server_and_says_the_same(
    stocked: Base, running: Callable[[Base], dict[str, Any]], status: Callable[[Base], Any], tmp_path: Path
) -> None:
    place = Place(stocked, config.load(stocked.root), tmp_path)
    cold = TOOLS["recall"].run(place, WORDS)  # nothing answers yet; a server is begun for the next question
    before = running(stocked)["answered"]
    assert warm.recall(stocked, tmp_path, ["--", "x"]) is not None
    told = TOOLS["recall"].run(place, WORDS)
    assert status(stocked)["answered"] == before + 2
    assert [hit["id"] for hit in told["hits"]] == [hit["id"] for hit in cold["hits"]] == ["K-00001"]
    assert told["query"] == cold["query"] == WORDS["query"] and told["schema"] == cold["schema"]
    assert TOOLS["recall"].run(place, {"query": "-n --all zyxwv"})["hits"] == []  # a question is never an option


def test_nothing_is_started_for_a_base_that_is_not_trusted(stocked: Base, sockets: Path) -> None:
    warm.start(Base(stocked.root), "auto")
    warm.start(stocked, "off")
    assert not list(sockets.rglob("*.lock"))
