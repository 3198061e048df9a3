"""A person's own candidate: `khms card new` puts one card into the inbox, for the same approval as every other."""

import datetime
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from khms.check.lint import lint
from khms.check.rulebook import PROPOSAL
from khms.config import Config
from khms.errors import Refused, Usage
from khms.hosts.environment import agent_host
from khms.model.candidate import Candidate, Quote, Relation
from khms.model.card import EVIDENCE, RELATIONS, CardType, canonical_type, card_types, first_label
from khms.model.finding import Finding
from khms.model.outcome import FAIL, NOT_RUN, Outcome, merged
from khms.model.ulid import new_ulid
from khms.pipeline import checks, quotes
from khms.pipeline.checks import SECRET
from khms.pipeline.draft import outcomes_json
from khms.pipeline.duplicates import claims_of
from khms.pipeline.nearest import Document, Nearby
from khms.pipeline.record import now
from khms.pipeline.report import cell
from khms.store import cards, inbox, journal, markdown
from khms.store.cards import Shelf
from khms.store.commit import exclusive
from khms.store.layout import Base
from khms.store.receipts import ledger
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
    derived_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """`nearest` are (id, title) of cards that share words with it; `checks` the outcome of each check as it would be at
    an approval as new; `findings` what lint has against it."""

    unit: str
    path: str
    commit: str
    nearest: tuple[tuple[str, str], ...] = ()
    checks: Mapping[str, Outcome] = field(default_factory=dict)
    recovered: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether an approval of the candidate as it is would be refused for what lint found."""
        return any(finding.severity == "error" or finding.code in PROPOSAL for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": "khms.card-new/1",
            "unit": self.unit,
            "label": LABEL,
            "path": self.path,
            "commit": self.commit,
            "nearest": [{"id": card, "title": title} for card, title in self.nearest],
            "checks": {name: outcome.state for name, outcome in self.checks.items()},
            "findings": [finding.as_json() for finding in self.findings],
        }

    @property
    def approve(self) -> list[str]:
        """The command line that lets it in as new; what had nothing to look at is accepted by name."""
        unchecked = [name for name, outcome in self.checks.items() if outcome.state == NOT_RUN]
        accepted = [part for name in unchecked for part in ("--accept-unchecked", name)]
        return ["khms", "approve", self.unit, LABEL, "--relation", f"{LABEL}=new", *accepted]


def card_type(name: str, config: Config) -> CardType:
    """The type that `name` means; raises Usage naming those there are."""
    types = card_types(config["cards.types"])
    found = types.get(canonical_type(name))
    if found is None:
        raise Usage(f"there is no card type {name!r}", hint="types: " + ", ".join(types))
    return found


def skeleton(kind: CardType) -> str:
    """The body that an editor opens with: the type's labels, each to be filled or taken out."""
    return "".join(f"{label}: \n" for label in kind.labels) or "\n"


def propose(base: Base, repo: Repo, config: Config, draft: Draft, *, agent: str | None = None) -> Proposed:
    """Publishes the draft as a unit with one candidate, in one commit. `agent` names the agent host that wrote it,
    empty for a person; where it is not given, the environment tells. Raises Usage or Refused for what no reviewer could
    approve; then nothing was written."""
    kind = card_type(draft.type, config)
    author = agent_host() if agent is None else agent
    _demand(draft, kind)
    with exclusive(repo, "proposal of a card") as tx:
        shelf = cards.shelf(base)
        _demand_cards(draft, shelf)
        candidate = _candidate(base, draft, kind, _nearest(draft, shelf, config), author)
        unit = _name(base)
        folder = inbox.unit_path(unit)
        data = markdown.render(candidate.meta, candidate.body).encode("utf-8")
        outcomes = _checked(base, config, candidate, unit, shelf)
        made = {f"{LABEL}.md": data, "REPORT.md": _report(unit, candidate, outcomes, author).encode("utf-8")}
        made["unit.json"] = _unit(made, outcomes, author)
        changes: dict[str, bytes | None] = {f"{folder}/{name}": held for name, held in made.items()}
        commit = tx.commit(changes, f"Propose a card: {candidate.title}\n", what="proposal of a card")
        recovered = str(tx.recovered) if tx.recovered else ""
    return Proposed(
        unit=unit,
        path=f"{folder}/{LABEL}.md",
        commit=commit,
        nearest=tuple((i, shelf.cards[i].title) for i in candidate.nearest if i in shelf.cards),
        checks=outcomes,
        recovered=recovered,
        findings=lint(base, config, repo, paths=[f"{folder}/{LABEL}.md"]).findings,
    )


def _checked(base: Base, config: Config, candidate: Candidate, unit: str, shelf: Shelf) -> dict[str, Outcome]:
    """Every check but that of the relation, which a reviewer settles. Raises Refused for a secret: git keeps what it
    once held."""
    held = inbox.Unit(unit, inbox.unit_path(unit), single=False, candidates=(candidate,))
    claims = claims_of(shelf.cards.values())
    found = merged(checks.examine(base, held, candidate, Relation("new"), shelf.cards, claims, config, settled=True))
    screened = found.get("screening")
    if screened and screened.state == FAIL and SECRET in screened.message.split():
        raise Refused(
            "this holds what looks like a secret; nothing was written", where=screened.message, hint="take it out"
        )
    found.pop("relations", None)
    return found


def _demand(draft: Draft, kind: CardType) -> None:
    if not draft.body.strip():
        raise Usage(
            "a card needs a body",
            hint="--body FILE, --open for your editor, or through a pipe: echo 'the text' | khms card new … --body -",
        )
    if not (draft.title.strip() or first_label(draft.body)):
        raise Usage("a card needs a title", hint="--title 'the claim in one line'")
    if draft.evidence and draft.evidence not in EVIDENCE:
        raise Usage(f"{draft.evidence!r} is no evidence", hint="one of: " + ", ".join(EVIDENCE))
    if kind.level == "observation" and not (draft.evidence and draft.source.strip()):
        raise Usage(
            f"a card of type {kind.name} says how it is known",
            hint="--evidence measured|observed|reported  --source 'a path with its line, a URL, a session, a commit'",
        )
    if kind.level == "derived" and not draft.derived_from:
        raise Usage(f"a card of type {kind.name} says what it follows from", hint="--derived-from K-… (several times)")


def _demand_cards(draft: Draft, shelf: Shelf) -> None:
    missing = [card_id for card_id in draft.derived_from if card_id not in shelf.cards]
    if missing:
        raise Usage(f"there is no card {', '.join(missing)}", hint="khms card list shows what there is")


def _nearest(draft: Draft, shelf: Shelf, config: Config) -> tuple[str, ...]:
    known = (Document(c.id, c.title, c.body, c.type, c.status, c.tags) for c in shelf.cards.values())
    near = Nearby(known).nearest(f"{draft.title}\n{draft.body}", config["nightly.nearest"])
    return tuple(hit.document.id for hit in near)


def _candidate(base: Base, draft: Draft, kind: CardType, nearest: Sequence[str], agent: str) -> Candidate:
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
        "links": {name: None if name == "supersedes" else [] for name in RELATIONS}
        | {"derived_from": list(dict.fromkeys(draft.derived_from))},
        "mark": None,
        "confidence": None,
        "nearest": list(nearest),
        "relation": Relation().as_meta(),
        "quotes": [],
        "flags": [f"agent:{agent}"] if agent else [],
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


def _name(base: Base) -> str:
    """The first free name of the day; in a shared base with the clone's letters, so that two machines never meet."""
    clone = journal.clone_id(base)
    spoken_of = {receipt.unit for receipt in ledger(base).receipts}
    stem = f"{datetime.date.today().isoformat()}-manual"
    number = 1
    while True:
        name = stem + (f"-{number}" if number > 1 else "") + (f".{clone}" if clone else "")
        path = inbox.unit_path(name)
        if not base.path(path).exists() and path not in spoken_of:
            return name
        number += 1


def _report(unit: str, candidate: Candidate, outcomes: Mapping[str, Outcome], agent: str) -> str:
    near = ", ".join(candidate.nearest) or "none"
    lines = [f"# {unit}", "", f"One candidate that {'an agent' if agent else 'a person'} wrote.", ""]
    lines += [f"- relation: nobody judged it; cards that share words with it: {near}"]
    for name, outcome in outcomes.items():
        lines.append(f"- {name}: {outcome.state}" + (f", {cell(outcome.message, 200)}" if outcome.message else ""))
    return "\n".join(lines) + "\n"


def _unit(made: Mapping[str, bytes], outcomes: Mapping[str, Outcome], agent: str) -> bytes:
    value: dict[str, Any] = {
        "schema": "khms.unit/1",
        "run": new_ulid(),
        "created": now(),
        "proposer": f"agent:{agent}" if agent else "person",
        "sources": [],
        "models": [],
        "counts": {"published": 1},
        "cost_usd": None,
        "stopped_by": None,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(made.items())},
        "checks": {LABEL: outcomes_json(outcomes)},
    }
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8")
