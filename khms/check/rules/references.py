"""What points at another card: every id in `links` and in the body's wikilinks exists."""

from collections.abc import Iterator

from khms.check.context import Context
from khms.check.subject import CARD, Fault, Subject
from khms.check.wikilinks import wikilinks
from khms.model.card import is_card_id


def targets(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH005: what `links` and `[[K-…]]` name is there. A wikilink that names nothing gets a notice."""
    for relation, target in subject.card.links.edges():
        if message := _broken(target, subject, context):
            yield Fault(subject.line(f"links.{relation}", "links"), f"`links.{relation}` {target}: {message}", _MEND)
    empty = 0
    first = 0
    for link in wikilinks(subject.page.body):
        line = subject.page.body_line + link.line - 1
        if not link.target:
            empty += 1
            first = first or line
        elif message := _broken(link.target, subject, context):
            yield Fault(line, f"[[{link.target}]]: {message}", _MEND)
    if empty:
        many = "a wikilink names" if empty == 1 else f"{empty} wikilinks name"
        yield Fault(first, f"{many} nothing: `[[]]`", "name a card, or put it in backticks", "warning")


def changed(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH005 of a proposed change: the card that it is about and the one that is its cause are there."""
    change = subject.meta.get("change")
    for key in ("card", "by"):
        target = change.get(key) if isinstance(change, dict) else None
        if isinstance(target, str) and target and not context.exists(target):
            said = f"`change.{key}` {target}: there is no such card"
            yield Fault(subject.line(f"change.{key}", "change"), said, _MEND)


_MEND = "correct the id, or take the link out"


def _broken(target: str, subject: Subject, context: Context) -> str:
    """Why `target` leads nowhere; nothing where it leads somewhere, or is no id at all."""
    if is_card_id(target):
        return "" if context.exists(target) else "there is no such card"
    if not (target[:1] == "C" and target[1:].isdigit()):
        return ""
    if subject.kind == CARD:
        return "a label of an inbox unit, which means nothing here"
    if target in context.labels.get(subject.unit, ()) or (subject.unit, target) in context.taken:
        return ""
    if target in context.withheld.get(subject.unit, ()):
        return "this candidate is put aside"
    return "there is no such candidate in this unit"
