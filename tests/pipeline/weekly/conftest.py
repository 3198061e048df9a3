"""`planted`: a base with all that the weekly run is to find, and as much that only looks like it, all of it let in by
one record. `propose(base, settings, **options)` runs weekly over it; `offers(base, unit)` is what a unit offers."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.config import Config
from khms.pipeline.adopt import adopt
from khms.pipeline.weekly import run as weekly
from khms.pipeline.weekly.week import Result
from khms.store.layout import Base
from khms.store.repo import Repo

Write = Callable[..., Path]


def session(name: str) -> str:
    return f"session:claude-code/{name}"


PRINCIPLE: dict[str, Any] = {"type": "principle", "level": "derived", "evidence": None, "source": None}
# What the cards have in common with nobody: one subject each.
UNRELATED = (
    ("Hinges of the greenhouse door rust within a winter", "The zinc was scratched when they were bent.", "garden"),
    ("Serif type prints too thin on the label printer", "Its head leaves out strokes below half a point.", "print"),
    ("Bees avoid the south wall in the afternoon", "The render there grows too hot to land on.", "garden"),
    ("Invoices in Danish crowns round the other way", "The bank counts half an öre up.", "money"),
    ("A fresh checkout lacks the submodule with the icons", "Nobody initialises it after cloning.", "git"),
    ("The drone's compass drifts beside the steel fence", "Readings settle some metres away from it.", "flight"),
    ("Yeast from the cellar rises slower", "It is colder down there.", "kitchen"),
    ("Choir recordings clip at the tenors", "The pre-amplifier is turned up for the altos.", "audio"),
)


@pytest.fixture
def planted(base: Base, add_card: Write, commit: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Base:
    """Made once a session, then copied."""
    kept = tmp_path_factory.getbasetemp() / "planted"
    if kept.is_dir():
        shutil.rmtree(base.root)
        shutil.copytree(kept, base.root)
        return base
    fill(base, add_card)
    commit(base, "the cards")
    adopt(base, Repo(base.root), Config([]))
    shutil.copytree(base.root, kept)
    return base


def fill(base: Base, add_card: Write) -> None:
    def card(number: int, title: str, body: str, **keys: Any) -> None:
        given = {"title": title, "body": body, "evidence": "observed", "source": session(f"s{number}"), **keys}
        add_card(base, f"K-{number:05d}", **given)

    for at, (title, body, tag) in enumerate(UNRELATED, 1):
        card(at, title, body, tags=[tag], date=f"2026-05-{at:02d}")
    # A shape: three sessions, three dates.
    card(
        11,
        "Uploader retried a full disk for ever",
        "A retry without a limit hid the full disk for two hours. Bound the retries and log the last error.",
        tags=["retries"],
        date="2026-05-11",
    )
    card(
        12,
        "Mail sender retries hid a wrong password",
        "The sender retried the login without a limit and nobody saw the "
        "error. Bound the retries and log the last error.",
        tags=["retries"],
        date="2026-05-12",
    )
    card(
        13,
        "Endless retries of the price import hid an expired token",
        "The import retried without a limit. Bound the retries and log the last error.",
        tags=["retries"],
        date="2026-05-13",
    )
    # The same, but of one session; and of three sessions on one day.
    for at, what in enumerate(("sensor rows", "invoice rows", "audit rows"), 16):
        card(
            at,
            f"Inserting {what} one by one is slow",
            f"One transaction for the whole batch of {what} is ten times as fast as a commit after each row.",
            tags=["batches"],
            date=f"2026-05-{at}",
            source=session("one"),
        )
    for at, what in enumerate(("north valve", "south valve", "roof valve"), 21):
        card(
            at,
            f"The {what} sticks after frost",
            f"Ice in the spring of the {what} keeps it shut until noon; drain it in the evening.",
            tags=["valves"],
            date="2026-05-21",
        )
    # A later value, at least as well observed: the later card comes again with the link.
    card(31, "The upload limit of the gateway is 3 MB", "A larger file is refused.", date="2026-04-01")
    card(
        32,
        "The upload limit of the gateway is 5 MB",
        "A larger file is refused.",
        date="2026-05-20",
        evidence="measured",
    )
    # A later value, and a pattern rests on the later card; one that says so in words; one whose status was never set.
    card(33, "The default branch of the site repository is master", "So the links say.", date="2026-04-02")
    card(34, "The default branch of the site repository is trunk", "So the links say.", date="2026-05-22")
    card(
        35,
        "Names of branches change: pin nothing to them",
        "HOLDS: links that name a branch break.",
        **PRINCIPLE,
        date="2026-05-23",
        links={"derived_from": ["K-00034"]},
    )
    card(36, "Backups go to the attic disk", "It is the one with the blue tape.", date="2026-04-03")
    card(37, "Backups go to the rented vault", "This replaces K-00036, whose place was damp.", date="2026-05-24")
    card(38, "Parcels are weighed on the kitchen scale", "It is the only one.", date="2026-04-04")
    card(
        39,
        "Parcels are weighed at the counter",
        "SUPERSEDES K-00038 BECAUSE: the kitchen scale broke\nIt is free.",
        date="2026-05-25",
        links={"supersedes": "K-00038"},
    )
    # Against each other: with a link, by a later but weaker word, by a no, by a later one that says less.
    card(
        41, "Boiling the reeds softens them", "Ten were boiled.", date="2026-04-05", links={"contradicts": ["K-00042"]}
    )
    card(
        42,
        "Boiling the reeds splits them",
        "WHEN: a reed is boiled THEN: it splits",
        date="2026-05-26",
        links={"contradicts": ["K-00041"]},
    )
    card(
        43,
        "The idle timeout of the broker is 30 s",
        "It stands in `conf/broker.toml`.",
        date="2026-04-06",
        evidence="measured",
    )
    card(44, "The idle timeout of the broker is 90 s", "Somebody said so.", date="2026-05-27", evidence="reported")
    card(45, "The night exporter retries failed uploads of reports", "Seen in its log.", date="2026-04-07")
    card(46, "The night exporter never retries failed uploads of reports", "Seen in its log.", date="2026-04-07")
    card(
        47,
        "The read quota of the archive is 40 calls",
        "The write quota is 7 calls, on the host `vault-2`.",
        date="2026-04-08",
    )
    card(48, "The read quota of the archive is 60 calls", "It was raised.", date="2026-05-28")
    # What only looks like it: a number that is a name, another scope, a card that tells of the change itself.
    card(51, "Relay 7 clicks twice at dusk", "Nothing is wrong with it.", date="2026-04-09")
    card(52, "Relay 8 clicks twice at dusk", "Nothing is wrong with it.", date="2026-05-29")
    card(53, "The poll interval of the meter is 15 s", "In the shed.", date="2026-04-10", scope="project:shed")
    card(54, "The poll interval of the meter is 20 s", "In the barn.", date="2026-05-30", scope="project:barn")
    card(55, "It is said in passing that this never replaces K-00051", "No card of its own.", date="2026-05-30")
    # What a pattern carries whole; what loses a number, a link, or what rests on it.
    card(61, "Paint at 4 °C peels off the gutter", "Two of the boards.", type="action-outcome", date="2026-01-05")
    card(62, "Paint at 6 °C peels off the shutters", "It took 9 days.", type="action-outcome", date="2026-01-06")
    card(
        63,
        "Varnish at 5 °C stays sticky",
        "On the bench.",
        type="action-outcome",
        date="2026-01-07",
        links={"contradicts": ["K-00065"]},
    )
    card(64, "Primer in the cold garage blisters", "On the rail.", type="action-outcome", date="2026-01-08")
    card(
        65,
        "Varnish of another maker dries in the cold",
        "On the bench.",
        type="action-outcome",
        date="2026-01-09",
        links={"contradicts": ["K-00063"]},
    )
    card(
        66,
        "Coats need warmth to set",
        "HOLDS: at 4 °C, 5 °C or 6 °C paint, primer and varnish fail.\nLIMITS: of one "
        "house.\nIMPLICATIONS: wait for a warm day.",
        **PRINCIPLE,
        date="2026-05-31",
        links={"derived_from": ["K-00061", "K-00062", "K-00063", "K-00064"]},
    )
    card(
        67,
        "A cold garage is no workshop",
        "HOLDS: what blisters there fails.",
        **PRINCIPLE,
        date="2026-05-31",
        links={"derived_from": ["K-00064"]},
    )


@pytest.fixture
def propose() -> Callable[..., Result]:
    def run(base: Base, settings: dict[str, Any] | None = None, **options: Any) -> Result:
        return weekly.weekly(base, Repo(base.root), Config([("test", settings or {})]), **options)

    return run


@pytest.fixture
def offers() -> Callable[[Base, str], dict[str, str]]:
    """key -> label, as the unit tells it."""

    def read(base: Base, unit: str) -> dict[str, str]:
        about = json.loads(base.path(f"memory/inbox/{unit}/unit.json").read_text(encoding="utf-8"))
        return {key: label for label, key in about["offers"].items()}

    return read
