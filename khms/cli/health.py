"""How the base is: `status` for what waits, `doctor` for what is wrong."""

from typing import TYPE_CHECKING

import click

from khms.cli.output import clean, fold, one_line, print_json, table
from khms.cli.progress import progress
from khms.cli.session import Session
from khms.errors import Usage

if TYPE_CHECKING:
    from khms.hosts.schedulers.standing import Standing as Schedule
    from khms.measure.doctor import Result
    from khms.measure.status import Status
    from khms.pipeline.sync import Standing

_MARKS = {"ok": "ok", "mended": "mended", "note": "note", "bad": "BAD"}
_COLOURS = {"ok": "green", "mended": "cyan", "note": "yellow", "bad": "red"}


@click.command()
@click.option("--check", is_flag=True, help="Exit 1 where something is broken or overdue.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def status(ctx: click.Context, check: bool, as_json: bool) -> None:
    """What awaits review, what is overdue, how the index stands, what cannot be read."""
    from khms.measure.status import status as look

    session: Session = ctx.obj
    found = look(session.base, session.config)
    if as_json:
        print_json(found.as_json())
    else:
        _show(session, found)
    if check and found.problems:
        ctx.exit(1)


def _show(session: Session, found: "Status") -> None:
    count = ", ".join(f"{number} {name}" for name, number in found.cards.items()) or "none yet"
    rows = [("base", f"{found.root}" + (f" on {found.branch}" if found.branch else "")), ("cards", count)]
    rows.append(("open MARKs", "cannot be counted" if found.open_marks is None else str(found.open_marks)))
    if found.units is None:
        rows.append(("to review", "cannot be told"))
    else:
        waiting = ", ".join(f"{unit.unit} ({unit.pending})" for unit in found.units)
        rows.append(("to review", waiting or "nothing"))
    rows.append(("last nightly", found.last_nightly or "never"))
    rows.append(("last weekly", found.last_weekly or "never"))
    index = "none yet" if found.docs is None else f"{found.docs} documents"
    rows.append(("index", index + (f", behind: {found.behind_why}" if found.behind and found.docs is not None else "")))
    rows.append(("model", str(found.model)))
    rows.append(("scheduled", _scheduled(found.schedule)))
    if found.shared:
        rows.append(("shared", _standing(found.shared)))
    if found.lock:
        rows.append(("lock", found.lock))
    for name, value in rows:
        session.say(fold(f"{name:<13} {one_line(value)}", 14))
    for problem in found.problems:
        told = fold(f"problem       {one_line(problem.message)}", 14)
        session.say(click.style(told, fg="red") if session.colour else told)
        for line in (problem.where, problem.mend):
            if line:
                session.say(fold(f"              {one_line(line)}", 14))


def _scheduled(schedule: "Schedule | None") -> str:
    if schedule is None:
        return "nothing (khms schedule install)"
    from khms.cli.schedule import told

    if schedule.why:
        return f"with {schedule.scheduler}, which cannot be asked: {schedule.why}"
    return f"with {schedule.scheduler}: " + ". ".join(f"{job.job} {job.when}: {told(job)}" for job in schedule.jobs)


def _standing(shared: "Standing") -> str:
    place = f"{shared.remote} {shared.branch}"
    said = []
    if shared.ahead:
        said.append(f"{shared.ahead} commits not published, {shared.approvals} of them approvals or transitions")
    if shared.behind:
        said.append(f"{shared.behind} behind the last fetch")
    return f"{place}: {'; '.join(said)} (khms sync)" if said else f"{place}: as of the last fetch, the same"


@click.command()
@click.option("--repair", is_flag=True, help="Mend what needs no judgement: index, leftovers, generated files.")
@click.option("--secrets", is_flag=True, help="Look for secrets in all of git's history, and do nothing else.")
@click.option("--mcp", is_flag=True, help="Ask every server that hosts have of khms for its tools; nothing else.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def doctor(ctx: click.Context, repair: bool, secrets: bool, mcp: bool, as_json: bool) -> None:
    """Find what is wrong with the base and around it, and say what mends it. Exit 1 where something stays wrong.

    A command that was killed half-way is finished or undone at once; everything else is left alone without --repair.
    """
    from khms.measure.doctor import BAD, OK, examine, proposers

    session: Session = ctx.obj
    if secrets + mcp + repair > 1:
        raise Usage("--secrets, --mcp and --repair exclude each other", hint="run them one after the other")
    if secrets:
        _secrets(ctx, session, as_json)
        return
    results = _servers(session) if mcp else examine(session.base, repair=repair)
    if as_json:
        checks = [result.as_json() for result in results]
        print_json({"schema": "khms.doctor/1", "checks": checks, **({} if mcp else {"proposers": proposers()})})
    for result in () if as_json else results:
        if result.state == OK and session.quiet:
            continue
        word = f"{_MARKS[result.state]:<7}"
        line = fold(f"{word}{result.check:<12} {one_line(result.message)}", 20)
        print(line.replace(word, click.style(word, fg=_COLOURS[result.state]), 1) if session.colour else line)
        if result.state != OK:
            for line in (result.where, result.mend):
                if line:
                    print("\n".join(fold(f"{'':<20}{part}", 20) for part in clean(line).splitlines()))
    if not as_json and not session.quiet and not mcp:
        held = proposers()
        session.say("\nWhat a proposer is kept to while it answers:")
        table(["proposer", *next(iter(held.values()))], [[name, *words.values()] for name, words in held.items()])
    if any(result.state == BAD for result in results):
        ctx.exit(1)


def _servers(session: Session) -> "list[Result]":
    from khms.mcp_server import serving, visit

    serving.needed()
    return visit.examine(session.cwd)


def _secrets(ctx: click.Context, session: Session, as_json: bool) -> None:
    from dataclasses import asdict

    from khms.measure.secrets import scan

    with progress("history", quiet=session.quiet or as_json) as told:
        found = scan(session.repo, told)
    if as_json:
        leaks = [asdict(leak) for leak in found.leaks]
        print_json({"schema": "khms.secrets/1", "looked": found.looked, "findings": leaks, "large": list(found.large)})
    else:
        for leak in found.leaks:
            place = f"{leak.path}:{leak.line}" if leak.path else f"its message, line {leak.line}"
            still = "" if leak.here or not leak.path else "  (not in the file today)"
            print(fold(one_line(f"{leak.commit[:12]} {place}: {leak.id}: {leak.snippet}{still}"), 13))
        for path in found.large:
            session.note(one_line(f"too large to look at: {path}"))
        count = len(found.leaks)
        said = "nothing looks like a secret" if not count else f"{count} place{'' if count == 1 else 's'} to look at"
        session.say(f"{found.looked} contents of the history looked through: {said}")
        if count:
            session.say("renew what is real; khms redact takes it out of a card and tells how history is rewritten")
    if found.leaks:
        ctx.exit(1)
