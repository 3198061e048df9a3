"""What recall must get right, measured: identifiers first, a corrected card never alone, adopted notes found."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from khms.index import sync
from khms.recall.search import recall
from khms.store.layout import Base

Note = Callable[[str], None]


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def test_identifiers_of_technical_cards_come_first(
    base: Base, add_card: Callable[..., Path], commit: Callable[..., str], shared: Callable[[str], Path], told: Note
) -> None:
    folder = shared("bench/tech-dev")
    ids = {}
    for number, document in enumerate(lines(folder / "docs.jsonl"), 1):
        title, _, body = document["text"].removeprefix("# ").partition("\n")
        ids[document["id"]] = f"K-{number:05d}"
        add_card(base, ids[document["id"]], title=title, body=body)
    commit(base)
    sync.refresh(base)
    queries = [query for query in lines(folder / "queries.jsonl") if query["kind"] == "identifier"]
    total = 0.0
    for query in queries:
        found = [hit.id for hit in recall(base, query["query"], limit=10)]
        ranks = [found.index(ids[gold]) + 1 for gold in query["gold"] if ids[gold] in found]
        total += 1 / min(ranks) if ranks else 0
    told(f"technical identifiers: MRR@10 {total / len(queries):.3f} over {len(queries)} queries")
    assert total == len(queries)


def test_a_superseded_card_is_never_shown_alone(
    base: Base, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    add_card(base, "K-00001", status="superseded", title="poll the gauge every second", body="RULE: once a second\n")
    body = "SUPERSEDES K-00001 BECAUSE: frames were lost\nRULE: wait longer\n"
    add_card(base, "K-00002", title="the interval is thirty", body=body, links={"supersedes": "K-00001"})
    commit(base)
    sync.refresh(base)
    for fog in (False, True):
        found = [hit.id for hit in recall(base, "poll the gauge every second", include_fog=fog)]
        assert found[:1] == ["K-00002"]


def test_notes_of_another_tool_are_found_and_stay_as_they_are(
    tmp_path: Path, shared: Callable[[str], Path], run_khms: Callable[..., object], told: Note
) -> None:
    folder = Path(shutil.copytree(shared("real/notes"), tmp_path / "notes"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    before = {path.name: path.read_bytes() for path in folder.glob("*.md")}
    done = run_khms("init", ".", "--adopt", cwd=folder)
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    report = json.loads(run_khms("index", "--json", cwd=folder).stdout)  # type: ignore[attr-defined]
    assert {path.name: path.read_bytes() for path in folder.glob("*.md") if path.name in before} == before
    base = Base(folder.resolve())
    asked = found = 0
    for name, data in before.items():
        description = next((row for row in data.decode().splitlines() if row.startswith("description:")), "")
        query = description.partition(":")[2].strip().strip("\"'")
        if query:
            asked += 1
            found += name.removesuffix(".md") in [hit.id for hit in recall(base, query, limit=5)]
    told(f"adopted notes: {report['docs']} documents; {found} of {asked} descriptions in the first 5")
    assert asked > 150 and found >= 0.95 * asked
