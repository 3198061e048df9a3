"""Texts that broke other tools' searches, as prompts to the hook as it is installed: each in a session of its own.

What the hook found stands in its log, whether or not that is enough for a pointer.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.index import manifest, sync
from khms.store.layout import Base

Add = Callable[..., Path]
Hook = Callable[..., str | None]
Prompt = Callable[..., dict[str, Any]]
Logged = Callable[[Base | None], list[dict[str, Any]]]

PROMPTS = [
    *("Error: queue is full (limit=25)", '"never closed', "cache:warm", "D:\\spool\\old", "-quiet", "*", "wo*", "b:(^"),
    *("word^99999999999", '"c d"~', "snake_case_name", "2031.5.20", "E-4711", "🦔", '""""', "   ", "\u200b", "[y]"),
    *("ValueError: 'Nothing' object is not iterable", "fatal: this is not a work tree: .hg", "row " * 5000),
]
POINTED = ("Error: queue is full (limit=25)", "ValueError: 'Nothing' object is not iterable")
SCRIPTS = {
    "失效策略": "我们决定使用缓存失效策略避免脏读。",
    "끝말잇기": "오늘 끝말잇기 놀이를 했다.",
    "решили отключить кэш": "Решили отключить кэш.",
}
NAMES = {
    "RemarkablyLongGeneratedControllerName": "class RemarkablyLongGeneratedControllerName of the invoices",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b": "digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b of the archive",
    "conn.pool.release() order_item_cache": "call conn.pool.release() in order_item_cache",
}


def fill(base: Base, add_card: Add, write: Callable[..., Path], texts: list[str]) -> None:
    write(base, "khms.toml", "[hooks]\ndeadline_ms = 30000\n")
    for number, text in enumerate(texts, 1):
        add_card(base, f"K-{number:05d}", title=f"Case {number}", body=f"{text}\n")
    for number in range(100, 130):
        add_card(base, f"K-{number:05d}", body=f"station {number} logs wind and rain every hour, filler {number}\n")
    sync.refresh(base)


def test_text_is_only_text(
    base: Base, add_card: Add, write: Callable[..., Path], hook: Hook, prompt: Prompt, logged: Logged
) -> None:
    fill(base, add_card, write, PROMPTS)
    check(base, PROMPTS, POINTED, hook, prompt, logged)


def test_the_shared_queries(
    base: Base,
    add_card: Add,
    write: Callable[..., Path],
    hook: Hook,
    prompt: Prompt,
    logged: Logged,
    shared: Callable[[str], Path],
) -> None:
    queries = json.loads(shared("cases/28-queries.json").read_text(encoding="utf-8"))
    fill(base, add_card, write, queries)
    pointed = [query for query in queries if query.startswith(("Error: ", "TypeError: ", "fatal: "))]
    assert len(pointed) == 3
    check(base, queries, pointed, hook, prompt, logged)


def check(
    base: Base, queries: list[str], pointed: list[str] | tuple[str, ...], hook: Hook, prompt: Prompt, logged: Logged
) -> None:
    """Every answer is one or none, of two cards at most, with its reason; the long texts find their card first."""
    for number, query in enumerate(queries, 1):
        answer = hook(prompt(query, session=f"s{number}"), base)
        line = logged(base)[-1]
        assert line["reason"] not in ("error", "deadline"), (query[:60], line)
        assert (line["decision"] == "inject") == (answer is not None)
        assert len(line.get("cards", [])) <= 2
        if query in pointed:
            assert line["hits"][0][0] == f"K-{number:05d}", (query, str(line))


def test_scripts_and_names(
    base: Base, add_card: Add, write: Callable[..., Path], hook: Hook, prompt: Prompt, logged: Logged
) -> None:
    asked = {**SCRIPTS, **NAMES}
    fill(base, add_card, write, list(asked.values()))
    for number, query in enumerate(asked, 1):
        hook(prompt(query, session=f"s{number}"), base)
        line = logged(base)[-1]
        if line["reason"] != "short":
            assert line["hits"][0][0] == f"K-{number:05d}", (query, str(line))
    assert sum(line["reason"] != "short" for line in logged(base)) > len(NAMES)


def folder(base: Base) -> Path:
    known = manifest.load(base.index)
    assert known is not None
    return base.index / known.generation


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def changed(base: Base, change: Callable[[dict[str, Any]], object]) -> None:
    """The manifest with one thing changed, and its sum right again."""
    path = base.index / manifest.NAME
    value = json.loads(path.read_bytes())
    value.pop("sum")
    change(value)
    text = json.dumps(value, separators=(",", ":")).encode()
    path.write_bytes(manifest._sum(text) + text[1:])


HARMS: dict[str, Callable[[Base], object]] = {
    "vectors cut": lambda base: half(next(folder(base).glob("vectors-*"))),
    "meta is a brace": lambda base: (folder(base) / "meta.json").write_text("{", encoding="utf-8"),
    "records gone": lambda base: next(folder(base).glob("records-*")).unlink(),
    "manifest gone": lambda base: (base.index / manifest.NAME).unlink(),
    "another model": lambda base: changed(base, lambda value: value["vectors"].update(model="0" * 64)),
    "another dimension": lambda base: changed(base, lambda value: value["vectors"].update(dimension=128)),
    "a schema to come": lambda base: changed(base, lambda value: value.update(version=999)),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_index_is_mended_or_named(
    indexed: Base,
    hook: Hook,
    prompt: Prompt,
    logged: Logged,
    run_khms: Callable[..., "subprocess.CompletedProcess[str]"],
    harm: str,
) -> None:
    """By hook, by doctor and by recall: never another card, and no empty answer where there is one."""
    asked = "why does the checksum keep failing on deploy"
    assert run_khms("recall", asked, "--json").returncode == 0 and sync.verify(indexed) == ""
    HARMS[harm](indexed)
    answer = hook(prompt(session="during"), indexed)
    if answer is None:
        assert logged(indexed)[-1]["reason"] == "error"
    else:
        assert "K-00001" in answer
    looked = run_khms("doctor")
    assert "Traceback" not in looked.stderr and looked.returncode in (0, 1, 3, 4)
    if sync.verify(indexed) and (indexed.index / manifest.NAME).exists():
        assert looked.returncode and "index" in looked.stdout + looked.stderr
    done = run_khms("recall", asked, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["hits"][0]["id"]) == (0, "K-00001"), done.stderr
    if found["channel"] != "hybrid":
        assert harm.startswith("another") and "khms index makes new ones" in done.stderr
        assert run_khms("index").returncode == 0
        assert json.loads(run_khms("recall", asked, "--json").stdout)["channel"] == "hybrid"
    assert sync.verify(indexed) == ""
    assert "K-00001" in str(hook(prompt(session="after"), indexed))
