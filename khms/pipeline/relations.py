"""How a candidate stands to what is known: exactly one relation, and its target is there.

supersedes K    an active or challenged card, with the reason
supports K      a card that is there
contradicts K   a card that is there
new             the nearest card is unrelated because …; in a base without cards there is none to name
unjudged        nobody could judge it; a reviewer settles it, so this check was not run
"""

from collections.abc import Collection, Mapping, Sequence

from khms.model.candidate import RELATION_KINDS, Candidate, Relation
from khms.model.card import Card, is_card_id
from khms.model.outcome import FAIL, NOT_RUN, PASS, Outcome

SUPERSEDABLE = ("active", "challenged")


def check(
    candidate: Candidate,
    relation: Relation,
    cards: Mapping[str, Card],
    *,
    labels: Collection[str] = (),
    settled: bool = False,
) -> Outcome:
    """`relation` is the one that counts. `labels` are the candidates of the same unit, which may be supported or
    contradicted too; `settled` says that a reviewer gave the relation, whose word for `new` needs no reason."""
    state, message = _judge(candidate, relation, cards, labels, settled)
    # Only a `new` without its reasons is a matter of judgement; a relation to a card that is not there cannot be made.
    waivable = state != FAIL or (relation.kind == "new" and not relation.target)
    return Outcome("relations", candidate.label, state, message, waivable)


def _judge(
    candidate: Candidate, relation: Relation, cards: Mapping[str, Card], labels: Collection[str], settled: bool
) -> tuple[str, str]:
    said = candidate.meta.get("relation")
    if isinstance(said, list) and len(said) != 1:
        return FAIL, f"{len(said)} relations; there must be exactly one"
    kind = relation.kind
    if kind not in RELATION_KINDS:
        return FAIL, f"{kind!r} is no relation"
    if kind == "unjudged":
        near = ", ".join(candidate.nearest) or "no card"
        return NOT_RUN, f"nobody judged its relation; nearest: {near}"
    if kind == "new":
        return _new(relation, cards, candidate.nearest, settled)
    if not relation.target:
        return FAIL, f"it {kind} nothing: a relation names its card"
    if relation.target == candidate.label:
        return FAIL, f"it {kind} itself"
    if relation.target in labels:
        return (PASS, "") if kind != "supersedes" else (FAIL, f"it supersedes {relation.target}, which is no card yet")
    target = cards.get(relation.target)
    if target is None and not is_card_id(relation.target) and relation.target[:1] != "C":
        return FAIL, f"{relation.target!r} is not the id of one card (such as K-00008)"
    if target is None:
        return FAIL, f"it {kind} {relation.target}, and there is no such card"
    if kind == "supersedes":
        if target.archived or target.status not in SUPERSEDABLE:
            return FAIL, f"it supersedes {target.id}, which is {target.status}"
        if not relation.because.strip():
            return FAIL, f"it supersedes {target.id} without a because (say it: --why …)"
    return PASS, ""


def _new(relation: Relation, cards: Mapping[str, Card], nearest: Sequence[str], settled: bool) -> tuple[str, str]:
    """A proposer that says `new` names the nearest card and why it is another matter; a reviewer need not. Where no
    card came near at all there is nothing to compare with."""
    known = [card_id for card_id in nearest if is_card_id(card_id)]
    if relation.target:
        return FAIL, f"it is new and names {relation.target} as its target: that is two relations"
    if settled or not cards or not known:
        return PASS, ""
    if not relation.nearest:
        return FAIL, f"it is new without naming the nearest card (near: {', '.join(known)})"
    if relation.nearest not in known:
        return FAIL, f"it names {relation.nearest} as the nearest card, and that is none of {', '.join(known)}"
    if not relation.because.strip():
        return FAIL, f"it does not say why {relation.nearest} is another matter"
    return PASS, ""
