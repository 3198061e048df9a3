"""Recall as commands and hooks ask it: over files, git and an index."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.errors import Unavailable
from khms.index import sync
from khms.recall.search import Answer, recall
from khms.store.layout import Base
from khms.store.lock import hold

Add = Callable[..., Path]
Write = Callable[..., Path]


def ask(base: Base, text: str, **options: object) -> Answer:
    return recall(base, text, refresh=True, **options)  # type: ignore[arg-type]


def ids(answer: Answer) -> list[str]:
    return [hit.id for hit in answer]


@pytest.fixture
def weather(base: Base, add_card: Add, commit: Callable[..., str]) -> Base:
    """Five cards: an active one, a refuted one with its refuter, a superseded one with its successor."""
    add_card(
        base,
        "K-00001",
        type="problem-solution",
        title="Checksum errors came from a loose ground",
        tags=["sensors", "gotcha"],
        body="SYMPTOM: checksum errors on every third frame\nFIX: tighten the ground wire\n",
        links={"supports": ["K-00003"]},
    )
    add_card(
        base,
        "K-00002",
        status="refuted",
        title="Cold makes the vane stick",
        body="the vane sticks below zero\n",
        links={"refuted_by": ["K-00003"]},
    )
    add_card(base, "K-00003", title="Ice on the bearing makes it stick", body="ice on the bearing of the vane\n")
    add_card(
        base, "K-00004", status="superseded", title="Poll once a second", body="RULE: poll the gauge each second\n"
    )
    add_card(
        base,
        "K-00005",
        title="Wait between readings",
        body="SUPERSEDES K-00004 BECAUSE: it lost frames\nRULE: ask it every ten seconds\n",
        links={"supersedes": "K-00004"},
    )
    commit(base)
    return base


def test_a_hit_as_json(weather: Base) -> None:
    answer = ask(weather, "checksum errors on the frame").as_json()
    assert list(answer)[:5] == ["schema", "query", "channel", "note", "elapsed_ms"]
    assert (answer["schema"], answer["channel"]) == ("khms.recall/1", "hybrid")
    assert answer["note"] is None and answer["behind"] is None and answer["elapsed_ms"] > 0
    hit = answer["hits"][0]
    assert {**hit, "score": 0} == {
        "id": "K-00001",
        "kind": "card",
        "type": "problem-solution",
        "title": "Checksum errors came from a loose ground",
        "path": "memory/know/K-00001.md",
        "line": 19,
        "score": 0,
        "lexical_rank": 1,
        "dense_rank": 1,
        "status": "active",
        "flags": ["gotcha"],
        "snippet": "SYMPTOM: checksum errors on every third frame",
        "tags": ["sensors", "gotcha"],
        "date": "2026-03-04",
        "links": [{"rel": "supports", "id": "K-00003", "title": "Ice on the bearing makes it stick"}],
        "correctors": [],
        "note": "",
        "belief": None,
    }
    assert 0.9 <= hit["score"] <= 1.0
    lines = (weather.root / hit["path"]).read_text(encoding="utf-8").splitlines()
    assert lines[hit["line"] - 1] == hit["snippet"]
    json.dumps(answer)


def test_a_refuted_card_is_a_dead_end_with_its_refuter(weather: Base) -> None:
    hit = next(hit for hit in ask(weather, "does the vane stick in the cold") if hit.id == "K-00002")
    assert hit.flags == ("REFUTED",)
    assert [(link.rel, link.id, link.title) for link in hit.correctors] == [
        ("refuted_by", "K-00003", "Ice on the bearing makes it stick")
    ]
    assert hit.links[0] == hit.correctors[0]


def test_what_was_superseded_is_answered_by_its_successor(weather: Base) -> None:
    answer = ask(weather, "poll the gauge each second")
    assert ids(answer)[0] == "K-00005" and "K-00004" not in ids(answer)
    assert answer.hits[0].note == "supersedes K-00004, which matched"
    with_fog = ask(weather, "poll the gauge each second", include_fog=True)
    assert ids(with_fog)[:2] == ["K-00005", "K-00004"]
    old = with_fog.hits[1]
    assert old.flags == ("SUPERSEDED", "fog")
    assert [(link.rel, link.id) for link in old.correctors] == [("supersedes", "K-00005")]
    assert [(link.rel, link.id) for link in old.links] == [("superseded_by", "K-00005")]


def test_an_old_id_brings_its_successor_first(weather: Base) -> None:
    assert ids(ask(weather, "K-00004"))[:2] == ["K-00005", "K-00004"]


def test_a_chain_of_successors_ends_at_the_last(weather: Base, add_card: Add) -> None:
    (weather.know / "K-00005.md").unlink()
    add_card(weather, "K-00005", status="superseded", body="x\n", links={"supersedes": "K-00004"})
    add_card(weather, "K-00006", body="y\n", links={"supersedes": "K-00005"})
    assert ids(ask(weather, "poll the gauge each second")) == ["K-00006"]


def test_a_circle_of_successors_ends(weather: Base, add_card: Add) -> None:
    (weather.know / "K-00005.md").unlink()
    add_card(weather, "K-00005", status="superseded", body="x\n", links={"supersedes": "K-00004"})
    add_card(weather, "K-00004", status="superseded", body="poll the gauge\n", links={"supersedes": "K-00005"})
    assert ids(ask(weather, "poll the gauge")) == []


def test_an_unreviewed_candidate_is_no_successor(weather: Base, write: Write) -> None:
    (weather.know / "K-00005.md").unlink()
    write(weather, "memory/inbox/u/C1.md", "---\nid: C1\ntitle: z\nlinks:\n  supersedes: K-00004\n---\nz\n")
    assert ids(ask(weather, "poll the gauge each second")) == []


def test_contradiction_and_challenge(base: Base, add_card: Add) -> None:
    add_card(base, "K-00001", status="challenged", body="lampdrift is red\n", links={"contradicts": ["K-00002"]})
    add_card(base, "K-00002", body="lampdrift is blue\n", links={"contradicts": ["K-00001"]})
    answer = ask(base, "lampdrift")
    assert ids(answer) == ["K-00002", "K-00001"]
    assert answer.hits[1].flags == ("CHALLENGED",)
    assert [(link.rel, link.id) for link in answer.hits[1].correctors] == [("contradicts", "K-00002")]
    assert answer.hits[1].links == answer.hits[1].correctors


def test_nothing_on_record_says_what_lies_elsewhere(weather: Base, write: Write) -> None:
    write(weather, "memory/inbox/u/C1.md", "---\nid: C1\ntitle: about lampdrift\n---\nlampdrift\n")
    answer = ask(weather, "lampdrift")
    assert answer.hits == () and answer.elsewhere == (("unreviewed", 1),)
    assert answer.as_json()["elsewhere"] == {"unreviewed": 1}
    shown = ask(weather, "lampdrift", unreviewed=True)
    assert ids(shown) == ["u/C1"] and shown.hits[0].flags == ("UNREVIEWED",)
    assert ask(weather, "zzyzx").elsewhere == ()


def test_the_archive_is_named_too(weather: Base, add_card: Add) -> None:
    add_card(weather, "K-00009", status="condensed", body="lampdrift\n")
    answer = ask(weather, "lampdrift")
    assert answer.hits == () and answer.elsewhere == (("fog", 1),)


def test_a_candidate_that_was_approved_is_no_longer_unreviewed(base: Base, add_card: Add, write: Write) -> None:
    write(base, "memory/inbox/u/C1.md", "---\nid: C1\ntitle: t\n---\nlampdrift\n")
    write(base, "memory/inbox/u/C2.md", "---\nid: C2\ntitle: t\n---\nlampdrift\n")
    add_card(base, "K-00001", body="lampdrift\n")
    record = {
        "schema": "khms.approval/1",
        "id": "01KX0000000000000000000000",
        "unit": "memory/inbox/u",
        "reviewer": "Ada <ada@example.org>",
        "at": "2026-03-05T10:00:00+00:00",
        "parent": None,
        "cards": [{"id": "K-00001", "label": "C1", "candidate_sha256": "0" * 64, "card_sha256": "0" * 64, "was": []}],
        "transitions": [],
        "waivers": [],
        "signature": None,
    }
    write(base, "memory/approvals/01KX0000000000000000000000.json", json.dumps(record))
    assert sorted(ids(ask(base, "lampdrift", unreviewed=True))) == ["K-00001", "u/C2"]


def test_filters_and_phrases(weather: Base) -> None:
    assert ids(ask(weather, "tag:gotcha")) == ["K-00001"]
    assert ids(ask(weather, '"ground wire"')) == ["K-00001"]
    assert ids(ask(weather, "vane tag:gotcha")) == []
    assert "K-00003" in ids(ask(weather, "vane tag:gotcha", as_text=True)), "as text it is only words"


def test_the_limit(weather: Base) -> None:
    assert len(ids(ask(weather, "the vane and the gauge", limit=1))) == 1


def test_without_snippets_no_file_is_read(weather: Base) -> None:
    sync.refresh(weather)
    shutil.rmtree(weather.know)
    answer = recall(weather, "checksum", snippets=False)
    assert ids(answer) == ["K-00001"] and answer.hits[0].snippet == ""


def test_no_index_is_an_error_and_not_an_empty_answer(base: Base) -> None:
    with pytest.raises(Unavailable, match="no index yet"):
        recall(base, "x")


def test_an_answer_knows_that_it_may_be_behind(weather: Base, add_card: Add) -> None:
    sync.refresh(weather)
    add_card(weather, "K-00009", body="lampdrift\n")
    answer = recall(weather, "lampdrift")
    assert answer.hits == () and answer.behind


def test_a_busy_index_answers_as_it_is(weather: Base, add_card: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    sync.refresh(weather)
    add_card(weather, "K-00009", body="lampdrift\n")
    with hold(weather.locks / sync.LOCK, "a long rebuild"):
        answer = recall(weather, "checksum", refresh=True)
    assert ids(answer) == ["K-00001"] and "a long rebuild" in answer.failed
    # Which folder is named depends on the clock: one as new as the last look counts as changed too.
    assert "changed since the last look" in answer.behind


def test_a_damaged_index_is_mended_on_the_way(weather: Base) -> None:
    sync.refresh(weather)
    for path in weather.index.rglob("meta.json"):
        path.write_text("{", encoding="utf-8")
    answer = ask(weather, "checksum")
    assert ids(answer) == ["K-00001"] and "meta.json" in answer.rebuilt
    assert ask(weather, "checksum").rebuilt == ""


def test_notes_name_file_and_line(base: Base, write: Write) -> None:
    write(base, "khms.toml", "[index]\nnotes = true\n")
    filler = "nothing of note here\n\n" * 300
    write(base, "plants/soil.md", f"# Soil\n\n{filler}## Acid\n\n{filler}lampdrift grows here\n\n{filler}")
    answer = ask(base, "where does lampdrift grow")
    assert len(answer.hits) == 1
    (hit,) = answer.hits
    assert (hit.id, hit.kind, hit.path, hit.snippet) == (
        "plants/soil",
        "note",
        "plants/soil.md",
        "lampdrift grows here",
    )
    assert (base.root / hit.path).read_text(encoding="utf-8").splitlines()[hit.line - 1] == hit.snippet


HEAVY = (
    *("git", "click", "yaml", "frontmatter", "jsonschema", "rich", "jinja2", "markdown_it", "platformdirs"),
    *("dataclasses", "typing", "inspect", "subprocess", "tempfile", "numpy", "numkong"),
)


def test_a_hook_imports_nothing_heavy(weather: Base) -> None:
    sync.refresh(weather)
    code = f"""
import sys
from pathlib import Path
from khms.config import Config
from khms.recall.search import recall
from khms.store.layout import Base
base = Base(Path({str(weather.root)!r}))
answer = recall(base, "checksum", config=Config([]), as_text=True, snippets=False, by_meaning=False)
assert [hit.id for hit in answer] == ["K-00001"]
print(*(set({HEAVY!r}) & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_shared_base(tmp_path: Path, shared: Callable[[str], Path], git: Callable[..., str]) -> None:
    base = Base(tmp_path / "weather")
    shutil.copytree(shared("real/khms-base"), base.root)
    subprocess.run(["chmod", "-R", "u+w", str(base.root)], check=True)
    git(base, "init", "--quiet")
    git(base, "add", "--all")
    git(base, "commit", "--quiet", "-m", "x")
    for row in (base.root / "golden.jsonl").read_text(encoding="utf-8").splitlines():
        golden = json.loads(row)
        answer = ask(base, golden["query"], limit=golden["k"])
        assert set(golden["gold"]) & set(ids(answer)), golden["id"]
    assert "K-00008" not in ids(ask(base, "poll the outdoor unit once per second"))


def test_the_shared_identifiers(base: Base, shared: Callable[[str], Path], write: Write) -> None:
    rows = [json.loads(row) for row in shared("bench/tech-dev/docs.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        write(base, f"memory/know/{row['id']}.md", row["text"])
    sync.refresh(base)
    for row in shared("bench/tech-dev/queries.jsonl").read_text(encoding="utf-8").splitlines():
        query = json.loads(row)
        if query["kind"] == "identifier":
            assert ids(recall(base, query["query"]))[:1] == query["gold"], query["query"]


def test_quotes_in_a_pasted_trace_keep_nothing_from_being_found(weather: Base) -> None:
    trace = '  File "/srv/app/port.py", line 12, in read\nERROR: checksum errors on every third frame'
    assert ids(ask(weather, trace))[0] == "K-00001"
    assert ids(ask(weather, 'open "/srv/app/port.py" failed: checksum errors on every third frame'))[0] == "K-00001"
    assert ids(ask(weather, '"tighten the ground" checksum')) == ["K-00001"]
    assert ids(ask(weather, '"third checksum"')) == [] and ids(ask(weather, '"third checksum" type:fact')) == []
