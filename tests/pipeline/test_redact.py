"""Redaction: the card loses the words and keeps its proof; what else holds them is named or changed with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.check.lint import lint
from khms.config import Config, load
from khms.errors import Refused, Usage
from khms.model.approval import candidate_sha256, card_sha256
from khms.pipeline import nightly as pipeline
from khms.pipeline.approve import approve
from khms.pipeline.redact import Redacted, redact
from khms.pipeline.ruling import Wish
from khms.recall.proof import changed
from khms.render import views
from khms.store.layout import Base
from khms.store.repo import Repo

Make = Callable[..., Path]
Git = Callable[..., str]
PLACE = "Mill Lane 7"
BODY = f"SYMPTOM: the unit at {PLACE} lost frames\nFIX: a new ground\nVERIFIED: seen twice, also at {PLACE}\n"


def take_out(base: Base, *words: str, **how: Any) -> Redacted:
    why = how.pop("why", "an address stood there")
    return redact(
        base,
        Repo(base.root),
        load(base.root),
        how.pop("card", "K-00001"),
        why,
        words=words,
        views=views.for_base,
        **how,
    )


def no_views(base: Base, cards: object) -> dict[str, bytes | None]:
    return {}


@pytest.fixture
def carded(base: Base, write: Make, commit: Git) -> Base:
    """A card made of a MARK that holds the words, with its unit, receipts and journal."""
    write(
        base, "journal/2026-03-04.md", f"# 2026-03-04\n\nMARK[solved] the unit at {PLACE} lost frames: a loose ground\n"
    )
    found = pipeline.nightly(base, Repo(base.root), Config([]))
    wish = Wish(labels=("C1",), unjudged=True)
    approve(base, Repo(base.root), load(base.root), found.unit, wish, views.for_base)
    return base


def card(base: Base) -> str:
    return (base.know / "K-00001.md").read_text(encoding="utf-8")


def findings(base: Base) -> list[tuple[str, str]]:
    report = lint(base, load(base.root), Repo(base.root))
    return [(f.code, f.path) for f in report.findings if f.severity == "error"]


def test_the_words_go_and_the_proof_holds(carded: Base, git: Git) -> None:
    old = card_sha256((carded.know / "K-00001.md").read_bytes())
    done = take_out(carded, PLACE)
    text = card(carded)
    assert PLACE not in text and text.count("[redacted]") == 3  # title, source, body
    (transition,) = done.transitions
    assert (transition.field, transition.old) == ("card_sha256", old)
    assert transition.new == card_sha256((carded.know / "K-00001.md").read_bytes())
    assert findings(carded) == []
    assert changed(carded, {"K-00001": "memory/know/K-00001.md"}) == frozenset()
    assert PLACE not in (carded.root / "MEMORY.md").read_text(encoding="utf-8")
    assert git(carded, "status", "--porcelain") == ""
    assert PLACE not in git(carded, "log", "-1", "--format=%B")


def test_where_else_they_stand_is_named_with_lines_and_left_alone(carded: Base) -> None:
    done = take_out(carded, PLACE)
    held = {trace.path.rpartition("/")[2]: trace.lines for trace in done.elsewhere}
    assert held["2026-03-04.md"] == (3,)
    assert set(held) == {"2026-03-04.md", "C1.md", "REPORT.md"}
    assert done.changed == ()
    assert PLACE in carded.path("journal/2026-03-04.md").read_text(encoding="utf-8")


def test_everywhere_is_one_commit_and_decides_nothing_anew(carded: Base, git: Git) -> None:
    (unit,) = carded.inbox.iterdir()
    before = candidate_sha256((unit / "C1.md").read_bytes())
    done = take_out(carded, PLACE, everywhere=True)
    tracked = git(carded, "ls-files").split("\n")
    assert [path for path in tracked if PLACE.encode() in carded.path(path).read_bytes()] == []
    candidate = next(t for t in done.transitions if t.field == "candidate_sha256")
    assert (candidate.id, candidate.old) == ("K-00001", before)
    assert candidate.new == candidate_sha256((unit / "C1.md").read_bytes())
    assert git(carded, "status", "--porcelain") == "" and findings(carded) == []
    assert pipeline.nightly(carded, Repo(carded.root), Config([])).decided == 0  # the MARK is decided under its new id


def test_everywhere_can_follow_later(carded: Base) -> None:
    take_out(carded, PLACE)
    done = take_out(carded, PLACE, everywhere=True)
    assert done.cards == () and len(done.changed) == 3
    with pytest.raises(Refused, match="does not hold"):
        take_out(carded, PLACE, everywhere=True)


def test_other_cards_get_their_own_transition(base: Base, add_card: Make, commit: Git) -> None:
    add_card(base, "K-00001", body=f"Seen at {PLACE}.\n")
    add_card(base, "K-00002", title=f"It's at '{PLACE}'", body="Words.\n")
    add_card(base, "K-00003")
    commit(base)
    done = take_out(base, PLACE, everywhere=True)
    assert [t.id for t in done.transitions] == ["K-00001", "K-00002"]
    assert done.cards == ("memory/know/K-00001.md", "memory/know/K-00002.md")


def test_a_line_is_taken_out_behind_its_label(base: Base, add_card: Make, commit: Git) -> None:
    path = add_card(base, body=BODY, type="problem-solution")
    commit(base)
    line = path.read_text(encoding="utf-8").split("\n").index("FIX: a new ground") + 1
    take_out(base, lines=(line,))
    assert "\nFIX: [redacted]\n" in card(base) and PLACE in card(base)
    title = next(i for i, row in enumerate(card(base).split("\n"), 1) if row.startswith("title:"))
    take_out(base, lines=(title,))
    assert 'title: "[redacted]"' in card(base)
    with pytest.raises(Refused, match="nothing that can be taken out"):
        take_out(base, lines=(title,))


@pytest.mark.parametrize("number", [2, 3])
def test_what_a_card_is_by_stays(base: Base, add_card: Make, commit: Git, number: int) -> None:
    add_card(base, body=BODY)
    commit(base)
    with pytest.raises(Refused, match="nothing that can be taken out"):
        take_out(base, lines=(number,))
    before = card(base)
    with pytest.raises(Refused):
        take_out(base, "observed")
    assert card(base) == before


def test_words_over_several_lines(base: Base, add_card: Make, commit: Git) -> None:
    add_card(base, body="Before\nfirst secret\nsecond secret\nafter\n")
    commit(base)
    take_out(base, "first secret\nsecond secret")
    assert card(base).endswith("Before\n[redacted]\nafter\n")


def test_a_key_that_is_not_the_only_one_is_told(base: Base, add_card: Make, commit: Git) -> None:
    first, second = "AKIA" + "Q3EGRTY7XPLM2WVN", "AKIA" + "Q3EGRTY7XPLM2WVA"
    add_card(base, body=f"keys {first} and\n{second}\n")
    commit(base)
    done = take_out(base, first)
    assert [finding.code for finding in done.still] == ["KH013"]


@pytest.mark.parametrize(
    ("words", "how", "error"),
    [
        ((), {}, Usage),
        (("a",), {}, Usage),
        ((PLACE,), {"why": ""}, Usage),
        ((PLACE,), {"why": f"{PLACE} is private"}, Usage),
        (("never written",), {}, Refused),
        ((PLACE,), {"card": "K-00099"}, Refused),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    base: Base,
    add_card: Make,
    commit: Git,
    git: Git,
    words: tuple[str, ...],
    how: dict[str, Any],
    error: type[Exception],
) -> None:
    add_card(base, body=BODY)
    head = commit(base)
    with pytest.raises(error):
        take_out(base, *words, **how)
    assert git(base, "rev-parse", "HEAD") == head and git(base, "status", "--porcelain") == ""


def test_it_must_still_be_sound(base: Base, add_card: Make, commit: Git) -> None:
    add_card(base, "K-00002", status="superseded")
    body = "SUPERSEDES K-00002 BECAUSE: measured again\nWords.\n"
    add_card(base, "K-00001", body=body, links={"supersedes": "K-00002"})
    commit(base)
    with pytest.raises(Refused, match="not be sound"):
        take_out(base, "SUPERSEDES K-00002")


def test_records_and_settings_are_named_and_stay(base: Base, add_card: Make, write: Make, commit: Git) -> None:
    add_card(base, body=BODY)
    write(base, "khms.toml", f"# {PLACE}\n")
    write(base, "picture.bin", b"\0" + PLACE.encode())
    commit(base)
    write(base, "notes.md", f"{PLACE}\n")
    done = take_out(base, PLACE, everywhere=True)
    kept = {trace.path: trace.kept for trace in done.elsewhere}
    assert "trust" in kept["khms.toml"] and "no text" in kept["picture.bin"] and "not committed" in kept["notes.md"]
    assert done.changed == ()


def test_a_refused_claim_loses_the_words_too(carded: Base, write: Make, commit: Git) -> None:
    from khms.pipeline.withhold import withhold

    write(carded, "journal/2026-03-05.md", f"MARK[note] the door of {PLACE} was left open by nobody\n")
    found = pipeline.nightly(carded, Repo(carded.root), Config([]))
    withhold(carded, Repo(carded.root), Config([]), found.unit, ["C1"], "rejected", "not knowledge")
    take_out(carded, PLACE, everywhere=True)
    said = [json.loads(row) for path in carded.receipts.glob("*.jsonl") for row in path.read_text("utf-8").splitlines()]
    claims = [line["claim"] for line in said if line.get("claim")]
    assert claims == ["the door of [redacted] was left open by nobody"]


def test_the_command_takes_words_from_a_pipe_and_tells_what_to_do(carded: Base, run_khms: Callable[..., Any]) -> None:
    done = run_khms("redact", "K-00001", "--why", "an address", input=f"{PLACE}\n")
    assert done.returncode == 0, done.stderr
    for words in ("memory/know/K-00001.md: redacted", "journal/2026-03-04.md:3", "--everywhere", "git filter-repo"):
        assert words in done.stdout
    assert PLACE not in done.stdout
    again = run_khms("redact", "K-00001", "--match", PLACE, "--everywhere", "--why", "an address", "--json")
    said = json.loads(again.stdout)
    assert said["schema"] == "khms.redact/1" and all(place["changed"] for place in said["elsewhere"])
    assert run_khms("redact", "K-00001", "--why", "x").returncode == 2
    assert run_khms("lint").returncode == 0


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("FIX:", BODY),  # a label alone: nothing to take out
        ("SYMPTOM", BODY),
        ("FIX: a new ground", BODY.replace("a new ground", "[redacted]")),
        (
            "a new ground\nVERIFIED: seen",
            BODY.replace("a new ground\nVERIFIED: seen", "[redacted]\nVERIFIED: [redacted]"),
        ),
        ("IX: a new ground", BODY),
    ],
)
def test_the_labels_of_a_text_stay(base: Base, add_card: Make, commit: Git, words: str, body: str) -> None:
    add_card(base, body=BODY, type="problem-solution")
    commit(base)
    if body == BODY:
        with pytest.raises(Refused, match=r"does not hold these words|middle of a label"):
            take_out(base, words)
    else:
        take_out(base, words)
    assert card(base).endswith(f"---\n{body}")
    assert "KA002" not in {code for code, _ in findings(base)}
