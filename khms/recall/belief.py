"""The belief of a derived card that was found, from the index alone: the same figure that `khms show` reads from the
files."""

from __future__ import annotations

from khms.model.belief import Belief, Figures, level, weigh
from khms.model.document import UNREVIEWED, Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from khms.index.lexical import Reader


def belief(reader: Reader, document: Document, by: Figures) -> Belief | None:
    """None for what is no derived card."""
    if document.kind != "card" or level(document) != "derived":
        return None
    pro = [*_named(reader, document, ("derived_from",)), *reader.referring("supports", document.id)]
    contra = _named(reader, document, ("contradicts", "refuted_by"))
    return weigh(_cards(pro, document), _cards(contra, document), by)


def _named(reader: Reader, document: Document, relations: tuple[str, ...]) -> Iterator[Document]:
    for rel, target in document.links:
        if rel in relations:
            yield from reader.by_id(target)


def _cards(documents: Iterable[Document], own: Document) -> Iterator[Document]:
    return (d for d in documents if d.kind == "card" and d.shelf != UNREVIEWED and d.id != own.id)
