"""A card's neighbours in the graph, those that correct it first."""

from khms.index.lexical import Reader
from khms.model.document import Document, Link


def correctors(reader: Reader, document: Document) -> tuple[Link, ...]:
    """The cards that correct this one, each by its edge: they supersede or contradict it, or it names its refuter."""
    found = [
        Link(rel, other.id, other.title)
        for rel in ("supersedes", "contradicts")
        for other in reader.referring(rel, document.id)
    ]
    found += [Link(rel, i, _title(reader, i)) for rel, i in document.links if rel == "refuted_by"]
    return _once(found)


def neighbours(reader: Reader, document: Document, correcting: tuple[Link, ...]) -> tuple[Link, ...]:
    """All that it is linked to, one step away: its correctors, then its own edges. `rel` is how the card stands to the
    other; to one that supersedes it, superseded_by."""
    found = [Link("superseded_by" if c.rel == "supersedes" else c.rel, c.id, c.title) for c in correcting]
    found += [Link(rel, i, _title(reader, i)) for rel, i in document.links]
    return _once(found)


def successors(reader: Reader, document: Document) -> tuple[Document, ...]:
    """What stands in the place of a superseded card now: the ends of every chain of supersedes edges from it."""
    ends: dict[str, Document] = {}
    passed = {document.id}
    open_ends = [document]
    while open_ends:
        here = open_ends.pop(0)
        later = [d for d in reader.referring("supersedes", here.id) if d.shelf != "unreviewed"]
        new = [d for d in later if d.id not in passed]
        passed.update(d.id for d in new)
        open_ends += new
        if not later and here is not document:
            ends.setdefault(here.id, here)
    return tuple(ends.values())


def _title(reader: Reader, identity: str) -> str:
    return next((found.title for found in reader.by_id(identity)), "")


def _once(links: list[Link]) -> tuple[Link, ...]:
    return tuple({(link.rel, link.id): link for link in links if link.id}.values())
