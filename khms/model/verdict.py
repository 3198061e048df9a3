"""The verdict: a proposer's answer about one MARK, as a value and as the JSON document that carries it.

`schemas/verdict.schema.json` is the definition; `verdict_from` takes what is valid under it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from khms.model.candidate import Quote, Relation
from khms.model.card import as_list, as_text

NEW, ATTACH, CORRECT, ALREADY, NOT = "new", "attach", "correct", "already-carded", "not-carded"
VERDICTS = (NEW, ATTACH, CORRECT, ALREADY, NOT)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The card that a verdict proposes; an empty `type` leaves it to the MARK's kind."""

    title: str
    body: str
    type: str = ""
    tags: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"title": self.title, "body": self.body, "tags": list(self.tags)}
        return {"type": self.type, **found} if self.type else found


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind` is one of VERDICTS. new has a proposal, quotes and a relation; attach the label `to`, a `text` and quotes;
    correct the card `corrects`, `how` (supersedes or contradicts), `because`, a proposal and quotes; already-carded the
    `card`; not-carded a `reason`."""

    kind: str
    proposal: Proposal | None = None
    quotes: tuple[Quote, ...] = ()
    relation: Relation | None = None
    to: str = ""
    text: str = ""
    corrects: str = ""
    how: str = ""
    because: str = ""
    card: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """The document, without keys that say nothing."""
        found: dict[str, Any] = {"verdict": self.kind}
        if self.proposal is not None:
            found["candidate"] = self.proposal.as_json()
        if self.kind in (NEW, ATTACH, CORRECT):
            found["quotes"] = [{"source": quote.source, "text": quote.text} for quote in self.quotes]
        if self.relation is not None:
            found["relation"] = self.relation.as_meta()
        said = ("to", "text", "corrects", "how", "because", "card", "reason")
        return found | {name: value for name in said if (value := getattr(self, name))}

    @property
    def says(self) -> str:
        """What the verdict points to, in a few words: the reason that its receipt records."""
        return self.reason or self.because or self.card


def verdict_from(value: Mapping[str, Any]) -> Verdict:
    """The verdict that a document holds which is valid under the schema."""
    candidate = value.get("candidate")
    proposal = None
    if isinstance(candidate, Mapping):
        fields = {key: as_text(candidate.get(key)) for key in ("title", "body", "type")}
        proposal = Proposal(**fields, tags=as_list(candidate.get("tags")))
    relation = value.get("relation")
    quotes = value.get("quotes")
    said = ("to", "text", "corrects", "how", "because", "card", "reason")
    return Verdict(
        kind=as_text(value.get("verdict")),
        proposal=proposal,
        quotes=tuple(
            Quote(as_text(quote.get("source")), as_text(quote.get("text")))
            for quote in (quotes if isinstance(quotes, list) else [])
            if isinstance(quote, Mapping)
        ),
        relation=Relation(**{k: as_text(relation.get(k)) for k in ("kind", "target", "nearest", "because")})
        if isinstance(relation, Mapping)
        else None,
        **{name: as_text(value.get(name)) for name in said},
    )
