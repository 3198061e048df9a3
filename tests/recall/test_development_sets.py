"""What both channels together find on the development sets, held as floors, and what they must not find.

The sets are chat turns of which each is a document, short engineering cards asked for by an identifier or by a
paraphrase that shares no word with them, and notes asked for by their own descriptions.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from khms import resources
from khms.config import Config
from khms.index import embedding
from khms.index.lexical import Reader
from khms.index.meaning import Meaning
from khms.index.vector import Feed, Vectors, begun
from khms.index.writer import writing
from khms.model.document import Document, Query
from khms.recall import rank
from khms.recall.fuse import fuse

UNRELATED = Path(__file__).with_name("unrelated.txt")
EVERYDAY = 100  # of them; the others are about software of which nothing is on record
FLOOR = Config([])["recall.floor"]


@dataclass(frozen=True)
class Asked:
    """A question, the ids of the documents that answer it, and the first ten that were found."""

    kind: str
    gold: frozenset[str]
    found: tuple[str, ...]

    def recall(self, first: int) -> float:
        return len(self.gold.intersection(self.found[:first])) / len(self.gold)

    @property
    def reciprocal(self) -> float:
        return max((1 / (self.found.index(gold) + 1) for gold in self.gold if gold in self.found), default=0.0)


class Library:
    """An index of documents given as (id, title, body), with their vectors."""

    def __init__(self, folder: Path, documents: list[tuple[str, str, str]]) -> None:
        folder.mkdir()
        model = embedding.load(resources.folder("embedding") / embedding.SHIPPED, "m")
        feed = Feed(folder, begun("1", model), model)
        made = [Document(name, "note", name, 1, title, body) for name, title, body in documents]
        with writing(folder, "english", heap=60_000_000) as writer:
            writer.add(tuple(made))
        for slot, document in enumerate(made):
            feed.add(slot, document)
        self._reader = Reader(folder, "english")
        self._meaning = Meaning(self._reader, Vectors(folder, feed.finish()), model)

    def ask(self, question: str) -> tuple[str, ...]:
        query = Query(question)
        found = self._reader.search(query, depth=50)
        slots = [hit.slot for hit in found.hits]
        feeling = self._meaning.ask(query, slots, depth=50)
        others = self._meaning.documents({one.slot for one in feeling.felt}.difference(slots))
        hits = rank.on_record(fuse(found, feeling, others), FLOOR)
        return tuple(hit.document.id for hit in hits[:10])


def lines(path: Path) -> Iterator[dict[str, str]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def unrelated(first: int, last: int) -> list[str]:
    rows = UNRELATED.read_text(encoding="utf-8").splitlines()
    return [row for row in rows if row and not row.startswith("#")][first:last]


def mean(values: list[float]) -> float:
    return 100 * sum(values) / len(values)


def silent(library: Library, questions: list[str]) -> float:
    return mean([not library.ask(question) for question in questions])


@pytest.mark.parametrize("titled", [False, True])
def test_chat_turns(tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None], titled: bool) -> None:
    asked = []
    for path in sorted(shared("bench/locomo-dev").glob("*.docs.jsonl")):
        documents = []
        for turn in lines(path):
            speaker, _, said = turn["text"].partition(": ")
            documents.append(
                (turn["id"], f"{speaker}, {turn['date']}", said) if titled else (turn["id"], "", turn["text"])
            )
        library = Library(tmp_path / path.stem, documents)
        for question in lines(path.with_name(path.name.replace(".docs.", ".queries."))):
            if question["gold"] and str(question["category"]) != "5":
                asked.append(Asked("", frozenset(question["gold"]), library.ask(question["query"])))
    five, ten = (mean([one.recall(first) for one in asked]) for first in (5, 10))
    answered = mean([bool(one.found) for one in asked])
    told(f"chat turns{', titled' if titled else ''}: recall@5 {five:.1f}, @10 {ten:.1f}, answered {answered:.1f} %")
    assert five >= 59 and ten >= 68 and answered >= 95


def test_engineering_cards(tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None]) -> None:
    folder = shared("bench/tech-dev")
    cards = []
    for card in lines(folder / "docs.jsonl"):
        title, _, body = card["text"].removeprefix("# ").partition("\n")
        cards.append((card["id"], title, body))
    library = Library(tmp_path / "cards", cards)
    asked = [
        Asked(question["kind"], frozenset(question["gold"]), library.ask(question["query"]))
        for question in lines(folder / "queries.jsonl")
    ]
    identifiers, paraphrases = (
        mean([one.reciprocal for one in asked if one.kind == kind]) for kind in ("identifier", "paraphrase")
    )
    everyday, software = silent(library, unrelated(0, EVERYDAY)), silent(library, unrelated(EVERYDAY, 200))
    told(
        f"engineering cards, MRR@10: identifiers {identifiers:.1f}, paraphrases {paraphrases:.1f}; "
        f"silent to everyday questions {everyday:.0f} %, to those about other software {software:.0f} %"
    )
    assert identifiers == 100 and paraphrases >= 42
    assert everyday >= 90 and software >= 60


def test_notes_by_their_descriptions(
    tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None]
) -> None:
    documents, questions = [], []
    for path in sorted(shared("real/notes").rglob("*.md")):
        text = path.read_text(encoding="utf-8", errors="replace")
        front, _, rest = text[3:].partition("\n---") if text.startswith("---") else ("", "", text)
        about = [row.partition(":")[2].strip().strip("\"'") for row in front.splitlines() if "description:" in row[:12]]
        title = next((row.strip("# ") for row in rest.splitlines() if row.startswith("#")), path.stem)
        documents.append((path.stem, title, rest))
        questions += [(text, path.stem) for text in about if text]
    library = Library(tmp_path / "notes", documents)
    asked = [Asked("", frozenset([name]), library.ask(text)) for text, name in questions]
    found, everyday = mean([one.reciprocal for one in asked]), silent(library, unrelated(0, EVERYDAY))
    told(f"notes by their descriptions: MRR@10 {found:.1f}; silent to everyday questions {everyday:.0f} %")
    assert found >= 96 and everyday >= 90
