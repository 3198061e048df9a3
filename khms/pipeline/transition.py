"""The only later changes of a card: its status, `refuted_by`, symmetric `contradicts`, and the move to the archive.

Each change is text in, text out, with the transition that the approval record will hold.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from khms.errors import Refused
from khms.model.approval import Transition, has_flow_links
from khms.model.card import ARCHIVED, Card, card_from, is_card_id
from khms.store import cards, files, markdown
from khms.store.layout import Base

AS_IT_CAME = "as it came in"


# One approval asks for the same card again and again: 360 times for twelve of them.
_page = lru_cache(maxsize=256)(markdown.parse)


@dataclass(frozen=True, slots=True)
class Held:
    """One card on the desk: where its file lies now (empty for a new card) and its text as it shall be."""

    path: str
    text: str


@dataclass
class Desk:
    """The cards that one approval makes or changes: reads each once, applies transitions in order, and knows at the end
    which files to write and which to remove."""

    base: Base
    transitions: list[Transition] = field(default_factory=list)
    _held: dict[str, Held] = field(default_factory=dict)

    def put(self, card_id: str, text: str) -> None:
        """Lays a new card on the desk. What it does not begin with as every card does (active, no correctors) is a
        transition too: from the records alone it can be told how each card has to stand."""
        self._held[card_id] = Held("", text)
        self.transitions += initial(self.card(card_id))

    def card(self, card_id: str) -> Card:
        """The card with the transitions so far; raises Refused where there is none or it takes none."""
        if card_id not in self._held:
            self._held[card_id] = self._fetch(card_id)
        held = self._held[card_id]
        page = _page(held.text, held.path)
        return card_from(
            page.meta, page.body, self._place(card_id, card_from(page.meta, "", "").status), page.body_line
        )

    def _fetch(self, card_id: str) -> Held:
        path = cards.find(self.base, card_id) if is_card_id(card_id) else None
        if path is None:
            raise Refused(f"there is no card {card_id}", hint="khms card list shows what there is")
        data = files.read(path)
        shown = self.base.relative(path)
        if has_flow_links(data):
            raise Refused(
                f"{card_id} has its links on one line, so a change of it could not be proven",
                where=shown,
                hint="this card takes no transitions",
            )
        markdown.parse(data, shown)
        return Held(shown, data.decode("utf-8-sig").replace("\r\n", "\n"))

    def set_status(self, card_id: str, new: str, why: str) -> None:
        """Sets the status; superseded and condensed cards move to the archive, all others stand in know/."""
        old = self.card(card_id).status
        if old != new:
            self._set(card_id, "status", old, new, why)

    def set_links(self, card_id: str, name: str, wanted: tuple[str, ...], why: str) -> None:
        """Makes `wanted` the card's `links.<name>` (contradicts or refuted_by)."""
        old = getattr(self.card(card_id).links, name)
        if old != wanted:
            self._set(card_id, f"links.{name}", list(old), list(wanted), why)

    def add_link(self, card_id: str, name: str, target: str, why: str) -> None:
        old = getattr(self.card(card_id).links, name)
        if target not in old:
            self.set_links(card_id, name, (*old, target), why)

    def drop_link(self, card_id: str, name: str, target: str, why: str) -> None:
        old = getattr(self.card(card_id).links, name)
        self.set_links(card_id, name, tuple(item for item in old if item != target), why)

    def _set(self, card_id: str, name: str, old: str | list[str], new: str | list[str], why: str) -> None:
        held = self._held[card_id]
        value = list(new) if isinstance(new, list) else new
        self._held[card_id] = Held(held.path, markdown.set_key(held.text, name, value))
        self.transitions.append(Transition(card_id, name, old, new, why))

    def _place(self, card_id: str, status: str) -> str:
        """Where the card's file belongs: it moves only when its status crosses between know/ and the archive."""
        old = self._held[card_id].path
        archived = old.startswith("memory/archive/")
        if old and archived == (status in ARCHIVED):
            return old
        if old and not any(t.id == card_id and t.field == "status" for t in self.transitions):
            return old
        return cards.archive_path(card_id) if status in ARCHIVED else cards.know_path(card_id)

    def changes(self) -> dict[str, bytes | None]:
        """What to commit: new and changed cards at the place their status asks for."""
        touched = {t.id for t in self.transitions}
        found: dict[str, bytes | None] = {}
        for card_id, held in self._held.items():
            if held.path and card_id not in touched:
                continue
            place = self.card(card_id).path
            if held.path and place != held.path:
                found[held.path] = None
            found[place] = held.text.encode("utf-8")
        return found

    def cards(self) -> dict[str, Card]:
        """Every card on the desk as it shall be."""
        return {card_id: self.card(card_id) for card_id in self._held}


def initial(card: Card) -> list[Transition]:
    """What sets the card apart from one that is active and that nothing contradicts or refutes."""
    found = [Transition(card.id, "status", "active", card.status, AS_IT_CAME)] if card.status != "active" else []
    for name in ("contradicts", "refuted_by"):
        held = getattr(card.links, name)
        if held:
            found.append(Transition(card.id, f"links.{name}", [], list(held), AS_IT_CAME))
    return found


def follow(desk: Desk, new_id: str) -> None:
    """What a new card's edges do to the cards they name: superseded ones leave for the archive, contradicted ones are
    challenged and carry the edge back."""
    new = desk.card(new_id)
    for target in new.links.supersedes:
        held = desk.card(target)
        if held.status not in ("active", "challenged"):
            raise Refused(
                f"{new_id} would supersede {target}, which is {held.status}",
                where=held.path,
                hint="only an active or challenged card can be superseded",
            )
        desk.set_status(target, "superseded", f"superseded by {new_id}: {new.title}")
    for target in new.links.contradicts:
        why = f"contradicted by {new_id}: {new.title}"
        desk.add_link(target, "contradicts", new_id, why)
        if desk.card(target).status == "active":
            desk.set_status(target, "challenged", why)
