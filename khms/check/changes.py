"""The rules of an audit for what a transition says of itself, over values alone: it starts from what was, and what
calls itself a redaction only takes words out.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from khms.check.auditing import Books, Trouble, trouble
from khms.model.approval import CHANGEABLE, Transition
from khms.model.cardhash import hashed
from khms.store import markdown
from khms.store.layout import CONFIG, SIGNERS

STRUCK = "[redacted]"
MEND = (
    "take this record back before it is published; a card changes by the commands that record it: khms card status "
    "{id} STATUS --why …, khms redact {id} --match …"
)

Texts = Callable[[str, str], bytes | None]  # (card id, hash) -> the card's file that had it, where one is to be found


def judge_changes(held: Books, texts: Texts, asked: Collection[str] | None = None) -> Iterator[Trouble]:
    """KA004 of transitions; of those in the records `asked` for only, where some are. Two branches may each have
    started from the same state, so any earlier one will do."""
    for card_id, placed in held.placed.items():
        if card_id in (SIGNERS, CONFIG):
            continue
        statuses: list[object] = ["active"]
        hashes: list[object] = [approved.card_sha256 for _, approved in held.cards.get(card_id, ())]
        for path, change in placed:
            said = ""
            if change.field == "status":
                said = _started(change, statuses)
                statuses.append(change.new)
            elif change.field == "card_sha256" and hashes:
                said = _started(change, hashes) or _redacted(change, texts)
                hashes.append(change.new)
            if said and (asked is None or path in asked):
                yield trouble("KA004", path, f"{card_id}: {said}", MEND.format(id=card_id), about=card_id)


def _started(change: Transition, before: Sequence[object]) -> str:
    if change.old in before:
        return ""
    return f"it says that {change.field} was {change.old!r:.80}, and it was {before[-1]!r:.80}"


def _redacted(change: Transition, texts: Texts) -> str:
    old, new = (texts(change.id, value) if isinstance(value, str) else None for value in (change.old, change.new))
    if new is None:
        return ""
    if STRUCK.encode() not in new:
        return f"its words changed, and nothing of them was redacted: there is no {STRUCK}"
    if old is not None and not only_struck(old, new):
        return f"its words changed in more than what became {STRUCK}"
    return ""


def only_struck(old: bytes, new: bytes) -> bool:
    """Whether a card's new text is the old one with words taken out. Values may be quoted otherwise than before."""
    if _less(hashed(old).decode("utf-8", "replace"), hashed(new).decode("utf-8", "replace")):
        return True
    try:
        one, other = markdown.parse(old), markdown.parse(new)
    except markdown.Unreadable:
        return False
    return (
        _less(one.body, other.body)
        and _less(_comments(old, one.body_line), _comments(new, other.body_line))
        and _same(
            {**one.meta, "status": "", "links": _fixed(one)}, {**other.meta, "status": "", "links": _fixed(other)}
        )
    )


def _fixed(page: markdown.Page) -> object:
    """The links that do not change later."""
    links = page.meta.get("links")
    return {k: v for k, v in links.items() if f"links.{k}" not in CHANGEABLE} if isinstance(links, dict) else links


def _comments(data: bytes, body_line: int) -> str:
    head = data.decode("utf-8", "replace").splitlines()[: body_line - 1]
    found = (row.partition("#")[2] for row in head if row.lstrip().startswith("#") or " #" in row)
    return "".join(char for text in found for char in text if not char.isspace() and char not in "\"'")


def _same(old: object, new: object) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return _less(old, new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(_same(old[key], new[key]) for key in old)
    return old == new


def _less(old: str, new: str) -> bool:
    """Whether `new` is `old` with some of it struck."""
    first, *parts = new.split(STRUCK)
    if not parts:
        return old == new
    if not old.startswith(first) or len(old) < len(first) + len(parts[-1]) or not old.endswith(parts[-1]):
        return False
    at, end = len(first), len(old) - len(parts[-1])
    for part in parts[:-1]:
        at = old.find(part, at, end) + len(part)
        if at < len(part):
            return False
    return at <= end
