"""What is verified about a candidate, without a model: a literal registry of checks, used when a unit is made and again
when it is approved. A check is one function and one row.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from khms.check.screening import Hit, screen
from khms.config import Config
from khms.model.candidate import Candidate, Relation
from khms.model.card import Card
from khms.model.outcome import FAIL, PASS, Outcome
from khms.pipeline import duplicates, quotes, relations, specifics
from khms.pipeline.duplicates import Bodies, Claims
from khms.pipeline.quotes import Reader
from khms.pipeline.refusals import Refusals, refusals, unit_name
from khms.store.inbox import Unit
from khms.store.layout import Base
from khms.store.receipts import ledger

SECRET = "secret"  # the kind of what screening finds that must be written nowhere


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate with all that the checks ask about. `relation` is the one that counts and `settled` says that a
    reviewer gave it; `single` marks an older single-file unit; `labels` are the unit's; `least` is the Jaccard index
    from which two bodies say the same; `refused` is what reviewers refused before."""

    candidate: Candidate
    relation: Relation
    cards: Mapping[str, Card]
    bodies: Bodies | Claims
    reader: Reader
    least: float
    labels: Collection[str] = ()
    settled: bool = False
    single: bool = False
    refused: Refusals = field(default_factory=Refusals)


def _quotes(case: Case) -> list[Outcome]:
    if case.single and not quotes.of(case.candidate):
        return []
    return quotes.check(case.reader, case.candidate)


def _specifics(case: Case) -> list[Outcome]:
    return [] if case.single else [specifics.check(case.candidate)]


def _relations(case: Case) -> list[Outcome]:
    if case.single and not case.settled:
        return []
    return [
        relations.check(case.candidate, case.relation, case.cards, labels=case.labels, settled=case.settled),
    ]


def _duplicates(case: Case) -> list[Outcome]:
    return [duplicates.check(case.candidate, case.relation, case.cards, case.bodies, case.least)]


def _screening(case: Case) -> list[Outcome]:
    hits = screen("\n\n".join(texts(case.candidate)))
    beside = "\n\n".join(dict.fromkeys(quote.context for quote in case.candidate.quotes))
    hits += [hit for hit in screen(beside) if hit.kind == SECRET]
    return screened(case.candidate, hits)


CHECKS: dict[str, Callable[[Case], list[Outcome]]] = {
    "quotes": _quotes,
    "specifics": _specifics,
    "relations": _relations,
    "duplicates": _duplicates,
    "refused": lambda case: [refused(case.candidate, case.refused, case.least)],
    "screening": _screening,
}


def refused(candidate: Candidate, before: Refusals, least: float) -> Outcome:
    """Whether reviewers refused what it says before."""
    found = before.same(candidate.says, least)
    if not found:
        return Outcome("refused", candidate.label, PASS)
    mend = f"khms unreject {unit_name(found[0].unit)} {found[0].label}"
    return Outcome("refused", candidate.label, FAIL, f"{found[0]} ({mend} takes that back)")


def screened(candidate: Candidate, hits: Iterable[Hit]) -> list[Outcome]:
    """What screening says of it, as outcomes."""
    found = [
        Outcome("screening", candidate.label, FAIL, f"{hit.kind} {hit.id}: {hit.snippet}", not hit.known_prefix)
        for hit in hits
    ]
    return list(dict.fromkeys(found)) or [Outcome("screening", candidate.label, PASS)]


def texts(candidate: Candidate) -> Iterator[str]:
    """What of a candidate may come before an agent: not the lines around a quote, and not the hashes."""
    yield candidate.title
    yield candidate.body
    for key, value in candidate.meta.items():
        if isinstance(value, str) and key not in ("title", "mark"):
            yield value
        elif isinstance(value, list) and key != "quotes":
            yield " ".join(item for item in value if isinstance(item, str))
    for quote in candidate.quotes:
        yield quote.text


def run(case: Case) -> list[Outcome]:
    """Every outcome of every check, in the registry's order; one check may have several, or none where it does not
    apply."""
    return [outcome for check in CHECKS.values() for outcome in check(case)]


def examine(
    base: Base,
    unit: Unit,
    candidate: Candidate,
    relation: Relation,
    cards: Mapping[str, Card],
    bodies: Claims,
    config: Config,
    *,
    settled: bool = False,
    refused: Refusals | None = None,
) -> list[Outcome]:
    """The checks of one candidate of a unit as its file stands now, under the relation that counts; `settled` says that
    a reviewer gave it; `refused` is what reviewers refused before, read here where it is not given. A relation that
    nobody judged is left to the caller, who knows whether the reviewer accepts it."""
    case = Case(
        candidate=candidate,
        relation=relation,
        cards=cards,
        bodies=bodies,
        reader=Reader(base),
        least=config["nightly.same_jaccard"],
        labels={other.label for other in unit.candidates},
        settled=settled,
        single=unit.single,
        refused=refusals(base, ledger(base)) if refused is None else refused,
    )
    found = run(case)
    return [outcome for outcome in found if outcome.check != "relations" or relation.kind != "unjudged"]
