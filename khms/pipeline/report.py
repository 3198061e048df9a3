"""REPORT.md of a unit: for the reviewer, what to look at first, and what became of every MARK.

Text of the journal appears in it as data only: one line, cut, without anything that Markdown would render.
"""

from collections.abc import Iterable, Iterator, Sequence

from khms.model.candidate import ABSENT
from khms.model.mark import Mark
from khms.model.outcome import FAIL, NOT_RUN
from khms.model.redact import redact
from khms.model.verdict import ATTACH
from khms.pipeline.draft import DEFERRED, DROPPED, LIKE, PUBLISHED, Draft
from khms.pipeline.night import Night
from khms.pipeline.postprocess import loud_gates
from khms.pipeline.sources import clean
from khms.store.receipts import receipts_path

ROWS = 500  # lines of a table; the receipts and the folders name every one. 256 KiB is the most that a file may hold
LISTED = 100  # lines of any other list
CELL = 100  # characters of a text in a table


def cell(text: str, limit: int = CELL) -> str:
    """`text` as one line in a code span: there no markup renders, and a git host neither links nor notifies anyone."""
    line = " ".join(redact(clean(text)).split())
    line = line if len(line) <= limit else line[: limit - 1] + "…"
    return f"`{line.replace('`', chr(39)).replace('|', chr(92) + '|')}`" if line else ""


def report(night: Night) -> str:
    """The whole file. Everything in it comes from the run, its day included, so that a resumed run writes the same."""
    parts = [
        f"# {night.unit}",
        "",
        *_summary(night),
        *_section("What to look at first", [*_first(night)]),
        *_section("Candidates", [*_candidates(night)]),
        *_section("Quotes that were not found", [*_quotes(night)]),
        *_section("Relations", [*_relations(night)]),
        *_section("Near duplicates", [*_duplicates(night)]),
        *_section("Withheld", [*_withheld(night)]),
        *_section("Not checked, and why", [*_unchecked(night)]),
        *_section("What was read", [*_sources(night)]),
        *_section("What became of every MARK", [*_coverage(night)]),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *(lines or ["Nothing."]), ""]


def _cut(lines: Sequence[str], limit: int = LISTED) -> Iterator[str]:
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"- … and {len(lines) - limit} more"


def _summary(night: Night) -> list[str]:
    counts = ", ".join(f"{len(night.of(fate))} {fate}" for fate in (PUBLISHED, DEFERRED, DROPPED))
    marks = len(night.decisions)
    return [
        f"Run {night.run.id}, begun {night.run.started}, proposer `{night.proposer}`, {night.collected.window}.",
        f"{marks} MARK{'' if marks == 1 else 's'} decided; candidates: {counts}.",
        "",
    ]


def _first(night: Night) -> Iterator[str]:
    yield from (f"- **{line}**" for line in loud_gates(night.drafts))
    if night.taken:
        yield f"- {night.taken} was there already with other content; it is kept, and this unit took the next name."
    yield from (f"- {cell(str(problem), 300)}" for problem in night.problems)
    yield from (f"- {path} is not in this commit: {cell(why, 200)}" for path, why in night.kept_back.items())
    flagged = [made for made in night.of(PUBLISHED) if made.candidate.flags]
    yield from _cut([f"- {made.label} {', '.join(map(cell, made.candidate.flags))}{_why(made)}" for made in flagged])


def _why(made: Draft) -> str:
    said = [outcome.message for outcome in made.checks().values() if outcome.state == FAIL]
    return f": {cell('; '.join(said), 300)}" if said else ""


def _candidates(night: Night) -> Iterator[str]:
    rows = [
        f"| {made.label} | {cell(str(made.candidate.meta['type']))} | {cell(made.candidate.title)} | {made.fate} |"
        for made in night.drafts
    ]
    if rows:
        yield from ("| label | type | title | where |", "|---|---|---|---|", *rows[:ROWS])
        if len(rows) > ROWS:
            yield f"\n{len(rows) - ROWS} more stand in the unit's folders."


def _quotes(night: Night) -> Iterator[str]:
    yield from _cut([
        f"- {made.label} {quote.grade or 'not looked up'} in {cell(quote.source)}: {cell(quote.text)}"
        for made in night.drafts
        for quote in made.candidate.quotes
        if quote.grade in ("", ABSENT)
    ])  # fmt: skip


def _relations(night: Night) -> Iterator[str]:
    lines = []
    for made in night.of(PUBLISHED):
        relation, near = made.candidate.relation, ", ".join(made.candidate.nearest) or "no card"
        said = " ".join(part for part in (relation.kind, relation.target, relation.nearest) if part)
        because = f", because {cell(relation.because)}" if relation.because else ""
        lines.append(f"- {made.label} {cell(said)}{because} (nearest: {cell(near)})")
    yield from _cut(lines)


def _duplicates(night: Night) -> Iterator[str]:
    lines = [
        f"- {made.label}: {cell(outcome.message)}"
        for made in night.drafts
        if (outcome := made.checks().get("duplicates")) is not None and outcome.message
    ]
    for made in night.drafts:
        if like := [flag.removeprefix(LIKE) for flag in made.candidate.flags if flag.startswith(LIKE)]:
            lines.append(f"- {made.label} says something like {', '.join(like)}, in other words")
    lines += [f"- {made.label} was marked {len(made.attached) + 1} times" for made in night.drafts if made.attached]
    yield from _cut(lines)


def _withheld(night: Night) -> Iterator[str]:
    for fate in (DROPPED, DEFERRED):
        made = night.of(fate)
        yield from _cut([f"- {one.label} in `{fate}/`: {cell(one.why, 300)}" for one in made])
    if night.of(DROPPED) or night.of(DEFERRED):
        yield "\nMoving a file back into the unit's folder brings it before the reviewer again."


def _unchecked(night: Night) -> Iterator[str]:
    rows: dict[tuple[str, str], list[str]] = {}
    for made in night.of(PUBLISHED):
        for name, outcome in made.checks().items():
            if outcome.state == NOT_RUN:
                said = "nobody judged it" if name == "relations" else outcome.message
                rows.setdefault((name, said), []).append(made.label)
    yield from (f"- {name}: {', '.join(labels)}: {cell(said, 200)}" for (name, said), labels in rows.items())
    over = [decision.mark for decision in night.decisions.values() if decision.over]
    yield from _cut([f"- {mark} alone is longer than the packet's target" for mark in over])


def _sources(night: Night) -> Iterator[str]:
    collected = night.collected
    read = {mark.path for mark in collected.open}
    for path in sorted(read):
        yield f"- {cell(path)}, SHA-256 {collected.pages[path].sha256}"
    yield from _cut([f"- {cell(path)} holds no MARK" for path in collected.empty])
    if collected.settled:
        yield f"- {collected.settled} MARKs of the window were decided by earlier runs"


def _coverage(night: Night) -> Iterator[str]:
    yield from ("| MARK | where | kind | verdict | candidate or card | text |", "|---|---|---|---|---|---|")
    yield from _rows(night, night.collected.open[:ROWS])
    rest = len(night.collected.open) - ROWS
    if rest > 0:
        yield f"\n{rest} more MARKs are in {receipts_path(night.run.id)}."


def _rows(night: Night, marks: Iterable[Mark]) -> Iterator[str]:
    for mark in marks:
        decision = night.decisions.get(mark.id)
        place = f"{mark.path.rpartition('/')[2]}:{mark.line}"
        if decision is None:
            said = ("open", cell(night.left.get(mark.id, "")))
        else:
            verdict, label, reason = night.outcome(decision)
            where = label if verdict == ATTACH or not reason else f"{label} {cell(reason)}".strip()
            said = (verdict, where or label)
        text = "" if decision is not None and decision.held_back else cell(mark.text, 60)
        yield f"| {mark.id} | {cell(place)} | {cell(mark.kind)} | {said[0]} | {said[1]} | {text} |"
