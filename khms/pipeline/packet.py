"""What a proposer is shown about one MARK, as one text of a bounded size.

Everything that came from a file stands behind a bar (`| `), so that no text can pass for a heading of the packet. Over
its target the packet drops, in this order, the lowest-ranked cards and candidates, the beginning of the excerpt, and
the journal lines farthest from the MARK. The MARK's own lines always stay. What remains is known by id, so that a later
check can tell what the proposer could not have seen.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from khms.model.card import CardType
from khms.model.mark import Mark
from khms.model.redact import redact
from khms.pipeline.duplicates import Same
from khms.pipeline.known import Known
from khms.pipeline.nearest import Near
from khms.pipeline.sources import Page, around, clean, is_session, whole, words

RADIUS = 20  # journal lines shown before and after a MARK
WHOLE = 2  # cards shown with their whole text
SUMMARY = 240  # characters of the others
TAGS = 60  # tags listed, those that occur before those most in use


@dataclass(frozen=True, slots=True)
class Packet:
    """`text` is what a proposer reads; the other fields are the same matter for one that needs no reading. `words` are
    the MARK's own, as they stand in the file, `whole` with `MARK[kind]` before them; `same_cards` are those in force
    that say the same, `nearest` the ids of all cards that came near, shown or not. `over` says that the MARK alone is
    beyond the target. `ids` are all cards and `labels` the candidates of the run so far: what an answer may name."""

    mark: Mark
    words: str
    whole: str
    text: str
    cards: tuple[Near, ...]
    candidates: tuple[Near, ...]
    same_cards: tuple[Same, ...]
    same_candidates: tuple[Same, ...]
    tags: tuple[str, ...]
    nearest: tuple[str, ...] = ()
    over: bool = False
    ids: Collection[str] = ()
    labels: Collection[str] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The ids and labels of what the text shows."""
        return tuple(near.document.id for near in (*self.cards, *self.candidates))


def build(
    page: Page,
    mark: Mark,
    known: Known,
    *,
    target: int,
    nearest: int,
    excerpt: tuple[str, Sequence[str]] = ("", ()),
) -> Packet:
    """The packet about `mark`; `target` is in characters, `nearest` the number of cards looked for, `excerpt` the name
    and the lines of a source that `page` does not hold."""
    text = clean(mark.text)
    cards = known.nearest_cards(text, nearest)
    candidates = known.nearest_candidates(text, max(nearest // 2, 1))
    same = [same for same in known.same_cards(text) if known.in_force(same.id)]
    occurring = tuple(dict.fromkeys([*known.vocabulary.of_kind(mark.kind), *known.vocabulary.occurring(text)]))
    head = _head(known.types, [*occurring, *(t for t in known.vocabulary.names if t not in occurring)][:TAGS])
    own = _section(_line(f"The MARK: {mark.id}, {page.path} line {mark.line}"), _own(page, mark))
    source, extra = excerpt
    journal = {n: line for n, line in around(page, mark.line, mark.end, RADIUS) if not mark.line <= n <= mark.end}
    ranked = sorted([*cards, *candidates], key=lambda near: -near.score)
    blocks = {near.document.id: _block(near, at < WHOLE) for at, near in enumerate(ranked)}
    kept = _fit(len(head) + len(own), ranked, blocks, list(extra), journal, mark, target)
    shown, lines, rest = kept
    known_ids = {near.document.id for near in cards}
    near_cards = [near for near in ranked[:shown] if near.document.id in known_ids]
    near_candidates = [near for near in ranked[:shown] if near.document.id not in known_ids]
    parts = [
        head,
        own,
        _section(_around(page), [f"{n}: {redact(line)}" for n, line in sorted(lines.items())]),
        _section(_line(f"The session that it was written in, source {source}"), [redact(clean(line)) for line in rest]),
        *_documents("The nearest cards", near_cards, blocks),
        *_documents("Earlier candidates of this run", near_candidates, blocks),
    ]
    whole_text = "\n".join(part for part in parts if part)
    return Packet(
        mark=mark,
        words=words(page, mark),
        whole=whole(page, mark),
        text=whole_text,
        cards=tuple(near_cards),
        candidates=tuple(near_candidates),
        same_cards=tuple(same),
        same_candidates=tuple(known.same_candidates(text)),
        tags=occurring,
        nearest=tuple(near.document.id for near in cards),
        over=len(whole_text) > target,
        ids=known.cards,
        labels=known.labels,
    )


def _around(page: Page) -> str:
    return "The digest around it" if is_session(page.path) else "The journal around it"


def _fit(
    fixed: int,
    ranked: Sequence[Near],
    blocks: Mapping[str, str],
    excerpt: list[str],
    journal: dict[int, str],
    mark: Mark,
    target: int,
) -> tuple[int, dict[int, str], list[str]]:
    """How many of the ranked documents stay, and which lines of journal and excerpt."""
    headings = 120  # what the titles of sections take
    room = target - fixed - headings
    size = sum(len(blocks[near.document.id]) + 1 for near in ranked)
    size += sum(len(line) + 3 for line in excerpt) + sum(len(line) + 10 for line in journal.values())
    shown = len(ranked)
    while size > room and shown:
        shown -= 1
        size -= len(blocks[ranked[shown].document.id]) + 1
    dropped = 0
    while size > room and dropped < len(excerpt):
        size -= len(excerpt[dropped]) + 3
        dropped += 1
    farthest = sorted(journal, key=lambda n: max(mark.line - n, n - mark.end))
    while size > room and farthest:
        size -= len(journal[farthest.pop()]) + 10
    return shown, {n: journal[n] for n in farthest}, excerpt[dropped:]


def _head(types: Mapping[str, CardType], tags: Sequence[str]) -> str:
    rows = [f"- {kind.name} ({kind.level}): {', '.join(kind.labels) or 'free text'}" for kind in types.values()]
    parts = ["# Types and the labels of their bodies", "", *rows, "", "# Registered tags", ""]
    return "\n".join([*parts, ", ".join(tags) or "none", ""])


def _own(page: Page, mark: Mark) -> list[str]:
    return [f"{mark.line}: {line}" for line in whole(page, mark).split("\n")]


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"# {title}", "", *(f"| {line}" for line in lines), ""]) if lines else ""


def _documents(title: str, near: Sequence[Near], blocks: Mapping[str, str]) -> list[str]:
    return [f"# {title}\n", *(blocks[one.document.id] for one in near)] if near else []


def _block(near: Near, in_full: bool) -> str:
    """One card or candidate: its id and what it is, then its text, whole or its first words."""
    about = near.document
    body = about.body if in_full else " ".join(about.body.split())[:SUMMARY]
    said = ", ".join(part for part in (about.type, about.status, f"nearness {near.score:.2f}") if part)
    lines = [_line(about.title), *(body.split("\n") if body else [])]
    return "\n".join([f"## {_line(about.id)} ({_line(said)})", *(f"| {clean(line)}" for line in lines), ""])


def _line(text: str) -> str:
    return " ".join(clean(text).split())
