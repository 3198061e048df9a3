"""A decision becomes a candidate: the header in its proper form, the quotes looked up, all checks run, flags set.

Pure work over what was read; the same decisions over the same files give the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from khms.model.candidate import ABSENT, Candidate, Quote, Relation
from khms.model.card import canonical_type
from khms.model.mark import Mark
from khms.model.outcome import FAIL, Outcome, merged
from khms.model.verdict import CORRECT, Proposal
from khms.pipeline import checks, quotes, sources
from khms.pipeline.carry import Decision
from khms.pipeline.checks import Case
from khms.pipeline.digest import source_of
from khms.pipeline.known import Known
from khms.pipeline.quotes import Reader
from khms.pipeline.refusals import Refusals
from khms.pipeline.rules import cut
from khms.store import markdown
from khms.store.markdown import Unreadable

ATTACHED = 20  # quotes that a candidate takes over from attached MARKs; the report names every MARK
LIKE = "like:"  # begins a flag that names what a candidate is like in meaning
PUBLISHED, DEFERRED, DROPPED, UNWRITABLE = "published", "deferred", "dropped", "unwritable"


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate on its way. `fate` is where it goes and `why` the reason; `attached` are further MARKs that say the
    same. `header` names what could not be put into proper form."""

    mark: Mark
    candidate: Candidate
    outcomes: tuple[Outcome, ...] = ()
    attached: tuple[Mark, ...] = ()
    header: str = ""
    fate: str = PUBLISHED
    why: str = ""

    @property
    def label(self) -> str:
        return self.candidate.label

    @property
    def data(self) -> bytes:
        return self.candidate.text.encode("utf-8")

    def checks(self) -> dict[str, Outcome]:
        return merged(self.outcomes)

    def failed(self, check: str) -> Outcome | None:
        outcome = self.checks().get(check)
        return outcome if outcome is not None and outcome.state == FAIL else None


@dataclass(frozen=True, slots=True)
class Material:
    """What drafts are made from: what is known, where quotes are looked up, the run's day, the labels of the run, what
    reviewers refused before, and the names of what a candidate is like, by its label."""

    known: Known
    reader: Reader
    day: str
    labels: frozenset[str]
    refused: Refusals = field(default_factory=Refusals)
    like: Callable[[str], list[str]] = lambda label: []


def draft(decision: Decision, mark: Mark, attached: Sequence[tuple[Decision, Mark]], material: Material) -> Draft:
    """The candidate of a `new` or `correct` decision, with what later MARKs attached to it. A candidate that cannot be
    written as a file is `unwritable`, with the reason."""
    verdict = decision.verdict
    assert verdict.proposal is not None
    proposal, wrong = header(verdict.proposal, material.known)
    body = (
        "\n".join([proposal.body.rstrip("\n"), *(one.verdict.text for one, _ in attached if one.verdict.text)]) + "\n"
    )
    relation = verdict.relation or Relation()
    if verdict.kind == CORRECT:
        relation = Relation(verdict.how, verdict.corrects, "", verdict.because)
    meta = _meta(decision, mark, proposal, relation, material)
    candidate = Candidate(decision.label, meta, body)
    meta["quotes"] = [q.as_meta() for q in _quotes(candidate, mark, verdict.quotes, attached, material.reader)]
    outcomes = checks.run(Case(
        candidate=candidate,
        relation=relation,
        cards=material.known.cards,
        bodies=material.known.bodies,
        reader=material.reader,
        least=material.known.least,
        labels=material.labels,
        refused=material.refused,
    ))  # fmt: skip
    made = Draft(mark, candidate, tuple(outcomes), tuple(other for _, other in attached), wrong)
    return with_flags(made, _flags(made, material))


def with_flags(made: Draft, flags: Sequence[str]) -> Draft:
    """The draft with its flags, and its file's text; `unwritable` where no file can hold it."""
    meta = {**made.candidate.meta, "flags": list(flags)}
    try:
        text = markdown.render(meta, made.candidate.body)
    except Unreadable as error:
        return replace(made, fate=UNWRITABLE, why=error.message)
    return replace(made, candidate=replace(made.candidate, meta=meta, text=text))


def header(proposal: Proposal, known: Known) -> tuple[Proposal, str]:
    """The proposal with its header in proper form, and what could not be brought into it. Nothing is guessed: an
    unknown type stays as it is, for a reviewer."""
    kind = canonical_type("-".join(proposal.type.strip().casefold().split()))
    title = cut(sources.clean(proposal.title).replace("\n", " "), 300)
    tags = tuple(dict.fromkeys(tag for tag in map(known.vocabulary.canonical, proposal.tags) if tag))
    body = sources.clean(proposal.body)
    wrong = [] if kind in known.types else [f"there is no type {proposal.type!r}"]
    wrong += [] if title else ["it has no title"]
    wrong += [] if body.strip() else ["it has no body"]
    kept = kind if kind in known.types else proposal.type
    return Proposal(title, body, kept, tags), "; ".join(wrong)


def _meta(decision: Decision, mark: Mark, proposal: Proposal, relation: Relation, material: Material) -> dict[str, Any]:
    """Every key but the quotes' and flags' values, in the order of a candidate's file."""
    known_type = material.known.types.get(proposal.type)
    level = known_type.level if known_type else "observation"
    lines = f"line {mark.line}" if mark.line == mark.end else f"lines {mark.line}-{mark.end}"
    where = source_of(mark.path) if sources.is_session(mark.path) else f"{mark.path} {lines}"
    return {
        "id": decision.label,
        "type": proposal.type,
        "level": level,
        "status": "active",
        "title": proposal.title,
        "tags": list(proposal.tags),
        "scope": "universal",
        **({"evidence": "reported"} if level == "observation" else {}),
        "source": f'{where}: "{cut(sources.clean(mark.text))}"',
        "date": mark.date if sources.is_day(mark.date) else material.day,
        "links": {"derived_from": [], "supports": [], "contradicts": [], "supersedes": None, "refuted_by": []},
        "mark": mark.id,
        "confidence": None,
        "nearest": list(decision.nearest),
        "relation": relation.as_meta(),
        "quotes": [],
        "flags": [],
    }


def _quotes(
    candidate: Candidate, mark: Mark, own: Sequence[Quote], attached: Sequence[tuple[Decision, Mark]], reader: Reader
) -> list[Quote]:
    """The quotes, looked up. A quote of an attached MARK names its file, since `journal` means the candidate's own."""
    found = {(quote.source, quote.text): quote for quote in _named(own, mark)}
    taken = 0
    for decision, other in attached:
        for quote in _named(decision.verdict.quotes, other):
            source = other.path if quote.source == "journal" else quote.source
            same_file = source == other.path and other.path in str(candidate.meta["source"])
            known = (source, quote.text) in found or (same_file and ("journal", quote.text) in found)
            if not known and taken < ATTACHED:
                found[source, quote.text] = replace(quote, source=source)
                taken += 1
    return [quotes.graded(reader, candidate, quote) for quote in found.values()]


def _named(quotes: Sequence[Quote], mark: Mark) -> list[Quote]:
    """The quotes with the session's name, where the MARK was found in one: for it there is no journal."""
    if not sources.is_session(mark.path):
        return list(quotes)
    session = source_of(mark.path)
    own = ("journal", mark.path)
    return [replace(quote, source=session) if quote.source in own else quote for quote in quotes]


def _flags(made: Draft, material: Material) -> list[str]:
    """What a reviewer should look at, in short words."""
    candidate, known = made.candidate, material.known
    flags = ["header"] if made.header else []
    kind = known.types.get(str(candidate.meta["type"]))
    if kind and any(f"{label}:" not in candidate.body for label in kind.labels):
        flags.append("thin")
    flags += [name for name, outcome in made.checks().items() if outcome.state == FAIL]
    flags += [f"quoted-by:{card_id}" for card_id in candidate.nearest if _quoted_by(card_id, candidate, known)]
    same = [same.id for same in known.same_cards(candidate.body)]
    flags += [f"same-as:{name}" for name in same if name != candidate.relation.target]
    told = (*same, candidate.relation.target)
    flags += [f"{LIKE}{name}" for name in material.like(made.label) if name not in told]
    flags += [f"refused-as:{held.name}" for held in material.refused.same(candidate.body, known.least)[:3]]
    return flags


def _quoted_by(card_id: str, candidate: Candidate, known: Known) -> bool:
    """Whether a card near by holds the MARK's own words already: then it was perhaps made of this very MARK."""
    card = known.cards.get(card_id)
    own = [quotes.plain(quote.text) for quote in candidate.quotes[:1] if quote.grade != ABSENT]
    return card is not None and any(quotes.stands(text, quotes.plain(card.body)) for text in own)


def outcomes_json(outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, str]]:
    """The state of each check as unit.json records it."""
    return {
        name: {"outcome": outcome.state, **({"why": outcome.message} if outcome.message else {})}
        for name, outcome in outcomes.items()
    }
