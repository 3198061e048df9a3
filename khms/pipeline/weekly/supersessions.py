"""Cards that replace others without having said so in full.

The graph implies one where a card supersedes another that is still in force: a change of status mends that. The text
implies one where a card says in words that it replaces another, or gives the same subject another value later. Approved
cards never change, so what is offered then is the later card again, with the link; it replaces both. Where other cards
rest on the later one, that would take the ground from under them: then the earlier one is offered to be challenged.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from khms.model.candidate import Change, Quote, Relation
from khms.model.card import IN_FORCE, RELATIONS, Card
from khms.pipeline.quotes import SHORTEST
from khms.pipeline.rules import cut
from khms.pipeline.weekly.clashing import quotes_of, sides, sort
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.offer import Found, Offer
from khms.pipeline.weekly.statements import Clash, sentences

_CARD = r"(?:(?:the\s+)?card\s+)?\[{0,2}(?P<id>K-\d{5,})\b"
_REPLACES = re.compile(
    rf"(?:^SUPERSEDES\s+(?P<line>K-\d{{5,}})\s+BECAUSE:[ \t]*(?P<why>.*)$|\b(?:supersedes|replaces|obsoletes|takes the "
    rf"place of)\s+{_CARD})",
    re.MULTILINE | re.IGNORECASE,
)
_DENIED = re.compile(r"(?:\b(?:not|never|nor|cannot|would|could|may|might|should|if|whether)|n't|n’t)\s+(?:\w+\s+)?$")
_FENCED = re.compile(r"^(?P<fence>```|~~~).*?^(?P=fence)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")


def find(ground: Ground) -> Found:
    offers = [*_unfinished(ground)]
    said = _said(ground)
    clashing = sort(ground).replaced
    for new_id in sorted({*said, *clashing}):
        new = ground.cards[new_id]
        reasons = {**_valued(new, clashing.get(new_id, ())), **said.get(new_id, {})}
        quoted = {old: clash for clash in clashing.get(new_id, ()) for old in clash.cards if old != new_id}
        if ground.resting.get(new_id):
            offers += [_challenged(ground, ground.cards[old], new, why, quoted) for old, why in sorted(reasons.items())]
        else:
            offers.append(_again(ground, new, reasons))
    return Found(tuple(offers))


def _unfinished(ground: Ground) -> Iterator[Offer]:
    """The link is there and the status was never set."""
    for new in ground.standing:
        for old_id in new.links.supersedes:
            old = ground.cards.get(old_id)
            if old is None or old.status not in IN_FORCE:
                continue
            because = _reason(new, old_id) or new.title
            change = Change(old.id, "superseded", new.id, old.status, f"superseded by {new.id}: {because}")
            body = f"{new.id} ({new.date[:10]}) supersedes {old.id} ({old.date[:10]}), which is still {old.status}.\n"
            line = f"SUPERSEDES {old_id} BECAUSE: {because}"
            quotes = (Quote(new.id, line),) if line in new.body else ()
            yield Offer(str(change), f"{old.id} leaves for the archive: {new.id} supersedes it", body, change=change,
                        quotes=quotes, near=(old.id, new.id))  # fmt: skip


def _said(ground: Ground) -> dict[str, dict[str, str]]:
    """new -> old -> why, where the new card's words say that it replaces the old one and no link does."""
    found: dict[str, dict[str, str]] = {}
    for new in ground.standing:
        text = _CODE.sub("", _FENCED.sub("", new.body))
        for match in _REPLACES.finditer(text) if "K-" in text and new.status == "active" else ():
            old = ground.cards.get(match["line"] or match["id"])
            denied = match["line"] is None and _DENIED.search(text[max(0, match.start() - 40) : match.start()])
            if old is None or old.id == new.id or old.status not in IN_FORCE or denied or ground.linked(old, new):
                continue
            why = (match["why"] or "").strip() or f"{new.id} says so: {' '.join(match[0].split())}"
            found.setdefault(new.id, {}).setdefault(old.id, cut(why))
    replaced = {old for olds in found.values() for old in olds}
    return {new: olds for new, olds in found.items() if new not in replaced}


def _reason(new: Card, old: str) -> str:
    found = (m["why"].strip() for m in _REPLACES.finditer(new.body) if m["line"] == old)
    return next(found, "")


def _valued(new: Card, clashing: tuple[Clash, ...]) -> Mapping[str, str]:
    found = {}
    for clash in clashing:
        old = next(i for i in clash.cards if i != new.id)
        now, then = sides(clash, new)
        found[old] = f"on {new.date[:10]} it was {now}, where {old} says {then}"
    return found


def _again(ground: Ground, new: Card, reasons: Mapping[str, str]) -> Offer:
    """The later card once more, with links to what it replaces and to itself as it was."""
    first, *others = sorted(reasons)
    lines = [f"SUPERSEDES {new.id} BECAUSE: it says this without a link to {', '.join(sorted(reasons))}"]
    lines += [f"SUPERSEDES {old} BECAUSE: {reasons[old]}" for old in others]
    own = [f"SUPERSEDES {i} " for i in (new.id, *reasons)]
    kept = [row for row in new.body.strip("\n").split("\n") if not row.startswith(tuple(own))]
    links: dict[str, Any] = {name: list(getattr(new.links, name)) for name in RELATIONS}
    links |= {"supersedes": [new.id, *others], "refuted_by": []}
    links["contradicts"] = [i for i in links["contradicts"] if i not in reasons]
    meta = {key: value for key, value in new.meta.items() if key not in ("id", "status", "links", "title")}
    quotes = dict.fromkeys(text for text in sentences(new) if len(text) >= SHORTEST)
    return Offer(
        key=f"{' '.join(sorted(reasons))} superseded as {new.id} says",
        title=new.title,
        body="\n".join([*lines, *kept]) + "\n",
        meta={
            "type": new.type,
            "level": new.level or "observation",
            "status": "active",
            "title": new.title,
            **{key: value for key, value in meta.items() if key not in ("type", "level")},
            "links": links,
            "relation": Relation("supersedes", first, "", reasons[first]).as_meta(),
        },
        quotes=tuple(Quote(new.id, text) for text in quotes),
        near=(*sorted(reasons), new.id),
        flags=("implied",),
    )


def _challenged(ground: Ground, old: Card, new: Card, why: str, clashing: Mapping[str, Clash]) -> Offer:
    resting = ", ".join(ground.resting[new.id])
    change = Change(old.id, "challenged", new.id, old.status, f"{new.id} is later and says otherwise: {why}")
    body = (
        f"{new.id} ({new.date[:10]}) seems to replace {old.id} ({old.date[:10]}): {why}.\n\n"
        f"{new.id} itself stays, because {resting} rests on it. To replace {old.id} whole, propose a card that "
        "supersedes it.\n"
    )
    clash = clashing.get(old.id)
    title = f"{old.id} is challenged by {new.id}, which is later"
    return Offer(
        str(change), title, body, change=change, quotes=quotes_of(clash) if clash else (), near=(old.id, new.id)
    )
