"""Gathers what the rules know of the base: which ids there are, what the approval records say, which labels stand
where."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from khms.check.context import Context, Read, proofs
from khms.check.subject import APPROVAL, CANDIDATE, CARD, PART, SINGLE, WITHHELD, Subject, kind_of, subjects
from khms.model.approval import Approval
from khms.model.card import is_card_id
from khms.model.tags import Registry
from khms.store import tags, tracked
from khms.store.layout import APPROVALS, Base
from khms.store.yamltext import Unreadable


def survey(
    base: Base,
    config: Mapping[str, Any],
    found: Sequence[Subject],
    names: Sequence[str],
    *,
    whole: bool,
    read: Read | None = None,
    assumed: frozenset[str] = frozenset(),
) -> Context:
    """The context of the subjects `found` in a base whose cards and candidates lie at `names`."""
    files, labels, withheld = _places(found, names)
    records = list(_records(base, found, whole))
    return Context(
        base=base,
        read=read or _reader(base),
        files=files,
        config=config,
        proofs=proofs(records),
        registry=_registry(base),
        labels=labels,
        withheld=withheld,
        taken={(record.unit, card.label): card.id for _, record in records for card in record.cards},
        assumed=assumed,
        twins=_twins({*names, *(subject.path for subject in found)}),
        whole=whole,
        cards={s.name: s.card for s in found if s.kind == CARD and s.error is None},
    )


def _twins(names: Iterable[str]) -> dict[str, str]:
    """path -> the first of those that have the same letters in other cases; that first one has no entry."""
    first: dict[str, str] = {}
    return {name: first[name.casefold()] for name in sorted(names) if first.setdefault(name.casefold(), name) != name}


def _reader(base: Base) -> Read:
    def read(path: str) -> bytes | None:
        entry = tracked.entry(base, path)
        return None if entry is None or entry.link is not None or entry.problem else entry.data

    return read


Labels = Mapping[str, frozenset[str]]
_LABEL = re.compile(r"^(?:#{1,6}\s+|id:\s*)(C[0-9]+)\b", re.MULTILINE)


def _places(found: Sequence[Subject], names: Sequence[str]) -> tuple[dict[str, list[str]], Labels, Labels]:
    """Where each card id stands, and for each inbox unit which labels it holds and which it holds back."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    labels: defaultdict[str, set[str]] = defaultdict(set)
    withheld: defaultdict[str, set[str]] = defaultdict(set)
    for path in names:
        folder, _, name = path.rpartition("/")
        stem = name.removesuffix(".md")
        kind = kind_of(path)
        if kind == CARD:
            files[stem].append(path)
        elif kind == CANDIDATE:
            labels[folder].add(stem)
        elif kind == WITHHELD:
            withheld[folder.rpartition("/")[0]].add(stem)
    for subject in found:
        if subject.kind == CANDIDATE:
            labels[subject.unit].add(subject.name)
        elif subject.kind == SINGLE:  # one that cannot be read is there too
            labels[subject.unit].update(_LABEL.findall(subject.text))
        held = subject.meta.get("id") if subject.kind == CARD else None
        if isinstance(held, str) and is_card_id(held) and subject.path not in files[held]:
            files[held].append(subject.path)
    return (
        {card_id: paths for card_id, paths in files.items() if paths},
        {unit: frozenset(held) for unit, held in labels.items()},
        {unit: frozenset(held) for unit, held in withheld.items()},
    )


def _records(base: Base, found: Sequence[Subject], whole: bool) -> Iterator[tuple[str, Approval]]:
    """The approval records, oldest first: all of them, or those that name a card or unit under lint."""
    held = {s.path: s for s in found if s.kind == APPROVAL}
    if not whole:
        ids = {s.name for s in found if s.kind == CARD}
        ids |= {card.id for s in held.values() if s.record for card in s.record.cards}
        words = [f'"{card_id}"'.encode() for card_id in ids]
        words += [unit.encode() for unit in {s.unit for s in found if s.kind in (CANDIDATE, PART)}]
        for path in tracked.names(base, (APPROVALS,)) if words else ():
            entry = None if path in held else tracked.entry(base, path)
            if entry is not None and any(word in entry.data for word in words):
                held[path] = subjects(entry)[0]
    for path, subject in sorted(held.items()):
        if subject.record is not None:
            yield path, subject.record


def _registry(base: Base) -> Registry:
    """The tag registry; one that cannot be read is told by the rules over its file."""
    try:
        return tags.registry(base)
    except Unreadable:
        return Registry()
