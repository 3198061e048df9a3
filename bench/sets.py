"""The development sets as tasks: documents, and questions with the ids of the documents that answer them.

A folder given as `make bench BENCH=…` holds, each optional:

    locomo-dev/<name>.docs.jsonl, <name>.queries.jsonl   conversations, one turn a document; each a task of its own
    tech-dev/docs.jsonl, queries.jsonl                   short engineering cards
    ../real/notes/*.md                                   notes whose own `description` asks for them

Lines are JSON: documents {id, text, …}, questions {id, query, gold, category or kind}.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADVERSARIAL = "5"  # the category of questions that the conversation does not answer, though a turn comes near
CHAT, TITLED, CARDS, NOTES = "chat", "chat-titled", "cards", "notes"
EVERYDAY, SOFTWARE = "everyday", "software"  # kinds of unrelated questions
ABOUT_LIFE = 100  # unrelated questions before those about software


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    text: str  # Markdown

    @property
    def title(self) -> str:
        """Its heading, where it begins with one."""
        return self.text.removeprefix("# ").partition("\n")[0] if self.text.startswith("# ") else ""

    @property
    def body(self) -> str:
        return self.text.partition("\n")[2] if self.title else self.text

    @property
    def file(self) -> str:
        """A name for its file that every system takes and from which the id can be told."""
        return self.id.replace("/", "_").replace(":", "-") + ".md"


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    kind: str
    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Task:
    """Questions to one base of documents. Tasks of the same `kind` are scored together."""

    kind: str
    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


def tasks(folder: Path) -> Iterator[Task]:
    """Every task that the folder holds, the small ones first."""
    yield from cards(folder / "tech-dev")
    yield from notes(folder / ".." / "real" / "notes")
    for kind in (CHAT, TITLED):
        yield from chats(folder / "locomo-dev", kind)


def chats(folder: Path, kind: str) -> Iterator[Task]:
    """Conversations, whose documents have their speaker and date as a heading, or none."""
    for path in sorted(folder.glob("*.docs.jsonl")):
        documents = []
        for turn in _lines(path):
            speaker, _, said = turn["text"].partition(": ")
            text = f"# {speaker}, {turn['date']}\n\n{said}" if kind == TITLED else turn["text"]
            documents.append(Document(turn["id"], f"{text}\n"))
        questions = _questions(path.with_name(path.name.replace(".docs.", ".queries.")), "category")
        yield Task(kind, path.name.partition(".")[0], tuple(documents), questions)


def cards(folder: Path) -> Iterator[Task]:
    if (folder / "docs.jsonl").is_file():
        documents = tuple(Document(card["id"], f"{card['text']}\n") for card in _lines(folder / "docs.jsonl"))
        yield Task(CARDS, "cards", documents, _questions(folder / "queries.jsonl", "kind"))


def notes(folder: Path) -> Iterator[Task]:
    """Notes without their frontmatter, each asked for by the `description` in it."""
    documents, questions = [], []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8", errors="replace")
        front, _, rest = text[3:].partition("\n---") if text.startswith("---") else ("", "", text)
        documents.append(Document(path.stem, rest.lstrip("\n")))
        about = (row.partition(":")[2].strip().strip("\"'") for row in front.splitlines() if row.startswith("desc"))
        questions += [Question(path.stem, "", text, frozenset([path.stem])) for text in about if text]
    if documents:
        yield Task(NOTES, "notes", tuple(documents), tuple(questions))


def unrelated(task: Task, rows: str) -> Task:
    """The same documents, asked what they do not answer: the lines of a text with comments, of which the first are
    about everyday life and other trades, the rest about software of which nothing is on record."""
    asked = [row for row in rows.splitlines() if row and not row.startswith("#")]
    questions = (
        Question(str(number), EVERYDAY if number < ABOUT_LIFE else SOFTWARE, text, frozenset())
        for number, text in enumerate(asked)
    )
    return Task(f"{task.kind}-unrelated", task.name, task.documents, tuple(questions))


def _questions(path: Path, kind: str) -> tuple[Question, ...]:
    """Those that have an answer: a few of the adversarial ones name no turn."""
    return tuple(
        Question(asked["id"], str(asked[kind]), asked["query"], frozenset(asked["gold"]))
        for asked in _lines(path)
        if asked["gold"]
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
