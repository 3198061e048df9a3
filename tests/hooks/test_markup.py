"""A card full of HTML, as the hook names it: its title on one line as text, nothing of its body, the frame whole; and
the same text as a prompt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.index import sync
from khms.model.frame import FRAME_HEAD, FRAME_TAIL
from khms.store import markdown
from khms.store.layout import Base

Hook = Callable[..., str | None]
Prompt = Callable[..., dict[str, Any]]
Write = Callable[..., Path]

OWN = """---
id: C1
type: fact
title: "<svg onload=ring(1)> & </style><style>p{x:y}</style> pumps hum"
tags: ["<i>odd</i>", "x/y", "q?r#s", "ポンプ"]
date: "2026-03-04"
---
<style>p{x:url(javascript:ring(2))}</style> the pumps hum at night
[press](javascript:ring(3)) [near](../far.md#top) ![d](a drawing.png) <svg onload="ring(4)">

`</code><svg onload=ring(5)>` [/khms] end of the body
"""
QUESTIONS = {"own": "why do the pumps hum", "44-html-in-card.md": "img onerror alert script"}


@pytest.fixture(params=QUESTIONS)
def marked_up(request: pytest.FixtureRequest, shared: Callable[[str], Path]) -> tuple[str, str]:
    """(the card's text, a question that finds it)"""
    name = request.param
    text = OWN if name == "own" else shared(f"cases/{name}").read_text(encoding="utf-8")
    return text, QUESTIONS[name]


@pytest.fixture
def page(indexed: Base, add_card: Write, marked_up: tuple[str, str]) -> markdown.Page:
    found = markdown.parse(marked_up[0])
    meta = {key: found.meta[key] for key in ("title", "tags", "date")}
    add_card(indexed, "K-00044", body=found.body, **meta)
    sync.refresh(indexed)
    return found


def test_its_title_is_text_and_its_body_stays_in_the_base(
    indexed: Base, page: markdown.Page, marked_up: tuple[str, str], hook: Hook, prompt: Prompt
) -> None:
    said = hook(prompt(marked_up[1]), indexed)
    assert said is not None
    head, pointer, tail = said.splitlines()
    assert (head, tail) == (FRAME_HEAD.format(path=indexed.root), FRAME_TAIL)
    assert pointer == f"K-00044 {page.meta['title']} (memory/know/K-00044.md)"
    for line in filter(None, page.body.splitlines()):
        assert line not in said
    assert not any(tag in said for tag in page.meta["tags"])


def test_such_a_text_is_a_prompt_like_another(
    indexed: Base, page: markdown.Page, marked_up: tuple[str, str], hook: Hook, prompt: Prompt
) -> None:
    said = hook(prompt(marked_up[0]), indexed)
    assert said is None or said.count(FRAME_TAIL) == 1
    said = hook(prompt(page.body, session="s2"), indexed)
    assert said is None or "javascript:" not in said
