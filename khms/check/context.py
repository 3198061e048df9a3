"""What the rules know of the base around the file that they look at.

A whole run reads every card; a run over a few files knows the others by their names and reads one only when an edge
leads there. Who points at a card is known in a whole run only.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from khms.model.approval import Approval, Approved
from khms.model.card import Card, CardType, card_from, card_types
from khms.model.tags import Registry
from khms.store import files, gitdir, markdown
from khms.store.layout import Base
from khms.store.markdown import Unreadable

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Proof:
    """What the approval records say of one card. `sha256` is the hash that counts, later recorded changes included;
    `adopted` says that the record admits a card that is older than khms."""

    path: str
    approved: Approved
    sha256: str
    waived: frozenset[str]
    adopted: bool = False


@dataclass
class Context:
    """`files` maps a card's id to the base paths that carry it; `labels` an inbox unit to the labels that stand in it,
    `withheld` to those put aside there; `taken` a (unit, label) to the card that was made of it; `assumed` are cards
    about to be approved; `twins` maps a path to another that differs from it by case only. `cards` holds what was read
    of the base, all of it in a `whole` run."""

    base: Base
    read: Read
    files: Mapping[str, list[str]]
    config: Mapping[str, Any]
    proofs: Mapping[str, list[Proof]] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    withheld: Mapping[str, frozenset[str]] = field(default_factory=dict)
    taken: Mapping[tuple[str, str], str] = field(default_factory=dict)
    assumed: frozenset[str] = frozenset()
    twins: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    cards: dict[str, Card] = field(default_factory=dict)
    _lines: dict[str, int | None] = field(default_factory=dict)

    def card(self, card_id: str) -> Card | None:
        """The card of this id, None where there is none or its file cannot be read."""
        if card_id not in self.cards and not self.whole:
            self._load(card_id)
        return self.cards.get(card_id)

    def _load(self, card_id: str) -> None:
        for path in self.files.get(card_id, ()):
            data = self.read(path)
            if data is None:
                continue
            try:
                page = markdown.parse(data, path)
            except Unreadable:
                continue
            self.cards[card_id] = card_from(page.meta, page.body, path, page.body_line)
            return

    def exists(self, card_id: str) -> bool:
        """Whether this id names a card. An id that a card lost to another in a replay still answers."""
        return card_id in self.files or card_id in self._former

    @cached_property
    def _former(self) -> frozenset[str]:
        return frozenset(old for held in self.proofs.values() for proof in held for old in proof.approved.was)

    def is_approved(self, card_id: str) -> bool:
        return card_id in self.proofs or card_id in self.assumed

    def is_older(self, card_id: str) -> bool:
        """Whether the card is older than khms: no record names it, or only one that admits such cards."""
        if card_id in self.assumed:
            return False
        return all(proof.adopted for proof in self.proofs.get(card_id, ()))

    @cached_property
    def types(self) -> Mapping[str, CardType]:
        """The built-in card types and those of the configuration."""
        return card_types(self.config["cards.types"])

    @cached_property
    def superseded(self) -> Mapping[str, list[str]]:
        """id -> the cards that supersede it; complete in a whole run only."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for card in self.cards.values():
            for target in card.links.supersedes:
                found[target].append(card.id)
        return found

    def lines_of(self, path: str) -> int | None:
        """How many lines the file at this path has, below the base or its repository; None where there is none."""
        if path not in self._lines:
            self._lines[path] = self._count(path)
        return self._lines[path]

    def _count(self, path: str) -> int | None:
        for root in self._roots:
            try:
                file = (root / path).resolve()
                if root not in file.parents or not file.is_file():
                    continue
                data = files.read(file)
            except (OSError, ValueError, RuntimeError):  # a loop of links is a RuntimeError
                continue
            return data.count(b"\n") + (not data.endswith(b"\n"))
        return None

    @cached_property
    def _roots(self) -> list[Path]:
        base = self.base.root.resolve()
        git = gitdir.find(base)
        return [base] if git is None or git.top == base else [base, git.top]


def proofs(records: Iterable[tuple[str, Approval]]) -> dict[str, list[Proof]]:
    """id -> what the records, oldest first, say of that card. A later recorded change of its hash counts."""
    changed: dict[str, str] = {}
    found: defaultdict[str, list[Proof]] = defaultdict(list)
    held = list(records)
    for _, record in held:
        for change in record.transitions:
            if change.field == "card_sha256" and isinstance(change.new, str):
                changed[change.id] = change.new
    for path, record in held:
        for card in record.cards:
            waived = frozenset(waiver.check for waiver in record.waivers if waiver.label == card.label)
            found[card.id].append(Proof(path, card, changed.get(card.id, card.card_sha256), waived, not record.unit))
    return dict(found)
