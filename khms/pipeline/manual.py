"""A person's own candidate: `khms card new` puts one card into the inbox, for the same approval as every other."""

import datetime
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from khms.config import Config
from khms.errors import Refused, Usage
from khms.hosts.environment import agent_host
from khms.model.candidate import Candidate, Quote, Relation
from khms.model.card import EVIDENCE, RELATIONS, CardType, canonical_type, first_label
from khms.model.redact import key_shapes
from khms.model.ulid import new_ulid
from khms.pipeline import quotes, specifics
from khms.pipeline.known import card_types
from khms.pipeline.nearest import Document, Nearby
from khms.pipeline.record import now
from khms.store import cards, inbox, journal, markdown
from khms.store.commit import exclusive
from khms.store.layout import Base
from khms.store.repo import Repo

LABEL = "C1"
_QUOTED = re.compile(r"^(?P<place>\S.*?)[\s:;,]*\"(?P<words>[^\"]+)\"\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Draft:
    """What the person gave; empty fields are left out of the card. `source` may end with the words it stands on, in
    double quotes: `journal/2026-03-04.md line 22: "checksum mismatch on frame 7"`; they become a quote."""

    type: str
    title: str
    body: str
    tags: tuple[str, ...] = ()
    scope: str = ""
    evidence: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Proposed:
    """`nearest` are (id, title) of cards that share words with it; `unchecked` the checks that have nothing to look at
    and must be accepted by name."""

    unit: str
    path: str
    commit: str
    nearest: tuple[tuple[str, str], ...] = ()
    unchecked: tuple[str, ...] = ()
    recovered: str = ""

    @property
    def approve(self) -> list[str]:
        """The command line that lets it in as new."""
        accepted = [part for check in self.unchecked for part in ("--accept-unchecked", check)]
        return ["khms", "approve", self.unit, LABEL, "--relation", f"{LABEL}=new", *accepted]


def card_type(name: str, config: Config) -> CardType:
    """The type that `name` means; raises Usage naming those there are."""
    types = card_types(config)
    found = types.get(canonical_type(name))
    if found is None:
        raise Usage(f"there is no card type {name!r}", hint="types: " + ", ".join(types))
    return found


def skeleton(kind: CardType) -> str:
    """The body that an editor opens with: the type's labels, each to be filled or taken out."""
    return "".join(f"{label}: \n" for label in kind.labels) or "\n"


def propose(base: Base, repo: Repo, config: Config, draft: Draft) -> Proposed:
    """Publishes the draft as a unit with one candidate, in one commit. Raises Usage or Refused for what no reviewer
    could approve; then nothing was written."""
    kind = card_type(draft.type, config)
    _demand(draft, kind)
    with exclusive(repo, "card new") as tx:
        candidate = _candidate(base, draft, kind, _nearest(base, draft, config))
        unit = _name(base)
        data = markdown.render(candidate.meta, candidate.body).encode("utf-8")
        folder = inbox.unit_path(unit)
        changes: dict[str, bytes | None] = {f"{folder}/{LABEL}.md": data}
        changes[f"{folder}/REPORT.md"] = _report(unit, candidate).encode("utf-8")
        digests = {p.rpartition("/")[2]: hashlib.sha256(d).hexdigest() for p, d in changes.items() if d is not None}
        changes[f"{folder}/unit.json"] = _unit(digests)
        commit = tx.commit(changes, f"Propose a card: {candidate.title}\n", what="card new")
        recovered = str(tx.recovered) if tx.recovered else ""
    shelf = cards.shelf(base)
    return Proposed(
        unit=unit,
        path=f"{folder}/{LABEL}.md",
        commit=commit,
        nearest=tuple((i, shelf.cards[i].title) for i in candidate.nearest if i in shelf.cards),
        unchecked=_unchecked(candidate),
        recovered=recovered,
    )


def _demand(draft: Draft, kind: CardType) -> None:
    if not draft.body.strip():
        raise Usage("a card needs a body", hint="--body 'text' through a pipe: --body -, --body FILE, or --open")
    if not (draft.title.strip() or first_label(draft.body)):
        raise Usage("a card needs a title", hint="--title 'the claim in one line'")
    if draft.evidence and draft.evidence not in EVIDENCE:
        raise Usage(f"{draft.evidence!r} is no evidence", hint="one of: " + ", ".join(EVIDENCE))
    if kind.level == "observation" and not (draft.evidence and draft.source.strip()):
        raise Usage(
            f"a card of type {kind.name} says how it is known",
            hint="--evidence measured|observed|reported  --source 'a path with its line, a URL, a session, a commit'",
        )
    for name, text in (("title", draft.title), ("body", draft.body), ("source", draft.source)):
        for _, _, shape in key_shapes(text):
            raise Refused(
                f"the {name} holds what looks like a secret ({shape})", hint="take it out; nothing was written"
            )


def _nearest(base: Base, draft: Draft, config: Config) -> tuple[str, ...]:
    shelf = cards.shelf(base)
    known = (Document(c.id, c.title, c.body, c.type, c.status, c.tags) for c in shelf.cards.values())
    near = Nearby(known).nearest(f"{draft.title}\n{draft.body}", config["nightly.nearest"])
    return tuple(hit.document.id for hit in near)


def _candidate(base: Base, draft: Draft, kind: CardType, nearest: Sequence[str]) -> Candidate:
    title = " ".join((draft.title or first_label(draft.body)).split())
    meta: dict[str, Any] = {
        "id": LABEL,
        "type": kind.name,
        "level": kind.level,
        "status": "active",
        "title": title,
        "tags": list(draft.tags),
        "scope": draft.scope or "universal",
        "evidence": draft.evidence or None,
        "source": draft.source.strip() or None,
        "date": datetime.date.today().isoformat(),
        "links": {name: None if name == "supersedes" else [] for name in RELATIONS},
        "mark": None,
        "confidence": None,
        "nearest": list(nearest),
        "relation": Relation().as_meta(),
        "quotes": [],
        "flags": [f"agent:{agent_host()}"] if agent_host() else [],
    }
    if kind.level == "derived":
        for key in ("evidence", "source"):
            if meta[key] is None:
                del meta[key]
    body = draft.body.replace("\r\n", "\n").strip("\n") + "\n"
    candidate = Candidate(LABEL, meta, body)
    said = _QUOTED.match(draft.source.strip())
    if said:
        quote = Quote(said["place"], said["words"])
        meta["quotes"] = [quotes.graded(quotes.Reader(base), candidate, quote).as_meta()]
    return candidate


def _unchecked(candidate: Candidate) -> tuple[str, ...]:
    if candidate.quotes:
        return ()
    return ("quotes", "specifics") if any(True for _ in specifics.named(candidate.body)) else ("quotes",)


def _name(base: Base) -> str:
    """The first free name of the day; in a shared base with the clone's letters, so that two machines never meet."""
    clone = journal.clone_id(base)
    stem = f"{datetime.date.today().isoformat()}-manual"
    number = 1
    while True:
        name = stem + (f"-{number}" if number > 1 else "") + (f".{clone}" if clone else "")
        if not base.path(inbox.unit_path(name)).exists():
            return name
        number += 1


def _report(unit: str, candidate: Candidate) -> str:
    near = ", ".join(candidate.nearest) or "none"
    return (
        f"# {unit}\n\nOne candidate that a person wrote. Nobody judged its relation; cards that share words: {near}.\n"
        f"Quotes: {len(candidate.quotes) or 'none, so there is nothing to look up'}.\n"
    )


def _unit(digests: Mapping[str, str]) -> bytes:
    value: dict[str, Any] = {
        "schema": "khms.unit/1",
        "run": new_ulid(),
        "created": now(),
        "proposer": f"agent:{agent_host()}" if agent_host() else "person",
        "sources": [],
        "models": [],
        "counts": {"published": 1},
        "cost_usd": None,
        "stopped_by": None,
        "files": dict(sorted(digests.items())),
        "checks": {},
    }
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8")
