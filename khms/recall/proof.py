"""Whether a card is what was approved, told from its bytes and the approval records.

Nobody's question fails over a record that cannot be read: the others still tell, and lint and status name the broken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from khms.check.context import Proof, proofs
from khms.errors import Refused
from khms.model.approval import Approval, approval_from, card_sha256
from khms.store import cards, files
from khms.store.layout import Base

APPROVED, CHANGED, NONE = "approved", "changed", "none"


def changed(base: Base, held: Mapping[str, str]) -> frozenset[str]:
    """Of the cards in `held` (id -> base path), those whose bytes differ from what the records approved."""
    if not held:
        return frozenset()
    known = proofs((cards.approval_path(record.id), record) for record in readable(base, held))
    return frozenset(i for i, path in held.items() if standing(base, path, known.get(i, ())) == CHANGED)


def standing(base: Base, path: str, held: Sequence[Proof]) -> str:
    """How the card at a base path stands to the records that name it; NONE where none does."""
    if not held:
        return NONE
    try:
        digest = card_sha256(files.read(base.path(path)))
    except OSError:
        return CHANGED
    return APPROVED if any(proof.sha256 == digest for proof in held) else CHANGED


def readable(base: Base, ids: Iterable[str] = ("",)) -> Iterator[Approval]:
    """The records that can be read, oldest first: those that name one of `ids`, or all. To parse those that do not is
    what would cost most."""
    wanted = [identity.encode() for identity in ids]
    for path in sorted(base.approvals.glob("*.json")):
        try:
            data = files.read(path)
            if any(identity in data for identity in wanted):
                yield approval_from(files.parse_json(data), base.relative(path))
        except (OSError, ValueError, Refused):
            continue
