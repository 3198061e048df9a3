"""A review as values: where a reviewer stands in a unit and what they decided, and what one act makes of that.

Nothing here reads, writes, prints or asks. A terminal drives it, and so can a page: look at `Review.current`, show its
`View`, take one `Act`, go on with what `step` returns, until `current` is None; then `wish` and `withheld` say what is
to be carried out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from khms.errors import Usage
from khms.model.candidate import ABSENT, Candidate, Quote, Relation
from khms.model.card import Card, is_card_id
from khms.model.finding import Finding
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome
from khms.pipeline.carding import LINKING, is_label, settled
from khms.pipeline.ruling import Wish

APPROVE, DEFER, DROP = "approve", "defer", "drop"
VERDICTS = (APPROVE, DEFER, DROP)
ACTS = (*VERDICTS, "relate", "waive", "accept", "skip", "keep", "back")
NEEDS_REASON = ("supersedes", "contradicts")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one candidate. `verdict` is empty while it is open; `why` is the reason of a drop or a
    deferral. `relation` is `KIND` or `KIND:TARGET` where the reviewer settled it, `because` its reason; `waived` holds
    (check, reason); `accepted` the checks that may stay not run."""

    verdict: str = ""
    why: str = ""
    relation: str = ""
    because: str = ""
    waived: tuple[tuple[str, str], ...] = ()
    accepted: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "why": self.why,
            "relation": self.relation,
            "because": self.because,
            "waived": dict(self.waived),
            "accepted": list(self.accepted),
        }


def decision_from(value: Mapping[str, Any]) -> Decision:
    """The decision that was kept; what has another form counts as not decided."""
    texts = {key: value.get(key, "") for key in ("verdict", "why", "relation", "because")}
    waived, accepted = value.get("waived", {}), value.get("accepted", [])
    sound = (
        all(isinstance(text, str) for text in texts.values())
        and texts["verdict"] in ("", *VERDICTS)
        and isinstance(waived, dict)
        and all(isinstance(why, str) for why in waived.values())
        and isinstance(accepted, list)
        and all(isinstance(check, str) for check in accepted)
    )
    return Decision(**texts, waived=tuple(waived.items()), accepted=tuple(accepted)) if sound else Decision()


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that a reviewer does to the candidate before them. `what` is a relation (`new`, `supports:K-00003`) or
    the name of a check; `why` the reason."""

    do: str
    what: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A quote with what looking it up finds now: the file and line where it stands, and the rows around it, each with
    whether it holds a part of the quote. `lost` says why its source cannot be looked into; the grade and the rows are
    then what the candidate brought along."""

    quote: Quote
    where: str
    rows: tuple[tuple[bool, str], ...]
    lost: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A candidate as a reviewer sees it under the decision so far. `relation` is the one that counts; `target` the card
    that it names; `near` the nearest cards. `outcomes` is what each check says, `faults` all that keeps the candidate
    out as it stands, the cards that it would make included."""

    candidate: Candidate
    sha256: str
    single: bool
    places: tuple[Place, ...]
    near: tuple[Card, ...]
    relation: Relation
    target: Card | None
    outcomes: tuple[Outcome, ...]
    faults: tuple[Finding, ...]

    @property
    def unjudged(self) -> bool:
        """Whether nobody has said yet how it stands to what is known; to approve it says that it is new."""
        return self.relation.kind == "unjudged" and not self.single

    def failed(self) -> tuple[str, ...]:
        """The checks that failed and can be waived whole, by name."""
        bad = [outcome for outcome in self.outcomes if outcome.state == FAIL]
        stuck = {outcome.check for outcome in bad if not outcome.waivable}
        return tuple(dict.fromkeys(outcome.check for outcome in bad if outcome.check not in stuck))

    def not_run(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(outcome.check for outcome in self.outcomes if outcome.state == NOT_RUN))

    def told(self) -> tuple[Outcome, ...]:
        """What the checks want a reviewer to know: all that is no plain pass."""
        return tuple(outcome for outcome in self.outcomes if outcome.state != PASS or outcome.message)


def flagged(candidate: Candidate, looked_up: Iterable[Quote]) -> bool:
    """Whether a reviewer should look at it first: it says so itself, or one of its quotes stands nowhere."""
    return bool(candidate.flags) or any(quote.grade == ABSENT for quote in looked_up)


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate of the review: its label, the hash of the bytes that were looked at, what was decided. `skipped`
    says that it was passed over in this sitting."""

    label: str
    sha256: str
    decision: Decision = Decision()
    skipped: bool = False

    @property
    def open(self) -> bool:
        return not self.decision.verdict and not self.skipped


@dataclass(frozen=True, slots=True)
class Review:
    """`at` is the entry before the reviewer; past the last one, what was decided awaits a word."""

    unit: str
    entries: tuple[Entry, ...]
    at: int = 0

    @property
    def current(self) -> Entry | None:
        return self.entries[self.at] if self.at < len(self.entries) else None

    def entry(self, label: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.label == label), None)

    def decided(self, verdict: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.decision.verdict == verdict)

    @property
    def left(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if not entry.decision.verdict)


@dataclass(frozen=True, slots=True)
class Renewed:
    """A review brought up to the files as they are: `gone` are labels that no longer await a decision, `changed` those
    whose bytes differ from those that were decided on."""

    review: Review
    gone: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def begin(unit: str, found: Iterable[tuple[str, str]], kept: Mapping[str, Decision]) -> Review:
    """A review of (label, hash) in this order, with what was decided in an earlier sitting; it stands at the first
    candidate that is open."""
    entries = tuple(Entry(label, sha256, kept.get(label, Decision())) for label, sha256 in found)
    return _to_open(Review(unit, entries))


def _to_open(review: Review) -> Review:
    at = next((i for i, entry in enumerate(review.entries) if entry.open), len(review.entries))
    return replace(review, at=at)


def step(review: Review, act: Act, view: View) -> Review:
    """The review after one act on the current candidate, which `view` shows. Raises Usage, in a reviewer's words, for
    what cannot be decided like that; nothing is decided then."""
    entry = review.current
    if act.do == "back":
        if review.at == 0:
            raise Usage("this is the first candidate")
        return replace(review, at=review.at - 1)
    if entry is None or entry.sha256 != view.sha256:
        raise Usage("the candidate changed in between; look at it again")
    if act.do == "skip":
        return _onward(review, replace(entry, decision=replace(entry.decision, verdict="", why=""), skipped=True))
    if act.do == "keep":
        if entry.open:
            raise Usage("nothing is decided about it yet")
        return replace(review, at=review.at + 1)
    decided = replace(entry, decision=_decided(entry.decision, act, view), skipped=False)
    return _onward(review, decided) if act.do in VERDICTS else _put(review, decided)


def _decided(held: Decision, act: Act, view: View) -> Decision:
    """The decision with the act's part changed. What changes the checks' answer opens the verdict again."""
    if act.do == APPROVE:
        if view.faults:
            raise Usage(f"it cannot come in as it stands: {view.faults[0].message}")
        return replace(held, verdict=APPROVE, why="", relation=held.relation or ("new" if view.unjudged else ""))
    if act.do == DEFER:
        return replace(held, verdict=DEFER, why=act.why.strip())
    if act.do == DROP:
        return replace(held, verdict=DROP, why=_reason(act, "a drop"))
    opened = replace(held, verdict="", why="")
    if act.do == "relate":
        return replace(opened, relation=_relation(act, view), because=act.why.strip())
    if act.do == "waive":
        if act.what not in view.failed():
            stuck = any(outcome.check == act.what and outcome.state == FAIL for outcome in view.outcomes)
            raise Usage(f"{act.what} cannot be waived" if stuck else f"{act.what} did not fail")
        why = _reason(act, "a waiver")
        return replace(opened, waived=(*(row for row in held.waived if row[0] != act.what), (act.what, why)))
    if act.do == "accept":
        if act.what not in view.not_run():
            raise Usage(f"{act.what} was run")
        return replace(opened, accepted=tuple(dict.fromkeys((*held.accepted, act.what))))
    raise Usage(f"there is no act {act.do!r}", hint="one of: " + ", ".join(ACTS))


def _reason(act: Act, what: str) -> str:
    if not act.why.strip():
        raise Usage(f"{what} needs its reason")
    return act.why.strip()


def _relation(act: Act, view: View) -> str:
    kind, _, target = act.what.partition(":")
    if view.single and kind == "unjudged":
        raise Usage("an older unit's candidates carry no relation")
    if kind not in ("new", *LINKING):
        raise Usage(f"{kind!r} is no relation", hint="one of: new, " + ", ".join(LINKING))
    if kind == "new":
        return "new"
    if not (is_card_id(target) or is_label(target)):
        raise Usage(f"{kind} what? it names a card, such as K-00008" if not target else f"{target!r} is no card's id")
    if kind in NEEDS_REASON:
        _reason(act, "a correction")
    return f"{kind}:{target}"


def _put(review: Review, entry: Entry) -> Review:
    entries = (*review.entries[: review.at], entry, *review.entries[review.at + 1 :])
    return replace(review, entries=entries)


def _onward(review: Review, entry: Entry) -> Review:
    """The entry put in place, and on to the next open one; after the last to an open one before it, else to the end."""
    put = _put(review, entry)
    later = (i for i in range(review.at + 1, len(put.entries)) if put.entries[i].open)
    at = next(later, None)
    return _to_open(put) if at is None else replace(put, at=at)


def renewed(review: Review, found: Iterable[tuple[str, str]], *, own: str = "") -> Renewed:
    """The review over the candidates as they are now. A decision about other bytes does not count, but for the relation
    of the candidate `own` that the reviewer edited; candidates that came up meanwhile stand at the end."""
    now = dict(found)
    gone = tuple(entry.label for entry in review.entries if entry.label not in now)
    changed = tuple(e.label for e in review.entries if e.label in now and now[e.label] != e.sha256)
    entries = [
        Entry(entry.label, now[entry.label], _again(entry, own)) if entry.label in changed else entry
        for entry in review.entries
        if entry.label in now
    ]
    known = {entry.label for entry in review.entries}
    entries += [Entry(label, sha256) for label, sha256 in now.items() if label not in known]
    at = sum(entry.label in now for entry in review.entries[: review.at])
    fresh = Review(review.unit, tuple(entries), at)
    return Renewed(fresh if fresh.current else _to_open(fresh), gone, changed)


def _again(entry: Entry, own: str) -> Decision:
    held = entry.decision
    return Decision(relation=held.relation, because=held.because) if entry.label == own else Decision()


def at(review: Review, label: str) -> Review:
    """The review with that candidate before the reviewer, its verdict open again."""
    for i, entry in enumerate(review.entries):
        if entry.label == label:
            opened = replace(entry, decision=replace(entry.decision, verdict="", why=""), skipped=False)
            return replace(_put(replace(review, at=i), opened), at=i)
    return review


def settled_as(candidate: Candidate, decision: Decision) -> Relation:
    """The relation that counts under a decision."""
    return settled(candidate, decision.relation or None, decision.because)


def wish(review: Review, labels: Iterable[str], *, here: bool = False) -> Wish:
    """What the approval of these candidates is asked for: every reason at its own place, and the bytes that were
    looked at."""
    chosen = [entry for label in labels if (entry := review.entry(label))]
    return Wish(
        labels=tuple(entry.label for entry in chosen),
        relations={e.label: e.decision.relation for e in chosen if e.decision.relation},
        because={e.label: e.decision.because for e in chosen if e.decision.because},
        waived={(check, e.label): why for e in chosen for check, why in e.decision.waived},
        accepted=frozenset(f"{check}:{e.label}" for e in chosen for check in e.decision.accepted),
        here=here,
        seen={e.label: e.sha256 for e in chosen},
    )


@dataclass(frozen=True, slots=True)
class Withholding:
    """Candidates that are dropped or deferred for one reason."""

    verdict: str
    why: str
    labels: tuple[str, ...] = field(default=())


def withheld(review: Review) -> tuple[Withholding, ...]:
    """What is to be put off or refused, one withholding a reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for verdict in (DROP, DEFER):
        for entry in review.decided(verdict):
            groups.setdefault((verdict, entry.decision.why), []).append(entry.label)
    return tuple(Withholding(verdict, why, tuple(labels)) for (verdict, why), labels in groups.items())
