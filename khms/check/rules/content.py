"""What must stand in no file, whatever it is: secrets, words that would steer an agent, halves of a merge."""

import os
from collections.abc import Iterator
from pathlib import PurePosixPath

from khms.check.context import Context
from khms.check.subject import CANDIDATE, CARD, Fault, Subject


def secrets(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH013: no secret, credential or private key."""
    for hit in subject.hits:
        if hit.kind == "secret":
            mend = "take it out and renew it: history keeps what was committed"
            yield Fault(hit.line, f"a secret ({hit.id}): {hit.snippet}", mend)


def injection(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH014: no words that would steer an agent or carry data out, unless a reviewer waived it for this card."""
    if subject.kind == CARD and any("screening" in proof.waived for proof in context.proofs.get(subject.name, ())):
        return
    if subject.kind == CANDIDATE and subject.unit == subject.path:
        return  # the older inbox file is looked at as a whole
    for hit in subject.hits:
        if hit.kind != "secret":
            mend = "reword it as a statement, or approve it with --waive screening:LABEL --why"
            yield Fault(hit.line, f"this reads like an {hit.kind} ({hit.id}): {hit.snippet}", mend)


def whole(subject: Subject, context: Context) -> Iterator[Fault]:
    """KH015: no conflict marker at a line's start, no content file over the limit, no link that leaves the base."""
    entry = subject.entry
    if entry.link is not None:
        if not _stays_inside(subject.path, entry.link, context):
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
    target = (root / path).resolve()
    return target == root or root in target.parents
