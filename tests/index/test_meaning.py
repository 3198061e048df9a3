"""Finding by meaning: what shares no word with the question, within its filters, and only what is there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from khms import resources
from khms.index import embedding
from khms.index.arrays import np
from khms.index.lexical import Reader
from khms.index.meaning import Felt, Meaning
from khms.index.vector import Feed, Vectors, begun
from khms.index.writer import writing
from khms.model.document import UNREVIEWED, Document, Query

CARDS = {
    "K-00001": "The engine stalls when it is cold",
    "K-00002": "Invoices are rounded to whole cents",
    "K-00003": "The choir rehearses on Tuesday evenings",
    "K-00004": "Backups of the database run at night",
}
MOTOR = "a motor that dies on frosty mornings"
Build = Callable[..., tuple[Reader, Meaning]]


@pytest.fixture
def library(tmp_path: Path) -> Build:
    """library(*documents): the index of these and its channels; those named in `gone` are dropped again."""

    def build(*documents: Document, gone: tuple[str, ...] = ()) -> tuple[Reader, Meaning]:
        model = embedding.load(resources.folder("embedding") / embedding.SHIPPED, "m")
        feed = Feed(tmp_path, begun("1", model), model)
        with writing(tmp_path, "english") as writer:
            writer.add(documents)
        for slot, document in enumerate(documents):
            feed.add(slot, document)
        with writing(tmp_path, "english", slot=len(documents)) as writer:
            for path in gone:
                writer.drop(path)
        reader = Reader(tmp_path, "english")
        return reader, Meaning(reader, Vectors(tmp_path, feed.finish()), model)

    return build


def cards(**kinds: str) -> list[Document]:
    return [
        Document(name, kinds.get(name.replace("-", "_"), "card"), f"memory/know/{name}.md", 1, title, tags=("all",))
        for name, title in CARDS.items()
    ]


def names(meaning: Meaning, felt: tuple[Felt, ...]) -> list[str]:
    found = meaning.documents([one.slot for one in felt])
    return [found[one.slot].id for one in felt]


def test_the_nearest_come_first(library: Build) -> None:
    _, meaning = library(*cards())
    feeling = meaning.ask(Query(MOTOR), (), depth=2)
    assert names(meaning, feeling.felt)[0] == "K-00001" and feeling.rows == 4
    assert [one.rank for one in feeling.felt] == [1, 2]
    assert all(0 <= one.well <= one.met <= 1 and one.pieces > 3 for one in feeling.felt)


def test_what_words_found_is_looked_at_too(library: Build) -> None:
    _, meaning = library(*cards())
    feeling = meaning.ask(Query(MOTOR), [1, 0, 99], depth=1)
    assert [(one.slot, one.rank) for one in feeling.felt] == [(0, 1), (1, None)]


def test_filters_phrases_and_shelves_hold(library: Build) -> None:
    _, meaning = library(*cards(K_00001="journal"))
    assert names(meaning, meaning.ask(Query(MOTOR), (), depth=9).felt)[0] == "K-00001"
    hidden = meaning.ask(Query(MOTOR), (), depth=9, hidden=(UNREVIEWED,))
    assert "K-00001" not in names(meaning, hidden.felt) and hidden.rows == 3
    journal = Query(MOTOR, (), (("kind", "journal"),))
    assert names(meaning, meaning.ask(journal, (), depth=9).felt) == ["K-00001"]
    assert meaning.ask(journal, (), depth=9, hidden=(UNREVIEWED,)).felt == ()
    assert names(meaning, meaning.ask(Query("song", ("tuesday evenings",)), (), depth=9).felt) == ["K-00003"]


def test_the_dead_are_neither_found_nor_counted(library: Build) -> None:
    _, meaning = library(*cards(), gone=("memory/know/K-00001.md",))
    feeling = meaning.ask(Query(MOTOR), [0], depth=9)
    assert feeling.rows == 3 and sorted(names(meaning, feeling.felt)) == ["K-00002", "K-00003", "K-00004"]


def test_the_best_part_of_a_long_document_counts(library: Build) -> None:
    filler = "\n".join(f"minutes of meeting {n}: the choir rehearsed two songs" for n in range(60))
    part = "\n".join(f"the engine stalls when it is cold, case {n}" for n in range(40))
    long = Document("K-00009", "card", "memory/know/K-00009.md", 1, "Minutes", f"{filler}\n{part}\n{filler}")
    _, meaning = library(*cards()[1:], long)
    assert names(meaning, meaning.ask(Query("cold engine stalls"), (), depth=1).felt) == ["K-00009"]


@pytest.mark.parametrize("text", ["", "   ", "\u0fd0", "\x00"])
def test_a_question_without_a_known_word(library: Build, text: str) -> None:
    _, meaning = library(*cards())
    assert meaning.ask(Query(text), (), depth=9).felt == ()


def test_an_empty_index(library: Build) -> None:
    _, meaning = library()
    assert meaning.ask(Query(MOTOR), (), depth=9).felt == ()


def test_one_document_and_a_very_long_question(library: Build) -> None:
    _, meaning = library(cards()[0])
    (one,) = meaning.ask(Query(" ".join(f"{MOTOR} {n}" for n in range(900))), (), depth=9).felt
    assert np.isfinite([one.near, one.aside, one.out, one.apart, one.met, one.well]).all()
