"""`khms inbox`: what awaits review, listed and shown."""

from collections.abc import Iterable
from typing import Any

import click

from khms.cli.output import block, clean, fold, one_line, print_json, table
from khms.cli.session import Session
from khms.errors import Usage
from khms.model.candidate import Candidate, Quote
from khms.model.card import as_text
from khms.pipeline.reviewing import flagged
from khms.store.inbox import Unit


@click.group()
def inbox() -> None:
    """List and show what awaits review."""


@inbox.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--all", "everything", is_flag=True, help="Units with nothing pending too.")
@click.pass_obj
def inbox_list(session: Session, as_json: bool, everything: bool) -> None:
    """List the units, with what is pending in each.

    \b
    khms inbox list
    khms inbox list --all --json
    """
    from khms.pipeline import unreviewed

    rows = unreviewed.rows(session.base)
    beside, wrong = unreviewed.on_branches(session.base, session.repo)
    for message in wrong:
        session.note(one_line(message))
    shown = [unreviewed.row(unit, open_) for unit, open_ in rows if everything or open_ or unit.broken]
    shown += [unreviewed.row(unit, unit.candidates, branch) for unit, branch in beside]
    if as_json:
        print_json({"schema": "khms.inbox/1", "units": shown})
        return
    for unit, _ in rows:
        for problem in unit.broken:
            session.note(one_line(f"cannot be read: {problem.path}:{problem.line}: {problem.message}"))
    if not shown:
        session.say("nothing awaits review")
        return
    headings: tuple[str, ...] = ("unit", "created", "pending", "flagged", "deferred", "dropped")
    rows_shown = [{**row, "created": _to_the_minute(str(row["created"]))} for row in shown]
    if beside:
        headings = (*headings, "where")
        rows_shown = [{**row, "where": f"on branch {row['branch']}" if row["branch"] else "here"} for row in rows_shown]
    table(headings, [[one_line(str(row[name])) for name in headings] for row in rows_shown])
    following = next((unit.name for unit, open_ in rows if open_ or unit.broken), None)
    if following:
        session.say(one_line(f"next: khms inbox show {following}"))


def _to_the_minute(at: str) -> str:
    """A time as a table shows it: without seconds and zone, which the JSON has."""
    return at[:16].replace("T", " ")


def _looked_up(session: Session, candidates: Iterable[Candidate]) -> dict[str, list[Quote]]:
    """Each candidate's quotes by its label, with what looking them up finds now; a source that is gone leaves what the
    file says."""
    from khms.pipeline import quotes

    reader = quotes.Reader(session.base)
    return {c.label: [quotes.graded(reader, c, quote) for quote in quotes.of(c)] for c in candidates}


@inbox.command("show")
@click.argument("unit", required=False)
@click.argument("labels", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def inbox_show(session: Session, unit: str | None, labels: tuple[str, ...], as_json: bool) -> None:
    """Show a unit's candidates with their quotes in context, flagged ones first.

    \b
    khms inbox show                       the oldest unit with something pending
    khms inbox show 2026-11-30-nightly C2
    """
    from khms.pipeline import unreviewed
    from khms.pipeline.approve import approved_labels, made_changes, pending
    from khms.store import branches, cards
    from khms.store.inbox import find

    if unit is None:
        waiting_units = [row for row, open_ in unreviewed.rows(session.base) if open_ or row.broken]
        if not waiting_units:
            session.say("nothing awaits review")
            return
        unit = waiting_units[0].name
    beside = branches.unmerged_unit(session.base, unit)
    held = branches.unit(session.repo, beside) if beside else find(session.base, unit)
    records = cards.approvals(session.base)
    waiting = pending(session.base, held, records)
    done = {**approved_labels(records, held.path), **made_changes(session.base, held)}
    missing = [label for label in labels if held.candidate(label) is None]
    if missing:
        known = ", ".join(candidate.label for candidate in held.candidates) or "none"
        raise Usage(f"{held.name} has no candidate {', '.join(missing)}", hint=f"it has: {known}")
    chosen = [c for c in held.candidates if c.label in labels] if labels else waiting
    quoted = _looked_up(session, chosen)
    chosen = sorted(chosen, key=lambda candidate: not flagged(candidate, quoted[candidate.label]))
    if as_json:
        print_json(
            {
                "schema": "khms.unit/1",
                "unit": held.name,
                "path": held.path,
                "candidates": [_candidate_json(c, done, quoted[c.label]) for c in chosen],
                "broken": [{"path": p.path, "line": p.line, "message": p.message} for p in held.broken],
            }
        )
        return
    for problem in held.broken:
        session.say(one_line(f"cannot be read: {problem.path}:{problem.line}: {problem.message}"))
        session.say(f"  {one_line(problem.mend)}")
    session.say(one_line(f"{held.path}: {len(waiting)} pending, {len(done)} approved"))
    if beside:
        session.say(one_line(f"on branch {beside.name}: it awaits the merge of that branch"))
    if not chosen:
        _show_cards(session, done)
    for candidate in chosen:
        session.say()
        _show_candidate(session, held, candidate, quoted[candidate.label], done.get(candidate.label))
    if waiting and not beside:
        session.say()
        session.say(one_line(f"next: {_next(held, waiting[0])}") + "   (or --all; khms reject, khms defer)")


def _show_cards(session: Session, done: dict[str, str]) -> None:
    """What became of a unit in which nothing is pending."""
    from khms.store import cards

    for label, card_id in done.items():
        path = cards.find(session.base, card_id)
        where = session.base.relative(path) if path else "its file is gone"
        session.say(one_line(f"{label} = {card_id}  {where}"))


def _next(unit: Unit, candidate: Candidate) -> str:
    """The command that lets this candidate in; a relation that nobody judged is the reviewer's to say."""
    label = candidate.label
    judged = unit.single or candidate.relation.kind != "unjudged"
    return f"khms approve {unit.name} {label}" + ("" if judged else f" --relation {label}=new")


def _candidate_json(candidate: Candidate, done: dict[str, str], quotes: Iterable[Quote]) -> dict[str, Any]:
    return {
        "label": candidate.label,
        "title": candidate.title,
        "path": candidate.path,
        "line": candidate.body_line,
        "meta": dict(candidate.meta),
        "body": candidate.body,
        "quotes": [quote.as_meta() for quote in quotes],
        "approved_as": done.get(candidate.label),
    }


def _show_candidate(
    session: Session, unit: Unit, candidate: Candidate, quotes: Iterable[Quote], card_id: str | None
) -> None:
    flags = f"  [{', '.join(candidate.flags)}]" if candidate.flags else ""
    became = f"  = {card_id}" if card_id else ""
    title = fold(one_line(f"{candidate.label}  {candidate.title or '(no title)'}{flags}{became}"), 4)
    session.say("\n".join(click.style(row, bold=True) for row in title.split("\n")) if session.colour else title)
    facts = [as_text(candidate.meta.get(key)) for key in ("type", "level", "scope", "evidence", "date")]
    where = f"{candidate.path}:{candidate.body_line}"
    session.say(fold(f"  {one_line(' · '.join(fact for fact in facts if fact))}   {one_line(where)}", 4))
    rows = block(clean(candidate.body).strip("\n"), "  | ")
    for quote in quotes:
        words = one_line(f"quote {quote.grade or 'unchecked'}, {quote.source}: “{quote.text}”")
        rows += [fold(f"  {words}", 4), *(block(clean(quote.context), "      ") if quote.context else ())]
    if not unit.single:
        rows.append(fold(f"  {one_line(_relation(candidate))}", 4))
    for row in rows:
        session.say(row)


def _relation(candidate: Candidate) -> str:
    held = candidate.relation
    because = f" because {held.because}" if held.because else ""
    near = f"; nearest: {', '.join(candidate.nearest)}" if candidate.nearest else ""
    return f"relation: {held.kind} {held.target}".rstrip() + because + near
