"""Inputs that broke other tools, asked through the library and through the command line as it is installed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.index import sync
from khms.recall.search import recall
from khms.store.layout import Base

Add = Callable[..., Path]
Write = Callable[..., Path]
Shared = Callable[[str], Path]
Asked = Callable[[Base, list[str]], list[list[str]]]

QUERIES = [
    *("Error: queue is full (limit=25)", '"never closed', 'ask "who', "cache:warm", "https://h.invalid/x?y=z#w"),
    *("D:\\spool\\old", "-quiet", "--fail-early-on-notice", "this AND", "x OR OR y", "conn.pool.release()", "(ruby"),
    *("isn't", "MB/s", "[y]", "{a TO z}", ">>>", "*", "wo*", "b:(^", "body:*", "word^99999999999", '"c d"~'),
    *("snake_case_name", "v3.20.1", "2031.5.20", "G++", ".NET", "E-4711", "of", "🦔", "${PATH}", "\\", '""""'),
    *("'; DROP TABLE hits; --", "ValueError: 'Nothing' object is not iterable", "row " * 400, "   ", "\t\n", "\u200b"),
]
SCRIPTS = "我们决定使用缓存失效策略。\n昨日は成語しりとりをした。\n어제 끝말잇기를 했다.\nРешили отключить кэш.\n"
SCRIPTS += "अनीता ने यह तय किया।\nבדיקה של המטמון.\nการทดสอบแคช\n"
IN_SCRIPTS = ["失效策略", "しりとり", "끝말잇기", "кэш", "अनीता", "המטמון", "แคช"]
ZOO = """digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
class RemarkablyLongGeneratedControllerNameForInvoiceReconciliation
call conn.pool.release() in order_item_cache, flag --no-check-certs, env WEB_DB_URL
version 2031.5.20, code E-4711, file lib/web/main_view.py, UI runs Go and F#
Café naïve Straße Ångström ﬁle
"""
IN_ZOO = [
    *("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "order_item_cache", "--no-check-certs"),
    *("RemarkablyLongGeneratedControllerNameForInvoiceReconciliation", "conn.pool.release", "WEB_DB_URL", "E-4711"),
    *("2031.5.20", "lib/web/main_view.py", "main_view", "item_cache", "pool", "UI", "Go", "F#", "cafe", "strasse"),
    *("angstrom", "naive", "file", "ﬁle"),
]
# One process for all questions, each through the whole command; what it prints is cut at a line of its own.
COMMAND = """
import json, sys
from khms.cli import run
for query in json.load(open(sys.argv[1])):
    status = run(["recall", "--limit", "1000", "--json", query])
    print(f"\\x1e{status}\\x1e", flush=True)
"""


@pytest.fixture(params=["library", "command line"])
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Asked:
    """asked(base, queries): the ids of all hits of each, best first."""

    def by_library(base: Base, queries: list[str]) -> list[list[str]]:
        return [[hit.id for hit in recall(base, query, limit=1000, refresh=True)] for query in queries]

    def by_command(base: Base, queries: list[str]) -> list[list[str]]:
        (tmp_path / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, str(tmp_path / "queries.json")],
            cwd=base.root,
            env=dict(os.environ),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
        answers = done.stdout.split("\x1e")
        found = []
        for text, status, query in zip(answers[::2], answers[1::2], queries, strict=False):
            assert (status == "2") == (not query.strip()), (query, status)
            hits = json.loads(text)["hits"] if query.strip() else []
            assert status in ("0", "1", "2") and (status == "0") == bool(hits), (query, status)
            found.append([hit["id"] for hit in hits])
        return found

    found: Asked = by_library if request.param == "library" else by_command
    return found


def filled(base: Base, add_card: Add, texts: list[str]) -> Base:
    for number, text in enumerate(texts, 1):
        add_card(base, f"K-{number:05d}", body=f"{text}\n")
    for number in range(100, 130):
        add_card(base, f"K-{number:05d}", body=f"station {number} logs wind and rain every hour, filler {number}\n")
    sync.refresh(base)
    return base


def check_queries(base: Base, add_card: Add, asked: Asked, queries: list[str]) -> None:
    filled(base, add_card, queries)
    for number, (query, found) in enumerate(zip(queries, asked(base, queries), strict=True), 1):
        if query.strip("\u200b \t\n"):
            assert f"K-{number:05d}" in (found[:5] if len(query) > 1 else found), (query[:60], found[:5])
            if query[0] in "-*?":  # what other tools take for: everything, or everything else
                assert len(found) < (len(queries) + 30) / 2, (query[:60], len(found))
        else:
            assert found == []


def test_text_is_only_text(base: Base, add_card: Add, asked: Asked) -> None:
    check_queries(base, add_card, asked, QUERIES)


def test_the_shared_queries(base: Base, add_card: Add, asked: Asked, shared: Shared) -> None:
    queries = json.loads(shared("cases/28-queries.json").read_text(encoding="utf-8"))
    check_queries(base, add_card, asked, queries)


def test_scripts(base: Base, add_card: Add, asked: Asked) -> None:
    filled(base, add_card, [SCRIPTS])
    assert [found[:1] for found in asked(base, IN_SCRIPTS)] == [["K-00001"]] * len(IN_SCRIPTS)


def test_the_shared_scripts(base: Base, add_card: Add, asked: Asked, shared: Shared) -> None:
    body, _, comment = shared("cases/30-cjk-and-scripts.md").read_text(encoding="utf-8").partition("<!--")
    queries = [query.strip() for query in re.sub(r".*?:|-->", "", comment).split("|")]
    filled(base, add_card, [body.rpartition("---\n")[2]])
    assert [found[:1] for found in asked(base, queries)] == [["K-00001"]] * 7


def test_identifiers(base: Base, add_card: Add, asked: Asked) -> None:
    filled(base, add_card, [ZOO])
    assert [(n, found[:1]) for n, found in zip(IN_ZOO, asked(base, IN_ZOO), strict=True)] == [
        (name, ["K-00001"]) for name in IN_ZOO
    ]


def test_the_shared_identifiers(base: Base, add_card: Add, asked: Asked, shared: Shared) -> None:
    body = shared("cases/31-identifiers.md").read_text(encoding="utf-8").rpartition("---\n")[2]
    names = [word.strip(",") for word in body.split() if not word.islower() or "_" in word or "-" in word]
    names += ["cafe", "strasse", "file", "ﬁle", "pool", "profile", "db_url", "main_test", "naive", "angstrom"]
    filled(base, add_card, [body])
    assert len(names) > 20
    assert [(n, found[:1]) for n, found in zip(names, asked(base, names), strict=True)] == [
        (name, ["K-00001"]) for name in names
    ]


@pytest.mark.parametrize("committed", [True, False])
def test_a_file_that_moves_is_found_once_where_it_is(
    base: Base, write: Write, commit: Callable[..., str], git: Callable[..., str], shared: Shared, committed: bool
) -> None:
    data = shared("cases/23-move-unchanged.md").read_bytes()
    places = ["memory/know/K-00001.md", "memory/know/a/K-00002.md", "memory/know/a/K-00003.md"]
    for place in places:
        write(base, place, data.replace(b"K-00001", place[-10:-3].encode()))
    commit(base)
    assert len(recall(base, "driftlantern", refresh=True).hits) == 3
    for old, new in ((places[0], "memory/know/b/K-00001.md"), ("memory/know/a", "memory/know/c")):
        (base.root / new).parent.mkdir(exist_ok=True)
        git(base, "mv", old, new)
    if committed:
        commit(base)
    found = sorted(hit.path for hit in recall(base, "driftlantern", refresh=True))
    assert found == [f"memory/know/{name}.md" for name in ("b/K-00001", "c/K-00002", "c/K-00003")]


def test_the_last_file_leaves_nothing_behind(base: Base, add_card: Add, run_khms: Callable[..., object]) -> None:
    path = add_card(base, body="driftlantern\n")
    (base.journal / "2026-03-04.md").unlink()
    assert len(recall(base, "driftlantern", refresh=True).hits) == 1
    path.unlink()
    answer = recall(base, "driftlantern", refresh=True)
    assert not answer.hits and not answer.elsewhere
    assert sync.refresh(base).docs == 0
    done = run_khms("index", "--rebuild", "--json")
    assert json.loads(done.stdout)["docs"] == 0  # type: ignore[attr-defined]
