"""The generated files that this machine keeps for itself, in .khms/views/: the cards by type and by scope, what could
be condensed, and the links. They hold every card and are never committed; `khms views` writes them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from khms.model.belief import FIGURES, Figures, beliefs, level
from khms.model.card import ARCHIVED, Card
from khms.model.condense import condensing
from khms.render import graph, pages
from khms.render.pages import HEADER
from khms.render.text import text

FOLDER = ".khms/views"
UP = 2  # folders from there to the base's root
LEAST_WEEKS = 1.0  # from which a card is a candidate for condensing


def overviews(cards: Mapping[str, Card], by: Figures = FIGURES) -> dict[str, bytes]:
    """Base path -> bytes. The same cards give the same bytes."""
    shelf = sorted(cards.values(), key=pages.age_key, reverse=True)
    found = {
        "types.md": _types(shelf, cards, by),
        "scopes.md": _grouped("Cards by scope", shelf, lambda card: card.scope or "no scope"),
        "condense.md": _condense(cards, by),
        "graph.md": _graph(cards, by),
    }
    return {f"{FOLDER}/{name}": ("\n".join(rows).rstrip() + "\n").encode("utf-8") for name, rows in found.items()}


def _types(shelf: list[Card], cards: Mapping[str, Card], by: Figures) -> Iterator[str]:
    """Derived cards first, the most believed of them first."""
    held = beliefs(cards, by)

    def place(card: Card) -> float:
        return -round(held[card.id].value, 2) if card.id in held else 0.0

    def row(card: Card) -> str:
        return pages.line(card, UP, held.get(card.id))

    ordered = sorted(shelf, key=place)
    yield from _grouped(
        "Cards by type", ordered, lambda card: card.type or "no type", row, lambda group: level(group[0]) != "derived"
    )


def _grouped(
    heading: str,
    shelf: Iterable[Card],
    of: Callable[[Card], str],
    row: Callable[[Card], str] = lambda card: pages.line(card, UP),
    last: Callable[[list[Card]], bool] = lambda group: False,
) -> Iterator[str]:
    """The cards that are not archived under the name that `of` gives each, groups by name, those that are `last` behind
    the others."""
    groups: defaultdict[str, list[Card]] = defaultdict(list)
    for card in shelf:
        if card.status not in ARCHIVED:
            groups[of(card)].append(card)
    yield from (HEADER, f"# {heading}", "")
    for name in sorted(groups, key=lambda name: (last(groups[name]), name)):
        yield from (f"## {text(name)} ({len(groups[name])})", "", *map(row, groups[name]), "")
    if not groups:
        yield "No cards yet."


def _condense(cards: Mapping[str, Card], by: Figures) -> Iterator[str]:
    yield from (HEADER, "# What could be condensed", "")
    yield "Weeks since a card's date, counted to the newest card's; fewer where no pattern derives from it. A person"
    yield "decides: `khms card status ID condensed --why …`"
    yield ""
    rows = [(i, weeks) for i, weeks in condensing(cards.values(), by).items() if weeks >= LEAST_WEEKS]
    taken = {target for card in cards.values() if card.status == "active" for target in card.links.derived_from}
    for card_id, weeks in rows:
        said = "a pattern says it" if card_id in taken else "no pattern says it"
        yield f"{pages.line(cards[card_id], UP)} ({weeks:.1f}, {said})"
    if not rows:
        yield "Nothing is old enough yet."


def _graph(cards: Mapping[str, Card], by: Figures) -> Iterator[str]:
    found = graph.graph(cards.values(), by)
    yield from (HEADER, "# Links", "", f"{graph.counts(found)}.", "")
    for line in graph.text(found):
        indented = line.startswith(" ")
        yield f"{'  ' * indented}- {text(line.strip(), 400)}"
