"""REPORT.md of a weekly unit: what is offered and why, then what each step tells. Everything in it comes from the run
and the base, so that a resumed run writes the same."""

from collections.abc import Iterator, Sequence

from khms.model.outcome import FAIL, NOT_RUN
from khms.pipeline.draft import DROPPED, PUBLISHED
from khms.pipeline.report import LISTED, ROWS, cell
from khms.pipeline.weekly.made import LEFT_OUT, Made
from khms.pipeline.weekly.steps import STEPS
from khms.pipeline.weekly.week import Week

SHOWN = 40  # pairs or shapes that one section shows


def report(week: Week) -> str:
    parts = [f"# {week.unit}", "", *_summary(week), *_section("What to look at first", [*_first(week)])]
    parts += _section("What is offered", [*_offers(week)])
    for name, step in STEPS.items():
        if rows := [*_told(week, name)]:
            parts += _section(step.heading, rows)
    parts += _section("Withheld, and not offered", [*_withheld(week)])
    return "\n".join(parts).rstrip("\n") + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *(lines or ["Nothing."]), ""]


def _summary(week: Week) -> list[str]:
    counts = f"{len(week.of(PUBLISHED))} published, {len(week.of(DROPPED))} dropped"
    late = f" {week.late} more wait for the next run: a unit holds at most {week.cap}." if week.late else ""
    return [
        f"Run {week.run.id}, begun {week.run.started}, over {week.cards} cards in force, proposer `{week.proposer}`.",
        f"Offers: {counts}.{late} Nothing of this counts before a reviewer approves it.",
        "",
    ]


def _first(week: Week) -> Iterator[str]:
    yield from (f"- {cell(str(problem), 300)}" for problem in week.problems)
    for name, found in week.found.items():
        yield from (f"- {name}: {cell(said, 300)}" for said in found.missing)
    for made in week.of(PUBLISHED):
        said = [o.message for o in made.checks().values() if o.state == FAIL]
        if said:
            yield f"- {made.label} {cell('; '.join(said), 300)}"
        unseen = [name for name, o in made.checks().items() if o.state == NOT_RUN]
        if unseen:
            yield f"- {made.label} was not checked for {', '.join(unseen)}"


def _offers(week: Week) -> Iterator[str]:
    rows = [f"| {made.label} | {_what(made)} | {cell(made.offer.title)} | {made.fate} |" for made in week.written]
    if rows:
        yield from ("| label | what it does | title | where |", "|---|---|---|---|", *rows[:ROWS])


def _what(made: Made) -> str:
    change = made.offer.change
    if change is not None:
        return f"{change.card} {change.was} → {change.status}, because of {change.by}"
    if made.offer.moves:
        return f"a card that supersedes {', '.join(sorted(made.offer.moves))}"
    return f"a {made.offer.meta['type']} derived from {', '.join(made.offer.meta['links']['derived_from'])}"


def _told(week: Week, name: str) -> Iterator[str]:
    told = week.found[name].told if name in week.found else ()
    for one in told[:SHOWN]:
        yield from one.lines
    if len(told) > SHOWN:
        yield f"{len(told) - SHOWN} more are not shown; they come up again once these are settled."


def _withheld(week: Week) -> Iterator[str]:
    rows = [f"- {made.label} in `dropped/`: {cell(made.why, 300)}" for made in week.of(DROPPED)]
    rows += [f"- {cell(made.offer.title)}: {cell(made.why, 300)}" for made in week.of(LEFT_OUT)]
    rows += [f"- {cell(key)}: {cell(why, 200)}" for key, why in week.passed.items()]
    yield from rows[:LISTED]
    if len(rows) > LISTED:
        yield f"- … and {len(rows) - LISTED} more"
