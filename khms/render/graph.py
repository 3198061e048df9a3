"""The cards and their links as a graph: to read, for programs, and in the languages of two drawing tools.

The same cards give the same bytes. Titles are data: whatever stands in one, it stays a label.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from khms.model.belief import FIGURES, Belief, Figures, beliefs, level
from khms.model.card import Card
from khms.render import pages
from khms.render.text import visible

LABEL_CHARS = 60
# What a card looks like by what is to be known of it first.
_FILL = {"challenged": "#fff3bf", "refuted": "#ffc9c9", "superseded": "#e9ecef", "condensed": "#e9ecef"}
_LINE = {"contradicts": "#e03131", "refuted_by": "#e03131", "supersedes": "#868e96"}


@dataclass(frozen=True, slots=True)
class Node:
    """A card; `known` is False for one that is only named."""

    id: str
    title: str = ""
    type: str = ""
    status: str = ""
    path: str = ""
    derived: bool = False
    belief: Belief | None = None
    known: bool = True

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "type": self.type,
            "status": self.status,
            "path": self.path,
            "belief": self.belief and self.belief.as_json(),
            "known": self.known,
        }


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    rel: str
    target: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Every card by id, and every edge once. A contradiction, which stands in both cards, is one edge."""

    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]

    @property
    def linked(self) -> list[Node]:
        """The cards that an edge begins or ends at."""
        named = {identity for edge in self.edges for identity in (edge.source, edge.target)}
        return [node for node in self.nodes.values() if node.id in named]


def graph(cards: Iterable[Card], by: Figures = FIGURES) -> Graph:
    """The graph of `cards`; those that only an edge names are nodes too."""
    held = {card.id: card for card in sorted(cards, key=lambda card: card.id)}
    believed = beliefs(held, by)
    edges = tuple(_edges(held.values()))
    nodes = {
        card.id: Node(
            card.id, card.title, card.type, card.status, card.path, level(card) == "derived", believed.get(card.id)
        )
        for card in held.values()
    }
    missing = sorted({edge.target for edge in edges} - nodes.keys())
    return Graph({**nodes, **{name: Node(name, "(not in this base)", known=False) for name in missing}}, edges)


def _edges(cards: Iterable[Card]) -> Iterator[Edge]:
    mutual: set[tuple[str, str]] = set()
    for card in cards:
        for rel, target in dict.fromkeys(card.links.edges()):
            if rel == "contradicts":
                if (target, card.id) in mutual:
                    continue
                mutual.add((card.id, target))
            yield Edge(card.id, rel, target)


def as_json(found: Graph) -> dict[str, Any]:
    return {
        "schema": "khms.graph/1",
        "nodes": [node.as_json() for node in found.nodes.values()],
        "edges": [{"source": edge.source, "rel": edge.rel, "target": edge.target} for edge in found.edges],
    }


def counts(found: Graph) -> str:
    """How many cards and edges there are, in words."""
    number = Counter(edge.rel for edge in found.edges)
    kinds = ", ".join(f"{count} {rel}" for rel, count in sorted(number.items()))
    alone = sum(node.known for node in found.nodes.values()) - sum(node.known for node in found.linked)
    said = f"{pages.many(len(found.nodes), 'card')}, {pages.many(len(found.edges), 'link')}"
    said += f" ({kinds})" if kinds else ""
    return f"{said}; {alone} without any" if alone else said


def text(found: Graph) -> Iterator[str]:
    """For people: each linked card, and below it where its edges go."""
    going: dict[str, list[Edge]] = {}
    for edge in found.edges:
        going.setdefault(edge.source, []).append(edge)
    for node in found.linked:
        if node.id in going:
            yield f"{node.id}  {visible(node.title)}{_said(node)}"
            for edge in going[node.id]:
                target = found.nodes[edge.target]
                yield f"    {edge.rel} {target.id}: {visible(target.title)}{_said(target)}"


def _said(node: Node) -> str:
    said = [node.status.upper()] if node.known and node.status != "active" else []
    if node.belief and (node.belief.supporters or node.belief.opposers):
        said.append(f"belief {node.belief}")
    return f"  [{'; '.join(said)}]" if said else ""


def dot(found: Graph) -> Iterator[str]:
    """Graphviz. Cards without a link are left out."""
    yield "digraph khms {"
    yield f"  // {counts(found)}"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif", fontsize=10];'
    for node in found.linked:
        about = [f"label={_quoted(_label(node))}"]
        if node.derived:
            about.append("shape=ellipse")
        if not node.known:
            about.append('style="dashed"')
        elif node.status in _FILL:
            about.append(f'fillcolor="{_FILL[node.status]}"')
        yield f"  {_quoted(node.id)} [{', '.join(about)}];"
    for edge in found.edges:
        colour = f', color="{_LINE[edge.rel]}"' if edge.rel in _LINE else ""
        both = ", dir=both" if edge.rel == "contradicts" else ""
        yield f'  {_quoted(edge.source)} -> {_quoted(edge.target)} [label="{edge.rel}"{colour}{both}];'
    yield "}"


def _quoted(raw: str) -> str:
    """A string of dot: `\\n` is a line break there, and every other back-slash begins an escape."""
    lines = (visible(line).replace("\\", "\\\\").replace('"', '\\"') for line in raw.split("\n"))
    return '"' + "\\n".join(lines) + '"'


def mermaid(found: Graph) -> Iterator[str]:
    """Mermaid. Cards without a link are left out; ids of nodes are numbers, since a card's own could be a word of the
    language."""
    yield "flowchart LR"
    yield f"  %% {counts(found)}"
    names = {node.id: f"n{number}" for number, node in enumerate(found.linked, 1)}
    for node in found.linked:
        opened, closed = ('(["', '"])') if node.derived else ('["', '"]')
        yield f"  {names[node.id]}{opened}{_entities(_label(node))}{closed}"
    for edge in found.edges:
        arrow = {"contradicts": "<-->", "refuted_by": "-.->"}.get(edge.rel, "-->")
        yield f"  {names[edge.source]} {arrow}|{edge.rel}| {names[edge.target]}"
    for status, colour in sorted(_FILL.items()):
        shown = [names[node.id] for node in found.linked if node.known and node.status == status]
        if shown:
            yield f"  classDef {status} fill:{colour}"
            yield f"  class {','.join(shown)} {status}"


def _entities(raw: str) -> str:
    """A label between double quotes. Mermaid reads HTML, Markdown and its own directives (`%%{`) even there, so all but
    letters, digits, blanks and a few signs become entities of its own form."""
    lines = raw.split("\n")
    shown = (
        "".join(c if c.isalnum() or c in " -_.,:/()+'" else f"#{ord(c)};" for c in visible(line)) for line in lines
    )
    return "<br/>".join(shown)


def _label(node: Node) -> str:
    """Id and title, in two lines."""
    title = visible(node.title)
    return f"{visible(node.id)}\n{title if len(title) <= LABEL_CHARS else title[: LABEL_CHARS - 1].rstrip() + '…'}"
