"""What both channels together find on the development sets, held as floors, and what they must not find.

The sets are chat turns of which each is a document, short engineering cards asked for by an identifier or by a
paraphrase that shares no word with them, and notes asked for by their own descriptions.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from bench import score, sets
from bench.score import Asked
from bench.sets import Task
from khms import resources
from khms.config import Config
from khms.errors import Unavailable
from khms.index import embedding, models
from khms.index.embedding import Model
from khms.index.lexical import Reader
from khms.index.meaning import Meaning
from khms.index.vector import Feed, Vectors, begun
from khms.index.writer import writing
from khms.model.document import Document, Query
from khms.recall import diversity, rank
from khms.recall.fuse import fuse
from khms.store.layout import Base

UNRELATED = Path(__file__).with_name("unrelated.txt")
EVERYDAY = 100  # of them; the others are about software of which nothing is on record
DEFAULTS = Config([])
FLOOR = DEFAULTS["recall.floor"]


@pytest.fixture
def minilm(base: Base) -> Model:
    """The whole sentence model of `khms[quality]`."""
    try:
        return models.load(models.chosen(base, {"recall.model": "minilm"}))
    except Unavailable as error:
        pytest.skip(f"needs the packages of khms[quality]: {error.message}")


class Library:
    """An index of documents, with their vectors."""

    def __init__(self, folder: Path, documents: Iterable[sets.Document], model: Model | None = None) -> None:
        folder.mkdir()
        model = model or embedding.load(resources.folder("embedding") / embedding.SHIPPED, "m")
        feed = Feed(folder, begun("1", model), model)
        made = [Document(one.id, "note", one.id, 1, one.title, one.body) for one in documents]
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
        alike = diversity.by_vectors(self._meaning.directions([hit.slot for hit in diversity.pool(hits, 10)]))
        hits = diversity.spread(
            hits, alike, most=10, share=DEFAULTS["recall.diversity"], least=DEFAULTS["recall.alike"]
        )
        return tuple(hit.document.id for hit in hits[:10])


def unrelated(first: int, last: int) -> list[str]:
    rows = UNRELATED.read_text(encoding="utf-8").splitlines()
    return [row for row in rows if row and not row.startswith("#")][first:last]


def silent(library: Library, questions: list[str]) -> float:
    return score.mean(not library.ask(question) for question in questions)


def asked(library: Library, task: Task) -> list[Asked]:
    return [Asked(question.kind, question.gold, library.ask(question.text)) for question in task.questions]


@pytest.mark.parametrize("kind", [sets.CHAT, sets.TITLED])
def test_chat_turns(tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None], kind: str) -> None:
    found = [
        one
        for task in sets.chats(shared("bench/locomo-dev"), kind)
        for one in asked(Library(tmp_path / task.name, task.documents), task)
        if one.kind != sets.ADVERSARIAL
    ]
    five, ten, answered = score.recall(found, 5), score.recall(found, 10), score.answered(found)
    told(f"{kind}: recall@5 {five:.1f}, @10 {ten:.1f}, answered {answered:.1f} %")
    assert five >= 59 and ten >= 68 and answered >= 95


def test_a_conversation_by_the_whole_model(
    tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None], minilm: Model
) -> None:
    """One of those that its figures were not chosen on; by the shipped model it is 58 / 69."""
    task = next(task for task in sets.chats(shared("bench/locomo-dev"), sets.CHAT) if task.name == "conv-49")
    found = [one for one in asked(Library(tmp_path / "one", task.documents, minilm), task) if one.kind in "1234"]
    five, ten, answered = score.recall(found, 5), score.recall(found, 10), score.answered(found)
    told(f"{task.name} by minilm: recall@5 {five:.1f}, @10 {ten:.1f}, answered {answered:.1f} %")
    assert five >= 55 and ten >= 63 and answered >= 95


def test_engineering_cards(tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None]) -> None:
    (task,) = sets.cards(shared("bench/tech-dev"))
    identifiers, paraphrases, everyday, software = cards(Library(tmp_path / "cards", task.documents), task, told, "")
    assert identifiers == 100 and paraphrases >= 42
    assert everyday >= 90 and software >= 60


def test_engineering_cards_by_the_whole_model(
    tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None], minilm: Model
) -> None:
    (task,) = sets.cards(shared("bench/tech-dev"))
    library = Library(tmp_path / "cards", task.documents, minilm)
    identifiers, paraphrases, everyday, software = cards(library, task, told, " by minilm")
    assert identifiers == 100 and paraphrases >= 75
    assert everyday >= 95 and software >= 90


def cards(library: Library, task: Task, told: Callable[[str], None], model: str) -> tuple[float, float, float, float]:
    found = asked(library, task)
    identifiers, paraphrases = (
        score.reciprocal(score.of_kinds(found, [kind])) for kind in ("identifier", "paraphrase")
    )
    everyday, software = silent(library, unrelated(0, EVERYDAY)), silent(library, unrelated(EVERYDAY, 200))
    told(
        f"engineering cards{model}, MRR@10: identifiers {identifiers:.1f}, paraphrases {paraphrases:.1f}; "
        f"silent to everyday questions {everyday:.0f} %, to those about other software {software:.0f} %"
    )
    return identifiers, paraphrases, everyday, software


def test_notes_by_their_descriptions(
    tmp_path: Path, shared: Callable[[str], Path], told: Callable[[str], None]
) -> None:
    (task,) = sets.notes(shared("real/notes"))
    library = Library(tmp_path / "notes", task.documents)
    found, everyday = score.reciprocal(asked(library, task)), silent(library, unrelated(0, EVERYDAY))
    told(f"notes by their descriptions: MRR@10 {found:.1f}; silent to everyday questions {everyday:.0f} %")
    assert found >= 96 and everyday >= 90
