"""The text of a pull request that brings a unit: what a reviewer does with it, and the candidates to look at.

What a candidate says is data. It stands in code blocks, each line behind a bar, and what a git host would act on is
broken by a character that draws nothing: hosts can be set to make a squashed commit's message of this text, and there
no code block holds, so a mention, `fixes #1` or `[skip ci]` would act. The files in the branch have the true bytes.
"""

import re
import textwrap
from collections.abc import Iterator

from khms.model.candidate import Candidate
from khms.model.redact import redact
from khms.pipeline.sources import clean
from khms.store.inbox import Unit

LIMIT = 60_000  # characters; GitHub takes 65,536 and counts some characters twice
EACH = 2_000  # characters of one candidate
WIDTH = 110
_BREAK = "\u200b"
# A mention, a reference to an issue or request, a link, an image, a tag or comment, a command to a runner or the host.
_ACTING = re.compile(r"[@#!~%\[<]|://|(?i:\bGH-)|^/", re.MULTILINE)


def inert(text: str) -> str:
    """`text` without anything that a git host would act on, in a code block or out of it."""
    return _ACTING.sub(lambda found: found[0] + _BREAK, redact(clean(text)))


def title(unit: str) -> str:
    return f"Review memory proposals: {unit}"


def body(unit: Unit) -> str:
    """The whole text, within the least limit of the known hosts."""
    count = len(unit.candidates)
    parts = [_guide(unit, count)]
    room = LIMIT - len(parts[0]) - 200
    for at, candidate in enumerate(unit.candidates):
        part = _candidate(candidate)
        if len(part) > room:
            parts.append(f"\n{count - at} more: see the files.\n")
            break
        parts.append(part)
        room -= len(part)
    return "".join(parts)


def _guide(unit: Unit, count: int) -> str:
    waiting = f"{count} candidate{'' if count == 1 else 's'} in `{unit.path}/`"
    unjudged = [c.label for c in unit.candidates if c.relation.kind == "unjudged"]
    steps = [
        "Read each file; `REPORT.md` says what to look at first.",
        "Edit a candidate in this branch where it is wrong. Move its file to `dropped/` to leave it out, to `deferred/`"
        " to put it off.",
        "Approve this pull request once the files are right, then merge it. An approval counts for the bytes it saw.",
    ]
    if unjudged:
        steps.insert(
            1,
            f"Say how each stands to what is known: in {', '.join(unjudged[:20])}"
            f"{' and more' if len(unjudged) > 20 else ''} change `kind: unjudged` of `relation` to `kind: new`, or to"
            " `supports`, `contradicts` or `supersedes` with a `target`.",
        )
    listed = "".join(f"{at}. {step}\n" for at, step in enumerate(steps, 1))
    refuse = (
        f"To refuse all of it, run `khms reject {unit.name} --why '…'` on the branch that receives approvals, then"
        " close this request."
    )
    lead = "Nothing of this is knowledge yet. What the candidates say is quoted, and is no instruction to anybody."
    return f"khms proposes {waiting}. {lead}\n\n{listed}\n{refuse}\n"


def _candidate(candidate: Candidate) -> str:
    rows = list(_lines(candidate))
    text, cut = "\n".join(rows), ""
    if len(text) > EACH:
        text, cut = text[:EACH].rpartition("\n")[0], "\n| …"
    flags = f" ({', '.join(_word(flag) for flag in candidate.flags)})" if candidate.flags else ""
    return f"\n**{_word(candidate.label)}**{flags}\n\n```text\n{text}{cut}\n```\n"


def _word(text: str) -> str:
    """A label or flag as a code span."""
    return f"`{inert(' '.join(text.split())).replace('`', chr(39))[:80]}`"


def _lines(candidate: Candidate) -> Iterator[str]:
    relation = candidate.relation
    said = " ".join(part for part in (relation.kind, relation.target, relation.because) if part)
    for block in (candidate.title, candidate.body.strip("\n"), f"relation: {said}"):
        for line in inert(block).split("\n"):
            yield from (f"| {row}" for row in textwrap.wrap(line, WIDTH, break_long_words=True) or [""])
        yield "|"
