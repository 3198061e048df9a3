"""Asking the lexical index.

A question is never given to a query parser: it is cut into the same terms as the documents and built as an object, so
quotes, colons, operators and stack traces are only text. Two passes answer it. The first finds the best by BM25; the
second, over those few, adds up how much of the question's rarity each covers and which exact matches it holds.
"""

from __future__ import annotations

from functools import cached_property
from math import log

from khms.errors import Unavailable
from khms.index import fields
from khms.index.text import Terms, content_words, fold, is_identifier, terms
from khms.model.document import UNREVIEWED, Document, Query
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Any, TypeVar

    T = TypeVar("T")

# Measured on the development sets (chat turns, engineering cards, 200 notes), recall@5 and @10 of the turns: one field
# 53.2/61.0; with the unstemmed word at half weight 54.4/61.6; ordered by BM25 times the root of what is covered
# 55.5/62.8. Titles at 1.5 with tie 0.3: turns titled by speaker and date 59.0/66.3, notes MRR 98; identifiers stay 100.
TITLE_BOOST = 1.5
TIE = 0.3
WORD_BOOST = 0.5
COVERAGE_POWER = 0.5
# What a score is a share of: the question's rarity, but at least that of so many of the rarest terms. A few everyday
# words prove nothing where long notes hold them all, and the more documents there are, the more a chance match must be
# outweighed: the rarest term's weight grows just so, with the logarithm of the base. Pointers at a threshold of 0.5 for
# 60 prompts about engineering cards and 80 about other work (written for this, and the 3 chosen on them), in bases of
# 6, 60, 260, 3,000 and 10,060 documents: 95-100 % of the right ones shown, 89-100 % of what is shown right, 91-100 % of
# the other prompts silent; without the floor, at 60 and 260, 95-98, 64-90 and 60-93 %. Not used for the choice: 197
# descriptions of notes against 140 other prompts: 94, 92, 94 %; without 94, 79, 71 %.
LEAST_TERMS = 3
PRIOR = (
    20  # documents that a base is counted larger by, so that in a tiny one a word in every card still tells something
)
MOST_TERMS = 64  # the rarest of a longer question
LONGEST_PHRASE = 64  # words of a question that is looked for as it stands
LAST_DAY = 99991231
KEPT = 10_000  # documents that an open reader remembers, some 6 MB
_LIFT = 4096.0  # puts exact matches into the first pass's best, whatever BM25 says
# Exact matches: the question names the id, stands there word for word, names a rare identifier.
BY_ID, BY_WORDS, BY_NAME = 4, 2, 1


@dataclass(frozen=True, slots=True)
class Scored:
    """A document that was found. `coverage` is 0-1, `exact` adds up how the question names it: BY_ID, BY_WORDS,
    BY_NAME. `strength` orders hits of equal exactness. `slot` is the number that its vectors are found by."""

    document: Document
    coverage: float
    strength: float
    exact: int
    slot: int = -1


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first, and what the question's stems weigh, for choosing a line to show. `reach` is the coverage of a
    document that holds every term of the question; a short question reaches less than 1. `asked` is the rarity that
    coverage is a share of, 0 where no term was asked for. `in_title` tells the share of it, 0-1, that a title covers:
    a function, for only of the hits that are shown it is asked."""

    hits: tuple[Scored, ...]
    weights: dict[str, float]
    reach: float = 1.0
    asked: float = 0.0
    in_title: Callable[[str], float] = lambda _: 0.0


class Damaged(Exception):
    """The index cannot be read; it has to be built again."""


class Reader:
    """An index as it was at the moment of opening. Raises Damaged where Tantivy cannot read it, then or later: a part
    of it is first looked at when a question needs it."""

    def __init__(self, folder: Path, language: str) -> None:
        self.language = language
        self._index = _open(folder)
        self.schema = _sound(lambda: self._index.schema)
        self._searcher = _sound(self._index.searcher)
        self._known: dict[tuple[int, int], Document] = {}  # those that were read, for a reader that is kept open

    @property
    def documents(self) -> int:
        return int(_sound(lambda: self._searcher.num_docs))

    def search(self, query: Query, *, depth: int, hidden: tuple[str, ...] = ()) -> Found:
        """The `depth` best documents that stand on no `hidden` shelf; nothing where no term of the question occurs. A
        question of filters alone answers with the newest that fit, each covering it wholly."""
        question = _Question(self, query)
        if question.blank and query.filters:
            return self._filtered(query, depth, hidden)
        if not question.known and not question.names_id:
            return Found((), {})
        from tantivy import Occur
        from tantivy import Query as Q

        clauses = self._limits(query, hidden)
        clauses += [(Occur.Should, q) for q in question.ranking()]
        exact = question.exact()
        clauses += [(Occur.Should, Q.const_score_query(q, _LIFT * bit)) for bit, q in exact]
        first = self._run(Q.boolean_query(clauses, minimum_number_should_match=1), depth)
        slots = self._slots([address for _, address in first])
        covered = self._covered(question, exact, slots)
        hits = []
        for (score, address), slot in zip(first, slots, strict=True):
            bits, coverage = covered.get(_at(address), (0, 0.0))
            strength = max(0.0, score - _LIFT * bits) * coverage**COVERAGE_POWER
            hits.append(Scored(self._document(address), coverage, strength, bits, slot))
        hits.sort(key=lambda hit: (-hit.exact, -hit.strength, hit.document.path, hit.document.line))
        return Found(tuple(hits), question.stem_weights(), question.reach, question.total, question.in_title)

    def by_id(self, identity: str) -> tuple[Document, ...]:
        """Every document with exactly this id."""
        found = self._all(fields.NAME, fold(identity))
        return tuple(document for document in found if document.id == identity)

    def under(
        self, tags: Iterable[str], sorts: Iterable[tuple[float, Query]], words: Iterable[str], limit: int
    ) -> tuple[tuple[Document, ...], int]:
        """The documents under any of the `tags` that pass the filters of one of the `sorts`, and how many there are:
        the `limit` that score best, and the `limit` newest. A tag counts 1, a word that stands in the title 1, a sort
        what it is given with."""
        from tantivy import Occur
        from tantivy import Query as Q

        def each(wanted: list[tuple[float, Any]]) -> Any:
            return Q.boolean_query([(Occur.Should, Q.const_score_query(one, worth)) for worth, one in wanted])

        passing = [(w, Q.boolean_query([(Occur.Must, c) for c in self._conditions(q)])) for w, q in sorts]
        clauses = [
            (Occur.Must, each([(1.0, self.term("tag", fold(tag))) for tag in tags])),
            (Occur.Must, each(passing)),
        ]
        stems = fields.stems(list(words), self.language)
        clauses += [(Occur.Should, Q.const_score_query(self.term(fields.TITLE, stem), 1.0)) for stem in stems]
        clauses.append((Occur.MustNot, self.term(fields.SHELF, UNREVIEWED)))
        query = Q.boolean_query(clauses)
        best = _sound(lambda: self._searcher.search(query, limit, count=True))
        found = [address for _, address in best.hits]
        if best.count > limit:
            found += [address for _, address in self._run(query, limit, order_by_field=fields.DAY)]
        return tuple({_at(address): self._document(address) for address in found}.values()), int(best.count or 0)

    def referring(self, rel: str, target: str) -> tuple[Document, ...]:
        """The documents whose edge `rel` names `target`."""
        return self._all(fields.REF, fields.reference(rel, target))

    def slots(self, query: Query, hidden: tuple[str, ...]) -> list[int]:
        """The slots of all documents that pass the query's filters and phrases and stand on no `hidden` shelf,
        ascending."""
        if not (query.filters or query.phrases):
            without = {slot for shelf in hidden for slot, _ in self._standing([self.term(fields.SHELF, shelf)])}
            return [slot for slot in self._places if slot not in without] if without else list(self._places)
        return [slot for slot, _ in self._standing(self._conditions(query), hidden)]

    def at_slots(self, slots: Iterable[int]) -> dict[int, Document]:
        """The documents in those `slots` that are taken."""
        places = self._places if slots else {}
        return {slot: self._document(places[slot]) for slot in slots if slot in places}

    def from_slot(self, slot: int) -> dict[int, Document]:
        """The documents in the slots from `slot` on."""
        from tantivy import FieldType
        from tantivy import Query as Q

        query = Q.range_query(self.schema, fields.SLOT, FieldType.Unsigned, slot, None)
        found = self._run(query, max(1, self.documents))
        addresses = [address for _, address in found]
        return dict(zip(self._slots(addresses), map(self._document, addresses), strict=True))

    @cached_property
    def _places(self) -> dict[int, Any]:
        """Where in the index the document of each slot stands, in the order of the slots."""
        from tantivy import Query as Q

        return dict(self._standing([Q.all_query()]))

    def _standing(self, conditions: list[Any], hidden: tuple[str, ...] = ()) -> list[tuple[int, Any]]:
        """(slot, address) of all documents that fulfil the conditions, ascending."""
        from tantivy import Occur
        from tantivy import Query as Q

        clauses = [(Occur.Must, Q.const_score_query(condition, 0.0)) for condition in conditions]
        clauses += [(Occur.MustNot, self.term(fields.SHELF, shelf)) for shelf in hidden]
        found = self._run(Q.boolean_query(clauses), max(1, self.documents), order_by_field=fields.SLOT)
        return list(reversed(found))

    def _slots(self, addresses: list[Any]) -> list[int]:
        return [int(slot) for slot in _sound(lambda: self._searcher.fast_field_values(fields.SLOT, addresses))]

    def holds(self, path: str) -> bool:
        """Whether a document of this file is in the index; none is of a file whose name is not UTF-8."""
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            return False
        return bool(self._all(fields.PATH, path, 1))

    def everything(self) -> tuple[Document, ...]:
        from tantivy import Query as Q

        found = self._run(Q.all_query(), max(1, self.documents))
        return tuple(self._document(address) for _, address in found)

    def frequency(self, field: str, term: str) -> int:
        return int(_sound(lambda: self._searcher.doc_freq(field, term)))

    def term(self, field: str, value: str) -> Any:
        from tantivy import Query as Q

        return Q.term_query(self.schema, field, value)

    def phrase(self, words: tuple[str, ...]) -> Any:
        """The words side by side. Tantivy panics on a phrase of one word."""
        from tantivy import Query as Q

        if len(words) == 1:
            return self.term(fields.WORDS, words[0])
        return Q.phrase_query(self.schema, fields.WORDS, list(words))

    def _covered(
        self, question: _Question, exact: list[tuple[int, Any]], slots: list[int]
    ) -> dict[tuple[int, int], tuple[int, float]]:
        """By document: its exact matches as bits, and the share of the question's rarity that it covers. One query: the
        share is below 2, each exact match adds a power of two above it."""
        from tantivy import Occur
        from tantivy import Query as Q

        if not slots:
            return {}
        # One by one: as a set, which Tantivy looks up by an automaton, they take twice as long.
        places = [(Occur.Should, Q.term_query(self.schema, fields.SLOT, slot)) for slot in slots]
        query = Q.const_score_query(Q.boolean_query(places), 0.0)
        # Each in a query around the one before: of several side by side Tantivy makes a union first, which looks at
        # nearly all that holds any of them (at 100,000 cards 1.8 ms and not 0.5).
        for one, worth in (*question.shares(), *((q, 2.0 * bit) for bit, q in exact)):
            query = Q.boolean_query([(Occur.Must, query), (Occur.Should, Q.const_score_query(one, worth))])
        found = self._run(query, len(slots))
        read = {_at(address): (int(score / 2), min(1.0, round(score % 2.0, 4))) for score, address in found}
        return {at: (bits, 1.0 if bits & BY_ID else share) for at, (bits, share) in read.items()}

    def _limits(self, query: Query, hidden: tuple[str, ...]) -> list[Any]:
        """What every hit must satisfy, as clauses."""
        from tantivy import Occur
        from tantivy import Query as Q

        wanted = [(Occur.Must, Q.const_score_query(limit, 0.0)) for limit in self._conditions(query)]
        return wanted + [(Occur.MustNot, self.term(fields.SHELF, shelf)) for shelf in hidden]

    def _conditions(self, query: Query) -> list[Any]:
        """Phrases and filters. Values of one filter are alternatives, tags add up."""
        from tantivy import FieldType, Occur
        from tantivy import Query as Q

        limits = [self.phrase(words) for words in (terms(p).words for p in query.phrases) if words]
        by_name: dict[str, list[str]] = {}
        for name, value in query.filters:
            by_name.setdefault(name, []).append(value)
        for name, values in by_name.items():
            if name in ("after", "before"):
                for number in filter(None, (fields.day(value) for value in values)):
                    low, high = (number, LAST_DAY) if name == "after" else (0, number)
                    limits.append(Q.range_query(self.schema, fields.DAY, FieldType.Unsigned, low, high, True, False))
            elif name == "tag":
                limits += [self.term("tag", fold(value)) for value in values]
            else:
                alternatives = [(Occur.Should, self.term(name, fold(value))) for value in values]
                limits.append(Q.boolean_query(alternatives))
        return limits

    def _filtered(self, query: Query, depth: int, hidden: tuple[str, ...]) -> Found:
        from tantivy import Query as Q

        clauses = Q.boolean_query(self._limits(query, hidden))
        found = self._run(clauses, depth, order_by_field=fields.DAY)
        documents = [self._document(address) for _, address in found]
        documents.sort(key=lambda d: (-(fields.day(d.date) or 0), d.path, d.line))
        return Found(tuple(Scored(document, 1.0, 0.0, 0) for document in documents), {})

    def _all(self, field: str, value: str, limit: int = 200) -> tuple[Document, ...]:
        if not self.frequency(field, value):  # a third of the cost of a search, and mostly there is nothing
            return ()
        found = self._run(self.term(field, value), limit)
        return tuple(self._document(address) for _, address in found)

    def _document(self, address: Any) -> Document:
        at = _at(address)
        found = self._known.get(at)
        if found is None:
            found = fields.unpack(_sound(lambda: self._searcher.doc(address)[fields.RECORD][0]))
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[at] = found
        return found

    def _run(self, query: Any, limit: int, **order: Any) -> Any:
        return _sound(lambda: self._searcher.search(query, limit, count=False, **order).hits)


class _Question:
    """A query's terms, as far as the index knows them, and what each weighs."""

    def __init__(self, reader: Reader, query: Query) -> None:
        self.reader = reader
        self.asked: Terms = terms(query.text)
        phrases = [terms(p) for p in query.phrases]
        words = [*self.asked.words, *(w for p in phrases for w in p.words)]
        names = [*self.asked.identifiers, *(w for p in phrases for w in p.identifiers)]
        self.words = content_words(words, fields.stop_words(words, reader.language))
        if not words and not names:
            names = list(self.asked.symbols)
        parts = list(dict.fromkeys(self.asked.parts))
        self.stems = dict.fromkeys(fields.stems([*self.words, *parts], reader.language))
        self.names = dict.fromkeys(names)
        self.whole = fold(query.text.strip())
        asked = [(fields.STEMS, s) for s in self.stems] + [(fields.IDENTIFIERS, n) for n in self.names]
        self.counts = {at: reader.frequency(*at) for at in asked}
        self.weights = {at: _rarity(count, reader.documents) for at, count in self.counts.items()}
        known = sorted((at for at in asked if self.counts[at]), key=lambda at: -self.weights[at])
        self.known = set(known[:MOST_TERMS])
        self.blank = not asked
        asked_for = sum(self.weights.values())
        self.total = max(asked_for, LEAST_TERMS * _rarity(1, reader.documents))
        self.reach = asked_for / self.total
        self.names_id = bool(self.whole) and reader.frequency(fields.NAME, self.whole) > 0

    def ranking(self) -> Iterator[Any]:
        """The clauses that BM25 scores."""
        from tantivy import Query as Q

        term = self.reader.term
        for stem in self.stems:
            if (fields.STEMS, stem) in self.known:
                title = Q.boost_query(term(fields.TITLE, stem), TITLE_BOOST)
                yield Q.disjunction_max_query([title, term(fields.STEMS, stem)], TIE)
        for word in self.words[:MOST_TERMS]:
            yield Q.boost_query(term(fields.WORDS, word), WORD_BOOST)
        for name in self.names:
            if (fields.IDENTIFIERS, name) in self.known:
                yield term(fields.IDENTIFIERS, name)

    def exact(self) -> list[tuple[int, Any]]:
        """The exact matches worth more than any score: (bit, query) for an id, the whole text, a rare identifier."""
        from tantivy import Query as Q

        reader = self.reader
        found: list[tuple[int, Any]] = []
        machine = [name for name in self.names if is_identifier(name)]
        named = [n.removesuffix(suffix) for n in (self.whole, *machine) for suffix in ("", ".md")]
        ids = [n for n in dict.fromkeys(named) if n and reader.frequency(fields.NAME, n)]
        if ids:
            found.append((BY_ID, Q.term_set_query(reader.schema, fields.NAME, ids)))
        sequence = self.asked.words
        if 2 <= len(sequence) <= LONGEST_PHRASE and (len(self.words) > 2 or self.asked.grams):
            found.append((BY_WORDS, reader.phrase(sequence)))
        known = [name for name in machine if self.counts[fields.IDENTIFIERS, name]]
        outer = [name for name in known if not any(name != other and name in other for other in known)]
        few = max(3, reader.documents // 100)
        rare = [name for name in outer if self.counts[fields.IDENTIFIERS, name] <= few]
        if rare:
            found.append((BY_NAME, Q.term_set_query(reader.schema, fields.IDENTIFIERS, rare)))
        return found

    def shares(self) -> list[tuple[Any, float]]:
        """Each known term as a query, with its share of the whole question's rarity."""
        return [(self.reader.term(*at), self.weights[at] / self.total) for at in self.known]

    def stem_weights(self) -> dict[str, float]:
        return {term: weight for (field, term), weight in self.weights.items() if field == fields.STEMS}

    def in_title(self, title: str) -> float:
        """The share of the question's rarity that the words of a title cover."""
        weights, cut = self.stem_weights(), terms(title)
        held = dict.fromkeys(fields.stems([*cut.words, *cut.parts, *cut.grams], self.reader.language))
        return round(min(1.0, sum(weights.get(stem, 0.0) for stem in held) / self.total), 4)


def _rarity(count: int, documents: int) -> float:
    """How much a term tells (BM25's IDF); one that no document holds counts like one that a single document holds."""
    count = max(1, count)
    return log(1 + (max(documents + PRIOR, count) - count + 0.5) / (count + 0.5))


def _at(address: Any) -> tuple[int, int]:
    return address.segment_ord, address.doc


def _sound(step: Callable[[], T]) -> T:
    """What `step` reads of the index. Raises Damaged where bytes that are not as they were written end in an error of
    Tantivy, or in a panic, which Python sees as an exception that is none of Exception's."""
    try:
        return step()
    except (ValueError, OSError, LookupError, TypeError, OverflowError, MemoryError) as error:
        raise Damaged(told(error)) from error
    except BaseException as error:
        if is_panic(error):
            raise Damaged(told(error)) from error
        raise


def is_panic(error: BaseException) -> bool:
    """Whether the engine gave up on itself; the class of that exception has no name that could be imported."""
    return type(error).__name__ == "PanicException"


def told(error: BaseException) -> str:
    """The engine's own words, on one line."""
    return next((line.strip()[:200] for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _open(folder: Path) -> Any:
    try:
        import tantivy
    except ImportError as error:
        raise Unavailable("the search engine is not installed", hint="pip install tantivy") from error
    try:
        return tantivy.Index.open(str(folder))
    except BaseException as error:
        if not isinstance(error, (ValueError, OSError)) and not is_panic(error):
            raise
        if "PermissionDenied" not in str(error) and "ReadOnly" not in str(error):
            raise Damaged(told(error)) from error
    # Tantivy wants to write a lock file even to read. Where that is forbidden a folder of links to the index's files
    # does: they are open once the index is.
    import shutil
    import tempfile
    from pathlib import Path

    links = Path(tempfile.mkdtemp(prefix="khms-index-"))
    try:
        for path in folder.iterdir():
            if path.suffix != ".lock":
                (links / path.name).symlink_to(path.resolve())
        return _sound(lambda: tantivy.Index.open(str(links)))
    except OSError as error:
        raise Damaged(told(error)) from error
    finally:
        shutil.rmtree(links, ignore_errors=True)
