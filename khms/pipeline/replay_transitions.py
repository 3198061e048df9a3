"""An unpublished record of changes again: of a card's status and edges, of its words, of who may sign, an adoption."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from khms.check.audited import base_id, file_sha256
from khms.model.approval import Approved, Transition, card_sha256
from khms.model.card import is_card_id
from khms.pipeline import renumber
from khms.pipeline.record import next_id, now
from khms.pipeline.replay import Conflict, Left, Replay
from khms.pipeline.replay_records import Made, Old, stem
from khms.pipeline.replay_tip import Content, TipDesk, plain
from khms.pipeline.seal import sealed
from khms.store import cards
from khms.store.layout import ARCHIVE, CONFIG, KNOW
from khms.store.receipts import receipts_path

LISTS = ("links.contradicts", "links.refuted_by")


def again(old: Old) -> Made:
    """A record without an approval: changes of status and edges are made again, what else it notes is taken along."""
    work, record = old.work, old.record
    desk = TipDesk(work.tip)
    others: list[Transition] = []
    for change in record.transitions:
        fresh = renumber.transition(change, work.ids)
        if _names_gone(change, work.gone) or change.id in work.replaced:
            said = f"{change.field} of {change.id}: it names a card that does not come in"
            work.left.append(Left("", "", change.id, "withheld-target", said))
        elif change.id in work.yielded:
            said = f"{change.field} of {change.id}: its reviewer left the change out"
            work.left.append(Left("", "", change.id, "yielded", said))
        elif change.field == "status":
            _set_status(old, desk, fresh)
        elif change.field in LISTS:
            _set_links(old, desk, fresh)
        else:
            others.append(fresh)
    changes = {**plain(desk.changes(), work.repo.prefix)}
    done: set[str] = set()
    if others or record.cards:
        rest = {path: pair for path, pair in old.changed.items() if not _handled(work, path, old)}
        carried = work.carried(old.commit, rest)
        others = [_rehashed(old, change, carried) for change in others]
        others = [change for change in others if change.old != change.new]
        changes |= carried
        done |= set(rest)
    if not (desk.transitions or others or _new_cards(old)):
        return Made({}, done | {work.repo.prefix + receipts_path(record.id)}, None)
    transitions = (*desk.transitions, *others)
    held = tuple(replace(card, id=work.ids.get(card.id, card.id)) for card in _new_cards(old))
    same = transitions == record.transitions and held == record.cards and not _moved(old)
    if same and not work.touched & {change.id for change in transitions}:
        fresh_record = record
    else:
        fresh_record = replace(
            record,
            id=next_id(work.tip.records),
            at=now(),
            parent=work.tip.commit,
            cards=held,
            transitions=transitions,
            signature=None,
            base=base_id(work.tip.read(CONFIG)) or record.base,
        )
        fresh_record = sealed(work.base, work.repo, work.config, fresh_record, ask=False)
    work.moved[old.path] = cards.approval_path(fresh_record.id)
    work.moved[receipts_path(record.id)] = receipts_path(fresh_record.id)
    changes |= plain({cards.approval_path(fresh_record.id): fresh_record.file_bytes()}, work.repo.prefix)
    return Made(changes, done, _renamed(old.commit.message, work.ids))


def _moved(old: Old) -> bool:
    """Whether the base got an id meanwhile, which the record does not carry."""
    return base_id(old.work.tip.read(CONFIG)) not in ("", old.record.base)


def _new_cards(old: Old) -> tuple[Approved, ...]:
    """The cards of an adoption that no record of the tip names yet."""
    known = {card.id for record in old.work.tip.records for card in record.cards}
    return tuple(card for card in old.record.cards if card.id not in known)


def _handled(work: Replay, path: str, old: Old) -> bool:
    """Whether the record itself accounts for this path of the old commit: its own file, and cards on the desk."""
    base_path = path.removeprefix(work.repo.prefix)
    moved = {t.id for t in old.record.transitions if t.field == "status" or t.field in LISTS}
    card = base_path.startswith((f"{KNOW}/", f"{ARCHIVE}/")) and stem(base_path) in moved
    return card or base_path == old.path


def _names_gone(change: Transition, gone: set[str]) -> bool:
    values = [change.id, *(change.new if isinstance(change.new, list) else [change.new])]
    values += change.old if isinstance(change.old, list) else [change.old]
    return any(isinstance(value, str) and value in gone for value in values)


def _set_status(old: Old, desk: TipDesk, change: Transition) -> None:
    """The status again, unless others gave the card one that this cannot follow on."""
    now_is = desk.card(change.id).status
    stronger = change.new in ("refuted", "condensed", "superseded") and now_is in ("active", "challenged")
    if now_is not in (change.old, change.new) and not stronger:
        raise Conflict(
            f"{change.id} became {now_is} by others, and here {change.old} -> {change.new}",
            where=f"here: {old.commit}",
            hint=f"khms sync --yield {change.id} leaves your change out; then decide again",
        )
    desk.set_status(change.id, change.new, change.why)


def _set_links(old: Old, desk: TipDesk, change: Transition) -> None:
    name = change.field.removeprefix("links.")
    held = list(getattr(desk.card(change.id).links, name))
    before, after = list(change.old or []), list(change.new or [])
    wanted = [item for item in held if item in after or item not in before]
    wanted += [item for item in after if item not in before and item not in wanted]
    desk.set_links(change.id, name, tuple(wanted), change.why)


def _rehashed(old: Old, change: Transition, carried: Mapping[str, Content]) -> Transition:
    """A recorded hash of a card or a settings file, as it is before and after on the tip."""
    work = old.work
    measure: Callable[[bytes], str | None]
    if change.field == "card_sha256" and is_card_id(change.id):
        path, measure = work.tip.card_path(change.id) or "", card_sha256
    elif change.field == "sha256":
        path, measure = change.id, file_sha256
    else:
        return change
    before = work.tip.read(path)
    content = carried.get(work.repo.prefix + path)
    after = content[1] if content is not None else (None if work.repo.prefix + path in carried else before)
    return replace(change, old=before and measure(before), new=after and measure(after))


def _renamed(message: str, ids: Mapping[str, str]) -> str:
    """A transition's message: the ids of its first line and of its trailers are structure, the rest is prose."""
    lines = message.split("\n")
    for at, line in enumerate(lines):
        if at == 0 or line.startswith("Khms-"):
            lines[at] = " ".join(ids.get(word.rstrip(","), word) for word in line.split(" "))
    return "\n".join(lines)
