"""What a candidate's own file must hold before it can be made a card: its label, a claim, a status that a new card can
have, and its own keys as their schema says. What the card's keys must hold, lint says of the card.
"""

import re
from collections.abc import Iterator

from khms.model.candidate import CANDIDATE_KEYS, Candidate
from khms.model.card import as_text, links_of
from khms.model.claim import claim
from khms.model.finding import Finding
from khms.store import schema

_MARK = re.compile(r"M-[0-9a-f]{12}")


def faults(candidate: Candidate, *, single: bool) -> Iterator[Finding]:
    """`single` marks the older single-file form, whose blocks carry what labels and keys they like; only what comes
    into the card or its receipt counts there."""
    if not single:
        yield from _label(candidate)
    yield from _status(candidate)
    if not claim(candidate.body).strip():
        yield fault(candidate, "form", "its body says nothing", "write the claim, or leave it out", candidate.body_line)
    checked = ("mark",) if single else CANDIDATE_KEYS
    meta = schema.convert(candidate.meta, "candidate")
    for where, words in schema.problems("candidate", meta):
        key = (schema.keys(where) or [""])[0]
        if key in checked:
            yield fault(candidate, "form", words, _mend(where), line_of(candidate, key))


def fault(candidate: Candidate, check: str, message: str, mend: str, line: int = 0) -> Finding:
    """A finding that names the candidate and the check; without a line it is the body's first."""
    where = line or candidate.body_line
    return Finding(f"{candidate.label} {check}:", "error", candidate.path, where, message, mend)


def line_of(candidate: Candidate, key: str) -> int:
    """The file's line of a top-level key; the body's first where the header has no such line."""
    head = candidate.text[: len(candidate.text) - len(candidate.body)].split("\n")
    rows = [i for i, row in enumerate(head) if row.startswith((f"{key}:", f'"{key}":', f"'{key}':"))]
    return candidate.body_line - (len(head) - 1) + rows[0] if rows else candidate.body_line


def mark_of(candidate: Candidate) -> str:
    """The id of the candidate's MARK, empty where what it names is none: a receipt holds ids only."""
    return candidate.mark if _MARK.fullmatch(candidate.mark) else ""


def _label(candidate: Candidate) -> Iterator[Finding]:
    label, own = candidate.label, as_text(candidate.meta.get("id"))
    if not (label[:1] == "C" and label[1:].isascii() and label[1:].isdigit()):
        mend = "rename the file to a free label, such as C9.md, and write it as the id"
        yield fault(candidate, "form", f"{label!r} is no label: C and a number", mend, line_of(candidate, "id"))
    elif own != label:
        said = f"its id is {own!r}" if own else "it has no id"
        mend = f"write id: {label}; approval gives the card its own"
        yield fault(candidate, "form", f"{said}, and its file is {label}.md", mend, line_of(candidate, "id"))


def _status(candidate: Candidate) -> Iterator[Finding]:
    """A new card stands. It may come in challenged where it names what it contradicts; every other status is a later
    change, with a record of its own."""
    status = as_text(candidate.meta.get("status"))
    disputed = bool(links_of(candidate.meta.get("links")).contradicts) or candidate.relation.kind == "contradicts"
    if status in ("", "active") or (status == "challenged" and disputed):
        return
    mend = "write status: active; what it replaces or refutes is said by its relation and links"
    message = f"a new card cannot be {status}"
    yield fault(candidate, "form", message, mend, line_of(candidate, "status"))


def _mend(where: str) -> str:
    meaning = schema.meaning("candidate", where)
    return meaning[:1].lower() + meaning[1:].removesuffix(".") if meaning else ""
