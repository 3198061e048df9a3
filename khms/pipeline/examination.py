"""Everything that must hold of candidates before they come in, as findings: their form, each check, the cards that they
would make, what their edges do to others, and every lint rule of severity error. Nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from khms.config import Config
from khms.errors import KhmsError
from khms.model.approval import Approved, candidate_sha256, card_sha256
from khms.model.candidate import RELATION_KINDS, Candidate, Relation
from khms.model.card import Card, Links, id_text
from khms.model.finding import Finding
from khms.model.outcome import Outcome
from khms.pipeline import carding, changing, checks, form, samemark
from khms.pipeline.duplicates import Claims
from khms.pipeline.form import fault
from khms.pipeline.quotes import Reader
from khms.pipeline.refusals import refusals
from khms.pipeline.ruling import SECOND, Ruling, Wish
from khms.pipeline.transition import Desk, follow
from khms.store import cards
from khms.store.catalogue import Catalogue
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import ledger

SETTLING = "new|supports:K-…|contradicts:K-…|supersedes:K-…"


@dataclass(frozen=True, slots=True)
class Examined:
    """`desk` holds the cards as they would be, `approved` the new ones; `faults` is all that stands against it;
    `outcomes` is what each check said, `unchecked` what of it the reviewer accepted as not run. The desk's first
    `entering` transitions come of the new cards, the others of proposed changes."""

    desk: Desk
    approved: tuple[Approved, ...]
    faults: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    ruling: Ruling
    entering: int = 0


def examine(
    base: Base,
    config: Config,
    unit: Unit,
    chosen: Sequence[Candidate],
    wish: Wish,
    known: Catalogue,
    first: int,
    already: Mapping[str, str],
) -> Examined:
    """Examines candidates that would come in together, with ids from `first` on. `already` maps the labels that came in
    before to their ids."""
    reasons = {c.label: wish.because.get(c.label) or wish.why for c in chosen}
    relations = {c.label: carding.settled(c, wish.relations.get(c.label), reasons[c.label]) for c in chosen}
    ruling = Ruling(wish)
    faults, unchecked, outcomes = _verify(base, config, unit, chosen, relations, known, ruling)
    desk = Desk(base)
    approved, more = _make(desk, [c for c in chosen if c.change is None], _sound(relations, faults), first, already)
    entering = len(desk.transitions)
    busy = {change.id for change in desk.transitions}
    for candidate in chosen:
        more += [] if candidate.change is None else changing.make(desk, candidate, busy)
    faults += more
    if not more:
        faults += _lint(base, config, desk, known.cards, _made_of(approved, chosen), ruling)
    return Examined(desk, tuple(approved), tuple(faults), unchecked, tuple(outcomes), ruling, entering)


def _verify(
    base: Base,
    config: Config,
    unit: Unit,
    chosen: Sequence[Candidate],
    relations: Mapping[str, Relation],
    known: Catalogue,
    ruling: Ruling,
) -> tuple[list[Finding], tuple[str, ...], list[Outcome]]:
    """Runs every check again on the bytes at hand: what fails and is not waived, what was accepted unchecked, and what
    each check said."""
    faults: list[Finding] = []
    unchecked = []
    said: list[Outcome] = []
    wish = ruling.wish
    claims = Claims(known.claims)
    receipts = ledger(base)
    refused = refusals(base, receipts)
    second = samemark.outcomes(chosen, receipts.receipts)
    reader = Reader(base)
    for candidate in chosen:
        relation = relations[candidate.label]
        faults += _unseen(candidate, wish)
        settled = candidate.label in wish.relations
        if candidate.change is None:
            faults += form.faults(candidate, single=unit.single)
            faults += _unjudged(unit, candidate, relation, wish)
            found = checks.examine(
                base, unit, candidate, relation, known.cards, claims, config, settled=settled, refused=refused
            )
        else:
            wrong = [*changing.form(candidate)]
            wrong += [fault(candidate, "change", "a change has no relation to settle", "leave that out")] * settled
            faults += wrong
            least = config["nightly.same_jaccard"]
            found = [] if wrong else changing.outcomes(base, candidate, known.cards, reader, refused, least)
        found += [second[candidate.label]] if candidate.label in second else []
        said += found
        for outcome in found:
            if outcome.state == "pass":
                continue
            waived = outcome.waivable and ruling.waive(outcome.check, candidate.label)
            if outcome.state == "fail" and not waived:
                faults.append(fault(candidate, outcome.check, outcome.message, _mend(outcome, relation)))
            elif outcome.state == "not-run" and not wish.accepts(outcome.check, candidate.label) and not waived:
                mend = f"--accept-unchecked {outcome.check}"
                faults.append(fault(candidate, outcome.check, f"not checked: {outcome.message}", mend))
            elif outcome.state == "not-run":
                unchecked.append(f"{candidate.label} {outcome.check}: {outcome.message}")
    return faults, tuple(unchecked), said


def _mend(outcome: Outcome, relation: Relation) -> str:
    """How the reviewer can go on from a failed check."""
    if outcome.check == "relations" and relation.kind not in RELATION_KINDS:
        return "one of: " + ", ".join(RELATION_KINDS)
    if outcome.check == SECOND:
        return "--also, if a second card of it is meant"
    if outcome.waivable:
        return f"--waive {outcome.check}:{outcome.label} --why …"
    return f"--relation {outcome.label}={SETTLING}" if outcome.check == "relations" else ""


def _unseen(candidate: Candidate, wish: Wish) -> list[Finding]:
    """A candidate that holds other bytes than those that the reviewer decided on."""
    if wish.seen.get(candidate.label, _sha256(candidate)) == _sha256(candidate):
        return []
    return [fault(candidate, "form", "it changed after you decided on it", "look at it again")]


def _sha256(candidate: Candidate) -> str:
    return candidate_sha256(candidate.text.encode("utf-8"))


def _unjudged(unit: Unit, candidate: Candidate, relation: Relation, wish: Wish) -> list[Finding]:
    if relation.kind != "unjudged" or wish.unjudged or (unit.single and candidate.label not in wish.relations):
        return []
    near = ", ".join(candidate.nearest) or "no card"
    mend = f"--relation {candidate.label}={SETTLING}  or  --unjudged"
    return [fault(candidate, "relations", f"nobody judged its relation (nearest: {near})", mend)]


def _sound(relations: Mapping[str, Relation], faults: Sequence[Finding]) -> dict[str, Relation]:
    """The relations to make cards with. One that has a fault already is left out, or it would be told again in the
    words of whatever stumbles over it next."""
    told = {finding.code for finding in faults}
    return {label: Relation() if f"{label} relations:" in told else held for label, held in relations.items()}


def _make(
    desk: Desk,
    chosen: Sequence[Candidate],
    relations: Mapping[str, Relation],
    first: int,
    already: Mapping[str, str],
) -> tuple[list[Approved], list[Finding]]:
    """Gives ids from `first` on, lays the cards on the desk and follows their edges; returns them and every fault."""
    fresh = {candidate.label: id_text(first + i) for i, candidate in enumerate(chosen)}
    ids = {**already, **fresh}
    faults: list[Finding] = []
    approved = []
    for candidate in chosen:
        if not candidate.title:
            faults.append(fault(candidate, "title", "an approved card has a title", "add `title:` to it"))
            continue
        try:
            made = carding.make(candidate, fresh[candidate.label], relations[candidate.label], ids)
        except KhmsError as error:
            faults.append(fault(candidate, "form", error.message, error.hint))
            continue
        tangled = _tangles(candidate, made.links, fresh)
        if tangled:
            faults += tangled
            continue
        desk.put(made.id, made.text)
        approved.append(Approved(made.id, candidate.label, _sha256(candidate), card_sha256(made.data)))
    by_label = {candidate.label: candidate for candidate in chosen}
    for card in [] if faults else approved:
        try:
            follow(desk, card.id)
        except KhmsError as error:
            faults.append(fault(by_label[card.label], "relations", error.message, error.hint))
    return approved, faults


def _tangles(candidate: Candidate, links: Links, fresh: Mapping[str, str]) -> list[Finding]:
    """Edges that no new card can have: to itself, and to replace another that comes in with it."""
    labels = {card_id: label for label, card_id in fresh.items()}
    found = []
    for name, target in links.edges():
        label = labels.get(target)
        if label == candidate.label:
            said = f"its links.{name} names itself"
        elif label and name == "supersedes":
            said = f"it supersedes {label}, which comes in with it: leave {label} out instead"
        else:
            continue
        found.append(fault(candidate, "relations", said, "take that link out", form.line_of(candidate, "links")))
    return found


def _made_of(approved: Sequence[Approved], chosen: Sequence[Candidate]) -> dict[str, Candidate]:
    """Each new card's path with the candidate that it is made of."""
    by_label = {candidate.label: candidate for candidate in chosen}
    return {cards.know_path(card.id): by_label[card.label] for card in approved}


def _lint(
    base: Base,
    config: Config,
    desk: Desk,
    known: Mapping[str, Card],
    made: Mapping[str, Candidate],
    ruling: Ruling,
) -> list[Finding]:
    """Every lint rule of severity error over the cards as they shall be, told at the place in the candidate (`made`
    maps a card's path to it); findings elsewhere refuse nothing."""
    from khms.check import lint

    changes = desk.changes()
    faults = []
    for finding in lint.proposed(base, config, changes, known):
        candidate = made.get(finding.path)
        if finding.severity != "error":
            continue
        if not (candidate and finding.code == "KH014" and ruling.waive("screening", candidate.label)):
            faults.append(_at_candidate(finding, candidate, changes[finding.path]) if candidate else finding)
    return faults


def _at_candidate(finding: Finding, candidate: Candidate, card: bytes | None) -> Finding:
    """The finding of a card that is not there yet, at the same line of the candidate it is made of."""
    rows = (card or b"").decode("utf-8").split("\n")
    row = rows[finding.line - 1] if 0 < finding.line <= len(rows) else ""
    lines = candidate.text.split("\n")
    above = candidate.text[: len(candidate.text) - len(candidate.body)].count("\n") + 1
    line = lines.index(row) + 1 + candidate.body_line - above if row in lines else candidate.body_line
    return replace(finding, code=f"{candidate.label} {finding.code}", path=candidate.path, line=line)
