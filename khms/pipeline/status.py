"""`khms card status`: a recorded transition of one card."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from khms.config import Config
from khms.errors import Refused, Usage
from khms.model.approval import Approval, Transition
from khms.model.card import STATUSES, Card
from khms.pipeline import authority
from khms.pipeline.record import next_id, now
from khms.pipeline.seal import sealed
from khms.pipeline.transition import Desk
from khms.store import cards
from khms.store.catalogue import catalogue
from khms.store.commit import exclusive
from khms.store.layout import Base
from khms.store.repo import Repo

Views = Callable[[Base, Mapping[str, Card]], dict[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Changed:
    """`commit` is None where the card already stood so."""

    id: str
    old: str
    new: str
    commit: str | None
    transitions: tuple[Transition, ...]
    recovered: str = ""


def change(
    base: Base,
    repo: Repo,
    config: Config,
    card_id: str,
    new: str,
    *,
    by: str | None,
    why: str,
    views: Views,
    here: bool = False,
) -> Changed:
    """Gives the card the status `new`, for the reason `why`, with `by` as the card that is the cause. Raises Usage for
    a status that does not exist, Refused where the graph does not carry it; then nothing was changed."""
    if new not in STATUSES:
        raise Usage(f"{new!r} is no status", hint="one of: " + ", ".join(STATUSES))
    if not why.strip():
        raise Usage("a transition needs its reason", hint="--why 'what was found'")
    with exclusive(repo, f"change of {card_id}") as tx:
        reviewer = authority.reviewer(repo, config)
        receiving = authority.demand_branch(repo, config, here=here)
        authority.demand_calm(repo)
        desk = Desk(base)
        old = desk.card(card_id)
        if by:
            desk.card(by)
        apply(desk, old, new, by, why)
        recovered = str(tx.recovered) if tx.recovered else ""
        if not desk.transitions:
            return Changed(card_id, old.status, new, None, (), recovered)
        record = Approval(next_id(cards.approvals(base)), "", reviewer, now(), repo.head(), (), tuple(desk.transitions))
        record = sealed(base, repo, config, record)
        changes = desk.changes()
        changes[cards.approval_path(record.id)] = record.file_bytes()
        if receiving:
            changes.update(views(base, {**catalogue(base).cards, **desk.cards()}))
        title = f"Set {card_id} {new}"
        message = f"{title}\n\n{why}\n\nKhms-Transition: {card_id} {old.status} {new}\nKhms-Reviewer: {reviewer}\n"
        commit = tx.commit(changes, message, what=f"change of {card_id} to {new}", user_hooks=True)
    return Changed(card_id, old.status, new, commit, record.transitions, recovered)


def apply(desk: Desk, card: Card, new: str, by: str | None, why: str) -> None:
    """Makes the change on the desk, with what it does to the edges. Raises Usage where it needs a cause, Refused where
    the graph does not carry it."""
    if by == card.id:
        raise Refused(f"{by} cannot be the cause of its own change", hint="name another card with --by")
    if new == "refuted":
        if not by and not card.links.refuted_by:
            raise Usage(
                "a refuted card names what refutes it", hint=f"khms card status {card.id} refuted --by K-… --why …"
            )
        if by:
            desk.add_link(card.id, "refuted_by", by, why)
    elif new == "challenged":
        if by:
            desk.add_link(card.id, "contradicts", by, why)
            desk.add_link(by, "contradicts", card.id, why)
    elif new == "superseded":
        successor = by and desk.card(by)
        if not successor or card.id not in successor.links.supersedes:
            raise Refused(
                f"no card supersedes {card.id}" if not by else f"{by} does not supersede {card.id}",
                where=card.path,
                hint="propose the correction as a card with `supersedes`; approving it archives the old one",
            )
    elif new == "condensed":
        if not by:
            raise Usage(
                "a condensed card names what absorbed it", hint=f"khms card status {card.id} condensed --by K-…"
            )
    elif new == "active":
        _reactivate(desk, card, by, why)
    desk.set_status(card.id, new, why)


def _reactivate(desk: Desk, card: Card, by: str | None, why: str) -> None:
    """Back to active: edges that say otherwise go, with `by` only that card's; a successor in force forbids it."""
    for other in catalogue(desk.base).cards.values():
        if card.id in other.links.supersedes and other.status in ("active", "challenged"):
            raise Refused(f"{other.id} supersedes {card.id} and is in force", where=other.path)
    for refuter in card.links.refuted_by:
        if by in (None, refuter):
            desk.drop_link(card.id, "refuted_by", refuter, why)
    if card.status == "challenged" and by and by in card.links.contradicts:
        desk.drop_link(card.id, "contradicts", by, why)
        desk.drop_link(by, "contradicts", card.id, why)
