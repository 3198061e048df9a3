"""Offers become the files of a unit: candidates and changes, labelled, checked as an approval would check them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from khms.model.candidate import Candidate
from khms.model.outcome import FAIL, Outcome, merged
from khms.model.redact import redact
from khms.pipeline import changing, checks, quotes
from khms.pipeline.checks import Case
from khms.pipeline.draft import DROPPED, PUBLISHED
from khms.pipeline.duplicates import claims_of
from khms.pipeline.postprocess import redacted
from khms.pipeline.quotes import Reader
from khms.pipeline.refusals import Refusals
from khms.pipeline.transition import Desk
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.offer import Offer
from khms.store import markdown
from khms.store.markdown import Unreadable

LEFT_OUT = "left out"  # the fate of an offer that no file of the unit holds


@dataclass(frozen=True, slots=True)
class Made:
    """An offer on its way: `fate` is published, dropped or left out, `why` the reason. What is left out has no file."""

    step: str
    offer: Offer
    candidate: Candidate
    outcomes: tuple[Outcome, ...] = ()
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


def chosen(offered: Iterable[tuple[str, Offer]], ground: Ground) -> tuple[list[tuple[str, Offer]], dict[str, str]]:
    """The offers that can be decided side by side, in their order, and of the others, by key, why not now: what was
    offered before, and what would move a card that another offer moves or needs."""
    moved: set[str] = set()
    needed: set[str] = set()
    taken, passed = [], {}
    for step, offer in offered:
        if offer.key in ground.past.offers:
            passed[offer.key] = ground.past.offers[offer.key]
        elif offer.moves & (moved | needed) or offer.needs & moved:
            shared = ", ".join(sorted((offer.moves & (moved | needed)) | (offer.needs & moved)))
            passed[offer.key] = f"another offer of this unit is about {shared}"
        else:
            moved |= offer.moves
            needed |= offer.needs
            taken.append((step, offer))
    return taken, passed


def make(offers: Sequence[tuple[str, Offer]], ground: Ground, refused: Refusals, day: str) -> list[Made]:
    """Every offer as it would stand in the unit, labels given to those that do."""
    reader, least = Reader(ground.base), float(ground.config["nightly.same_jaccard"])
    claims = claims_of(ground.cards.values())
    found: list[Made] = []
    for step, offer in offers:
        label = f"C{sum(made.fate != LEFT_OUT for made in found) + 1}"
        candidate = Candidate(label, _meta(label, offer, day), offer.body)
        looked_up = [quotes.graded(reader, candidate, quote) for quote in offer.quotes]
        candidate = replace(candidate, meta={**candidate.meta, "quotes": [q.as_meta() for q in looked_up]})
        if offer.change is not None:
            outcomes = changing.outcomes(ground.base, candidate, ground.cards, reader, refused, least)
        else:
            outcomes = checks.run(Case(
                candidate=candidate, relation=candidate.relation, cards=ground.cards, bodies=claims, reader=reader,
                least=least, labels={label}, refused=refused,
            ))  # fmt: skip
        found.append(_judged(Made(step, offer, candidate, tuple(outcomes)), ground))
    return found


def _meta(label: str, offer: Offer, day: str) -> dict[str, Any]:
    if offer.change is not None:
        head: dict[str, Any] = {"id": label, "title": offer.title, "date": day, "change": offer.change.as_meta()}
        return {**head, "nearest": list(offer.near), "quotes": [], "flags": list(offer.flags)}
    relation = offer.meta["relation"]
    card = {key: value for key, value in offer.meta.items() if key != "relation"}
    own = {"mark": None, "confidence": None, "nearest": list(offer.near), "relation": relation}
    return {"id": label, **card, **own, "quotes": [], "flags": list(offer.flags)}


def _judged(made: Made, ground: Ground) -> Made:
    """The offer with its fate. What was refused is not shown again; a change that could not be made is no offer; a card
    that no reviewer could let in as it is stands in `dropped/`, without what looks like a key."""
    failed = {name: outcome.message for name, outcome in made.checks().items() if outcome.state == FAIL}
    if "refused" in failed:
        return replace(made, fate=LEFT_OUT, why=failed["refused"])
    if made.offer.change is not None:
        wrong = [f"{name}: {message}" for name, message in failed.items()]
        wrong = wrong or [finding.message for finding in changing.make(Desk(ground.base), made.candidate, ())]
        return _written(replace(made, fate=LEFT_OUT, why=wrong[0]) if wrong else made, ())
    flags = [*made.candidate.flags, *failed]
    stopped = next((f"{name}: {failed[name]}" for name in ("screening", "relations") if name in failed), "")
    return _written(replace(made, fate=DROPPED, why=stopped) if stopped else made, flags)


def _written(made: Made, flags: Iterable[str]) -> Made:
    """The offer with the text of its file; left out where no file can hold it."""
    candidate = made.candidate
    meta: Mapping[str, Any] = {**candidate.meta, "flags": list(flags or candidate.flags)}
    body = candidate.body
    if made.fate == DROPPED:
        meta, body = {key: redacted(value) for key, value in meta.items()}, redact(body)
    try:
        text = markdown.render(meta, body)
    except Unreadable as error:
        return replace(made, fate=LEFT_OUT, why=f"it cannot be written: {error.message}")
    return replace(made, candidate=replace(candidate, meta=meta, body=body, text=text))
