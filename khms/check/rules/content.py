"""What must stand in no file, whatever it is: secrets, words that would steer an agent, halves of a merge."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from khms.check.context import Context
from khms.check.ground import is_guarded
from khms.check.subject import CARD, Fault, Subject

if TYPE_CHECKING:
    from khms.check.screening import Hit


_WORDS = {
    "secret": "a secret",
    "injection": "words that could steer an agent",
    "exfiltration": "a way to carry data out",
}


def secrets(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH013: no secret, credential or private key."""
    mend = "take it out and renew it: history keeps what was committed"
    yield from _faults((hit for hit in subject.hits if hit.kind == "secret"), mend)


def injection(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH014: no words that would steer an agent or carry data out, unless a reviewer waived it for this card."""
    if subject.kind == CARD and any("screening" in proof.waived for proof in context.proofs.get(subject.name, ())):
        return
    mend = "reword it as a statement, or approve it with --waive screening:LABEL --why"
    yield from _faults((hit for hit in subject.hits if hit.kind != "secret"), mend)


def _faults(hits: Iterable["Hit"], mend: str) -> Iterator[Fault]:
    """One fault a line and kind, however many patterns see something there."""
    by_place: dict[tuple[int, str], list[Hit]] = {}
    for hit in hits:
        by_place.setdefault((hit.line, hit.kind), []).append(hit)
    for (line, kind), held in by_place.items():
        names = ", ".join(dict.fromkeys(hit.id for hit in held))
        yield Fault(line, f"{_WORDS[kind]} ({names}): {held[0].snippet}", mend)


def whole(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH015: no conflict marker at a line's start, no content file over the limit, no link that leaves the base, and on
    the base's own ground no link and no other repository at all."""
    entry = subject.entry
    if entry.nested:
        yield Fault(0, "another git repository stands here, and what is in it came in by no review", "take it out")
        return
    if entry.link is not None:
        if is_guarded(subject.path):
            yield Fault(
                0,
                f"this is a symbolic link where only plain files belong: {entry.link[:100]}",
                "put the file itself here",
            )
        elif not _stays_inside(subject.path, entry.link, context):
            yield Fault(0, f"this link leads out of the base: {entry.link}", "put the file itself here")
        return
    limit = context.config["lint.max_bytes"]
    if subject.is_content and entry.size > limit:
        yield Fault(
            0, f"the file holds {entry.size:,} bytes, the limit is {limit:,}", "split it, or raise lint.max_bytes"
        )
    if subject.conflict:
        mark = subject.text.split("\n")[subject.conflict - 1][:7]
        yield Fault(
            subject.conflict, f"a merge conflict stands here: {mark}", "choose one side and take the markers out"
        )


def _stays_inside(path: str, link: str, context: Context) -> bool:
    if link.startswith("/"):
        return False
    root = context.base.root.resolve()
    written = os.path.normpath(PurePosixPath(path).parent / link)
    if written == ".." or written.startswith("../"):
        return False
    target = Path(os.path.realpath(root / path))  # `resolve` would raise for a loop of links
    return target == root or root in target.parents
