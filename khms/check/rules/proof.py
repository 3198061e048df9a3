"""The approval records against the cards: the bytes that were let in are the bytes that stand there."""

from collections.abc import Iterator

from khms.check.context import Context
from khms.check.subject import Fault, Subject
from khms.model.approval import card_sha256
from khms.model.cardhash import stray


def approved(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH010: the card's hash is the one in its approval record."""
    card_id = subject.card.id
    if card_id in context.assumed:
        return
    held = context.proofs.get(card_id)
    if not held:
        yield Fault(0, "no approval record names this card", "cards come in by khms approve; an older one may stay so")
        return
    digest = card_sha256(subject.entry.data)
    if all(digest != proof.sha256 for proof in held):
        mend = f"restore it: git log -- {subject.path}; a correction is a new card that supersedes it"
        yield Fault(0, f"this is not what was approved ({held[-1].path} has another hash)", mend)
        return
    for line, said in stray(subject.entry.data):
        mend = "leave nothing but the plain value there; the card's hash stays as it is"
        yield Fault(line, f"{said}: nobody approved what stands here", mend)


def record(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH002 seen from a record: no earlier one gave the same id."""
    for card in subject.record.cards if subject.record else ():
        first = context.proofs.get(card.id, ())
        if first and first[0].path != subject.path:
            yield Fault(
                0, f"{card.id} was given before, by {first[0].path}", "an id is used once: git log -- the files"
            )


def present(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH010 seen from a record: the cards that it let in are still there."""
    for card in subject.record.cards if subject.record else ():
        if not context.exists(card.id):
            mend = f"restore it: git log --diff-filter=D -- '*{card.id}.md'"
            yield Fault(0, f"{card.id} was approved here and is gone", mend)
