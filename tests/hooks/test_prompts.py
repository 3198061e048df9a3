"""What is said to 200 prompts over engineering cards and notes: by either channel, and beside 10,000 other cards.

Precision is the share of the pointers that are right, recall the share of the related prompts that get a right one.
The prompts are this project's own words; the cards and notes stand beside the checkout.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from khms import config
from khms.hooks import handlers, sessions
from khms.hooks.places import Place
from khms.hosts.base import Event
from khms.index import sync
from khms.measure.synthetic import card_text
from khms.store.layout import Base

PROMPTS = Path(__file__).with_name("prompts.txt")
OTHERS = 10_000


@dataclass(frozen=True)
class Asked:
    gold: frozenset[str]
    said: tuple[str, ...]


def name_of(note: Path) -> str:
    return hashlib.sha256(note.stem.encode()).hexdigest()[:8]


@pytest.fixture
def library(
    base: Base, add_card: Callable[..., Path], write: Callable[..., Path], shared: Callable[[str], Path]
) -> dict[str, str]:
    """Fills the base; what each name in the list of prompts is called there."""
    ids = {}
    for number, row in enumerate(shared("bench/tech-dev/docs.jsonl").read_text(encoding="utf-8").splitlines(), 1):
        document = json.loads(row)
        title, _, body = document["text"].removeprefix("# ").partition("\n")
        ids[document["id"]] = f"K-{number:05}"
        add_card(base, ids[document["id"]], title=title, body=body)
    for note in shared("real/notes").rglob("*.md"):
        kept = f"notes/{note.relative_to(shared('real/notes')).as_posix()}"
        write(base, kept, note.read_bytes())
        ids[name_of(note)] = kept.removesuffix(".md")
    write(base, "khms.toml", "[index]\nnotes = true\n")
    return ids


def asked(base: Base, ids: dict[str, str], by_meaning: bool) -> list[Asked]:
    place = Place(base, config.load(base.root))
    found = []
    for row in PROMPTS.read_text(encoding="utf-8").splitlines():
        if not row.startswith("#"):
            names, _, prompt = row.partition("\t")
            event = Event("prompt", prompt=prompt)
            said = handlers.decide(place, event, sessions.Unkept(), by_meaning=by_meaning).cards
            found.append(Asked(frozenset(ids[name] for name in names.split() if name != "-"), said))
    return found


def figures(rows: list[Asked]) -> tuple[float, float, float]:
    """(precision, recall, share of the unrelated prompts that get nothing)."""
    right = sum(len(row.gold.intersection(row.said)) for row in rows)
    named = sum(len(row.said) for row in rows)
    related = [row for row in rows if row.gold]
    unrelated = [row for row in rows if not row.gold]
    recall = sum(bool(row.gold.intersection(row.said)) for row in related) / len(related)
    return right / named, recall, sum(not row.said for row in unrelated) / len(unrelated)


@pytest.mark.parametrize("others", [0, pytest.param(OTHERS, marks=pytest.mark.slow)])
def test_what_is_said_is_right_and_enough_of_it_is_said(
    base: Base,
    library: dict[str, str],
    commit: Callable[..., str],
    told: Callable[[str], None],
    others: int,
) -> None:
    rng = Random(7)
    for number in range(1000, 1000 + others):
        path = base.know / f"K-{number:05}.md"
        path.write_text(card_text(number, rng), encoding="utf-8")
    commit(base)
    sync.refresh(base)
    for channel, by_meaning in (("words", False), ("words and meaning", True)):
        rows = asked(base, library, by_meaning)
        assert len(rows) == 200
        precision, recall, silent = figures(rows)
        told(
            f"hook, 200 prompts, by {channel}, beside {others:,} other cards: precision {precision:.2f}, "
            f"recall {recall:.2f}, silent to {100 * silent:.0f} % of the unrelated"
        )
        assert precision >= (0.9 if others == 0 else 0.82) and recall >= 0.65 and silent >= 0.95
