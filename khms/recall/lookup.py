"""One document whole, by its id: a card with what corrects it and how it came in, a MARK, a candidate, a unit, a
journal day, an approval record, a note.

Read from the files, never from the index: what is shown is what stands there.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from khms import config
from khms.check.context import proofs
from khms.errors import No, Refused
from khms.index import documents, sources
from khms.model.approval import Approval
from khms.model.belief import Belief, beliefs, figures
from khms.model.card import Card, is_card_id, links_of
from khms.model.document import Link
from khms.model.finding import Finding
from khms.model.receipt import decided
from khms.model.ulid import is_ulid
from khms.recall import proof
from khms.store import cards, files, inbox, journal, markdown
from khms.store.cards import Shelf
from khms.store.layout import INBOX, JOURNAL, Base
from khms.store.receipts import ledger

UNREVIEWED = "UNREVIEWED: nobody has approved this"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.[a-z0-9]{4})?")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a document, from a record: `what` in words."""

    at: str
    who: str
    what: str
    record: str

    def as_json(self) -> dict[str, str]:
        return {"at": self.at, "who": self.who, "what": self.what, "record": self.record}


@dataclass(frozen=True, slots=True)
class Found:
    """`links` are the document's own edges, `named_by` those of others to it; `correctors` what must be read first.
    `proof` is how a card stands to the approval records: approved, changed or none; empty where it cannot be told and
    for what is no card. `warning` is what must be seen before a word of the document."""

    kind: str
    id: str
    path: str
    line: int
    title: str
    body: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    named_by: tuple[Link, ...] = ()
    correctors: tuple[Link, ...] = ()
    belief: Belief | None = None
    history: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()
    proof: str = ""
    warning: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": "khms.show/1",
            "kind": self.kind,
            "id": self.id,
            "path": self.path,
            "line": self.line,
            "title": self.title,
            "meta": dict(self.meta),
            "body": self.body,
            "links": [link.as_json() for link in self.links],
            "named_by": [link.as_json() for link in self.named_by],
            "correctors": [link.as_json() for link in self.correctors],
            "belief": self.belief and self.belief.as_json(),
            "history": [event.as_json() for event in self.history],
            "notes": list(self.notes),
            "proof": self.proof or None,
            "warning": self.warning or None,
        }


def look_up(base: Base, identity: str, settings: Mapping[str, Any] | None = None) -> Found:
    """The document that `identity` names, by the ids that recall prints; `settings` are the base's own where they are
    not given. A path that it prints, with its line or without, does as well. Raises No where there is none, Unreadable
    where its file cannot be read."""
    settings = config.load(base.root) if settings is None else settings
    rules = sources.rules(base, settings)
    identity, path = _identity(base, identity, rules)
    for finder in (partial(_card, settings=settings), _mark, _day, _record, _candidate, _lesson):
        found = finder(base, identity)
        if found is not None:
            return found
    found = _included(base, identity, rules) or _file(base, path) or _misnamed(base, identity)
    if found is not None:
        return found
    raise No(
        f"there is no document {identity}",
        where=str(base.root),
        hint="an id is K-00042, M-0123456789ab, 2026-03-04, UNIT/C1 or a path in the base; khms recall finds them",
    )


def _identity(base: Base, said: str, rules: sources.Rules) -> tuple[str, str]:
    """The id that a person means, of the document at a path or of a card in whatever case; and the path, if any."""
    path, _, line = said.rpartition(":")
    path = path if line.isdigit() and path.lower().endswith(sources.SUFFIXES) else said
    path = os.path.relpath(path, base.root) if os.path.isabs(path) else path  # noqa: PTH117
    place = sources.place(rules, path.removeprefix("./"))
    if place is not None:
        return place.id, path
    card = said.upper().removesuffix(".MD")
    return card if is_card_id(card) else path, path


def edges(shelf: Shelf, card: Card) -> tuple[tuple[Link, ...], tuple[Link, ...], tuple[Link, ...]]:
    """(own edges, edges of other cards to it, those that correct it)."""

    def title(card_id: str) -> str:
        return shelf.cards[card_id].title if card_id in shelf.cards else "(not in this base)"

    own = tuple(Link(rel, target, title(target)) for rel, target in card.links.edges())
    naming = tuple(
        Link(rel, other.id, other.title)
        for other in shelf.cards.values()
        for rel, target in other.links.edges()
        if target == card.id
    )
    correcting = tuple(dict.fromkeys(Link(rel, other.id, other.title) for rel, other in shelf.corrects(card.id)))
    return own, naming, correcting


def _card(base: Base, identity: str, settings: Mapping[str, Any]) -> Found | None:
    if not is_card_id(identity):
        return None
    notes: list[str] = []
    records = _records(base, notes)
    path = cards.find(base, identity)
    others = [c.id for record in records or () for c in record.cards if identity in c.was]
    if path is None:
        path = cards.find(base, others[0]) if others else None
        if path is None:
            return None
        notes.append(f"{identity} became {others[0]} when two clones had given the same id")
        identity = others[0]
    elif others:
        had = "another clone, unpublished" if len(others) == 1 else "other clones, unpublished"
        notes.append(f"in {had}, {identity} meant what is now {', '.join(others)}")
    card = cards.load(base, base.relative(path))
    shelf = cards.shelf(base)
    own, naming, correcting = edges(shelf, card)
    stands, warning = _proof(base, card.path, card.id, records)
    return Found(
        kind="card",
        id=card.id,
        path=card.path,
        line=1,
        title=card.title,
        body=card.body,
        meta=card.meta,
        links=own,
        named_by=naming,
        correctors=correcting,
        belief=beliefs(shelf.cards, figures(settings)).get(card.id),
        history=tuple(_history(records or [], card.id)),
        notes=tuple(notes),
        proof=stands,
        warning=warning,
    )


def _records(base: Base, notes: list[str]) -> list[Approval] | None:
    """The approval records; None where one cannot be read, with a note, since the card itself can still be shown."""
    try:
        return cards.approvals(base)
    except Refused as error:
        notes.append(f"the history is not known: {error.message} ({error.where})")
        return None


def _proof(base: Base, path: str, card_id: str, records: list[Approval] | None) -> tuple[str, str]:
    """How a card stands to the records, and the warning where that is not as it should be. A base without any record
    is older than they are: nothing is missing there."""
    if records is None:
        return (
            "",
            "whether this card is as it was approved cannot be told: an approval record cannot be read (khms lint)",
        )
    held = proofs((cards.approval_path(record.id), record) for record in records).get(card_id, [])
    stands = proof.standing(base, path, held)
    if stands == proof.CHANGED:
        return stands, f"NOT as approved: its bytes differ from {held[-1].path} (khms lint)"
    if stands == proof.NONE and records:
        return stands, "no approval record names this card"
    return stands, ""


def _history(records: list[Approval], card_id: str) -> Iterator[Event]:
    for record in records:
        path = cards.approval_path(record.id)
        for card in record.cards:
            if card.id == card_id:
                waived = [f"{w.check} waived: {w.why}" for w in record.waivers if w.label == card.label]
                what = "; ".join([f"approved from {record.unit} {card.label}", *waived])
                yield Event(record.at, record.reviewer, what, path)
        for change in record.transitions:
            if change.id == card_id:
                what = f"{change.field}: {_plain(change.old)} -> {_plain(change.new)} ({change.why})"
                yield Event(record.at, record.reviewer, what, path)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _mark(base: Base, identity: str) -> Found | None:
    if not identity.startswith("M-"):
        return None
    for day in journal.days(base):
        for mark in day.marks:
            if mark.id == identity:
                receipt = decided(ledger(base).receipts).get(mark.id)
                what = f"{receipt.verdict}: {receipt.unit} {receipt.label} {receipt.reason}" if receipt else ""
                history = (Event(receipt.at, receipt.run, " ".join(what.split()), receipt.unit),) if receipt else ()
                return Found("mark", mark.id, mark.path, mark.line, f"MARK[{mark.kind}]", mark.text, history=history)
    return None


def _day(base: Base, identity: str) -> Found | None:
    if not _DAY.fullmatch(identity):
        return None
    days = [day for day in journal.days(base) if day.path.startswith(f"{JOURNAL}/{identity}.")]
    if not days:
        return None
    return Found("journal", identity, days[0].path, 1, identity, "\n".join(day.text for day in days))


def _record(base: Base, identity: str) -> Found | None:
    path = base.path(cards.approval_path(identity)) if is_ulid(identity) else None
    if path is None or not path.is_file():
        return None
    shown = base.relative(path)
    return Found("approval", identity, shown, 1, identity, path.read_text(encoding="utf-8"))


def _candidate(base: Base, identity: str) -> Found | None:
    """`UNIT/C1`, or the unit's path with it; a unit alone is its report."""
    name, _, label = identity.rpartition("/")
    if not name or not (label[:1] == "C" and label.removesuffix(".md")[1:].isdigit()):
        name, label = identity, ""
    try:
        unit = inbox.find(base, name)
    except Refused:
        return None
    if not label:
        report = base.path(unit.path) / "REPORT.md" if not unit.single else base.path(unit.path)
        text = report.read_text(encoding="utf-8") if report.is_file() else ""
        return Found("inbox", unit.name, unit.path, 1, unit.name, text, unit.meta)
    candidate = unit.candidate(label.removesuffix(".md"))
    if candidate is None:
        return _section(base, unit, label) if unit.single else None
    edges = tuple(Link(rel, target, "") for rel, target in links_of(candidate.meta.get("links")).edges())
    return Found(
        kind="inbox",
        id=f"{unit.name}/{candidate.label}",
        path=candidate.path,
        line=candidate.body_line,
        title=candidate.title,
        body=candidate.body,
        meta=candidate.meta,
        links=edges,
        notes=(UNREVIEWED,),
    )


def _section(base: Base, unit: inbox.Unit, label: str) -> Found | None:
    """A part of a single-file unit that is no candidate as it stands, as the index has it."""
    held = documents.documents(sources.Place("inbox", unit.name), unit.path, files.read(base.path(unit.path)))
    found = () if isinstance(held, Finding) else (one for one in held if one.id == f"{unit.name}/{label}")
    for one in found:
        return Found("inbox", one.id, one.path, one.line, one.title, one.body, notes=(UNREVIEWED,))
    return None


def _lesson(base: Base, identity: str) -> Found | None:
    """A lesson by its name, and a candidate that was put off or dropped by its own: `UNIT/deferred/C2`."""
    for folder in (sources.LESSONS, INBOX):
        for path in sources.walk(base.root, folder):
            place = sources.place(sources.Rules(), path)
            if place is not None and place.id == identity:
                files.inside(base.root, base.path(path))
                return _text(base.path(path), place.kind, identity, path)
    return None


def _included(base: Base, identity: str, rules: sources.Rules) -> Found | None:
    """A document of an included folder: the folder's name, and the path in it."""
    for name, folder in rules.include:
        if identity.startswith(f"{name}/"):
            path = _document(base.path(folder), identity[len(name) + 1 :])
            if path is not None:
                shown = os.path.relpath(path, base.root).replace(os.sep, "/")
                return _text(path, "note", f"{name}/{path.relative_to(base.path(folder)).with_suffix('')}", shown)
    return None


def _file(base: Base, identity: str) -> Found | None:
    """A Markdown file of the base by its path, with or without its ending."""
    path = _document(base.root, identity)
    if path is None:
        return None
    shown = base.relative(path)
    return _text(path, "note", shown.rpartition(".")[0], shown)


def _document(folder: Path, name: str) -> Path | None:
    """The Markdown file `name` below a folder, with or without its ending; raises Refused for one that is not in it."""
    path = folder / name
    if path.suffix.lower() in sources.SUFFIXES and path.is_file():
        files.inside(folder, path)
        return path
    ending = re.compile("|".join(map(re.escape, sources.SUFFIXES)), re.IGNORECASE)
    with suppress(OSError, Refused):
        for entry in sorted(files.inside(folder, path.parent).iterdir()):
            if entry.name.startswith(path.name) and ending.fullmatch(entry.name[len(path.name) :]) and entry.is_file():
                files.inside(folder, entry)
                return path.parent / entry.name
    return None


def _text(path: Path, kind: str, identity: str, shown: str) -> Found:
    page = markdown.read(path, shown)
    title = page.meta.get("title")
    title = title if isinstance(title, str) and title else _heading(page.body)
    notes = (UNREVIEWED,) if kind == "inbox" else ()
    return Found(kind, identity, shown, 1, title, page.body, page.meta, notes=notes)


def _misnamed(base: Base, identity: str) -> Found | None:
    """A card whose file is named otherwise than its id (lint says so), by the id, as the index has it."""
    card = cards.shelf(base).cards.get(identity)
    return _text(base.path(card.path), "card", identity, card.path) if card else None


def _heading(body: str) -> str:
    return next((line.lstrip("# ") for line in body.splitlines() if line.strip()), "")
