"""The fields of the lexical index, and how a document is laid into them.

Every text field receives blank-joined terms that `text` has cut and is indexed with a white-space analyzer: Tantivy's
own default tokenizer drops terms over 40 bytes, and its ASCII folding and camelCase rules are not ours. No body is
stored; what a hit needs is one packed record, and the best line is read from the file.
"""

from __future__ import annotations

from sys import intern

from khms.errors import Refused
from khms.index.text import STOP_WORDS, Terms, fold, terms
from khms.model.document import Document
from khms.options import LANGUAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 3  # raised whenever `text`, `chunks` or this module lays documents out differently: older indexes are rebuilt
KEY, PATH, NAME, SHELF, REF, DAY, RECORD = "key", "path", "name", "shelf", "ref", "day", "record"
SLOT = "slot"  # the number that the document's vectors are found by
TITLE, STEMS, WORDS, IDENTIFIERS = "title", "stems", "words", "identifiers"
EXACT = ("kind", "type", "status", "scope", "tag")  # filters; folded, never cut
_STEM, _BLANK = "khms_stem", "khms_blank"
_GAP = "|"  # no term: keeps a phrase from running out of the title into the body
_FIELD, _ITEM = "\x1f", "\x1e"
_analyzers: dict[str, Any] = {}


def schema() -> Any:
    """Tantivy's schema of the index."""
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    for name in (KEY, PATH, NAME, SHELF, REF, *EXACT):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(TITLE, tokenizer_name=_STEM, index_option="freq")
    builder.add_text_field(STEMS, tokenizer_name=_STEM, index_option="freq")
    builder.add_text_field(WORDS, tokenizer_name=_BLANK, index_option="position")
    builder.add_text_field(IDENTIFIERS, tokenizer_name=_BLANK, index_option="freq")
    builder.add_unsigned_field(DAY, indexed=True, fast=True)
    builder.add_unsigned_field(SLOT, indexed=True, fast=True)
    builder.add_bytes_field(RECORD, stored=True)
    return builder.build()


def register(index: Any, language: str) -> None:
    """Gives an opened index the analyzers that writing needs."""
    index.register_tokenizer(_STEM, stemmer(language))
    index.register_tokenizer(_BLANK, stemmer("none"))


def stemmer(language: str) -> Any:
    """The analyzer that cuts at blanks and stems; "none" only cuts. Raises Refused for a language it does not know."""
    found = _analyzers.get(language)
    if found is None:
        from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

        builder = TextAnalyzerBuilder(Tokenizer.whitespace())
        if language != "none":
            if language not in LANGUAGES:
                raise Refused(
                    f"there is no stemmer for the language {language!r}",
                    where="khms.toml, index.language",
                    hint=f"one of: none, {', '.join(LANGUAGES)}",
                )
            builder = builder.filter(Filter.stemmer(language))
        found = _analyzers[language] = builder.build()
    return found


def stems(words: list[str], language: str) -> list[str]:
    """The stem of each word, in order."""
    return list(stemmer(language).analyze(" ".join(words)))


def stop_words(words: list[str], language: str) -> frozenset[str]:
    """Those of `words` that are too common in the base's language to ask for."""
    if language == "english":
        return STOP_WORDS
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    try:
        kept = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stopword(language)).build()
    except ValueError:  # no list for this language
        return frozenset()
    return frozenset(words).difference(kept.analyze(" ".join(words)))


def key(document: Document) -> str:
    return f"{document.path}:{document.line}"


def reference(rel: str, target: str) -> str:
    """The term under which a document with an edge `rel` to `target` is found."""
    return f"{rel}>{target}"


def day(date: str) -> int | None:
    """A date or the beginning of one (2026, 2026-03) as a number that sorts; None where it is no date."""
    parts = date[:10].split("-")
    if len(parts) > 3 or not all(p.isascii() and p.isdigit() for p in parts) or len(parts[0]) != 4:
        return None
    year, month, of_month = (int(p) for p in [*parts, "1", "1"][:3])
    return year * 10000 + month * 100 + of_month if 1 <= month <= 12 and 1 <= of_month <= 31 else None


def lay_out(document: Document, slot: int) -> Any:
    """The Tantivy document of a document."""
    from tantivy import Document as Entry

    title, body = terms(document.title), terms(document.body)
    tags = terms(" ".join(document.tags))
    # The ids and paths of notes and journals are words; those of cards say nothing but themselves.
    name, path = (
        (terms(document.id), terms(document.path)) if document.kind in ("note", "journal") else (Terms(), Terms())
    )
    entry = Entry()
    entry.add_text(KEY, key(document))
    entry.add_text(PATH, document.path)
    entry.add_text(NAME, fold(document.id))
    entry.add_text(SHELF, document.shelf)
    for field, value in zip(EXACT, (document.kind, document.type, document.status, document.scope), strict=False):
        if value:
            entry.add_text(field, fold(value))
    for tag in document.tags:
        entry.add_text("tag", fold(tag))
    for rel, target in document.links:
        entry.add_text(REF, reference(rel, target))
    number = day(document.date)
    if number is not None:
        entry.add_unsigned(DAY, number)
    entry.add_text(TITLE, " ".join(title.words + title.parts + title.grams))
    searched = [w for t in (name, title, tags, body) for w in t.words + t.parts + t.grams]
    entry.add_text(STEMS, " ".join(searched))
    between = (_GAP,) if title.words and body.words else ()
    entry.add_text(WORDS, " ".join((*title.words, *between, *body.words)))
    joined = (fold(document.id), *name.identifiers, *path.identifiers, *tags.identifiers, *title.identifiers)
    entry.add_text(IDENTIFIERS, " ".join((*dict.fromkeys(joined), *body.identifiers, *title.symbols, *body.symbols)))
    entry.add_unsigned(SLOT, slot)
    entry.add_bytes(RECORD, pack(document))
    return entry


def pack(document: Document) -> bytes:
    """What a hit needs to know of its document, without the body."""
    links = [f"{rel} {target}" for rel, target in document.links]
    texts = (
        document.id,
        document.kind,
        document.path,
        str(document.line),
        document.title,
        _ITEM.join(document.tags),
        document.type,
        document.status,
        document.scope,
        document.evidence,
        document.date,
        document.level,
        _ITEM.join(links),
    )
    return _FIELD.join(t.replace(_FIELD, " ") for t in texts).encode("utf-8", "replace")


def _edge(text: str) -> tuple[str, str]:
    rel, _, target = text.partition(" ")
    return rel, target


def unpack(record: bytes) -> Document:
    """The document of a packed record; ValueError where it is none."""
    texts = record.decode("utf-8").split(_FIELD)
    identity, kind, path, line, title, tags, type_, status, scope, evidence, date, level, links = texts
    return Document(
        identity,
        intern(kind),
        path,
        int(line),
        title,
        "",
        tuple(map(intern, tags.split(_ITEM))) if tags else (),
        intern(type_),
        intern(status),
        intern(scope),
        intern(evidence),
        date,
        intern(level),
        tuple(map(_edge, links.split(_ITEM))) if links else (),
    )
