"""A unit under review: what awaits a decision in it, what a reviewer is to see of each candidate, what was decided so
far, and the carrying out. The decisions themselves are values of `reviewing`; nothing here prints or asks.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from khms.config import Config
from khms.errors import KhmsError, Refused
from khms.model.approval import Approval, candidate_sha256
from khms.model.candidate import ABSENT, Candidate, Quote
from khms.model.card import Card
from khms.model.finding import Finding
from khms.model.receipt import Receipt
from khms.pipeline import quotes, reviewing
from khms.pipeline.approve import Result, Views, approve, approved_labels, demand_unique, pending
from khms.pipeline.examination import Examined, examine
from khms.pipeline.quotes import Missing, Reader, Source
from khms.pipeline.reviewing import DROP, Decision, Entry, Place, Review, View, Withholding
from khms.pipeline.ruling import Wish
from khms.pipeline.withhold import Withheld, withhold
from khms.store import cards, decisions, files, inbox
from khms.store.catalogue import Catalogue, catalogue
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.markdown import Unreadable
from khms.store.receipts import ledger
from khms.store.repo import Repo

NEAR = 3  # cards that a reviewer is shown beside a candidate
_LABEL = re.compile(r"\bC\d+\b")


@dataclass(frozen=True, slots=True)
class Held:
    """The unit as its files are at one moment."""

    unit: Unit
    records: tuple[Approval, ...]
    waiting: tuple[Candidate, ...]
    known: Catalogue

    @property
    def hashes(self) -> list[tuple[str, str]]:
        return [(candidate.label, sha256_of(candidate)) for candidate in self.waiting]


def sha256_of(candidate: Candidate) -> str:
    return candidate_sha256(candidate.text.encode("utf-8"))


def waiting_units(base: Base) -> Iterator[str]:
    """The names of the units in which something is pending or cannot be read, oldest first."""
    records = cards.approvals(base)
    for unit in inbox.units(base):
        if unit.broken or pending(base, unit, records):
            yield unit.name


@dataclass
class Docket:
    """One unit on a reviewer's desk. `here` lets the approval be made on the branch at hand."""

    base: Base
    repo: Repo
    config: Config
    name: str
    here: bool = False

    def read(self) -> Held:
        """The unit as it is now. Raises Refused where it is gone or two candidates share a label."""
        unit = inbox.find(self.base, self.name)
        demand_unique(unit)
        records = cards.approvals(self.base)
        return Held(unit, tuple(records), tuple(pending(self.base, unit, records)), catalogue(self.base))

    def begin(self, held: Held) -> Review:
        """The review as an earlier sitting left it, flagged candidates first."""
        kept = {}
        for label, sha256 in held.hashes:
            value = decisions.kept(self.base, held.unit.path, label, sha256)
            if value is not None:
                kept[label] = reviewing.decision_from(value)
        reader = Reader(self.base)
        looked_up = {c.label: [quotes.graded(reader, c, quote) for quote in quotes.of(c)] for c in held.waiting}
        order = sorted(held.waiting, key=lambda c: not reviewing.flagged(c, looked_up[c.label]))
        return reviewing.begin(held.unit.path, [(c.label, sha256_of(c)) for c in order], kept)

    def keep(self, review: Review, label: str) -> None:
        """Makes what was decided about a candidate durable."""
        entry = review.entry(label)
        if entry is not None and entry.decision == Decision():
            decisions.forget(self.base, review.unit, label)
        elif entry is not None:
            decisions.keep(self.base, review.unit, entry.label, entry.sha256, entry.decision.as_json())

    def forget(self, review: Review, labels: Iterable[str]) -> None:
        for label in labels:
            decisions.forget(self.base, review.unit, label)

    def view(self, held: Held, review: Review, entry: Entry) -> View:
        """What is to be seen of the candidate under the decision so far; raises Refused where it is no longer there."""
        candidate = next((c for c in held.waiting if c.label == entry.label), None)
        if candidate is None:
            raise Refused(f"{entry.label} is no longer pending", where=held.unit.path)
        relation = reviewing.settled_as(candidate, entry.decision)
        assumed = entry
        if relation.kind == "unjudged" and not held.unit.single:
            assumed = replace(entry, decision=replace(entry.decision, relation="new"))
        found = self._examined(held, review, assumed, _companions(held, candidate))
        reader = Reader(self.base)
        return View(
            candidate=candidate,
            sha256=sha256_of(candidate),
            single=held.unit.single,
            places=tuple(_place(reader, candidate, quote) for quote in quotes.of(candidate)),
            near=self._near(held, candidate),
            relation=relation,
            target=self._card(held, relation.target),
            outcomes=tuple(outcome for outcome in found.outcomes if outcome.label == entry.label),
            faults=tuple(fault for fault in found.faults if label_of(fault, [entry.label])),
        )

    def _examined(self, held: Held, review: Review, entry: Entry, chosen: Sequence[Candidate]) -> Examined:
        entries = tuple(entry if other.label == entry.label else other for other in review.entries)
        asked = reviewing.wish(replace(review, entries=entries), [c.label for c in chosen])
        return self._examine(held, chosen, asked)

    def _examine(self, held: Held, chosen: Sequence[Candidate], asked: Wish) -> Examined:
        first = cards.greatest_id(held.known.paths, held.records) + 1
        already = approved_labels(held.records, held.unit.path)
        return examine(self.base, self.config, held.unit, chosen, asked, held.known, first, already)

    def _card(self, held: Held, card_id: str) -> Card | None:
        """The card with its body; None where there is none that can be read."""
        known = held.known.cards.get(card_id)
        try:
            return cards.load(self.base, known.path) if known else None
        except Unreadable:
            return None

    def _near(self, held: Held, candidate: Candidate) -> tuple[Card, ...]:
        """The nearest cards: those that the proposer named, else those that share its words."""
        named = [card_id for card_id in candidate.nearest if card_id in held.known.cards]
        found = (self._card(held, card_id) for card_id in (named or self._like(candidate))[:NEAR])
        return tuple(card for card in found if card is not None)

    def _like(self, candidate: Candidate) -> list[str]:
        from khms.recall.search import recall

        asked = f"{candidate.title}\n{candidate.body}"
        try:
            hits = recall(self.base, asked, config=self.config, as_text=True, snippets=False, refresh=True)
        except KhmsError:  # only the beside is missing then
            return []
        return [hit.id for hit in hits if hit.kind == "card"]

    def bytes_of(self, candidate: Candidate) -> bytes:
        return files.read(self.base.path(candidate.path))

    def put_back(self, candidate: Candidate, data: bytes) -> None:
        """Gives the candidate's file the bytes that it had before."""
        path = self.base.path(candidate.path)
        files.make_folder(path.parent)
        files.write_atomic(path, data)

    def faults(self, held: Held, review: Review) -> tuple[Finding, ...]:
        """What would keep the approved candidates out, all of them together, as the files are now."""
        labels = [entry.label for entry in review.decided(reviewing.APPROVE)]
        chosen = [candidate for candidate in held.waiting if candidate.label in labels]
        return self._examine(held, chosen, reviewing.wish(review, labels)).faults if chosen else ()

    def withhold(self, review: Review) -> Iterator[tuple[Withholding, Withheld]]:
        """Drops and defers what was decided so, one commit a reason."""
        for group in reviewing.withheld(review):
            verdict = "rejected" if group.verdict == DROP else "deferred"
            done = withhold(
                self.base, self.repo, self.config, self.name, group.labels, verdict, group.why, here=self.here
            )
            self.forget(review, group.labels)
            yield group, done

    def approve(self, review: Review, views: Views) -> Result | None:
        """Lets the approved candidates in, all or none, by the one way there is; None where there are none."""
        labels = [entry.label for entry in review.decided(reviewing.APPROVE)]
        if not labels:
            return None
        asked = reviewing.wish(review, labels, here=self.here)
        result = approve(self.base, self.repo, self.config, self.name, asked, views)
        self.forget(review, labels)
        return result

    def fate(self, held: Held, label: str) -> str:
        """What became of a candidate that no longer awaits a decision."""
        for record in held.records:
            for card in record.cards:
                if record.unit == held.unit.path and card.label == label:
                    return f"was approved as {card.id} by {record.reviewer}"
        receipt: Receipt | None = ledger(self.base).reviewed().get((held.unit.path, label))
        if receipt is not None:
            return f"was {receipt.verdict}" + (f": {receipt.reason}" if receipt.reason else "")
        if any(problem.path.endswith(f"/{label}.md") for problem in held.unit.broken):
            return "cannot be read any more"
        return "is gone from the unit"


def label_of(fault: Finding, labels: Sequence[str]) -> str:
    """The candidate that a fault is about; empty where it is about none of these."""
    label = fault.code.partition(" ")[0]
    return label if label in labels else ""


def _companions(held: Held, candidate: Candidate) -> list[Candidate]:
    """The candidate with those that it names, and those that these name: they would have to come in together."""
    by_label = {other.label: other for other in held.waiting}
    found = {candidate.label}
    asked = [candidate]
    while asked:
        named = {label for label in _LABEL.findall(asked.pop().text) if label in by_label} - found
        found |= named
        asked += [by_label[label] for label in named]
    return [other for other in held.waiting if other.label in found]


def _place(reader: Reader, candidate: Candidate, quote: Quote) -> Place:
    """The quote with the place where it stands now; of a source that is gone, what was kept."""
    graded = quotes.graded(reader, candidate, quote)
    found = reader.find(quote.source, candidate)
    where, lost = quote.source, ""
    if isinstance(found, Missing):
        lost = found.why
    else:
        for source in found:
            grade, first, _ = source.look_up(quote.text)
            if grade != ABSENT:
                where = f"{source.shown}:{first}"
                break
    rows = graded.context.split("\n") if graded.context else []
    _, first, last = Source("", graded.context, "").look_up(quote.text)
    return Place(graded, where, tuple((first <= number <= last, row) for number, row in enumerate(rows, 1)), lost)
