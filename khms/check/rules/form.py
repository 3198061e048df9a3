"""The form of a page: that its frontmatter reads and validates, that it is named after its id, that links lie right."""

import difflib
from collections.abc import Iterator

from khms.check.context import Context
from khms.check.subject import CARD, CHANGE, NOTE, Fault, Subject
from khms.model.card import RELATIONS, canonical_type, is_card_id
from khms.store import schema
from khms.store.layout import seems_card


def frontmatter(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH001 for pages: one YAML mapping that the schema of its kind accepts."""
    if subject.error is not None:
        yield Fault(subject.error.line, subject.error.message, subject.error.mend)
        return
    if subject.kind == NOTE:
        return
    if not subject.entry.data.strip():
        yield Fault(0, "the file is empty", "restore it, or remove it: git checkout -- FILE")
        return
    if not subject.meta:
        yield Fault(1, "the frontmatter is missing", "begin the file with `---`, `id: …` and the other keys, `---`")
        return
    name = {CARD: "card", CHANGE: "change"}.get(subject.kind, "candidate")
    value = subject.meta if subject.kind == CARD else schema.convert(subject.meta, name)
    if not schema.fits(name, value):
        for pointer, message in schema.problems(name, value):
            yield Fault(_line(subject, pointer), message, _mend(name, pointer, message))
    if isinstance(kind := subject.meta.get("type"), str):
        yield from _type(subject, context, kind)


def _line(subject: Subject, pointer: str) -> int:
    """The line of the deepest key of `pointer` that has one."""
    steps = schema.keys(pointer)
    return subject.line(*(".".join(steps[:end]) for end in range(len(steps), 0, -1)))


def _mend(name: str, pointer: str, message: str) -> str:
    if pointer:
        return schema.meaning(name, pointer)
    missing = message.split("`")[1] if "`" in message else ""
    said = schema.meaning(name, "/" + missing)
    return f"add `{missing}:`. {said}" if said else f"add `{missing}:`"


def _type(subject: Subject, context: Context, kind: str) -> Iterator[Fault]:
    slug = canonical_type(kind)
    if slug in context.types or not slug:
        return
    near = difflib.get_close_matches(slug, context.types, n=1)
    mend = f"did you mean {near[0]}?" if near else "one of " + ", ".join(context.types)
    yield Fault(subject.line("type"), f"there is no type `{kind}`", mend + " A new one goes under [cards.types]")


def name(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH002: the file's name is the id, and no other file has it."""
    held = subject.meta.get("id")
    if not isinstance(held, str) or subject.error is not None:
        return
    if held != subject.name:
        where = "the file's name" if subject.kind == CARD else "its label"
        yield Fault(subject.line("id"), f"`id` is {held}, but {where} is {subject.name}", "make both the same")
    if subject.kind == CARD and is_card_id(held):
        others = [path for path in context.files.get(held, ()) if path != subject.path]
        if others:
            yield Fault(subject.line("id"), f"{held} stands in {others[0]} too", "keep one; the other needs its own id")


def ending(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH002 for what others could take for a card."""
    if seems_card(subject.path):
        yield Fault(
            0,
            "a card's file ends in .md, in small letters, below memory/know/: this is none to khms, and one to others",
            "move it into an inbox unit, as C1.md with `id: C1`, and approve it: khms approve UNIT C1",
        )


def stray_links(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH006: edges stand under `links:`, by the names that mean something."""
    for relation in RELATIONS:
        if relation in subject.meta:
            mend = f"move it under `links:`, as `  {relation}: …`"
            yield Fault(subject.line(relation), f"`{relation}` stands outside `links`, so it is no edge", mend)
    links = subject.meta.get("links")
    if not isinstance(links, dict):
        return
    for key in links:
        if key not in RELATIONS:
            near = difflib.get_close_matches(key, RELATIONS, n=1)
            mend = f"did you mean {near[0]}?" if near else "relations are " + ", ".join(RELATIONS)
            yield Fault(subject.line(f"links.{key}", "links"), f"`links.{key}` is no relation", mend, "warning")
