"""The approval record: the proof of who let which bytes in, as values and bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from khms.errors import Refused
from khms.model.cardhash import CHANGEABLE as CHANGEABLE
from khms.model.cardhash import candidate_sha256 as candidate_sha256
from khms.model.cardhash import card_sha256 as card_sha256
from khms.model.cardhash import has_flow_links as has_flow_links
from khms.model.cardhash import plain_bytes as plain_bytes

SCHEMA = "khms.approval/1"


@dataclass(frozen=True, slots=True)
class Approved:
    """One card that an approval let in. `was` holds the ids it had before a replay gave it another."""

    id: str
    label: str
    candidate_sha256: str
    card_sha256: str
    was: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """One later change of a card; `old` and `new` are the field's values."""

    id: str
    field: str
    old: Any
    new: Any
    why: str


@dataclass(frozen=True, slots=True)
class Waiver:
    check: str
    label: str
    why: str


@dataclass(frozen=True, slots=True)
class Approval:
    """`unit` is the approved unit's path, or empty for a transition; `parent` the commit it was made on, None on an
    unborn branch; `base` the id of the base that it is for, empty where that has none: a record signed for one base
    proves nothing in another."""

    id: str
    unit: str
    reviewer: str
    at: str
    parent: str | None
    cards: tuple[Approved, ...] = ()
    transitions: tuple[Transition, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    signature: str | None = None
    base: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "id": self.id,
            **({"base": self.base} if self.base else {}),
            "unit": self.unit,
            "reviewer": self.reviewer,
            "at": self.at,
            "parent": self.parent,
            "cards": [
                {
                    "id": c.id,
                    "label": c.label,
                    "candidate_sha256": c.candidate_sha256,
                    "card_sha256": c.card_sha256,
                    "was": list(c.was),
                }
                for c in self.cards
            ],
            "transitions": [
                {"id": t.id, "field": t.field, "old": t.old, "new": t.new, "why": t.why} for t in self.transitions
            ],
            "waivers": [{"check": w.check, "label": w.label, "why": w.why} for w in self.waivers],
            "signature": self.signature,
        }

    def file_bytes(self) -> bytes:
        return (json.dumps(self.as_json(), ensure_ascii=False, indent=2) + "\n").encode("utf-8")

    def signed_bytes(self) -> bytes:
        """RFC 8785 canonical JSON without `signature`. A record holds texts, lists and null only, so sorted keys and
        no white space are the whole of that form here (keys are ASCII, there are no numbers)."""
        value = {key: item for key, item in self.as_json().items() if key != "signature"}
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )


def approval_from(value: Mapping[str, Any], path: str) -> Approval:
    """The record that one JSON file holds; raises Refused naming the file where a key is missing or holds what it never
    holds."""
    try:
        record = Approval(
            id=value["id"],
            unit=value["unit"],
            reviewer=value["reviewer"],
            at=value["at"],
            parent=value["parent"],
            cards=tuple(
                Approved(c["id"], c["label"], c["candidate_sha256"], c["card_sha256"], tuple(c.get("was", ())))
                for c in value["cards"]
            ),
            transitions=tuple(
                Transition(t["id"], t["field"], t["old"], t["new"], t["why"]) for t in value["transitions"]
            ),
            waivers=tuple(Waiver(w["check"], w["label"], w["why"]) for w in value["waivers"]),
            signature=value.get("signature"),
            base=value.get("base", ""),
        )
        _demand_texts(record)
    except (KeyError, TypeError) as error:
        raise Refused(
            f"this approval record is incomplete: {error}", where=path, hint="restore it: git checkout -- " + path
        ) from error
    return record


def _demand_texts(record: Approval) -> None:
    """Raises TypeError where something else than a text stands for one: nothing after this expects that."""
    held = [
        record.id,
        record.unit,
        record.reviewer,
        record.at,
        record.parent or "",
        record.signature or "",
        record.base,
    ]
    for card in record.cards:
        held += [card.id, card.label, card.candidate_sha256, card.card_sha256, *card.was]
    for change in record.transitions:
        held += [change.id, change.field, change.why]
    for waiver in record.waivers:
        held += [waiver.check, waiver.label, waiver.why]
    for item in held:
        if not isinstance(item, str):
            raise TypeError(f"{item!r:.40} is no text")
