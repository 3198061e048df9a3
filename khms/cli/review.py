"""`khms inbox`, `khms approve`, `khms reject`, `khms defer`."""

from collections.abc import Iterable, Sequence
from typing import Any

import click

from khms.cli.output import clean, one_line, print_json, table
from khms.cli.session import Session
from khms.errors import Usage
from khms.model.candidate import ABSENT, Candidate, Quote
from khms.model.card import as_text
from khms.pipeline.approve import Result, Wish
from khms.pipeline.withhold import Withheld
from khms.store.inbox import Unit


@click.group()
def inbox() -> None:
    """List and show what awaits review."""


def _rows(session: Session) -> list[tuple[Unit, list[Candidate]]]:
    from khms.pipeline.approve import pending
    from khms.store import cards
    from khms.store.inbox import units

    records = cards.approvals(session.base)
    return [(unit, pending(session.base, unit, records)) for unit in units(session.base)]


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
    rows = _rows(session)
    shown = [
        {
            "unit": unit.name,
            "created": as_text(unit.meta.get("created")) or unit.name[:10],
            "pending": len(waiting),
            "flagged": sum(_flagged(candidate, candidate.quotes) for candidate in waiting),
            "deferred": len(unit.deferred),
            "dropped": len(unit.dropped),
        }
        for unit, waiting in rows
        if everything or waiting or unit.broken
    ]
    if as_json:
        print_json({"schema": "khms.inbox/1", "units": shown})
        return
    for unit, _ in rows:
        for problem in unit.broken:
            session.note(one_line(f"cannot be read: {problem.path}:{problem.line}: {problem.message}"))
    if not shown:
        session.say("nothing awaits review")
        return
    headings = ("unit", "created", "pending", "flagged", "deferred", "dropped")
    table(headings, [[one_line(str(row[name])) for name in headings] for row in shown])
    following = next((unit.name for unit, waiting in rows if waiting or unit.broken), None)
    if following:
        session.say(one_line(f"next: khms inbox show {following}"))


def _flagged(candidate: Candidate, quotes: Iterable[Quote]) -> bool:
    """Whether a reviewer should look at it first: it says so itself, or one of its quotes stands nowhere."""
    return bool(candidate.flags) or any(quote.grade == ABSENT for quote in quotes)


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
    khms inbox show                            the oldest unit with something pending
    khms inbox show 2026-11-30-nightly C2
    """
    from khms.pipeline.approve import approved_labels, pending
    from khms.store import cards
    from khms.store.inbox import find

    if unit is None:
        waiting_units = [row for row, waiting in _rows(session) if waiting or row.broken]
        if not waiting_units:
            session.say("nothing awaits review")
            return
        unit = waiting_units[0].name
    held = find(session.base, unit)
    records = cards.approvals(session.base)
    waiting = pending(session.base, held, records)
    done = approved_labels(records, held.path)
    missing = [label for label in labels if held.candidate(label) is None]
    if missing:
        known = ", ".join(candidate.label for candidate in held.candidates) or "none"
        raise Usage(f"{held.name} has no candidate {', '.join(missing)}", hint=f"it has: {known}")
    chosen = [c for c in held.candidates if c.label in labels] if labels else waiting
    quoted = _looked_up(session, chosen)
    chosen = sorted(chosen, key=lambda candidate: not _flagged(candidate, quoted[candidate.label]))
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
    if not chosen:
        _show_cards(session, done)
    for candidate in chosen:
        session.say()
        _show_candidate(session, held, candidate, quoted[candidate.label], done.get(candidate.label))
    if waiting:
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
    title = one_line(f"{candidate.label}  {candidate.title or '(no title)'}")
    title = click.style(title, bold=True) if session.colour else title
    session.say(f"{title}{one_line(flags)}{became}")
    facts = [as_text(candidate.meta.get(key)) for key in ("type", "level", "scope", "evidence", "date")]
    where = f"{candidate.path}:{candidate.body_line}"
    session.say(f"  {one_line(' · '.join(fact for fact in facts if fact))}   {one_line(where)}")
    for line in clean(candidate.body).strip("\n").splitlines():
        session.say(f"  | {line}".rstrip())
    for quote in quotes:
        words = one_line(f"quote {quote.grade or 'unchecked'}, {quote.source}: “{quote.text}”")
        session.say(f"  {words}")
        for line in clean(quote.context).splitlines():
            session.say(f"      {line}")
    if not unit.single:
        session.say(f"  {one_line(_relation(candidate))}")


def _relation(candidate: Candidate) -> str:
    held = candidate.relation
    because = f" because {held.because}" if held.because else ""
    near = f"; nearest: {', '.join(candidate.nearest)}" if candidate.nearest else ""
    return f"relation: {held.kind} {held.target}".rstrip() + because + near


@click.command()
@click.argument("unit")
@click.argument("labels", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Everything that is pending in the unit.")
@click.option(
    "--relation",
    "relations",
    multiple=True,
    metavar="LABEL=KIND[:K-…]",
    help="Settle a relation: new, supports:K-…, contradicts:K-…, supersedes:K-…",
)
@click.option("--unjudged", is_flag=True, help="Accept candidates whose relation nobody judged.")
@click.option(
    "--accept-unchecked", "accepted", multiple=True, metavar="CHECK", help="Accept that this check did not run."
)
@click.option(
    "--waive", "waived", multiple=True, metavar="CHECK:LABEL", help="Let a named finding of one candidate pass."
)
@click.option("--why", default="", help="The reason of a waiver, or of a correction: what makes the new card right.")
@click.option("--here", is_flag=True, help="Approve on this branch, though it is not the one that receives approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def approve(
    session: Session,
    unit: str,
    labels: tuple[str, ...],
    everything: bool,
    relations: tuple[str, ...],
    unjudged: bool,
    accepted: tuple[str, ...],
    waived: tuple[str, ...],
    why: str,
    here: bool,
    as_json: bool,
) -> None:
    """Let candidates of UNIT in as cards: all that are named, or nothing.

    Each gets the next id; what it corrects is re-statused; a record with the hashes of all bytes comes into the same
    commit. The reviewer is git's own identity.

    \b
    khms approve 2026-11-30-nightly C1 C3
    khms approve 2026-11-30-nightly C2 --relation C2=supersedes:K-00008 --why "measured again"
    khms approve 2026-11-30-nightly --all --unjudged
    """
    from khms.pipeline.approve import approve as let_in
    from khms.render import views

    if everything and labels:
        raise Usage("labels and --all exclude each other", hint="name the labels, or say --all")
    wish = Wish(
        labels=labels,
        everything=everything,
        relations=_once(relations),
        unjudged=unjudged,
        accepted=frozenset(accepted),
        waived=frozenset(_pairs(waived, ":", "--waive quotes:C1")),
        why=why,
        here=here or _agree_on_branch(session, here),
    )
    if wish.waived and not why.strip():
        raise Usage("a waiver needs its reason", hint="--why 'what makes it right all the same'")
    result = let_in(session.base, session.repo, session.config, unit, wish, views.for_base)
    if result.recovered:
        session.note(result.recovered)
    if result.unneeded:
        session.note(one_line(f"not needed and not recorded: --waive {', --waive '.join(result.unneeded)}"))
    if result.commit:
        _refresh(session)
    if as_json:
        print_json(_approve_json(result))
        return
    _report(session, result)


def _pairs(items: Iterable[str], separator: str, example: str) -> Iterable[tuple[str, str]]:
    for item in items:
        left, found, right = item.partition(separator)
        if not found or not left or not right:
            raise Usage(f"{item!r} is not of the form LEFT{separator}RIGHT", hint=f"for example: {example}")
        yield left, right


def _once(relations: Iterable[str]) -> dict[str, str]:
    """label -> relation; raises Usage where one label gets two."""
    found: dict[str, str] = {}
    for label, relation in _pairs(relations, "=", "--relation C1=new"):
        if label in found:
            said = f"--relation {label}={found[label]} and --relation {label}={relation}"
            raise Usage(f"{label} has two relations: {said}", hint="a candidate has exactly one")
        found[label] = relation
    return found


def _agree_on_branch(session: Session, here: bool) -> bool:
    """Asks at a terminal whether to approve on another branch than the receiving one."""
    import sys

    from khms.pipeline import authority

    if here or not sys.stdin.isatty() or authority.on_receiving_branch(session.repo, session.config):
        return here
    want, at = authority.receiving_branch(session.repo, session.config), session.repo.branch() or "no branch"
    return click.confirm(f"Approvals belong on {want}, and HEAD is on {at}. Approve here?", err=True)


def _refresh(session: Session) -> None:
    """Brings the index up to the commit, so that the next prompt finds the card; what fails here is only late."""
    from khms.errors import KhmsError
    from khms.index import sync

    try:
        sync.refresh(session.base, config=session.config)
    except KhmsError as error:
        session.note(f"the index was not refreshed: {error.message} (khms index does it)")


def _approve_json(result: Result) -> dict[str, Any]:
    return {
        "schema": "khms.approve/1",
        "unit": result.unit,
        "commit": result.commit,
        "cards": [{"label": label, "id": card_id, "path": path} for label, card_id, path in result.cards],
        "transitions": [
            {"id": t.id, "field": t.field, "old": t.old, "new": t.new, "why": t.why} for t in result.transitions
        ],
        "already": dict(result.already),
        "unchecked": list(result.unchecked),
        "unneeded": list(result.unneeded),
    }


def _report(session: Session, result: Result) -> None:
    if result.commit is None:
        known = ", ".join(f"{label} = {card_id}" for label, card_id in result.already.items())
        session.say(one_line(f"nothing is pending in {result.unit}" + (f"; approved before: {known}" if known else "")))
        return
    for label, card_id, path in result.cards:
        session.say(one_line(f"{label} -> {card_id}  {path}"))
    for t in result.transitions:
        session.say(one_line(f"{t.id} {t.field}: {_shown(t.old)} -> {_shown(t.new)}  ({t.why})"))
    for line in result.unchecked:
        session.say(one_line(f"accepted unchecked: {line}"))
    session.say(f"commit {result.commit[:12]}, record memory/approvals/{result.record}.json")


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


@click.command()
@click.argument("unit")
@click.argument("labels", nargs=-1)
@click.option("--why", required=True, help="What is wrong; kept in the receipt.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def reject(session: Session, unit: str, labels: tuple[str, ...], why: str, as_json: bool) -> None:
    """Refuse candidates of UNIT: they move to its dropped/ folder. Without labels: all that are pending.

    \b
    khms reject 2026-11-30-nightly C3 --why "was never measured"
    """
    _withhold(session, unit, labels, "rejected", why, as_json)


@click.command()
@click.argument("unit")
@click.argument("labels", nargs=-1)
@click.option("--why", default="", help="Why not now; kept in the receipt.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def defer(session: Session, unit: str, labels: tuple[str, ...], why: str, as_json: bool) -> None:
    """Put candidates of UNIT off: they move to its deferred/ folder. Moving a file back brings it back.

    \b
    khms defer 2026-11-30-nightly C2
    """
    _withhold(session, unit, labels, "deferred", why, as_json)


def _withhold(session: Session, unit: str, labels: Sequence[str], verdict: str, why: str, as_json: bool) -> None:
    from khms.pipeline.withhold import withhold

    result = withhold(session.base, session.repo, session.config, unit, labels, verdict, why)
    if result.recovered:
        session.note(result.recovered)
    if as_json:
        print_json(_withheld_json(result, verdict))
        return
    for label, path in result.moved:
        session.say(one_line(f"{label} {verdict}: {path}"))
    if result.commit is None:
        session.say(one_line(f"nothing to do in {result.unit}: {', '.join(result.already) or 'nothing is pending'}"))


def _withheld_json(result: Withheld, verdict: str) -> dict[str, Any]:
    return {
        "schema": f"khms.{'reject' if verdict == 'rejected' else 'defer'}/1",
        "unit": result.unit,
        "commit": result.commit,
        "candidates": [{"label": label, "path": path} for label, path in result.moved],
        "already": list(result.already),
    }
