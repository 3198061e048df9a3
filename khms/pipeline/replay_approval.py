"""An unpublished approval again: its cards under the ids that are free now, their edges on the cards as they are now.

A card does not come in where others approved the same candidate or made a card of the same MARK, where what it builds
on was archived, or where it names another that does not come in. Its candidate is put aside, with a receipt.
"""

from dataclasses import replace

from khms.check.audited import base_id
from khms.errors import KhmsError
from khms.model.approval import Approval, Approved, Transition, candidate_sha256, card_sha256
from khms.model.card import Card, card_from, id_text
from khms.pipeline import renumber
from khms.pipeline.record import approval_message, next_id, now, review_receipt
from khms.pipeline.relations import SUPERSEDABLE
from khms.pipeline.replay import Conflict, Left, Replay
from khms.pipeline.replay_records import Made, Old, stem
from khms.pipeline.replay_tip import TipDesk, plain
from khms.pipeline.ruling import SECOND
from khms.pipeline.seal import sealed
from khms.pipeline.transition import follow
from khms.store import cards, inbox, markdown
from khms.store.layout import CONFIG
from khms.store.receipts import receipts_bytes, receipts_path


def again(old: Old) -> Made:
    work, record = old.work, old.record
    chosen, left = _sorted_out(old)
    _number(work, chosen)
    desk = TipDesk(work.tip)
    approved = []
    for card in chosen:
        path, data = old.card(card.id)
        text = renumber.renumbered(path, data, work.ids).decode("utf-8-sig").replace("\r\n", "\n")
        new = work.ids.get(card.id, card.id)
        desk.put(new, text)
        was = card.was if new == card.id else (*card.was, card.id)
        seen = _candidate_sha256(old, card)
        approved.append(Approved(new, card.label, seen, card_sha256(text.encode("utf-8")), was))
    for one in approved:
        try:
            follow(desk, one.id)
        except KhmsError as error:
            mine = next(card.id for card in chosen if card.label == one.label)
            raise Conflict(
                f"{mine} cannot come in on what others published: {error.message}",
                where=f"{error.where or old.candidate(one.label)}\nhere: {old.commit}",
                hint=_yield(mine),
            ) from error
    fresh = _record(old, tuple(approved), tuple(desk.transitions), {one.label for one in left})
    changes = dict(desk.changes())
    for lost in left:
        changes |= _put_aside(old, lost)
    for card in chosen:
        changes |= _kept_candidate(old, card.label)
    if fresh is not None:
        changes[cards.approval_path(fresh.id)] = fresh.file_bytes()
    changes |= _receipts(old, fresh, left)
    for card in chosen:
        new = work.ids.get(card.id, card.id)
        work.moved[cards.know_path(card.id)] = cards.know_path(new)
        work.moved[cards.archive_path(card.id)] = cards.archive_path(new)
    if fresh is not None:
        work.moved[old.path] = cards.approval_path(fresh.id)
        work.moved[receipts_path(record.id)] = receipts_path(fresh.id)
    settled = {old.candidate(card.label) for card in record.cards}
    done = {work.repo.prefix + path for path in settled}
    return Made(plain(changes, work.repo.prefix), done, _message(old, fresh, desk))


def _sorted_out(old: Old) -> tuple[list[Approved], list[Left]]:
    """The cards that come in again, and those that do not, each with its reason. A card that names one which does not
    come in cannot come in either."""
    work, record = old.work, old.record
    there = {card.label: card.id for held in work.tip.records if held.unit == record.unit for card in held.cards}
    marks = {receipt.label: receipt.mark for receipt in old.receipts()}
    chosen, left = [], []
    for card in record.cards:
        if card.label in there:
            instead = there[card.label]
            if instead != card.id:
                work.ids[card.id] = instead
            said = f"others approved this candidate as {instead}"
            left.append(Left(record.unit, card.label, card.id, "already-approved", said, instead))
            continue
        held = _yielded(old, card) or _mark_taken(old, card, marks.get(card.label, "")) or _target_gone(old, card)
        if held is None:
            chosen.append(card)
            continue
        left.append(held)
        if held.instead:  # what names the one now names the other: both say what the same line said
            work.ids[card.id] = held.instead
            work.replaced.add(card.id)
        else:
            work.gone.add(card.id)
    while work.gone:
        named = {card.id: renumber.mentions(*old.card(card.id), {i: i for i in work.gone}) for card in chosen}
        lost = [card for card in chosen if named[card.id]]
        if not lost:
            break
        for card in lost:
            names = ", ".join(sorted(named[card.id]))
            said = f"it names {names}, which does not come in"
            left.append(Left(record.unit, card.label, card.id, "withheld-target", said))
            work.gone.add(card.id)
            chosen.remove(card)
    work.left += left
    return chosen, left


def _yielded(old: Old, card: Approved) -> Left | None:
    if card.id not in old.work.yielded:
        return None
    return Left(old.record.unit, card.label, card.id, "yielded", "its reviewer left it out when two cards collided")


def _mark_taken(old: Old, card: Approved, mark: str) -> Left | None:
    """Others made a card of the same MARK, and this reviewer did not say that a second one is meant."""
    if not mark or any(w.check == SECOND and w.label == card.label for w in old.record.waivers):
        return None
    taken = [r for r in old.work.there if r.stage == "review" and r.verdict == "approved" and r.mark == mark]
    if not taken:
        return None
    said = f"{taken[0].reason} came of the same MARK {mark} meanwhile; approve it with --also if it says something else"
    return Left(old.record.unit, card.label, card.id, SECOND, said, taken[0].reason)


def _target_gone(old: Old, card: Approved) -> Left | None:
    """What the card builds on left for the archive meanwhile. Raises Conflict where others superseded the same card."""
    work = old.work
    path, data = old.card(card.id)
    page = markdown.parse(data, path)
    links = card_from(page.meta, page.body, path).links
    for name in ("supersedes", "contradicts", "supports"):
        for target in getattr(links, name):
            held = work.tip.cards.get(work.ids.get(target, target))
            before = work.here.get(target)
            if held is None or (name == "supersedes" and held.status in SUPERSEDABLE):
                continue
            if name == "supersedes" and held.status == "superseded":
                raise _both_superseded(old, card, held)
            archived = held.status == "condensed" and (before is None or before.status != "condensed")
            if name == "supersedes" or archived:
                said = f"it {name} {held.id}, which is {held.status} by now"
                return Left(old.record.unit, card.label, card.id, "target-archived", said)
    return None


def _both_superseded(old: Old, card: Approved, target: Card) -> Conflict:
    others = [c.id for c in old.work.tip.cards.values() if target.id in c.links.supersedes]
    other = ", ".join(others) or "another card"
    return Conflict(
        f"{target.id} was superseded twice: by {other}, which others published, and here by {card.id} "
        f"({old.candidate(card.label)})",
        where=f"here: {old.commit}",
        hint=_yield(card.id) + f"; if it corrects {other} too, move it back there and approve it anew",
    )


def _yield(card_id: str) -> str:
    return f"khms sync --yield {card_id} leaves yours out (its candidate goes to dropped/)"


def _number(work: Replay, chosen: list[Approved]) -> None:
    first = work.tip.greatest() + 1
    for at, card in enumerate(chosen):
        new = id_text(first + at)
        if new != card.id:
            work.ids[card.id] = new


def _candidate_sha256(old: Old, card: Approved) -> str:
    """The hash of the candidate as it lies there after the replay: its mentions of renumbered cards were renewed."""
    path = old.candidate(card.label)
    data = old.data(path)
    if data is None:
        return card.candidate_sha256
    fresh = renumber.renumbered(path, data, old.work.ids)
    if fresh == data:
        return card.candidate_sha256
    if path != old.record.unit:
        return candidate_sha256(fresh)
    found = inbox.single(fresh, stem(path), path).candidate(card.label)
    return candidate_sha256(found.text.encode("utf-8")) if found else card.candidate_sha256


def _kept_candidate(old: Old, label: str) -> dict[str, bytes | None]:
    """An approved candidate stands in its unit's front as it was approved, wherever others put it meanwhile."""
    path = old.candidate(label)
    data = old.data(path)
    if data is None or path == old.record.unit:
        return {}
    aside = {f"{old.record.unit}/{folder}/{label}.md": None for folder in inbox.SECTIONS}
    gone = {place: None for place in aside if old.work.tip.read(place) is not None}
    return {path: renumber.renumbered(path, data, old.work.ids), **gone}


def _put_aside(old: Old, left: Left) -> dict[str, bytes | None]:
    """A candidate whose card does not come in lies in dropped/, as it was approved."""
    path = old.candidate(left.label)
    data = old.data(path)
    if data is None or path == old.record.unit or left.verdict == "already-approved":
        return {}
    fresh = renumber.renumbered(path, data, old.work.ids)
    return {path: None, f"{old.record.unit}/dropped/{left.label}.md": fresh}


def _record(
    old: Old, approved: tuple[Approved, ...], transitions: tuple[Transition, ...], left: set[str]
) -> Approval | None:
    """The record of what comes in; None where nothing does. The old one where it says exactly that already."""
    work, record = old.work, old.record
    if not approved:
        return None
    touched = work.touched & {change.id for change in transitions}
    named = base_id(work.tip.read(CONFIG)) or record.base
    if named == record.base and approved == record.cards and transitions == record.transitions and not touched:
        return record
    fresh = Approval(
        id=next_id(work.tip.records),
        unit=record.unit,
        reviewer=record.reviewer,
        at=now(),
        parent=work.tip.commit,
        cards=approved,
        transitions=transitions,
        waivers=tuple(waiver for waiver in record.waivers if waiver.label not in left),
        base=named,
    )
    return sealed(work.base, work.repo, work.config, fresh, ask=False)


def _receipts(old: Old, fresh: Approval | None, left: list[Left]) -> dict[str, bytes | None]:
    ids = {card.label: card.id for card in fresh.cards} if fresh else {}
    run, at = (fresh.id, fresh.at) if fresh else (next_id(old.work.tip.records), now())
    aside = {one.label: one for one in left if one.verdict != "already-approved"}
    found = []
    for receipt in old.receipts():
        if receipt.label in ids:
            found.append(replace(receipt, run=run, at=at, reason=ids[receipt.label]))
        elif receipt.label in aside:
            one = aside[receipt.label]
            found.append(review_receipt(receipt.mark, one.verdict, run, one.unit, one.label, one.reason, at))
    return {receipts_path(run): receipts_bytes(found)} if found else {}


def _message(old: Old, fresh: Approval | None, desk: TipDesk) -> str:
    """The message in the form that approvals have, with whatever lines the reviewer's own hooks had added."""
    titles = {}
    for card in old.record.cards:
        path, data = old.card(card.id)
        page = markdown.parse(data, path)
        titles[card.id] = card_from(page.meta, page.body, path).title
    usual = set(approval_message([old.record], old.record.unit, titles).splitlines())
    more = [line for line in old.commit.message.splitlines() if line.strip() and line not in usual]
    if fresh is None:
        names = ", ".join(card.label for card in old.record.cards)
        unit = stem(old.record.unit)
        text = f"Put aside {names} of {unit}\n\nKhms-Unit: {old.record.unit}\nKhms-Reviewer: {old.record.reviewer}\n"
    else:
        titles = {card.id: desk.card(card.id).title for card in fresh.cards}
        text = approval_message([fresh], fresh.unit, titles)
    return text + "".join(f"{line}\n" for line in more)
