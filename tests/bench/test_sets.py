"""The development sets, read from small ones of the same form."""

import json
from pathlib import Path

import pytest

from bench import sets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def put(name: str, *lines: object) -> None:
        path = tmp_path / "sets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    put("locomo-dev/talk-1.docs.jsonl", {"id": "talk-1/D1:1", "date": "8 May", "text": "Ann: I: keep bees."})
    put(
        "locomo-dev/talk-1.queries.jsonl",
        {"id": "q0", "category": 2, "query": "Who keeps bees?", "gold": ["talk-1/D1:1"]},
        {"id": "q1", "category": 5, "query": "Who keeps cows?", "gold": []},
    )
    put("tech-dev/docs.jsonl", {"id": "c1", "text": "# Pool\nIt ran dry."})
    put("tech-dev/queries.jsonl", {"id": "a", "kind": "identifier", "query": "pool", "gold": ["c1"]})
    notes = tmp_path / "real" / "notes"
    notes.mkdir(parents=True)
    (notes / "one.md").write_text('---\ndescription: "What is one"\n---\n\n# One\n\nText.\n', encoding="utf-8")
    (notes / "bare.md").write_text("No frontmatter.\n", encoding="utf-8")
    return tmp_path / "sets"


def test_every_set_is_a_task(folder: Path) -> None:
    assert [task.kind for task in sets.tasks(folder)] == [sets.CARDS, sets.NOTES, sets.CHAT, sets.TITLED]
    assert list(sets.tasks(folder.parent / "elsewhere" / "none")) == []


def test_a_turn_stands_alone_or_under_its_speaker_and_date(folder: Path) -> None:
    (plain,), (titled,) = (list(sets.chats(folder / "locomo-dev", kind)) for kind in (sets.CHAT, sets.TITLED))
    assert plain.name == "talk-1"
    assert plain.documents[0].text == "Ann: I: keep bees.\n"
    assert (titled.documents[0].title, titled.documents[0].body) == ("Ann, 8 May", "\nI: keep bees.\n")
    assert (plain.documents[0].title, plain.documents[0].body) == ("", "Ann: I: keep bees.\n")


def test_only_questions_with_an_answer_count(folder: Path) -> None:
    (talk,) = sets.chats(folder / "locomo-dev", sets.CHAT)
    assert [(asked.kind, asked.gold) for asked in talk.questions] == [("2", frozenset(["talk-1/D1:1"]))]


def test_a_note_is_asked_for_by_what_is_taken_out_of_it(folder: Path) -> None:
    (task,) = sets.notes(folder / ".." / "real" / "notes")
    assert [(asked.text, asked.gold) for asked in task.questions] == [("What is one", frozenset(["one"]))]
    texts = {document.id: document.text for document in task.documents}
    assert texts == {"one": "# One\n\nText.\n", "bare": "No frontmatter.\n"}


def test_files_have_names_that_every_system_takes(folder: Path) -> None:
    (talk,) = sets.chats(folder / "locomo-dev", sets.CHAT)
    assert talk.documents[0].file == "talk-1_D1-1.md"


def test_unrelated_questions_have_no_answer(folder: Path) -> None:
    (task,) = sets.cards(folder / "tech-dev")
    rows = "# said\n" + "\n".join(f"question {number}" for number in range(sets.ABOUT_LIFE + 1))
    strange = sets.unrelated(task, rows)
    assert strange.documents == task.documents
    assert [asked.kind for asked in strange.questions][-2:] == [sets.EVERYDAY, sets.SOFTWARE]
    assert not any(asked.gold for asked in strange.questions)
